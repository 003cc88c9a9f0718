// Package policy parses IAM's policy documents and evaluates them: may this principal do this to that resource, and which statement says so?
// It is pure. It knows neither users nor roles nor services: whoever asks hands in the policies and what is known of the request. The API of
// IAM and whatever enforces policies call it.
package policy

import "strings"

// Kind is what a document is attached to, which decides which elements it may have.
type Kind uint8

// The kinds of documents.
const (
	Identity Kind = iota // of users, groups and roles; boundaries and session policies are like these
	Resource             // of a bucket, a queue and the like
	Trust                // of a role: who may assume it
)

// Policy is a parsed document.
type Policy struct {
	ID         string
	Statements []Statement

	variables bool // whether ${…} stands for something: not in documents of 2008-10-17
}

// Statement is one statement of a document.
type Statement struct {
	Sid   string
	Allow bool // else it denies
	// Start and End are where it is in the document: the offsets of its first byte and of the one behind its last.
	Start int64
	End   int64

	principals principals
	actions    elements
	resources  elements
	conditions []condition
}

// elements are the values of Action or NotAction, or of Resource or NotResource. Without values they match everything.
type elements struct {
	values []string
	not    bool
}

// Principals returns the principals that the document's statements name as a kind: "AWS", "Service" and so on.
func (p *Policy) Principals(kind string) (all []string) {
	for _, s := range p.Statements {
		all = append(all, s.principals.named[kind]...)
	}
	return all
}

// Keys returns the context keys that the document asks for, in conditions and as variables: each once, in the order of the document.
func (p *Policy) Keys() (all []string) {
	seen := map[string]bool{}
	add := func(key string) {
		if folded := strings.ToLower(key); !seen[folded] {
			seen[folded] = true
			all = append(all, key)
		}
	}
	for _, s := range p.Statements {
		p.eachVariable(s.resources.values, add)
		for _, c := range s.conditions {
			add(c.key)
			p.eachVariable(c.values, add)
		}
	}
	return all
}

// Malformed is what is wrong with a document, in IAM's words.
type Malformed struct{ Message string }

func (m *Malformed) Error() string { return m.Message }

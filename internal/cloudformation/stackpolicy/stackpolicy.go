// Package stackpolicy reads and decides by stack policies, which protect a stack's resources from its updates. It is pure.
//
// The language is that of
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/protect-stack-resources.html
// and looks like IAM's: a policy is a list of statements, what none allows is denied, and a statement that denies beats all that allow.
package stackpolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Action is what an update does to a resource.
type Action string

// The actions that a statement may name. Update:* stands for all.
const (
	Modify  Action = "Update:Modify"
	Replace Action = "Update:Replace"
	Delete  Action = "Update:Delete"
)

const anyAction = "Update:*"

// resourcePrefix is what the logical IDs in a statement come after.
const resourcePrefix = "LogicalResourceId/"

// typeKey is the only key that conditions know.
const typeKey = "ResourceType"

// Policy is a stack policy.
type Policy struct{ statements []statement }

type statement struct {
	denies    bool
	actions   []string
	resources []string
	otherThan bool // the resources are those that the statement isn't about
	besides   bool // the actions are those that the statement isn't about
	types     []typeTest
}

// typeTest is a condition on the resource's type, one of whose values it must fit.
type typeTest struct {
	values []string
	wild   bool
}

// document is a policy as it's written.
type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement oneOrMore[written]
}

type written struct {
	SID         string `json:"Sid"`
	Effect      string
	Action      oneOrMore[string]
	NotAction   oneOrMore[string]
	Resource    oneOrMore[string]
	NotResource oneOrMore[string]
	Principal   any
	Condition   map[string]map[string]oneOrMore[string]
}

// oneOrMore is a list that may be written as its only element.
type oneOrMore[T any] []T

func (l *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return strictly(text, (*[]T)(l))
	}
	var one T
	if err := strictly(text, &one); err != nil {
		return err
	}
	*l = oneOrMore[T]{one}
	return nil
}

func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// Parse reads a policy. The error says what is wrong with it.
func Parse(text string) (*Policy, error) {
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("the policy is not JSON")
	}
	var d document
	if err := strictly([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(d.Statement) == 0 {
		return nil, fmt.Errorf("the policy has no Statement")
	}
	p := &Policy{}
	for i := range d.Statement {
		s, err := d.Statement[i].read()
		if err != nil {
			return nil, fmt.Errorf("statement [#%d]: %w", i+1, err)
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

func (w *written) read() (s statement, err error) {
	switch {
	case w.Effect != "Allow" && w.Effect != "Deny":
		return s, fmt.Errorf("the Effect must be Allow or Deny")
	case (w.Action == nil) == (w.NotAction == nil):
		return s, fmt.Errorf("there must be either Action or NotAction")
	case (w.Resource == nil) == (w.NotResource == nil):
		return s, fmt.Errorf("there must be either Resource or NotResource")
	case !isEverybody(w.Principal):
		return s, fmt.Errorf("the Principal must be \"*\"")
	}
	s = statement{
		denies:    w.Effect == "Deny",
		actions:   append(w.Action, w.NotAction...),
		resources: append(w.Resource, w.NotResource...),
		besides:   w.Action == nil,
		otherThan: w.Resource == nil,
	}
	for _, a := range s.actions {
		if !slices.Contains([]string{anyAction, string(Modify), string(Replace), string(Delete)}, a) {
			return s, fmt.Errorf("unknown action %q: there are %s, %s, %s and %s", a, Modify, Replace, Delete, anyAction)
		}
	}
	for _, r := range s.resources {
		if r != "*" && !strings.HasPrefix(r, resourcePrefix) {
			return s, fmt.Errorf("invalid resource %q: it must be \"*\" or begin with %s", r, resourcePrefix)
		}
	}
	s.types, err = typeTests(w.Condition)
	return s, err
}

// isEverybody reports whether a statement is about everybody, which is all that it can be about.
func isEverybody(principal any) bool {
	if kinds, ok := principal.(map[string]any); ok && len(kinds) == 1 {
		principal = kinds["AWS"]
	}
	return principal == "*"
}

func typeTests(conditions map[string]map[string]oneOrMore[string]) (tests []typeTest, err error) {
	for operator, keys := range conditions {
		if operator != "StringEquals" && operator != "StringLike" {
			return nil, fmt.Errorf("unknown condition %q: there are StringEquals and StringLike", operator)
		}
		for key, values := range keys {
			if key != typeKey {
				return nil, fmt.Errorf("unknown condition key %q: there is %s", key, typeKey)
			}
			tests = append(tests, typeTest{values, operator == "StringLike"})
		}
	}
	return tests, nil
}

// Check returns why an update may not do something to a resource, or "" if it may.
func (p *Policy) Check(do Action, logicalID, resourceType string) (reason string) {
	allowed := false
	for i := range p.statements {
		s := &p.statements[i]
		if !s.applies(do, logicalID, resourceType) {
			continue
		}
		if s.denies {
			return fmt.Sprintf("Action denied by stack policy: Statement [#%d] does not allow [%s] for resource [%s%s]",
				i+1, do, resourcePrefix, logicalID)
		}
		allowed = true
	}
	if allowed {
		return ""
	}
	return fmt.Sprintf("Action not allowed by stack policy: no statement allows [%s] for resource [%s%s]", do, resourcePrefix, logicalID)
}

func (s *statement) applies(do Action, logicalID, resourceType string) bool {
	names := func(a string) bool { return a == anyAction || a == string(do) }
	covers := func(r string) bool { return r == "*" || fits(r, resourcePrefix+logicalID) }
	if slices.ContainsFunc(s.actions, names) == s.besides || slices.ContainsFunc(s.resources, covers) == s.otherThan {
		return false
	}
	for _, t := range s.types {
		if !t.holds(resourceType) {
			return false
		}
	}
	return true
}

func (t typeTest) holds(resourceType string) bool {
	return slices.ContainsFunc(t.values, func(v string) bool { return v == resourceType || t.wild && fits(v, resourceType) })
}

// fits reports whether text is what a pattern with stars says. RE2 takes time that grows with the text alone, whatever the pattern.
func fits(pattern, text string) bool {
	expr := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	return regexp.MustCompile("^" + expr + "$").MatchString(text)
}

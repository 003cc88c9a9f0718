// Package filterpolicy decides which of a topic's messages a subscription gets: it parses Amazon SNS's filter policies, refuses what SNS
// refuses, and matches messages' attributes or bodies. It is pure: the policy and the message are all that it looks at. sns calls it when a
// policy is set, and for each subscription of a message that is published.
package filterpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/events/eventpattern"
)

// Scope is what of a message a policy is matched against.
type Scope string

// The scopes, by their names in the attribute FilterPolicyScope.
const (
	Attributes Scope = "MessageAttributes"
	Body       Scope = "MessageBody"
)

// Limits: https://docs.aws.amazon.com/sns/latest/dg/subscription-filter-policy-constraints.html
const (
	maxKeys         = 5
	maxCombinations = 150
	maxSize         = 150 << 10
	maxDepth        = 100 // of objects in each other
	maxName         = 256 // bytes; those of attributes can't be longer
	maxDots         = 20  // in a name, each of which may be that of an object inside
)

// Policy is a filter policy. It's for one scope.
type Policy struct {
	scope Scope
	root  *eventpattern.Object
}

// Error is why SNS refuses a policy, in its words.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func refuse(format string, args ...any) error {
	return &Error{"FilterPolicy: " + fmt.Sprintf(format, args...)}
}

// dialect is what Amazon SNS has of the language that it shares with EventBridge.
var dialect = eventpattern.Dialect{Refuse: refuse, Narrow: true}

// Parse reads a policy for a scope. Its errors are of type *Error.
func Parse(scope Scope, text string) (*Policy, error) {
	if len(text) > maxSize {
		return nil, refuse("Filter policy is larger than %d bytes", maxSize)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, refuse("failed to parse JSON. %s", err)
	}
	properties, isObject := value.(map[string]any)
	if !isObject {
		return nil, refuse("Filter is not an object")
	}
	if len(properties) > maxKeys {
		return nil, refuse("Filter policy can not have more than %d keys", maxKeys)
	}
	p := parser{scope: scope}
	combinations, err := p.count(properties, 1, 1)
	if err != nil {
		return nil, err
	}
	if combinations > maxCombinations {
		return nil, refuse("Filter policy is too complex")
	}
	root, err := dialect.Parse(properties)
	return &Policy{scope, root}, err
}

// parser parses the policies of one scope.
type parser struct{ scope Scope }

// count returns how complex a policy is, given how complex what came before is. Each list of conditions multiplies by its length and its
// depth; of an $or each alternative counts. It stops counting where the policy is too complex anyway.
func (p parser) count(properties map[string]any, depth, before int) (int, error) {
	if depth > maxDepth {
		return 0, refuse("Filter policy is too complex")
	}
	if depth > 1 && p.scope == Attributes {
		return 0, &Error{"Filter policy scope MessageAttributes does not support nested filter policy"}
	}
	combinations := before
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(name) > maxName || strings.Count(name, ".") > maxDots {
			return 0, refuse("Filter policy is too complex")
		}
		if each, ok := eventpattern.Alternatives(name, properties[name]); ok {
			sum := 0
			for _, alternative := range each {
				n, err := p.count(alternative, depth, combinations)
				if err != nil {
					return 0, err
				}
				sum = min(sum+n, maxCombinations+1)
			}
			combinations = sum
			continue
		}
		switch v := properties[name].(type) {
		case map[string]any:
			n, err := p.count(v, depth+1, combinations)
			if err != nil {
				return 0, err
			}
			combinations = n
		case []any:
			if len(v) == 0 {
				return 0, refuse("Empty arrays are not allowed")
			}
			combinations = min(combinations*len(v)*depth, maxCombinations+1)
		default:
			return 0, refuse("%q must be an object or an array", name)
		}
	}
	return combinations, nil
}

// MatchBody reports whether the policy lets a message with a body through. Any policy that asks for something needs a JSON object.
func (p *Policy) MatchBody(body string) bool {
	if p.root.IsEmpty() {
		return true
	}
	var value map[string]any
	if json.Unmarshal([]byte(body), &value) != nil || value == nil {
		return false
	}
	return p.root.Matches(value)
}

// Attribute is a message's attribute: its data type, such as String.Array, and its value.
type Attribute struct{ Type, Value string }

// MatchAttributes reports whether the policy lets a message with these attributes through. Binary ones count as not given.
func (p *Policy) MatchAttributes(attributes map[string]Attribute) bool {
	properties := map[string]any{}
	for name, a := range attributes {
		if value, ok := a.value(); ok {
			properties[name] = value
		}
	}
	return p.root.Matches(properties)
}

// value returns the attribute as a value of JSON, or false if it can match nothing.
func (a Attribute) value() (any, bool) {
	kind, label, _ := strings.Cut(a.Type, ".")
	switch {
	case kind == "String" && label == "Array":
		var list []any
		if json.Unmarshal([]byte(a.Value), &list) != nil {
			return nil, false
		}
		return list, true
	case kind == "String":
		return a.Value, true
	case kind == "Number":
		n, ok := parseNumber(a.Value)
		return n, ok
	}
	return nil, false
}

// parseNumber reads a number as JSON has it.
func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && n == n
}

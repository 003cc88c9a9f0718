package resources

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// Difference is a property that isn't as the template says. A value that isn't there is nil.
type Difference struct {
	Path     string // a JSON pointer, such as /Tags/0/Value
	Expected any
	Actual   any
	Type     types.DifferenceType
}

// Differences compares what a template says of a resource with how it is, both as Written returns them. What the template doesn't say is not
// compared, and the order of lists counts only where a service heeds it.
func Differences(expected, actual map[string]any) []Difference {
	c := &comparison{}
	c.members("", expected, actual)
	return c.found
}

// comparison collects differences.
type comparison struct {
	whole bool // within a document, of which the template gives all that there is
	found []Difference
}

func (c *comparison) add(kind types.DifferenceType, path string, expected, actual any) {
	c.found = append(c.found, Difference{path, expected, actual, kind})
}

func (c *comparison) members(path string, expected, actual map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		c.value(path+"/"+escaped(name), name, expected[name], actual[name])
	}
	if !c.whole {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(actual)) {
		if _, there := expected[name]; !there {
			c.add(types.DifferenceTypeAdd, path+"/"+escaped(name), nil, actual[name])
		}
	}
}

// escaped returns a name as it stands in a JSON pointer (RFC 6901).
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (c *comparison) value(path, name string, expected, actual any) {
	if slices.Contains(documents, name) && !c.whole {
		c.whole = true
		defer func() { c.whole = false }()
		expected, actual = canonical(expected), canonical(actual)
	}
	switch e := expected.(type) {
	case map[string]any:
		if a, is := actual.(map[string]any); is {
			c.members(path, e, a)
			return
		}
	case []any:
		if a, is := actual.([]any); is {
			c.list(path, name, e, a)
			return
		}
	}
	switch {
	case isEmpty(expected) && isEmpty(actual), isSame(expected, actual):
	case actual == nil:
		c.add(types.DifferenceTypeRemove, path, expected, nil)
	default:
		c.add(types.DifferenceTypeNotEqual, path, expected, actual)
	}
}

// isEmpty reports whether a value says no more than none does.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	text, _ := template.Text(v)
	return text == "" || text == "0" || text == "false"
}

// isSame reports whether two values are the same, however numbers and Booleans are written.
func isSame(a, b any) bool {
	x, isText := template.Text(a)
	y, isTextToo := template.Text(b)
	if isText && isTextToo {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

// ordered are the lists in which a service heeds the order.
var ordered = []string{
	"Command", "EntryPoint", "LaunchTemplateOverrides", "Overrides", "PlacementStrategies", "TerminationPolicies",
}

// list compares lists. Elements that are the same are found wherever they stand. What is left over is compared by what names it, such as a
// tag's key, or else in its order. What was added is numbered after what was expected.
func (c *comparison) list(path, name string, expected, actual []any) {
	if slices.Contains(ordered, name) {
		c.inOrder(path, name, expected, actual)
		return
	}
	taken := make([]bool, len(actual))
	for _, i := range c.unmatched(name, expected, actual, taken) {
		at := partner(expected[i], actual, taken)
		here := path + "/" + strconv.Itoa(i)
		if at < 0 {
			c.add(types.DifferenceTypeRemove, here, expected[i], nil)
			continue
		}
		taken[at] = true
		c.value(here, name, expected[i], actual[at])
	}
	at := len(expected)
	for i, a := range actual {
		if !taken[i] {
			c.add(types.DifferenceTypeAdd, path+"/"+strconv.Itoa(at), nil, a)
			at++
		}
	}
}

// unmatched returns the places of the expected elements that are nowhere, and notes which of the actual ones were found.
func (c *comparison) unmatched(name string, expected, actual []any, taken []bool) (left []int) {
	for i, e := range expected {
		found := false
		for j, a := range actual {
			if found = !taken[j] && c.isAlike(name, e, a); found {
				taken[j] = true
				break
			}
		}
		if !found {
			left = append(left, i)
		}
	}
	return left
}

// isAlike reports whether there's no difference between two elements of a list.
func (c *comparison) isAlike(name string, expected, actual any) bool {
	within := &comparison{whole: c.whole}
	within.value("", name, expected, actual)
	return len(within.found) == 0
}

func (c *comparison) inOrder(path, name string, expected, actual []any) {
	for i := range max(len(expected), len(actual)) {
		here := path + "/" + strconv.Itoa(i)
		switch {
		case i >= len(actual):
			c.add(types.DifferenceTypeRemove, here, expected[i], nil)
		case i >= len(expected):
			c.add(types.DifferenceTypeAdd, here, nil, actual[i])
		default:
			c.value(here, name, expected[i], actual[i])
		}
	}
}

// naming are the members by which the elements of lists are told apart.
var naming = []string{
	"Key", "Name", "Id", "PolicyName", "LifecycleHookName", "ScheduledActionName", "DeviceName", "ContainerName", "MetricName", "Sid",
}

// partner returns the place of the element that an expected one has become, or -1.
func partner(expected any, actual []any, taken []bool) int {
	e, isObject := expected.(map[string]any)
	if !isObject {
		return -1 // a text that isn't there was taken away, and another one added
	}
	for _, name := range naming {
		if e[name] == nil {
			continue
		}
		for i, a := range actual {
			if a, is := a.(map[string]any); is && !taken[i] && isSame(e[name], a[name]) {
				return i
			}
		}
		return -1
	}
	return slices.Index(taken, false)
}

// documents are the properties that are policies or the like.
var documents = []string{
	"AssumeRolePolicyDocument", "DashboardBody", "PolicyDocument", "RedriveAllowPolicy", "RedrivePolicy", "ResourcePolicy",
}

// canonical returns a document in one form: parsed, with a list where there may be one or many statements, and without one where a list has
// one text only.
func canonical(v any) any {
	switch v := v.(type) {
	case string:
		if p := parsed(&v); p != nil && strings.HasPrefix(strings.TrimSpace(v), "{") {
			return canonical(p)
		}
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if one, is := member.(map[string]any); is && name == "Statement" {
				member = []any{one}
			}
			out[name] = canonical(member)
		}
		return out
	case []any:
		if len(v) == 1 {
			if text, is := template.Text(v[0]); is {
				return text
			}
		}
		out := []any{}
		for _, one := range v {
			out = append(out, canonical(one))
		}
		return out
	}
	return v
}

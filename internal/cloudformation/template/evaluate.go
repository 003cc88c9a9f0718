package template

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Unknown is what isn't known before a resource exists.
type Unknown struct{}

// HasUnknown reports whether a part of an evaluated value isn't known yet.
func HasUnknown(v any) bool {
	switch v := v.(type) {
	case Unknown:
		return true
	case []any:
		return slices.ContainsFunc(v, HasUnknown)
	case map[string]any:
		for _, element := range v {
			if HasUnknown(element) {
				return true
			}
		}
	}
	return false
}

// noValue is what AWS::NoValue stands for: where it is left, the field or the element is taken out.
type noValue struct{}

// Scope is what a template's functions get their values from.
type Scope struct {
	Parameters       map[string]any // strings, and lists of strings as []any; all of the template's
	AccountID        string
	Region           string
	StackName        string
	StackID          string
	NotificationARNs []string
	// Zones lists a region's Availability Zones.
	Zones func(region string) []string
	// Ref returns what Ref of a resource is, or Unknown.
	Ref func(resource string) any
	// Attribute returns an attribute of a resource, or Unknown.
	Attribute func(resource, name string) (any, error)
	// Import returns what another stack exports.
	Import func(name string) (any, error)
}

// Evaluation evaluates the functions of a template for one scope.
type Evaluation struct {
	template   *Template
	scope      Scope
	conditions map[string]bool
	room       int  // how many bytes functions may still make
	inOutputs  bool // an output's value is evaluated
}

// newEvaluation returns an evaluation that knows no condition yet.
func newEvaluation(t *Template, scope Scope) *Evaluation {
	return &Evaluation{template: t, scope: scope, conditions: map[string]bool{}, room: maxMade}
}

// maxMade is how many bytes the functions of one value may make together, and so may those of all conditions or all rules. Functions inside
// functions multiply: without a bound, a template of a few hundred bytes would ask for more than there is memory.
const maxMade = 1 << 20

// overhead is how many bytes a value counts for beside its text.
const overhead = 32

// spend takes a number of bytes from what functions may still make.
func (e *Evaluation) spend(n int) error {
	if e.room -= n; e.room < 0 {
		return wrong("functions together make more than %d bytes", maxMade)
	}
	return nil
}

// size is how many bytes an evaluated value counts for.
func size(v any) int {
	n := overhead
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for name, field := range v {
			n += len(name) + size(field)
		}
	}
	return n
}

// Evaluate decides the template's conditions. Errors are of type *Error.
func (t *Template) Evaluate(scope Scope) (*Evaluation, error) {
	e := newEvaluation(t, scope)
	for _, c := range t.Conditions {
		if _, err := e.named(c.Name); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Has reports whether what has a condition, or "" for none, is to be there.
func (e *Evaluation) Has(condition string) bool { return condition == "" || e.conditions[condition] }

// Value evaluates a value: strings, bool, json.Number, []any, map[string]any, or Unknown where it depends on what doesn't exist yet.
func (e *Evaluation) Value(v *Value) (any, error) {
	e.room = maxMade
	got, err := e.value(v)
	if _, none := got.(noValue); none {
		return nil, err
	}
	return got, err
}

// Output evaluates an output's value.
func (e *Evaluation) Output(o *Output) (any, error) {
	of := *e
	of.inOutputs = true
	return of.Value(o.Value)
}

func (e *Evaluation) value(v *Value) (any, error) {
	if v == nil {
		return noValue{}, nil
	}
	if name, argument := v.Call(); name != "" {
		got, err := e.call(name, argument)
		if err != nil {
			return nil, err
		}
		return got, e.spend(size(got))
	}
	switch v.Kind {
	case Object:
		return e.object(v)
	case List:
		return e.list(v)
	case Bool:
		return v.Text == "true", nil
	case Number:
		if json.Valid([]byte(v.Text)) {
			return json.Number(v.Text), nil
		}
	case Null, String:
	}
	return v.Text, nil
}

func (e *Evaluation) object(v *Value) (any, error) {
	out := make(map[string]any, len(v.Fields))
	for _, f := range v.Fields {
		got, err := e.value(f.Value)
		if err != nil {
			return nil, err
		}
		if _, none := got.(noValue); !none && !e.isWithout(f.Value) {
			out[f.Name] = got
		}
	}
	return out, nil
}

// isWithout reports whether a field's value is that of a parameter which says AWS::NoValue: templates have that as a default, and
// CloudFormation leaves the field out.
func (e *Evaluation) isWithout(v *Value) bool {
	if name, argument := v.Call(); name == "Ref" {
		return e.scope.Parameters[argument.Text] == "AWS::NoValue"
	}
	return false
}

func (e *Evaluation) list(v *Value) (any, error) {
	out := make([]any, 0, len(v.Items))
	for _, item := range v.Items {
		got, err := e.value(item)
		if err != nil {
			return nil, err
		}
		if _, none := got.(noValue); !none {
			out = append(out, got)
		}
	}
	return out, nil
}

// named decides a condition by its name. That there is no circle was checked.
func (e *Evaluation) named(name string) (bool, error) {
	if is, known := e.conditions[name]; known {
		return is, nil
	}
	is, err := e.decide(e.template.conditions[name])
	e.conditions[name] = is
	return is, err
}

// decide evaluates a condition.
func (e *Evaluation) decide(v *Value) (bool, error) {
	if name, ok := v.condition(); ok {
		if e.template.conditions[name] == nil {
			return false, malformed("Unresolved condition dependency %s in the Conditions block of the template", name)
		}
		return e.named(name)
	}
	name, argument := v.Call()
	switch name {
	case "Fn::Equals":
		return e.equals(argument)
	case "Fn::Not", "Fn::And", "Fn::Or":
		return logic(name, argument, e.decide)
	}
	return false, malformed("Conditions can only be boolean operations on parameters and other conditions")
}

// logic evaluates Fn::Not, Fn::And or Fn::Or of what can be decided.
func logic(name string, argument *Value, decide func(*Value) (bool, error)) (bool, error) {
	n := len(argument.Items)
	switch {
	case name == "Fn::Not" && n != 1:
		return false, wrong("every Fn::Not object requires one boolean parameter.")
	case name != "Fn::Not" && (n < 2 || n > 10):
		return false, wrong("every %s object requires a list of at least 2 and at most 10 boolean parameters.", name)
	}
	all, some := true, false
	for _, item := range argument.Items {
		is, err := decide(item)
		if err != nil {
			return false, err
		}
		all, some = all && is, some || is
	}
	switch name {
	case "Fn::Not":
		return !all, nil
	case "Fn::And":
		return all, nil
	}
	return some, nil
}

func (e *Evaluation) equals(argument *Value) (bool, error) {
	if len(argument.Items) != 2 {
		return false, wrong("every Fn::Equals object requires a list of 2 string parameters.")
	}
	a, err := e.value(argument.Items[0])
	if err != nil {
		return false, err
	}
	b, err := e.value(argument.Items[1])
	if err != nil {
		return false, err
	}
	return same(a, b), nil
}

// same compares two values, of which scalars are compared as text.
func same(a, b any) bool {
	x, isText := Text(a)
	y, isTextToo := Text(b)
	if isText || isTextToo {
		return isText && isTextToo && x == y
	}
	p, err := json.Marshal(a)
	q, errToo := json.Marshal(b)
	return err == nil && errToo == nil && string(p) == string(q)
}

// Text returns an evaluated value as text, if it's a scalar.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// ref evaluates Ref.
func (e *Evaluation) ref(name string) (any, error) {
	switch name {
	case "AWS::NoValue":
		return noValue{}, nil
	case "AWS::AccountId":
		return e.scope.AccountID, nil
	case "AWS::Region":
		return e.scope.Region, nil
	case "AWS::Partition":
		return partition(e.scope.Region), nil
	case "AWS::URLSuffix":
		return suffix(e.scope.Region), nil
	case "AWS::StackName":
		return e.scope.StackName, nil
	case "AWS::StackId":
		return e.scope.StackID, nil
	case "AWS::NotificationARNs":
		arns := []any{}
		for _, arn := range e.scope.NotificationARNs {
			arns = append(arns, arn)
		}
		return arns, nil
	}
	if value, there := e.scope.Parameters[name]; there {
		return value, nil
	}
	if err := e.exists(name); err != nil {
		return nil, err
	}
	return e.scope.Ref(name), nil
}

// exists refuses what refers to a resource that its condition leaves out.
func (e *Evaluation) exists(resource string) error {
	switch r := e.template.resources[resource]; {
	case r != nil && e.Has(r.Condition):
		return nil
	case e.inOutputs:
		return fail("Unresolved resource dependencies %s in the Outputs block of the template", list([]string{resource}))
	}
	return e.template.unresolved("Resources", []string{resource})
}

func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func suffix(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

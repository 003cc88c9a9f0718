package template

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// LanguageExtensions is the transform that is here: AWS::LanguageExtensions, with loops and more functions.
const LanguageExtensions = "AWS::LanguageExtensions"

// loopPrefix begins the keys that stand for loops. The loop's name follows.
const loopPrefix = "Fn::ForEach::"

// Bounds of an expansion. A loop in a loop multiplies, so it must end before its result is looked at.
const (
	maxExpanded  = 1 << 20 // bytes, as of a template in a bucket
	maxLoopDepth = 5       // loops in loops (the user guide's page about Fn::ForEach)
)

// Transforms lists the transforms that a template declares, and those that its sections call.
func Transforms(text []byte) ([]string, error) {
	root, err := parseText(text)
	if err != nil {
		return nil, err
	}
	return root.allTransforms()
}

// transforms lists the transforms that a template declares: one, or a list of them.
func (v *Value) transforms() (names []string, err error) {
	declared := v.Get("Transform")
	if declared == nil {
		return nil, nil
	}
	items := declared.Items
	if declared.Kind != List {
		items = []*Value{declared}
	}
	for _, item := range items {
		if name := item.Get("Name"); name != nil {
			item = name
		}
		if !item.isScalar() {
			return nil, fail("Key Name of transform definition must be a string.")
		}
		names = append(names, item.Text)
	}
	return names, nil
}

// expansion is a template's expansion by AWS::LanguageExtensions.
type expansion struct {
	*Evaluation // of what is known before there are resources: parameters and mappings
	variables   map[string]string
	left        int // bytes that the result may still have
	depth       int // of loops
	// isDeclaration leaves loops out whose collection isn't known, because no parameters were given.
	isDeclaration bool
	isPartial     bool // something was left out
}

// failed is the error for a template that the transform can't make sense of.
func failed(format string, args ...any) error {
	return fail("Transform "+LanguageExtensions+" failed with: "+format, args...)
}

// extended makes a template without extensions of one that has them. Without values only what parameters' defaults tell is known, and loops
// that go through others are left out.
func extended(root *Value, scope Scope, values func(*Template) (map[string]any, error)) (out *Value, isWhole bool, err error) {
	x, err := newExpansion(root, scope, values)
	if err != nil {
		return nil, false, err
	}
	out = &Value{Kind: Object}
	for _, f := range root.Fields {
		if f.Name == "Transform" {
			continue
		}
		if f.Name == "Conditions" || f.Name == "Resources" || f.Name == "Outputs" {
			if f.Value, err = x.value(f.Value); err != nil {
				return nil, false, err
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return out, !x.isPartial, x.policies(out)
}

// newExpansion reads the parameters and mappings that an expansion refers to.
func newExpansion(root *Value, scope Scope, values func(*Template) (map[string]any, error)) (*expansion, error) {
	plain := &Template{resources: map[string]*Resource{}, conditions: map[string]*Value{}}
	for _, s := range sections {
		if v := root.Get(s.name); v != nil && (s.name == "Parameters" || s.name == "Mappings") && v.Kind == Object {
			if err := s.read(plain, v); err != nil {
				return nil, err
			}
		}
	}
	isDeclaration := values == nil
	if isDeclaration {
		values = defaults
	}
	known, err := values(plain)
	if err != nil {
		return nil, err
	}
	scope.Parameters = known
	scope.Ref = func(string) any { return Unknown{} }
	scope.Attribute = func(string, string) (any, error) { return Unknown{}, nil }
	scope.Import = func(string) (any, error) { return Unknown{}, nil }
	if scope.Zones == nil {
		scope.Zones = func(string) []string { return nil }
	}
	return &expansion{
		Evaluation:    newEvaluation(plain, scope),
		variables:     map[string]string{},
		left:          maxExpanded,
		isDeclaration: isDeclaration,
	}, nil
}

// defaults returns the parameters' defaults.
func defaults(t *Template) (map[string]any, error) {
	values := map[string]any{}
	for i := range t.Parameters {
		if p := &t.Parameters[i]; p.Default != nil && p.Stored() == "" {
			values[p.Name] = p.Typed(*p.Default)
		}
	}
	return values, nil
}

// policies decides the policies and conditions of resources that functions name.
func (x *expansion) policies(root *Value) error {
	if conditions := root.Get("Conditions"); conditions != nil && !x.isDeclaration {
		if err := x.template.readConditions(conditions); err != nil {
			return err
		}
		if err := x.template.checkConditions(); err != nil {
			return err
		}
		for _, c := range x.template.Conditions {
			if _, err := x.named(c.Name); err != nil {
				return err
			}
		}
	}
	resources := root.Get("Resources")
	if resources == nil {
		return nil
	}
	for _, r := range resources.Fields {
		for i, f := range r.Value.Fields {
			if f.Name == "DeletionPolicy" || f.Name == "UpdateReplacePolicy" || f.Name == "Condition" {
				constant, err := x.constant(f.Value)
				if err != nil {
					return err
				}
				r.Value.Fields[i].Value = constant
			}
		}
	}
	return nil
}

// spend counts what the result gets, and what is done for it.
func (x *expansion) spend(bytes int) error {
	if x.left -= bytes + 1; x.left < 0 {
		return fail("Template may not exceed %d bytes in size.", maxExpanded)
	}
	return nil
}

// value expands a value.
func (x *expansion) value(v *Value) (*Value, error) {
	if err := x.spend(len(v.Text)); err != nil {
		return nil, err
	}
	name, argument := v.Call()
	switch {
	case strings.HasPrefix(name, loopPrefix), name == "" && v.Kind == Object:
		return x.object(v)
	case name != "":
		return x.function(name, argument)
	case v.Kind == String:
		return x.filled(v)
	case v.Kind != List:
		return v, nil
	}
	out := &Value{Kind: List}
	for _, item := range v.Items {
		expanded, err := x.value(item)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, expanded)
	}
	return out, nil
}

// object expands an object, in which keys may stand for loops.
func (x *expansion) object(v *Value) (*Value, error) {
	b := &objectBuilder{}
	if err := x.fields(v, b); err != nil {
		return nil, err
	}
	return b.done(), nil
}

// fields adds an object's expanded fields to one that is built.
func (x *expansion) fields(v *Value, b *objectBuilder) error {
	for _, f := range v.Fields {
		if strings.HasPrefix(f.Name, loopPrefix) {
			if err := x.loop(f, b); err != nil {
				return err
			}
			continue
		}
		name := x.put(f.Name)
		if _, twice := b.index[name]; twice {
			return failed("Duplicate key '%s' when merging keys to parent object in Fn::ForEach", name)
		}
		if err := x.spend(len(name)); err != nil {
			return err
		}
		expanded, err := x.value(f.Value)
		if err != nil {
			return err
		}
		b.set(name, expanded)
	}
	return nil
}

// loop adds what a loop stands for: its fragment once for each element of its collection.
func (x *expansion) loop(f Field, b *objectBuilder) error {
	items := f.Value.Items
	if len(items) != 3 || items[0].Kind != String || items[0].Text == "" || items[2].Kind != Object || f.Name == loopPrefix {
		return failed("Fn::ForEach layout is incorrect")
	}
	variable := items[0].Text
	_, taken := x.variables[variable]
	if taken || x.depth == maxLoopDepth {
		return failed("Fn::ForEach layout is incorrect")
	}
	elements, err := x.collection(items[1])
	if err != nil {
		return err
	}
	x.depth++
	for _, element := range elements {
		if err := x.spend(len(element)); err != nil {
			return err
		}
		x.variables[variable] = element
		if err := x.fields(items[2], b); err != nil {
			return err
		}
	}
	x.depth--
	delete(x.variables, variable)
	return nil
}

// collection returns what a loop goes through.
func (x *expansion) collection(v *Value) ([]string, error) {
	expanded, err := x.value(v)
	if err != nil {
		return nil, err
	}
	if calls(expanded, "Fn::If") {
		return nil, failed("Condition layout is incorrect")
	}
	const unresolved = "Could not find a collection or could not be resolved for Fn::ForEach"
	texts, isKnown, err := x.texts(expanded, unresolved)
	switch {
	case err == nil && isKnown:
		return texts, nil
	case x.isDeclaration:
		x.isPartial = true
		return nil, nil
	}
	return nil, failed(unresolved)
}

// placeholder finds a loop's variable in a key or a text. &{X} stands for its letters and digits alone.
var placeholder = regexp.MustCompile(`[$&]\{([A-Za-z0-9]+)\}`)

var others = regexp.MustCompile(`[^A-Za-z0-9]`)

// put puts the loops' variables into a key or a text.
func (x *expansion) put(into string) string {
	if len(x.variables) == 0 {
		return into
	}
	return placeholder.ReplaceAllStringFunc(into, func(found string) string {
		text, known := x.variables[found[2:len(found)-1]]
		switch {
		case !known:
			return found
		case found[0] == '&':
			return others.ReplaceAllString(text, "")
		}
		return text
	})
}

// filled returns a text with the loops' variables in it.
func (x *expansion) filled(v *Value) (*Value, error) {
	text := x.put(v.Text)
	if text == v.Text {
		return v, nil
	}
	return scalarOf(text), x.spend(len(text))
}

// function expands a function's call: those of the extensions, and those that refer to loops' variables.
func (x *expansion) function(name string, argument *Value) (*Value, error) {
	if name == "Ref" && argument.isScalar() {
		if text, known := x.variables[argument.Text]; known {
			return scalarOf(text), x.spend(len(text))
		}
	}
	if name == "Fn::Sub" {
		return x.substitution(argument)
	}
	expanded, err := x.value(argument)
	if err != nil {
		return nil, err
	}
	switch name {
	case "Fn::Length":
		return x.length(expanded)
	case "Fn::ToJsonString":
		return x.jsonString(expanded)
	case "Fn::FindInMap":
		if len(expanded.Items) == 4 {
			return x.findOr(expanded.Items)
		}
	case "Ref":
		expanded, err = x.constant(expanded)
	case "Fn::GetAtt":
		expanded, err = x.constants(expanded)
	}
	return &Value{Kind: Object, Fields: []Field{{name, expanded}}}, err
}

func scalarOf(text string) *Value { return &Value{Kind: String, Text: text} }

// constant returns the text that a function makes, if it's known already.
func (x *expansion) constant(v *Value) (*Value, error) {
	if name, _ := v.Call(); name == "" || x.template.Conditions == nil && calls(v, "Fn::If") {
		return v, nil
	}
	if text, isKnown, err := x.text(v, ""); err == nil && isKnown {
		return scalarOf(text), x.spend(len(text))
	}
	return v, nil
}

// constants is constant for each item of a list.
func (x *expansion) constants(v *Value) (*Value, error) {
	if v.Kind != List {
		return v, nil
	}
	out := &Value{Kind: List}
	for _, item := range v.Items {
		constant, err := x.constant(item)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, constant)
	}
	return out, nil
}

// substitution puts loops' variables into the text of Fn::Sub, which is plain text if it has no others.
func (x *expansion) substitution(argument *Value) (*Value, error) {
	text, own, err := substitutionParts(argument)
	if err != nil {
		return nil, err
	}
	text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		if own.Get(found[2:len(found)-1]) != nil {
			return found
		}
		return x.put(found)
	})
	if err := x.spend(len(text)); err != nil {
		return nil, err
	}
	switch {
	case own == nil && !strings.Contains(text, "${"):
		return scalarOf(text), nil
	case own == nil:
		return &Value{Kind: Object, Fields: []Field{{"Fn::Sub", scalarOf(text)}}}, nil
	}
	values, err := x.value(own)
	if err != nil {
		return nil, err
	}
	return &Value{Kind: Object, Fields: []Field{{"Fn::Sub", &Value{Kind: List, Items: []*Value{scalarOf(text), values}}}}}, nil
}

// length counts a list's elements.
func (x *expansion) length(list *Value) (*Value, error) {
	n := len(list.Items)
	if list.Kind != List {
		got, isKnown, err := x.known(list)
		items, isList := got.([]any)
		size, _ := jsonOf(got) //nolint:errcheck // what can't be written is no list
		if err := x.spend(len(size)); err != nil {
			return nil, err
		}
		if n = len(items); (err != nil || !isKnown || !isList) && !x.isDeclaration {
			return nil, failed("The Fn::Length value could not be resolved for properties")
		}
	}
	text, err := json.Marshal(n)
	return &Value{Kind: Number, Text: string(text)}, err
}

// findOr finds a value in a mapping, or takes the default.
func (x *expansion) findOr(items []*Value) (*Value, error) {
	otherwise := items[3].Get("DefaultValue")
	if otherwise == nil || len(items[3].Fields) != 1 {
		return nil, wrong("%s", findNeeds)
	}
	var path [3]string
	for i := range path {
		text, isKnown, err := x.text(items[i], findNeeds)
		if err != nil {
			return nil, err
		}
		if !isKnown && !x.isDeclaration {
			return nil, wrong("%s", findNeeds)
		}
		if path[i] = text; x.spend(len(text)) != nil {
			return nil, x.spend(0)
		}
	}
	if found := x.template.Mappings[path[0]][path[1]][path[2]]; found != nil {
		return x.value(found)
	}
	return otherwise, nil
}

// jsonString writes a value as JSON. What isn't known before there are resources is left to be written then.
func (x *expansion) jsonString(v *Value) (*Value, error) {
	if v.Kind < List {
		return nil, failed("Fn::ToJsonString requires an object or an array")
	}
	if calls(v, "Fn::If") || x.isDeclaration {
		return &Value{Kind: Object, Fields: []Field{{"Fn::ToJsonString", v}}}, nil
	}
	got, err := x.Evaluation.value(v)
	if err != nil || HasUnknown(got) {
		return &Value{Kind: Object, Fields: []Field{{"Fn::ToJsonString", v}}}, nil //nolint:nilerr // it's said when the template is checked
	}
	text, err := jsonOf(got)
	if err != nil {
		return nil, err
	}
	return scalarOf(text), x.spend(len(text))
}

// jsonOf writes an evaluated value as JSON without spaces.
func jsonOf(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}

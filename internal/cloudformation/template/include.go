package template

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// IncludeTransform is the transform that puts parts from a bucket into a template.
const IncludeTransform = "AWS::Include"

// transformKey calls a transform in a section.
const transformKey = "Fn::Transform"

// maxIncludes is how many parts are put into a template. AWS names no bound.
const maxIncludes = 100

// Fetch reads an object, of which a part of a template is made.
type Fetch func(bucket, key string) ([]byte, error)

// location is how AWS::Include names an object.
var location = regexp.MustCompile(`^s3://([^/]+)/(.+)$`)

// inclusion is the expansion of a template by AWS::Include.
type inclusion struct {
	fetch Fetch
	// known returns what the functions in a location may refer to.
	known func() (*expansion, error)
	count int
	left  int // bytes that may still be read
}

// IncludeErrorf returns the error for a part that can't be put into a template.
func IncludeErrorf(format string, args ...any) error {
	return fail("Transform "+IncludeTransform+" failed with: "+format, args...)
}

// Include puts the parts into a template that it includes by AWS::Include, and returns it as JSON; nil if it includes none. A location may
// refer to parameters and mappings. Errors are fetch's or of type *Error. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/transform-aws-include.html
func Include(text []byte, scope Scope, values func(*Template) (map[string]any, error), fetch Fetch) ([]byte, error) {
	root, err := parseText(text)
	if err != nil {
		return nil, err
	}
	names, err := root.allTransforms()
	if err != nil || !slices.Contains(names, IncludeTransform) {
		return nil, err
	}
	known := func() (*expansion, error) { return newExpansion(root.withoutCalls(), scope, values) }
	in := &inclusion{fetch: fetch, known: known, left: maxExpanded}
	whole := &objectBuilder{}
	for _, f := range root.Fields {
		if mayInclude(f) {
			if f.Value, err = in.value(f.Value); err != nil {
				return nil, err
			}
		}
		whole.set(f.Name, f.Value)
	}
	included, err := in.top(whole.done())
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(included)
	if err == nil && len(out) > maxExpanded {
		return nil, fail("Template may not exceed %d bytes in size.", maxExpanded)
	}
	return out, err
}

// mayInclude reports whether a section may have parts included.
func mayInclude(f Field) bool { return f.Name != "Transform" && f.Name != "Parameters" }

// withoutCalls returns a template without the sections that call transforms.
func (v *Value) withoutCalls() *Value {
	out := &Value{Kind: Object}
	for _, f := range v.Fields {
		if !mayInclude(f) || len(f.Value.calledTransforms()) == 0 {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// allTransforms lists the transforms that a template declares, and after them those that its sections call, each once.
func (v *Value) allTransforms() ([]string, error) {
	names, err := v.transforms()
	if err != nil {
		return nil, err
	}
	for _, f := range v.Fields {
		if mayInclude(f) {
			names = append(names, f.Value.calledTransforms()...)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		twice := seen[name]
		seen[name] = true
		return twice
	}), nil
}

// calledTransforms lists the transforms that a value calls.
func (v *Value) calledTransforms() (names []string) {
	for _, f := range v.Fields {
		if f.Name == transformKey {
			for _, call := range f.Value.each() {
				names = append(names, call.transform())
			}
			continue
		}
		names = append(names, f.Value.calledTransforms()...)
	}
	for _, item := range v.Items {
		names = append(names, item.calledTransforms()...)
	}
	return names
}

// each returns the items of a list, or the value itself, which stands for a list of one.
func (v *Value) each() []*Value {
	if v.Kind == List {
		return v.Items
	}
	return []*Value{v}
}

// transform returns the name of the transform that a value calls.
func (v *Value) transform() string {
	if name := v.Get("Name"); name != nil {
		return name.Text
	}
	return v.Text
}

// value puts parts into a value. Calls of other transforms stay.
func (in *inclusion) value(v *Value) (*Value, error) {
	switch v.Kind {
	case Object:
		return in.object(v)
	case List:
		out := &Value{Kind: List}
		for _, item := range v.Items {
			included, err := in.value(item)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, included)
		}
		return out, nil
	}
	return v, nil
}

// object puts the fields of parts beside an object's own.
func (in *inclusion) object(v *Value) (*Value, error) {
	b := &objectBuilder{}
	for _, f := range v.Fields {
		if f.Name != transformKey {
			included, err := in.value(f.Value)
			if err != nil {
				return nil, err
			}
			f.Value = included
		}
		if err := in.field(b, f); err != nil {
			return nil, err
		}
	}
	return b.done(), nil
}

// field adds a field, or the parts that it calls for.
func (in *inclusion) field(b *objectBuilder, f Field) error {
	isInclude := func(call *Value) bool { return call.transform() == IncludeTransform }
	if f.Name != transformKey || !slices.ContainsFunc(f.Value.each(), isInclude) {
		return add(b, f)
	}
	for _, call := range f.Value.each() {
		if !isInclude(call) {
			return refuseTransform(call)
		}
		part, err := in.part(call)
		if err != nil {
			return err
		}
		for _, f := range part.Fields {
			if err := add(b, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a field to an object that hasn't got it.
func add(b *objectBuilder, f Field) error {
	if _, twice := b.index[f.Name]; twice {
		return IncludeErrorf("the key %s is there already", f.Name)
	}
	b.set(f.Name, f.Value)
	return nil
}

// top puts the parts into a template that its section Transform names, and leaves the other transforms there.
func (in *inclusion) top(root *Value) (*Value, error) {
	b := &objectBuilder{}
	var parts []Field
	for _, f := range root.Fields {
		if f.Name != "Transform" {
			b.set(f.Name, f.Value)
			continue
		}
		others := &Value{Kind: List}
		for _, call := range f.Value.each() {
			if call.transform() != IncludeTransform {
				others.Items = append(others.Items, call)
				continue
			}
			part, err := in.part(call)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part.Fields...)
		}
		if len(others.Items) > 0 {
			b.set("Transform", others)
		}
	}
	for _, f := range parts {
		if err := add(b, f); err != nil {
			return nil, err
		}
	}
	return b.done(), nil
}

// part reads a part that a call of AWS::Include names: an object, as JSON or YAML without short forms of functions, that includes nothing.
func (in *inclusion) part(call *Value) (*Value, error) {
	at, err := in.location(call.Get("Parameters").Get("Location"))
	if err != nil {
		return nil, err
	}
	place := location.FindStringSubmatch(at)
	if place == nil {
		return nil, IncludeErrorf("The location parameter is not a valid S3 uri.")
	}
	if in.count++; in.count > maxIncludes {
		return nil, IncludeErrorf("a template may include %d parts", maxIncludes)
	}
	text, err := in.fetch(place[1], place[2])
	if err != nil {
		return nil, err
	}
	if in.left -= len(text); in.left < 0 {
		return nil, fail("Template may not exceed %d bytes in size.", maxExpanded)
	}
	part, err := parseText(text)
	if err != nil || part.Kind != Object || hasShortForms(text) || slices.Contains(part.calledTransforms(), IncludeTransform) {
		return nil, IncludeErrorf("The specified S3 object's content should be valid Yaml/JSON")
	}
	return part, nil
}

// location evaluates where a part is.
func (in *inclusion) location(v *Value) (string, error) {
	if v == nil || v.isScalar() {
		if v == nil {
			return "", nil
		}
		return v.Text, nil
	}
	known, err := in.known()
	if err != nil {
		return "", err
	}
	text, isKnown, err := known.text(v, "")
	if err != nil || !isKnown {
		return "", IncludeErrorf("The location parameter is not a valid S3 uri.")
	}
	return text, nil
}

// hasShortForms reports whether YAML has functions' short forms, which AWS::Include can't read.
func hasShortForms(text []byte) bool {
	if strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n\ufeff"), "{") {
		return false // as JSON it was parsed
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil {
		return false
	}
	var has func(n *yaml.Node) bool
	has = func(n *yaml.Node) bool { return isShortForm(n) || slices.ContainsFunc(n.Content, has) }
	return has(&doc)
}

package template

import (
	"slices"
	"strconv"
	"strings"
)

// Template is a template that was parsed and whose structure is right.
type Template struct {
	Version     string // of the template's format, or ""
	Description string
	Metadata    *Value
	Parameters  []Parameter
	Mappings    map[string]map[string]map[string]*Value
	Conditions  []Field
	Rules       []Field
	Resources   []Resource
	Outputs     []Output
	Processed   *Value // the whole template after its transform, or nil if it has none
	Transforms  []string

	resources  map[string]*Resource
	needs      map[string][]string // by resource
	parameters map[string]*Parameter
	conditions map[string]*Value
}

// Resource is a resource as it is declared.
type Resource struct {
	Name                string // its logical ID
	Type                string
	Properties          *Value
	Metadata            *Value
	DependsOn           []string
	Condition           string // "" if it's always made
	CreationPolicy      *Value
	UpdatePolicy        *Value
	DeletionPolicy      string // "" is the type's default
	UpdateReplacePolicy string
}

// Output is an output as it is declared.
type Output struct {
	Name        string
	Description string
	Value       *Value
	Condition   string // "" if it's always there
	Export      *Value // its name, or nil
}

// CloudFormation's limits (the user guide's "quotas").
const (
	maxParameters  = 200
	maxMappings    = 200
	maxResources   = 500
	maxOutputs     = 200
	maxName        = 255
	maxDescription = 1024 // bytes
	formatVersion  = "2010-09-09"
)

// Parse parses a template, in JSON or YAML, and checks its structure and its references. Errors are of type *Error.
// What loops over parameters without a default stand for is left out, and of a template that includes parts all but its parameters.
func Parse(text []byte) (*Template, error) { return ParseFor(text, Scope{}, nil) }

// ParseFor is Parse for a stack, whose parameters have values: the transform AWS::LanguageExtensions depends on them.
func ParseFor(text []byte, scope Scope, values func(*Template) (map[string]any, error)) (*Template, error) {
	root, err := parseText(text)
	if err != nil {
		return nil, err
	}
	if root.Kind != Object {
		return nil, malformed("unsupported structure.")
	}
	if err := refuseNulls("", root); err != nil {
		return nil, err
	}
	names, err := root.allTransforms()
	if err != nil {
		return nil, err
	}
	t := &Template{Transforms: names}
	if values == nil && slices.Contains(names, IncludeTransform) {
		return t, t.read(root, "AWSTemplateFormatVersion", "Description", "Parameters")
	}
	for _, name := range names {
		if name != LanguageExtensions {
			return nil, fail("No transform named %s found.", name)
		}
	}
	if declared, err := root.transforms(); err == nil && slices.Equal(declared, []string{LanguageExtensions}) {
		var isWhole bool
		if root, isWhole, err = extended(root, scope, values); err != nil {
			return nil, err
		}
		if t.Processed = root; !isWhole {
			return t, t.read(root, "AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Resources")
		}
	}
	if err := t.sections(root); err != nil {
		return nil, err
	}
	return t, t.checkReferences()
}

// refuseNulls finds values that are null.
func refuseNulls(path string, v *Value) error {
	if v.Kind == Null {
		return fail("[%s] 'null' values are not allowed in templates", path)
	}
	for _, f := range v.Fields {
		if err := refuseNulls(path+"/"+f.Name, f.Value); err != nil {
			return err
		}
	}
	for i, item := range v.Items {
		if err := refuseNulls(path+"/"+strconv.Itoa(i), item); err != nil {
			return err
		}
	}
	return nil
}

// section is how a section at a template's top is read.
type section struct {
	name string
	read func(*Template, *Value) error
}

// sections lists the sections in the order in which they are checked.
var sections = []section{
	{"AWSTemplateFormatVersion", func(t *Template, v *Value) error {
		if t.Version = v.Text; v.Text != formatVersion {
			return malformed("%s is not a supported value for AWSTemplateFormatVersion.", v.Text)
		}
		return nil
	}},
	{"Description", func(t *Template, v *Value) (err error) {
		t.Description, err = description(v)
		return err
	}},
	{"Metadata", func(t *Template, v *Value) error {
		t.Metadata = v
		return nil
	}},
	{"Parameters", (*Template).readParameters},
	{"Mappings", (*Template).readMappings},
	{"Conditions", (*Template).readConditions},
	{"Rules", (*Template).readRules},
	{"Resources", (*Template).readResources},
	{"Outputs", (*Template).readOutputs},
}

func (t *Template) sections(root *Value) error {
	if v := root.Get("Transform"); v != nil {
		return refuseTransform(v) // it would make sense of what makes none without
	}
	var unknown []string
	for _, f := range root.Fields {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == f.Name }) {
			unknown = append(unknown, f.Name)
		}
	}
	if len(unknown) > 0 {
		return fail("Invalid template property or properties %s", list(unknown))
	}
	if v := root.Get("Resources"); v == nil || len(v.Fields) == 0 {
		return malformed("At least one Resources member must be defined.")
	}
	for _, s := range sections {
		v := root.Get(s.name)
		if v == nil {
			continue
		}
		if objects := s.name != "AWSTemplateFormatVersion" && s.name != "Description"; objects && v.Kind != Object {
			return malformed("[/%s] '%s' must be an object", s.name, s.name)
		}
		if err := s.read(t, v); err != nil {
			return err
		}
	}
	return nil
}

// read reads some sections of a template of which others aren't known yet.
func (t *Template) read(root *Value, names ...string) error {
	for _, s := range sections {
		v := root.Get(s.name)
		if v == nil || !slices.Contains(names, s.name) {
			continue
		}
		if err := s.read(t, v); err != nil {
			return err
		}
	}
	return nil
}

// description reads a description, of a template or of something in it.
func description(v *Value) (string, error) {
	switch {
	case v == nil:
		return "", nil
	case !v.isScalar():
		return "", malformed("Every Description member must be a string.")
	case len(v.Text) > maxDescription:
		return "", malformed("Description length must be no greater than %d bytes", maxDescription)
	}
	return v.Text, nil
}

// refuseTransform refuses macros and those of AWS's own transforms that aren't here, by CloudFormation's words for one that it lacks.
func refuseTransform(v *Value) error {
	if calls := v.each(); len(calls) > 0 {
		v = calls[0]
	}
	return fail("No transform named %s found.", v.transform())
}

func (t *Template) readMappings(v *Value) error {
	if len(v.Fields) > maxMappings {
		return malformed("Number of mappings, %d, is greater than maximum allowed, %d", len(v.Fields), maxMappings)
	}
	t.Mappings = map[string]map[string]map[string]*Value{}
	for _, m := range v.Fields {
		if !isAlphanumeric(m.Name) {
			return malformed("Mappings name '%s' must contain only alphanumeric characters.", m.Name)
		}
		if len(m.Name) > maxName {
			return malformed("Mappings name %s is longer than %d characters.", m.Name, maxName)
		}
		keys, err := mapping(m)
		if err != nil {
			return err
		}
		t.Mappings[m.Name] = keys
	}
	return nil
}

// mapping reads one mapping: its keys, and what is under each by name.
func mapping(m Field) (map[string]map[string]*Value, error) {
	if m.Value.Kind != Object {
		return nil, malformed("Every Mappings member %s must be a map", m.Name)
	}
	keys := map[string]map[string]*Value{}
	for _, key := range m.Value.Fields {
		if key.Value.Kind != Object {
			return nil, malformed("Every Mappings member %s must be a map", key.Name)
		}
		keys[key.Name] = map[string]*Value{}
		for _, a := range key.Value.Fields {
			if a.Value.Kind == Object || slices.ContainsFunc(a.Value.Items, func(v *Value) bool { return !v.isScalar() }) {
				return nil, malformed("Every Mappings attribute must be a String or a List.")
			}
			keys[key.Name][a.Name] = a.Value
		}
	}
	return keys, nil
}

func (t *Template) readConditions(v *Value) error {
	t.Conditions, t.conditions = v.Fields, map[string]*Value{}
	for _, c := range v.Fields {
		if c.Value.Kind != Object {
			return malformed("Conditions can only be boolean operations on parameters and other conditions")
		}
		t.conditions[c.Name] = c.Value
	}
	return nil
}

// readRules reads the rules: assertions about parameters.
func (t *Template) readRules(v *Value) error {
	for _, rule := range v.Fields {
		for _, f := range rule.Value.Fields {
			if f.Name != "RuleCondition" && f.Name != "Assertions" {
				return malformed("Invalid rule property or properties %s", list([]string{f.Name}))
			}
		}
		assertions := rule.Value.Get("Assertions")
		if assertions == nil || len(assertions.Items) == 0 || slices.ContainsFunc(assertions.Items, func(a *Value) bool { return a.Get("Assert") == nil }) {
			return malformed("Every Rules member must contain a list of Assertions, each with an Assert")
		}
	}
	t.Rules = v.Fields
	return nil
}

func (t *Template) readResources(v *Value) error {
	if len(v.Fields) > maxResources {
		return malformed("Number of resources, %d, is greater than maximum allowed, %d", len(v.Fields), maxResources)
	}
	t.resources = map[string]*Resource{}
	t.Resources = make([]Resource, len(v.Fields))
	for i, f := range v.Fields {
		if !isAlphanumeric(f.Name) {
			return malformed("Resource name %s is non alphanumeric.", f.Name)
		}
		if len(f.Name) > maxName {
			return malformed("Resource name %s is longer than %d characters.", f.Name, maxName)
		}
		if t.parameters[f.Name] != nil {
			return malformed("Template parameter name and resource name must be unique. Duplicate names: %s", list([]string{f.Name}))
		}
		if err := t.Resources[i].read(f.Name, f.Value); err != nil {
			return err
		}
		t.resources[f.Name] = &t.Resources[i]
	}
	return nil
}

const snapshot = "Snapshot"

var deletionPolicies = []string{"Delete", "Retain", "RetainExceptOnCreate", snapshot}

// read reads a resource's declaration.
func (r *Resource) read(name string, v *Value) error {
	r.Name = name
	if v.Kind != Object {
		return malformed("Any Resources member must be an object.")
	}
	for _, f := range v.Fields {
		if err := r.attribute(f.Name, f.Value); err != nil {
			return err
		}
	}
	if r.Type == "" {
		return malformed("[/Resources/%s] Every Resources object must contain a Type member.", name)
	}
	if r.DeletionPolicy == snapshot || r.UpdateReplacePolicy == snapshot { // nothing that Pintle has can be kept so
		return Errorf("Template error: resource type %s does not support deletion policy Snapshot", r.Type)
	}
	return nil
}

// attribute reads one attribute of a declaration.
func (r *Resource) attribute(name string, v *Value) (err error) {
	path := "/Resources/" + r.Name + "/" + name
	switch name {
	case "Type":
		r.Type, err = text(path, v)
	case "Condition":
		r.Condition, err = text(path, v)
	case "DeletionPolicy":
		r.DeletionPolicy, err = r.policy(name, v, deletionPolicies)
	case "UpdateReplacePolicy":
		r.UpdateReplacePolicy, err = r.policy(name, v, []string{"Delete", "Retain", snapshot})
	case "Properties":
		r.Properties, err = object(path, v)
	case "Metadata":
		r.Metadata, err = object(path, v)
	case "CreationPolicy":
		r.CreationPolicy, err = object(path, v)
	case "UpdatePolicy":
		r.UpdatePolicy, err = object(path, v)
	case "DependsOn":
		r.DependsOn, err = dependsOn(v)
	case "Description", "Version":
	default:
		return fail("Invalid template resource property '%s'", name)
	}
	return err
}

func (r *Resource) policy(name string, v *Value, allowed []string) (string, error) {
	if !v.isScalar() {
		return "", malformed("Every %s member must be a string.", name)
	}
	if !slices.Contains(allowed, v.Text) {
		return "", malformed("Unrecognized %s %s for resource %s", name, v.Text, r.Name)
	}
	return v.Text, nil
}

func dependsOn(v *Value) ([]string, error) {
	if v.isScalar() {
		return []string{v.Text}, nil
	}
	if v.Kind != List {
		return nil, malformed("DependsOn must be a string or list of strings.")
	}
	var names []string
	for _, item := range v.Items {
		if !item.isScalar() {
			return nil, malformed("Every DependsOn value must be a string.")
		}
		names = append(names, item.Text)
	}
	return names, nil
}

func (t *Template) readOutputs(v *Value) error {
	if len(v.Fields) > maxOutputs {
		return malformed("Number of outputs, %d, is greater than maximum allowed, %d", len(v.Fields), maxOutputs)
	}
	t.Outputs = make([]Output, len(v.Fields))
	for i, f := range v.Fields {
		if !isAlphanumeric(f.Name) {
			return malformed("Output name %s is non alphanumeric.", f.Name)
		}
		if len(f.Name) > maxName {
			return malformed("Output name %s is longer than %d characters.", f.Name, maxName)
		}
		if err := t.Outputs[i].read(f.Name, f.Value); err != nil {
			return err
		}
	}
	return nil
}

// read reads an output's declaration.
func (o *Output) read(name string, v *Value) error {
	o.Name = name
	for _, f := range v.Fields {
		if err := o.member(f.Name, f.Value); err != nil {
			return err
		}
	}
	if o.Value == nil {
		return malformed("Every Outputs member must contain a Value object")
	}
	return nil
}

// member reads one member of a declaration.
func (o *Output) member(name string, v *Value) (err error) {
	switch name {
	case "Description":
		o.Description, err = description(v)
	case "Value":
		o.Value = v
	case "Condition":
		o.Condition, err = text("/Outputs/"+o.Name+"/Condition", v)
	case "Export":
		if o.Export = v.Get("Name"); o.Export == nil {
			err = malformedExport(o.Name)
		}
	default:
		err = malformed("Invalid output property or properties %s", list([]string{name}))
	}
	return err
}

// text reads what must be a string, or another scalar that is taken for one.
func text(path string, v *Value) (string, error) {
	if !v.isScalar() {
		return "", malformed("[%s] must be a string", path)
	}
	return v.Text, nil
}

// object reads what must be an object.
func object(path string, v *Value) (*Value, error) {
	if v.Kind != Object {
		return nil, malformed("[%s] must be an object", path)
	}
	return v, nil
}

func isAlphanumeric(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

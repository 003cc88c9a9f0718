package template

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// pseudo are the parameters that every template has.
var pseudo = []string{
	"AWS::AccountId", "AWS::NoValue", "AWS::NotificationARNs", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName", "AWS::URLSuffix",
}

// variable finds ${X} in the text of Fn::Sub. ${!X} stands for the text ${X}.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// references gathers what a part of a template refers to.
type references struct {
	of         *Template
	block      string // the section, as messages name it
	resources  map[string]bool
	unresolved []string
}

// checkReferences checks that everything that is referred to is there, and that neither conditions nor resources wait for each other in a
// circle.
func (t *Template) checkReferences() error {
	if err := t.checkConditions(); err != nil {
		return err
	}
	if err := t.checkRules(); err != nil {
		return err
	}
	t.needs = map[string][]string{}
	var unresolved []string
	for i := range t.Resources {
		r := &t.Resources[i]
		found, err := t.referencesOf(r)
		if err != nil {
			return err
		}
		unresolved = append(unresolved, found.unresolved...)
		t.needs[r.Name] = slices.Sorted(maps.Keys(found.resources))
	}
	if len(unresolved) > 0 {
		return t.unresolved("Resources", unresolved)
	}
	if circle := findCircle(t.needs); circle != nil {
		return fail("Circular dependency between resources: %s", list(circle))
	}
	return t.checkOutputs()
}

// unresolved returns the error for names that nothing has.
func (t *Template) unresolved(block string, names []string) error {
	slices.Sort(names)
	return malformed("Unresolved resource dependencies %s in the %s block of the template", list(slices.Compact(names)), block)
}

// Resource returns the resource with a name, or nil.
func (t *Template) Resource(name string) *Resource { return t.resources[name] }

// Needs returns the resources that must be there before a resource is made: those that it refers to, and its DependsOn.
func (t *Template) Needs(resource string) []string { return t.needs[resource] }

func (t *Template) referencesOf(r *Resource) (*references, error) {
	found := &references{of: t, block: "Resources", resources: map[string]bool{}}
	for _, name := range r.DependsOn {
		if t.resources[name] == nil {
			found.unresolved = append(found.unresolved, name)
			continue
		}
		found.resources[name] = true
	}
	if err := found.condition(r.Condition); err != nil {
		return nil, err
	}
	for _, v := range []*Value{r.Properties, r.Metadata, r.CreationPolicy, r.UpdatePolicy} {
		if err := found.walk(v); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *Template) checkOutputs() error {
	found := &references{of: t, block: "Outputs", resources: map[string]bool{}}
	for i := range t.Outputs {
		o := &t.Outputs[i]
		if err := found.condition(o.Condition); err != nil {
			return err
		}
		for _, v := range []*Value{o.Value, o.Export} {
			if err := found.walk(v); err != nil {
				return err
			}
		}
		if err := o.checkExport(t); err != nil {
			return err
		}
	}
	if len(found.unresolved) > 0 {
		return t.unresolved("Outputs", found.unresolved)
	}
	return nil
}

// checkConditions checks that conditions refer to parameters and to each other alone.
func (t *Template) checkConditions() error {
	needs := map[string][]string{}
	for _, c := range t.Conditions {
		found := &references{of: t, block: "Conditions", resources: map[string]bool{}}
		if err := found.walk(c.Value); err != nil {
			return err
		}
		if err := found.refuseResources(); err != nil {
			return err
		}
		needs[c.Name] = conditionsIn(c.Value)
	}
	if circle := findCircle(needs); circle != nil {
		return malformed("Circular dependency between conditions: %s", list(circle))
	}
	return nil
}

// checkRules checks that rules refer to parameters alone. They are about parameters' values, before there is anything else.
func (t *Template) checkRules() error {
	found := &references{of: t, block: "Rules", resources: map[string]bool{}}
	for _, rule := range t.Rules {
		if err := found.walk(rule.Value); err != nil {
			return err
		}
	}
	return found.refuseResources()
}

// refuseResources refuses what refers to resources, or to nothing, in a block that may not.
func (r *references) refuseResources() error {
	if refused := slices.Concat(r.unresolved, slices.Sorted(maps.Keys(r.resources))); len(refused) > 0 {
		return malformed("Unresolved dependencies %s. Cannot reference resources in the %s block of the template", list(refused), r.block)
	}
	return nil
}

// conditionsIn lists the conditions that a condition names.
func conditionsIn(v *Value) (names []string) {
	if name, ok := v.condition(); ok {
		return []string{name}
	}
	for _, f := range v.Fields {
		names = append(names, conditionsIn(f.Value)...)
	}
	for _, item := range v.Items {
		names = append(names, conditionsIn(item)...)
	}
	return names
}

// reference notes a name that stands for a parameter or a resource.
func (r *references) reference(name string) {
	switch {
	case slices.Contains(pseudo, name), r.of.parameters[name] != nil:
	case r.of.resources[name] != nil:
		r.resources[name] = true
	default:
		r.unresolved = append(r.unresolved, name)
	}
}

func (r *references) condition(name string) error {
	if name != "" && r.of.conditions[name] == nil {
		return malformed("Unresolved condition dependency %s in the %s block of the template", name, r.block)
	}
	return nil
}

// walk notes what a value refers to.
func (r *references) walk(v *Value) error {
	if v == nil {
		return nil
	}
	if name, argument := v.Call(); name != "" {
		switch {
		case name == "Fn::Transform":
			return refuseTransform(argument)
		case name == "Fn::ToJsonString" && r.of.Processed != nil:
		case !functions[name] && (r.block != "Rules" || !ruleFunctions[name]):
			return wrong("Encountered unsupported function: %s Supported functions are: %s", name, list(slices.Sorted(maps.Keys(functions))))
		}
		if err := r.call(name, argument); err != nil || name == "Ref" || name == "Fn::GetAtt" {
			return err
		}
	}
	if name, ok := v.condition(); ok && r.block == "Conditions" {
		return r.condition(name)
	}
	for _, f := range v.Fields {
		if err := r.walk(f.Value); err != nil {
			return err
		}
	}
	for _, item := range v.Items {
		if err := r.walk(item); err != nil {
			return err
		}
	}
	return nil
}

// call notes what a function refers to by itself, besides what is in its argument.
func (r *references) call(name string, argument *Value) error {
	switch name {
	case "Ref":
		if !argument.isScalar() {
			return wrong("All References must be of type string")
		}
		r.reference(argument.Text)
	case "Fn::GetAtt":
		return r.attribute(argument)
	case "Fn::Sub":
		return r.substitution(argument)
	case "Fn::If":
		if argument.Kind != List || len(argument.Items) == 0 || !argument.Items[0].isScalar() {
			return wrong("Fn::If requires a list argument with the first element being a condition")
		}
		if name := argument.Items[0].Text; r.of.conditions[name] == nil {
			return wrong("unresolved condition dependency %s in Fn::If", name)
		}
	case "Fn::FindInMap":
		if argument.Kind == List && len(argument.Items) > 0 && argument.Items[0].isScalar() && r.of.Mappings[argument.Items[0].Text] == nil {
			return wrong("Mapping named '%s' is not present in the 'Mappings' section of template.", argument.Items[0].Text)
		}
	}
	return nil
}

func (r *references) attribute(argument *Value) error {
	items := argument.Items
	if len(items) != 2 || !items[0].isScalar() || items[0].Text == "" || items[1].isScalar() && items[1].Text == "" {
		return wrong("every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute")
	}
	if r.of.resources[items[0].Text] == nil {
		return wrong("instance of Fn::GetAtt references undefined resource %s", items[0].Text)
	}
	r.resources[items[0].Text] = true
	return r.walk(items[1])
}

// substitution notes the variables of Fn::Sub that its own map doesn't define.
func (r *references) substitution(argument *Value) error {
	text, own, err := substitutionParts(argument)
	if err != nil {
		return err
	}
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if strings.HasPrefix(name, "!") || own.Get(name) != nil {
			continue
		}
		resource, _, dotted := strings.Cut(name, ".")
		switch {
		case !dotted:
			r.reference(name)
		case r.of.resources[resource] == nil:
			return wrong("instance of Fn::Sub references invalid resource attribute %s", name)
		default:
			r.resources[resource] = true
		}
	}
	return nil
}

// findCircle returns the names that wait for each other, in alphabetical order, or nil. Each name maps to those that it needs.
func findCircle(needs map[string][]string) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path, circle []string
	var visit func(name string) bool
	visit = func(name string) bool {
		switch state[name] {
		case done:
			return false
		case visiting:
			circle = slices.Clone(path[slices.Index(path, name):])
			return true
		}
		state[name] = visiting
		path = append(path, name)
		if slices.ContainsFunc(needs[name], visit) {
			return true
		}
		path = path[:len(path)-1]
		state[name] = done
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if visit(name) {
			break
		}
	}
	slices.Sort(circle)
	return circle
}

// Entity is what a value refers to by a function: a parameter or a resource, or an attribute of one.
type Entity struct{ Name, Attribute string }

// String returns the name, with the attribute's behind a dot.
func (e Entity) String() string {
	if e.Attribute == "" {
		return e.Name
	}
	return e.Name + "." + e.Attribute
}

// Entities lists what a value refers to, each once, in its order.
func Entities(v *Value) (found []Entity) {
	note := func(name, attribute string) {
		if e := (Entity{name, attribute}); !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	var walk func(v *Value)
	walk = func(v *Value) {
		if v == nil {
			return
		}
		switch name, argument := v.Call(); {
		case name == "Ref" && argument.isScalar():
			note(argument.Text, "")
		case name == "Fn::GetAtt" && len(argument.Items) == 2 && argument.Items[1].isScalar():
			note(argument.Items[0].Text, argument.Items[1].Text)
		case name == "Fn::Sub":
			noteVariables(argument, note)
		}
		for _, f := range v.Fields {
			walk(f.Value)
		}
		for _, item := range v.Items {
			walk(item)
		}
	}
	walk(v)
	return found
}

// noteVariables notes the variables of Fn::Sub that its own map doesn't define.
func noteVariables(argument *Value, note func(name, attribute string)) {
	text, own, err := substitutionParts(argument)
	if err != nil {
		return
	}
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "!") || own.Get(m[1]) != nil {
			continue
		}
		name, attribute, _ := strings.Cut(m[1], ".")
		note(name, attribute)
	}
}

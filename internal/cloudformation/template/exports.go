package template

import (
	"regexp"
	"slices"
)

// exportName is what exports may be called.
var exportName = regexp.MustCompile(`^[a-zA-Z0-9:-]+$`)

// Exports evaluates the names under which outputs are exported, by output. Outputs without an export, and those whose condition is false, have
// none.
func (e *Evaluation) Exports() (map[string]string, error) {
	names := map[string]string{}
	var seen, twice []string
	for i := range e.template.Outputs {
		o := &e.template.Outputs[i]
		if o.Export == nil || !e.Has(o.Condition) {
			continue
		}
		got, err := e.Value(o.Export)
		if err != nil {
			return nil, err
		}
		name, isText := Text(got)
		if !isText || !exportName.MatchString(name) {
			return nil, malformedExport(o.Name)
		}
		if slices.Contains(seen, name) {
			twice = append(twice, name)
		}
		names[o.Name], seen = name, append(seen, name)
	}
	if len(twice) > 0 {
		return nil, malformed("The Outputs section contains duplicate Export names: %s. Specify a unique name for each export.",
			list(slices.Compact(twice)))
	}
	return names, nil
}

// malformedExport is the error for an output whose export has no name, or one that exports can't have.
func malformedExport(output string) error {
	return malformed("Output %s is malformed. The Name field of every Export member must be specified and consist only of "+
		"alphanumeric characters, colons, or hyphens.", output)
}

// checkExport refuses an export whose name isn't known before there are resources.
func (o *Output) checkExport(of *Template) error {
	found := &references{of: of, block: "Outputs", resources: map[string]bool{}}
	if err := found.walk(o.Export); err != nil {
		return err
	}
	if len(found.resources) > 0 || calls(o.Export, "Fn::ImportValue") || calls(o.Export, "Fn::GetAZs") {
		return malformed("Output %s is malformed.  The Name field of Export must not depend on any resources, imported values, or Fn::GetAZs.", o.Name)
	}
	return nil
}

// calls reports whether a function is called anywhere in a value.
func calls(v *Value, function string) bool {
	if v == nil {
		return false
	}
	name, _ := v.Call()
	return name == function ||
		slices.ContainsFunc(v.Items, func(item *Value) bool { return calls(item, function) }) ||
		slices.ContainsFunc(v.Fields, func(f Field) bool { return calls(f.Value, function) })
}

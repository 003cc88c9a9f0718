package stacks

import (
	"slices"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
)

// needsOf returns, by resource, those that must be there before it's made, and gone after it: those that the template says, and those whose
// types come before its own, unless they need it in their turn.
func needsOf(t *template.Template) map[string][]string {
	needs := map[string][]string{}
	for i := range t.Resources {
		needs[t.Resources[i].Name] = slices.Clone(t.Needs(t.Resources[i].Name))
	}
	for i := range t.Resources {
		r := &t.Resources[i]
		kind := resources.Lookup(r.Type)
		if kind == nil || len(kind.After()) == 0 {
			continue
		}
		for j := range t.Resources {
			other := &t.Resources[j]
			if slices.Contains(kind.After(), other.Type) && !slices.Contains(needs[r.Name], other.Name) && !leads(needs, other.Name, r.Name) {
				needs[r.Name] = append(needs[r.Name], other.Name)
			}
		}
	}
	return needs
}

// leads reports whether a resource needs another one, be it through others.
func leads(needs map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	var visit func(name string) bool
	visit = func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		return name == to || slices.ContainsFunc(needs[name], visit)
	}
	return visit(from)
}

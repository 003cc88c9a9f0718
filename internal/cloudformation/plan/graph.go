package plan

import (
	"slices"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// Graph has, by a resource's name, those that must be there before it's made, and gone after it.
type Graph map[string][]string

// GraphOf returns a template's graph: what the template says, and the types that come before a resource's own, unless they need it in their
// turn.
func GraphOf(t *template.Template, before func(resourceType string) []string) Graph {
	g := Graph{}
	for i := range t.Resources {
		g[t.Resources[i].Name] = slices.Clone(t.Needs(t.Resources[i].Name))
	}
	for i := range t.Resources {
		r := &t.Resources[i]
		first := before(r.Type)
		if len(first) == 0 {
			continue
		}
		for j := range t.Resources {
			other := &t.Resources[j]
			if slices.Contains(first, other.Type) && !slices.Contains(g[r.Name], other.Name) && !g.leads(other.Name, r.Name) {
				g[r.Name] = append(g[r.Name], other.Name)
			}
		}
	}
	return g
}

// leads reports whether a resource needs another one, be it through others.
func (g Graph) leads(from, to string) bool {
	seen := map[string]bool{}
	var visit func(name string) bool
	visit = func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		return name == to || slices.ContainsFunc(g[name], visit)
	}
	return visit(from)
}

// Walk visits a template's resources once each, after those that they need. visit is told whether all of these are done, and reports whether
// its own is. The first error ends the walk.
func (g Graph) Walk(t *template.Template, visit func(r *template.Resource, ready bool) (done bool, err error)) error {
	known := map[string]bool{}
	var walk func(name string) (bool, error)
	walk = func(name string) (bool, error) {
		if done, seen := known[name]; seen {
			return done, nil
		}
		known[name] = false // a circle would be no graph, and mustn't be walked for ever
		ready := true
		for _, need := range g[name] {
			done, err := walk(need)
			if err != nil {
				return false, err
			}
			ready = ready && done
		}
		done, err := visit(t.Resource(name), ready)
		known[name] = done
		return done, err
	}
	for i := range t.Resources {
		if _, err := walk(t.Resources[i].Name); err != nil {
			return err
		}
	}
	return nil
}

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// kind is a resource type whose properties are any; those that begin with a capital N make a new resource.
type kind struct{}

func (kind) Changes(before, after map[string]any) (changes []Change) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			changes = append(changes, Change{Name: name, Replaces: strings.HasPrefix(name, "N")})
		}
	}
	return changes
}

func TestDecide(t *testing.T) {
	type p = map[string]any
	a := Standing{Type: "T", Properties: p{"a": "1", "N": "1"}}
	halfway := a
	halfway.Halfway = true
	for _, c := range []struct {
		name   string
		have   Standing
		want   Wanted
		action Action
	}{
		{"the same", a, Wanted{Type: "T", Properties: p{"a": "1", "N": "1"}}, Keep},
		{"the same after a failure", halfway, Wanted{Type: "T", Properties: p{"a": "1", "N": "1"}}, Update},
		{"the same, and what it stands for changes", a, Wanted{Type: "T", Properties: p{"a": "1", "N": "1"}, Stirs: true}, Update},
		{"another type", a, Wanted{Type: "U", Properties: p{"a": "1", "N": "1"}}, Replace},
		{"a property", a, Wanted{Type: "T", Properties: p{"a": "2", "N": "1"}}, Update},
		{"a property that isn't known", a, Wanted{Type: "T", Properties: p{"a": template.Unknown{}, "N": "1"}}, Update},
		{"a create-only property", a, Wanted{Type: "T", Properties: p{"a": "1", "N": "2"}}, Replace},
		{"a create-only property that isn't known", a, Wanted{Type: "T", Properties: p{"a": "2", "N": template.Unknown{}}}, MayReplace},
		{"two of them, one known", a, Wanted{Type: "T", Properties: p{"N": template.Unknown{}, "N2": "2"}}, Replace},
		{"a policy that replaces, and nothing to launch", a, Wanted{Type: "T", Properties: p{"a": "2", "N": "1"}, WillReplace: true}, Update},
		{"a policy that replaces", a, Wanted{Type: "T", Properties: p{"a": "1", "N": "1", "LaunchTemplate": "t"}, WillReplace: true}, Replace},
		{"no such policy", a, Wanted{Type: "T", Properties: p{"a": "1", "N": "1", "LaunchTemplate": "t"}}, Update},
	} {
		c.want.Kind = kind{}
		if got := Decide(&c.have, &c.want).Action; got != c.action {
			t.Errorf("%s: %d, want %d", c.name, got, c.action)
		}
	}
}

// world is a stack for a plan: what stands, by name, and what is to stand.
type world struct {
	stands, wanted map[string]Standing
	stays          []string
}

func (w *world) Wanted(r *template.Resource) (*Wanted, error) {
	want, has := w.wanted[r.Name]
	if !has {
		return nil, nil
	}
	return &Wanted{Type: want.Type, Kind: kind{}, Properties: want.Properties}, nil
}

func (w *world) Standing(name string) (*Standing, error) {
	if have, stands := w.stands[name]; stands {
		return &have, nil
	}
	return nil, nil
}

func (w *world) Stays(name string, _ bool) { w.stays = append(w.stays, name) }

// carryOut does what steps say.
func (w *world) carryOut(steps []Step) {
	for _, s := range steps {
		if s.Action == Delete {
			delete(w.stands, s.Name)
		} else {
			w.stands[s.Name] = Standing{Type: s.Wanted.Type, Properties: s.Wanted.Properties}
		}
	}
}

// drawTemplate draws a template of which each resource depends on some before it, in any order.
func drawTemplate(t *rapid.T) *template.Template {
	n := rapid.IntRange(1, 8).Draw(t, "resources")
	var blocks []string
	for i := range n {
		var needs []string
		for j := range i {
			if rapid.Bool().Draw(t, "depends") {
				needs = append(needs, fmt.Sprintf("R%d", j))
			}
		}
		kind := rapid.SampledFrom([]string{"AWS::SQS::Queue", "AWS::SNS::Topic"}).Draw(t, "type")
		blocks = append(blocks, fmt.Sprintf("  R%d: {Type: %s, DependsOn: [%s]}\n", i, kind, strings.Join(needs, ", ")))
	}
	blocks = rapid.Permutation(blocks).Draw(t, "order")
	parsed, err := template.Parse([]byte("Resources:\n" + strings.Join(blocks, "")))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// queuesFirst has queues made before topics.
func queuesFirst(resourceType string) []string {
	if resourceType == "AWS::SNS::Topic" {
		return []string{"AWS::SQS::Queue"}
	}
	return nil
}

// TestWalk: each resource is visited once, after those that it needs, and is ready if all of them are done.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parsed := drawTemplate(t)
		g := GraphOf(parsed, queuesFirst)
		done := map[string]bool{}
		err := g.Walk(parsed, func(r *template.Resource, ready bool) (bool, error) {
			if _, again := done[r.Name]; again {
				t.Fatalf("%s is visited again", r.Name)
			}
			all := true
			for _, need := range g[r.Name] {
				is, visited := done[need]
				if !visited {
					t.Fatalf("%s comes before %s", r.Name, need)
				}
				all = all && is
			}
			if ready != all {
				t.Fatalf("%s: ready is %v", r.Name, ready)
			}
			done[r.Name] = rapid.Bool().Draw(t, "done")
			return done[r.Name], nil
		})
		if err != nil || len(done) != len(parsed.Resources) {
			t.Fatal(len(done), err)
		}
	})
}

// TestPlansEnd: once a plan is carried out, there is what is wanted, and nothing is left to do. Nobody is told that what is replaced stays.
func TestPlansEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parsed := drawTemplate(t)
		w := &world{drawResources(t, parsed, "stands"), drawResources(t, parsed, "wanted"), nil}
		w.stands["Gone"] = Standing{Type: "T"}
		g := GraphOf(parsed, queuesFirst)
		steps := planOf(t, parsed, g, w)
		seen := map[string]bool{}
		for _, s := range steps {
			for _, need := range g[s.Name] {
				if slices.ContainsFunc(steps, func(o Step) bool { return o.Name == need && o.Action != Delete }) && s.Action != Delete && !seen[need] {
					t.Fatalf("%s comes before %s", s.Name, need)
				}
			}
			if seen[s.Name] = true; s.Action != Update && slices.Contains(w.stays, s.Name) {
				t.Fatalf("%s stays, and is done %d", s.Name, s.Action)
			}
		}
		w.carryOut(steps)
		if !maps.EqualFunc(w.stands, w.wanted, func(a, b Standing) bool { return a.Type == b.Type && maps.Equal(a.Properties, b.Properties) }) {
			t.Fatalf("there is %v, want %v", w.stands, w.wanted)
		}
		if again := planOf(t, parsed, g, w); len(again) > 0 {
			t.Fatalf("there is more to do: %v", again)
		}
	})
}

func planOf(t *rapid.T, parsed *template.Template, g Graph, w *world) []Step {
	steps, err := Of(parsed, g, slices.Sorted(maps.Keys(w.stands)), w)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// drawResources draws some of a template's resources.
func drawResources(t *rapid.T, parsed *template.Template, what string) map[string]Standing {
	all := map[string]Standing{}
	for _, r := range parsed.Resources {
		if rapid.Bool().Draw(t, what) {
			all[r.Name] = Standing{Type: rapid.SampledFrom([]string{"T", "U"}).Draw(t, "type"), Properties: map[string]any{
				"a": rapid.IntRange(0, 1).Draw(t, "a"), "N": rapid.IntRange(0, 1).Draw(t, "N"),
			}}
		}
	}
	return all
}

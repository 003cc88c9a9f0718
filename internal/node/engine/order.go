package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// The order in which containers start; they stop in reverse. It comes from dependsOn, and from what links, volumesFrom, log routers and
// shared namespaces imply. API_ContainerDependency says what the conditions mean.

// dependencies lists what a container of the task waits for.
func dependencies(t *acs.Task, c *acs.Container) []acs.ContainerDependency {
	out := asked(t, c)
	if h := holderOf(t); joins(t, c, h) {
		out = append(out, started(h.Name))
	}
	return out
}

func started(name string) acs.ContainerDependency {
	return acs.ContainerDependency{ContainerName: name, Condition: "START"}
}

// asked lists what a container waits for but for the sharing of namespaces.
func asked(t *acs.Task, c *acs.Container) []acs.ContainerDependency {
	out := slices.Clone(c.DependsOn)
	for _, l := range c.Links {
		name, _, _ := cutLink(l)
		out = append(out, started(name))
	}
	for _, v := range c.VolumesFrom {
		out = append(out, started(v.SourceContainer))
	}
	if r := routerOf(t); waitsForRouter(c, r) {
		out = append(out, started(r.Name))
	}
	return out
}

// cutLink splits name:alias; the alias may be missing.
func cutLink(l string) (name, alias string, ok bool) { return strings.Cut(l, ":") }

// checkOrder refuses dependencies that can never be met: on a container that the task lacks, or in a circle.
func checkOrder(t *acs.Task) error {
	waits := map[string][]acs.ContainerDependency{}
	for i := range t.Containers {
		waits[t.Containers[i].Name] = dependencies(t, &t.Containers[i])
	}
	const visiting, visited = 1, 2
	state := map[string]int{}
	var visit func(name string) error
	visit = func(name string) error {
		if state[name] == visiting {
			return fmt.Errorf("container %s waits for itself", name)
		}
		if state[name] == visited {
			return nil
		}
		state[name] = visiting
		for _, d := range waits[name] {
			if _, has := waits[d.ContainerName]; !has {
				return fmt.Errorf("container %s waits for %s, which the task does not have", name, d.ContainerName)
			}
			if err := visit(d.ContainerName); err != nil {
				return err
			}
		}
		state[name] = visited
		return nil
	}
	for i := range t.Containers {
		if err := visit(t.Containers[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// ready reports whether a container may start, or why it never will. One that its policy restarts waits for nobody any more. The caller holds
// mu.
func (t *task) ready(c *acs.Container) (ready bool, never string) {
	if t.rec.Containers[c.Name].Restarts > 0 {
		return true, ""
	}
	ready = true
	for _, d := range dependencies(&t.rec.Task, c) {
		met, impossible := t.met(d)
		if impossible {
			return false, fmt.Sprintf(
				"dependency graph: container %s waits for %s to be %s, which it can no longer be",
				c.Name,
				d.ContainerName,
				d.Condition,
			)
		}
		ready = ready && met
	}
	return ready, ""
}

// met reports whether a dependency is met, and whether it never will be. The caller holds mu.
func (t *task) met(d acs.ContainerDependency) (met, never bool) {
	other := t.rec.Containers[d.ContainerName]
	ended := other.Status == Stopped
	late := t.isLate(d.ContainerName)
	switch d.Condition {
	case "COMPLETE":
		return ended && other.Ran, ended && !other.Ran || !ended && late
	case "SUCCESS":
		ok := other.ExitCode != nil && *other.ExitCode == 0
		return ended && ok, ended && !ok || !ended && late
	case "HEALTHY":
		return other.Health == Healthy, ended || other.Health != Healthy && late
	}
	return other.Ran, ended && !other.Ran
}

// isLate reports whether a container has run for longer than its startTimeout. That's how long others wait for it to reach the state they
// need.
func (t *task) isLate(name string) bool {
	started, limit := t.rec.Containers[name].StartedAt, startTimeout(t.definition(name))
	return limit > 0 && !started.IsZero() && time.Since(started) >= limit
}

func startTimeout(c *acs.Container) time.Duration { return time.Duration(c.StartTimeout) * time.Second }

// isNeeded reports whether a running container depends on the named one, or still has logs for it to route. The caller holds mu.
func (t *task) isNeeded(name string) bool {
	router := routerOf(&t.rec.Task)
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		if router != nil && router.Name == name && t.owesRouter(c, router) {
			return true
		}
		if st := t.rec.Containers[c.Name].Status; st == Stopped || st == Waiting {
			continue
		}
		for _, d := range dependencies(&t.rec.Task, c) {
			if d.ContainerName == name {
				return true
			}
		}
	}
	return false
}

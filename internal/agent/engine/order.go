package engine

import (
	"strings"

	"github.com/pintle/pintle/internal/acs"
)

// The order in which containers start, and in reverse stop: dependsOn, and what links and volumesFrom
// imply. API_ContainerDependency says what the conditions mean.

// dependencies is what a container waits for.
func dependencies(c *acs.Container) []acs.ContainerDependency {
	out := append([]acs.ContainerDependency(nil), c.DependsOn...)
	for _, l := range c.Links {
		name, _, _ := strings.Cut(l, ":")
		out = append(out, acs.ContainerDependency{ContainerName: name, Condition: "START"})
	}
	for _, v := range c.VolumesFrom {
		out = append(out, acs.ContainerDependency{ContainerName: v.SourceContainer, Condition: "START"})
	}
	return out
}

// ready says whether a container may start, or why it never will. The caller holds mu.
func (t *task) ready(c *acs.Container) (ready bool, failure string) {
	ready = true
	for _, d := range dependencies(c) {
		other := t.rec.Containers[d.ContainerName]
		if other == nil {
			return false, "dependency graph: container " + c.Name + " waits for " + d.ContainerName + ", which the task does not have"
		}
		met, never := t.met(d, other)
		if never {
			return false, "dependency graph: container " + c.Name + " waits for " + d.ContainerName + " to be " + d.Condition + ", which it can no longer be"
		}
		ready = ready && met
	}
	return ready, ""
}

// met says whether a dependency is met, or can never be.
func (t *task) met(d acs.ContainerDependency, other *Container) (met, never bool) {
	ended := other.Status == Stopped
	failed := ended && (other.ExitCode == nil || *other.ExitCode != 0)
	switch d.Condition {
	case "COMPLETE":
		return ended, false
	case "SUCCESS":
		return ended && !failed, failed
	case "HEALTHY":
		return t.health[d.ContainerName].status == Healthy, ended
	}
	return other.Ran, ended && !other.Ran
}

// needed says whether a container that has not ended depends on the named one. The caller holds mu.
func (t *task) needed(name string) bool {
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		st := t.rec.Containers[c.Name].Status
		if st == Stopped || st == Waiting && !t.busy[c.Name] {
			continue
		}
		for _, d := range dependencies(c) {
			if d.ContainerName == name {
				return true
			}
		}
	}
	return false
}

package scheduler

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// Unplaced are waiting tasks of one kind that found no room, and why.
type Unplaced struct {
	Tasks    []*state.Task
	Failures []types.Failure
}

// PlaceWaiting places the waiting tasks that there is room for, each owner in turn and the oldest first. It returns those that found none.
// Among tasks of one kind it tries no more after the first that finds no room.
func (s *Scheduler) PlaceWaiting(tx *state.Tx, now time.Time) []*Unplaced {
	var unplaced []*Unplaced
	full := map[string]*Unplaced{}
	waiting := waitingTasks(tx.View)
	if len(waiting) > 0 {
		waiting = turns(waiting, holdings(tx.View))
		s.keepRoom(tx.View, waiting, now)
	}
	s.hasNews = false
	for _, t := range waiting {
		kind := kindOf(t)
		if u := full[kind]; u != nil {
			u.Tasks = append(u.Tasks, t)
			continue
		}
		if failures := s.placeWaiting(tx, t, now); len(failures) > 0 {
			full[kind] = &Unplaced{[]*state.Task{t}, failures}
			unplaced = append(unplaced, full[kind])
		}
	}
	return unplaced
}

// waitingTasks returns the tasks that wait for room, the oldest first.
func waitingTasks(v *state.View) (out []*state.Task) {
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if isWaiting(t) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *state.Task) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	return out
}

func isWaiting(t *state.Task) bool {
	return t != nil && t.Waiting != nil && *t.DesiredStatus == "RUNNING"
}

// isNews reports whether a change may give room to a waiting task: something was freed, an instance changed, or the task has just come.
func isNews(before, after any) bool {
	if old, ok := before.(*state.Task); ok && old.Holds() {
		return true
	}
	switch row := after.(type) {
	case *state.Task:
		return row.Waiting != nil
	case *state.ContainerInstance:
		return true
	}
	return false
}

// owner is who shares a capacity provider with others: a service, or the tasks of a group that RunTask started.
type owner struct{ provider, service, group string }

func ownerOf(t *state.Task) owner {
	return owner{aws.ToString(t.CapacityProviderName), t.ServiceArn, aws.ToString(t.Group)}
}

// holdings counts the tasks that each owner has on its provider's instances.
func holdings(v *state.View) map[owner]int {
	has := map[owner]int{}
	for t := range v.Tasks.All() {
		if t.Holds() && t.CapacityProviderName != nil {
			has[ownerOf(t)]++
		}
	}
	return has
}

// turns puts waiting tasks, oldest first, into the order in which they are placed: whoever has fewest tasks comes next, so that nobody's
// long queue keeps the others waiting. Among equals the oldest comes first, and so do an owner's tasks.
func turns(waiting []*state.Task, has map[owner]int) []*state.Task {
	has = maps.Clone(has)
	rank := map[*state.Task]int{}
	for _, t := range waiting {
		o := ownerOf(t)
		rank[t] = has[o]
		has[o]++
	}
	out := slices.Clone(waiting)
	slices.SortStableFunc(out, func(a, b *state.Task) int { return cmp.Compare(rank[a], rank[b]) })
	return out
}

// kindOf returns what decides where a task finds room. Tasks of one kind find room in the same places.
func kindOf(t *state.Task) string {
	b, err := json.Marshal([]any{t.ClusterArn, t.TaskDefinitionArn, t.CapacityProviderName, t.Group, t.Waiting, t.Volumes})
	if err != nil {
		panic(err) // it's only numbers and text
	}
	return string(b)
}

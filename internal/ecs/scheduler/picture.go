package scheduler

import (
	"slices"
	"time"

	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/state"
)

// Picture returns a scheduler that knows one cluster as its rows are, and the one for Fargate's tasks of all clusters, unless that is "". It is for whoever asks what would be, outside of a transaction: it keeps up
// with no changes. Room is kept in it as for those who wait now.
func Picture(v *state.View, clusterArn, serverless string, now time.Time) *Scheduler {
	s := New(0)
	s.Serverless = serverless
	for _, home := range s.homes(clusterArn, true) {
		s.clusters[home] = placement.New(nil)
		for i := range v.ContainerInstances.By(state.InstancesByCluster, home) {
			s.upsert(i)
		}
	}
	for t := range v.Tasks.All() {
		if s.clusters[t.Home()] != nil {
			s.reserve(t)
		}
	}
	s.keepRoom(v, s.InTurn(v, clusterArn), now)
	return s
}

// InTurn returns the tasks of a cluster that wait for room, in the order in which they are tried.
func (s *Scheduler) InTurn(v *state.View, clusterArn string) []*state.Task {
	waiting := slices.DeleteFunc(waitingTasks(v), func(t *state.Task) bool { return *t.ClusterArn != clusterArn })
	return turns(waiting, holdings(v))
}

// Shortfalls tells of each instance all that keeps it from taking a task, with the expressions of constraints in words.
func (s *Scheduler) Shortfalls(v *state.View, r Request) []placement.Shortfall {
	var all []placement.Shortfall
	req := s.request(v, r)
	for _, home := range s.homes(r.ClusterArn, r.Fargate) {
		req.Group = groupAt(home, r.ClusterArn, r.Group)
		all = append(all, s.cluster(home).Shortfalls(req)...)
	}
	expressions := r.memberOf()
	for _, one := range all {
		for i := range one.Lacks {
			if l := &one.Lacks[i]; l.Reason == placement.NotMember {
				l.Names = []string{expressions[l.Constraint]}
			}
		}
	}
	return all
}

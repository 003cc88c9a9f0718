// Package ecs is Amazon ECS: a Service whose methods are those of the SDK's client, over the store.
// A call checks its input, makes one transaction and answers from it; what takes time afterwards
// (starting containers, stopping them, forgetting them) is done by the loops and the nodes,
// which see the rows that the call wrote. It knows nothing of HTTP, and no other service.
package ecs

import (
	"strings"
	"time"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

// Options say whose ECS this is.
type Options struct {
	account.Account
	// Endpoint is the base URL under which nodes reach the node protocol: "http://127.0.0.1:4566".
	Endpoint string
}

// Service is Amazon ECS for one account in one region.
type Service struct {
	store     *state.Store
	scheduler *scheduler.Scheduler
	opts      Options
}

// New returns the service over the store. The scheduler must be an observer of that store.
func New(store *state.Store, scheduler *scheduler.Scheduler, opts Options) *Service {
	return &Service{store: store, scheduler: scheduler, opts: opts}
}

// defaultCluster is the cluster of a call that names none.
const defaultCluster = "default"

// arn builds an ARN of this account: arn("task", "default", id).
func (s *Service) arn(parts ...string) string {
	return s.opts.ARN("ecs", strings.Join(parts, "/"))
}

// isArn tells an ARN from a short name.
func isArn(s string) bool { return strings.HasPrefix(s, "arn:") }

// inCluster is the ARN of something in a cluster that a call names by ARN or by its short name.
func inCluster(clusterArn, kind, name string) string {
	if isArn(name) {
		return name
	}
	return state.InCluster(clusterArn, kind, name)
}

// now is the time to the millisecond, which is what ECS keeps.
func (s *Service) now() *time.Time {
	t := s.opts.Now().UTC().Truncate(time.Millisecond)
	return &t
}

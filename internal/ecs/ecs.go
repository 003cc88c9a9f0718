// Package ecs is Amazon ECS: a Service over the store, with the methods of the SDK's client. A call checks its input, makes
// one transaction and answers from it. Loops and nodes see the rows that the call wrote, and do what takes time: start
// containers, stop them and delete old rows. The package knows nothing about HTTP, nor about any other service.
package ecs

import (
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/sessions"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/trace"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options are the account that ECS runs for, and where its nodes reach it.
type Options struct {
	account.Account
	// Advertise is the base URL of the node protocol for all nodes, such as "http://10.0.0.1:4566". If it's empty, each node is told the
	// URL at which it has reached us.
	Advertise string
	// Sessions are those of ExecuteCommand, which Log tells of.
	Sessions *sessions.Sessions
	// Started is told of each task that has begun to run; nil tells nobody.
	Started func(*state.Task)
	// Failed is told of each task that has ended before it ran, as its node says; nil tells nobody.
	Failed func(*state.Task)
	// NoGPU is told of a task with GPUs for which a call has found no room in a cluster; nil tells nobody.
	NoGPU func(cluster, definition string, constraints []types.PlacementConstraint)
	// Services are those that deployments call: the functions of their lifecycle hooks.
	Services call.Caller
	// Trusts reports whether a service may assume a role; nil trusts all.
	Trusts func(role, service string) bool
	Tracer *trace.Tracer // nil traces nothing
	Log    *slog.Logger
}

// Service is Amazon ECS for one account in one region.
type Service struct {
	store     *state.Store
	scheduler *scheduler.Scheduler
	opts      Options
}

// New returns a service over the store. The scheduler must observe that store.
func New(store *state.Store, scheduler *scheduler.Scheduler, opts Options) *Service {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Started == nil {
		opts.Started = func(*state.Task) {}
	}
	if opts.Failed == nil {
		opts.Failed = func(*state.Task) {}
	}
	if opts.NoGPU == nil {
		opts.NoGPU = func(string, string, []types.PlacementConstraint) {}
	}
	if opts.Trusts == nil {
		opts.Trusts = func(string, string) bool { return true }
	}
	return &Service{store: store, scheduler: scheduler, opts: opts}
}

// defaultCluster is the cluster of calls that don't name one.
const defaultCluster = "default"

// arn builds an ARN of this account: arn("task", "default", id).
func (s *Service) arn(parts ...string) string {
	return s.opts.ARN("ecs", strings.Join(parts, "/"))
}

// isArn reports whether s is an ARN, and not a short name.
func isArn(s string) bool { return strings.HasPrefix(s, "arn:") }

// inCluster returns the ARN of something in a cluster that a call gives by ARN or short name.
func inCluster(clusterArn, kind, name string) string {
	if isArn(name) {
		return name
	}
	return state.InCluster(clusterArn, kind, name)
}

// checkIdentifier refuses the ARN of something else, or of something in another cluster than the call's. A name may be anything.
func checkIdentifier(clusterArn, kind, name string) error {
	if !isArn(name) {
		return nil
	}
	parts := strings.SplitN(name, ":", 6)
	path := strings.Split(parts[len(parts)-1], "/")
	switch {
	case path[0] != kind:
		return invalidParameter("Unsupported resource type: %s", path[0])
	case len(path) > 3:
		return invalidParameter("Invalid identifier: Unexpected number of separators")
	case len(path) == 3 && path[1] != state.NameOf(clusterArn):
		return invalidParameter("Invalid identifier: Identifier is for cluster %s. Your cluster is %s", path[1], state.NameOf(clusterArn))
	}
	return nil // also one in the short form of before 2018, which names nothing here
}

// now returns the time to the millisecond, ECS's precision.
func (s *Service) now() *time.Time {
	t := s.opts.Now().UTC().Truncate(time.Millisecond)
	return &t
}

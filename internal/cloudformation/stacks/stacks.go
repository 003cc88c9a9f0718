// Package stacks is the loop behind CloudFormation: it makes of each stack what it is to be, one durable step at a time. Before a call that
// makes or changes something, the resource's row says so; after it, what came of it. Whoever was killed in between makes the call again.
// The calls are those of any client: see package resources.
//
// A stack's status says what is being done to it. There are two kinds of work: building, which brings resources to what a source says, and
// clearing, which deletes those that are not in it. A failed update is rolled back by building the source that the stack had before: what
// the update replaced is still there until it is cleared, and is taken back.
package stacks

import (
	"context"
	"iter"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/underway"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options are what the loop needs besides the rows.
type Options struct {
	Account  account.Account
	Services call.Caller
	Vault    *vault.Vault
	Log      *slog.Logger
	// Endpoint is the control plane's URL, to which signals for wait conditions are sent.
	Endpoint string
	// RunsUserData is whether instances can run their user data, and with it cfn-signal.
	RunsUserData bool
}

// Loop carries out the operations on stacks.
type Loop struct {
	rows *state.Store
	opts Options
}

// New returns a loop.
func New(rows *state.Store, opts Options) *Loop { return &Loop{rows, opts} }

// busy is the value of the index of stacks with an operation under way.
const busy = "busy"

// Run carries out operations until ctx ends: each stack's in a goroutine of its own.
func (l *Loop) Run(ctx context.Context) error {
	return underway.Run(ctx, l.rows, underway.Work{
		Open: func(v *state.View) iter.Seq[string] {
			v.Stacks.WatchBy(state.BusyStacks, busy)
			return func(yield func(string) bool) {
				for s := range v.Stacks.By(state.BusyStacks, busy) {
					if !yield(*s.StackId) {
						return
					}
				}
			}
		},
		Step: l.Step,
		IsOver: func(v *state.View, id string) bool {
			s := v.Stacks.Get(id)
			return s == nil || !s.Busy()
		},
		Failed: func(id string, err error) {
			l.opts.Log.Error("a stack's operation is tried again", "stack", id, "error", err)
		},
	})
}

// Step does what can be done now for a stack, and reports whether anything was.
func (l *Loop) Step(ctx context.Context, id string) (moved bool, err error) {
	s := l.rows.View().Stacks.Get(id)
	if s == nil || !s.Busy() {
		return false, nil
	}
	ctx = l.as(ctx, s)
	if s.StackStatus == types.StackStatusImportRollbackInProgress {
		return true, l.unimport(ctx, s)
	}
	if isBuilding(s) {
		return l.build(ctx, s)
	}
	return l.clear(ctx, s)
}

// as returns a context in which calls are made by whoever began the operation, or with the service role with which it was begun.
func (l *Loop) as(ctx context.Context, s *state.Stack) context.Context {
	who := underway.IdentityOf(s.By, l.opts.Account.Root())
	return call.With(ctx, call.Call{Service: "cloudformation", Stack: *s.StackId, Identity: who})
}

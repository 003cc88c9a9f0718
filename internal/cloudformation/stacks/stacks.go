// Package stacks is the loop behind CloudFormation: it makes of each stack what it is to be, one durable step at a time. Before a call that
// makes or changes something, the resource's row says so; after it, what came of it. Whoever was killed in between makes the call again.
// The calls are those of any client: see package resources.
//
// A stack's status says what is being done to it. There are two kinds of work: building, which brings resources to what a source says, and
// clearing, which deletes those that are not in it. A failed update is rolled back by building the source that the stack had before: what
// the update replaced is still there until it is cleared, and is taken back.
package stacks

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/account"
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

// Run carries out operations until ctx ends: each stack's in a goroutine of its own.
func (l *Loop) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan string)
	running := map[string]bool{}
	defer func() {
		cancel()
		for range running {
			<-ended
		}
	}()
	for {
		v := l.rows.Watch()
		v.Stacks.WatchBy(state.BusyStacks, busy)
		for s := range v.Stacks.By(state.BusyStacks, busy) {
			if id := *s.StackId; !running[id] {
				running[id] = true
				go func() {
					l.carry(ctx, id)
					ended <- id
				}()
			}
		}
		changed, stop := context.WithCancel(ctx)
		select {
		case id := <-ended:
			delete(running, id)
		case err := <-v.ChangedCh(changed):
			if err != nil {
				stop()
				return err
			}
		}
		stop()
	}
}

// busy is the value of the index of stacks with an operation under way.
const busy = "busy"

// How long the loop waits before it looks again at what isn't settled, or tries again what failed for reasons of its own.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 3 * time.Second
)

// carry carries out a stack's operation to its end.
func (l *Loop) carry(ctx context.Context, id string) {
	pause := firstPause
	for {
		moved, err := l.Step(ctx, id)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.opts.Log.Error("a stack's operation is tried again", "stack", id, "error", err)
		case moved:
			pause = firstPause
			continue
		}
		if s := l.rows.View().Stacks.Get(id); s == nil || !s.Busy() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

// Step does what can be done now for a stack, and reports whether anything was.
func (l *Loop) Step(ctx context.Context, id string) (moved bool, err error) {
	s := l.rows.View().Stacks.Get(id)
	if s == nil || !s.Busy() {
		return false, nil
	}
	ctx = l.as(ctx, s)
	if isBuilding(s) {
		return l.build(ctx, s)
	}
	return l.clear(ctx, s)
}

// as returns a context in which calls are made by whoever began the operation. A service role takes nothing away and gives nothing: the
// caller's own policies bind.
func (l *Loop) as(ctx context.Context, s *state.Stack) context.Context {
	who := call.Identity{Principal: cmp.Or(s.By.Principal, l.opts.Account.Root()), Task: s.By.Task, Role: s.By.Role}
	return call.With(ctx, call.Call{Service: "cloudformation", Stack: *s.StackId, Identity: who})
}

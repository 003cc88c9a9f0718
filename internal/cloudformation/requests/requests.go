// Package requests is the loop behind the Cloud Control API: it makes, changes and deletes single resources by CloudFormation's types, as
// rows of requests say, in no stack. Before a call that makes or changes something, the row says that the work has begun; after it, what
// came of it. Whoever was killed in between makes the call again.
package requests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
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
}

// Loop carries out requests.
type Loop struct {
	rows *state.Store
	opts Options
}

// New returns a loop.
func New(rows *state.Store, opts Options) *Loop { return &Loop{rows, opts} }

// open is the value of the index of requests that aren't over.
const open = "open"

// Run carries out requests until ctx ends, each in a goroutine of its own.
func (l *Loop) Run(ctx context.Context) error {
	return underway.Run(ctx, l.rows, underway.Work{
		Open: func(v *state.View) iter.Seq[string] {
			v.ResourceRequests.WatchBy(state.OpenRequests, open)
			return func(yield func(string) bool) {
				for r := range v.ResourceRequests.By(state.OpenRequests, open) {
					if !yield(r.Token) {
						return
					}
				}
			}
		},
		Step: l.Step,
		IsOver: func(v *state.View, token string) bool {
			r := v.ResourceRequests.Get(token)
			return r == nil || r.IsOver()
		},
		Failed: func(token string, err error) {
			l.opts.Log.Error("a request is tried again", "request", token, "error", err)
		},
	})
}

// Step does what can be done now for a request, and reports whether anything was.
func (l *Loop) Step(ctx context.Context, token string) (moved bool, err error) {
	r := l.rows.View().ResourceRequests.Get(token)
	if r == nil || r.IsOver() {
		return false, nil
	}
	if r.Status == types.OperationStatusCancelInProgress {
		return true, l.end(ctx, r, types.OperationStatusCancelComplete, "", "")
	}
	w := &work{Loop: l, request: r, kind: resources.Lookup(r.Type), step: l.stepOf(r)}
	if w.before, err = l.unseal(r, r.Before); err != nil {
		return false, err
	}
	if w.after, err = l.unseal(r, r.After); err != nil {
		return false, err
	}
	ctx = l.as(ctx, r)
	if r.Status == types.OperationStatusPending {
		if is, err := w.begin(ctx); !is || err != nil {
			return true, err
		}
	}
	return w.goOn(ctx)
}

// as returns a context in which calls are made by whoever asked.
func (l *Loop) as(ctx context.Context, r *state.ResourceRequest) context.Context {
	who := underway.IdentityOf(r.By, l.opts.Account.Root())
	return call.With(ctx, call.Call{Service: "cloudformation", Identity: who}) // whose types make the calls
}

// stepOf returns what the calls for a request's resource need to know.
func (l *Loop) stepOf(r *state.ResourceRequest) resources.Step {
	step := l.Reading(r.Type)
	step.Token, step.Since = r.Token, r.Since
	return step
}

// Reading returns what the calls that read resources of a type need to know. Names are generated as CloudControl-TYPE-RANDOM.
func (l *Loop) Reading(kind string) resources.Step {
	return resources.Step{
		Services:  l.opts.Services,
		Account:   l.opts.Account,
		Stack:     "CloudControl",
		Name:      kind[strings.LastIndex(kind, ":")+1:],
		Depth:     func() int { return 1 },
		HandleURL: func() string { return "" },
		Heard:     func(string) ([]state.WaitSignal, error) { return nil, nil },
	}
}

// work is a request that is being carried out.
type work struct {
	*Loop
	request       *state.ResourceRequest
	kind          resources.Type
	step          resources.Step
	before, after map[string]any
}

// begin notes that the work begins, unless it's to make what somebody else has.
func (w *work) begin(ctx context.Context) (begun bool, err error) {
	if w.request.Operation == types.OperationCreate {
		if id := w.kind.ID(w.step, w.after); id != "" {
			there, err := w.kind.Exists(ctx, w.step, id, w.after)
			if err != nil {
				return false, w.fail(ctx, err)
			}
			if there {
				message := fmt.Sprintf("Resource of type '%s' with identifier '%s' already exists.", w.request.Type, id)
				return false, w.end(ctx, w.request, types.OperationStatusFailed, types.HandlerErrorCodeAlreadyExists, message)
			}
		}
	}
	w.request, err = w.change(ctx, w.request, func(r *state.ResourceRequest) *state.ResourceRequest { return r.Begun(w.opts.Account.Now()) })
	return err == nil && w.request.Status == types.OperationStatusInProgress, err
}

// goOn makes the call that the request asks for, if it wasn't made yet, and ends the request once its resource is what it's to be.
func (w *work) goOn(ctx context.Context) (moved bool, err error) {
	if w.request.Called {
		return w.settle(ctx)
	}
	id := w.request.PhysicalID
	switch w.request.Operation {
	case types.OperationCreate:
		id, err = w.create(ctx)
	case types.OperationUpdate:
		err = w.kind.Update(ctx, w.step, id, w.before, w.after)
	case types.OperationDelete:
		err = w.kind.Delete(ctx, w.step, id, w.before)
	}
	switch {
	case errors.Is(err, resources.ErrPending):
		return false, nil
	case err != nil:
		return true, w.fail(ctx, err)
	case w.request.Operation == types.OperationDelete:
		return true, w.end(ctx, w.request, types.OperationStatusSuccess, "", "")
	}
	w.request, err = w.change(ctx, w.request, func(r *state.ResourceRequest) *state.ResourceRequest { return r.Made(id) })
	return true, err
}

// create makes the resource. One that an earlier process made before it was killed is found again.
func (w *work) create(ctx context.Context) (string, error) {
	if id := w.kind.ID(w.step, w.after); id != "" && !w.step.Since.IsZero() {
		there, err := w.kind.Exists(ctx, w.step, id, w.after)
		if err != nil {
			return "", err
		}
		if there {
			return id, w.kind.Complete(ctx, w.step, id, w.after)
		}
	}
	return w.kind.Create(ctx, w.step, w.after)
}

// settle ends the request once its resource is what it's to be.
func (w *work) settle(ctx context.Context) (bool, error) {
	id := w.request.PhysicalID
	settled, err := w.kind.Settled(ctx, w.step, id, w.after)
	if err != nil {
		return true, w.fail(ctx, err)
	}
	if !settled {
		return false, nil
	}
	live, err := w.kind.Live(ctx, w.step, id, w.after)
	if err != nil {
		return true, w.fail(ctx, err)
	}
	identity, err := w.kind.Identify(ctx, w.step, id, live)
	if err != nil {
		return true, w.fail(ctx, err)
	}
	_, err = w.change(ctx, w.request, func(r *state.ResourceRequest) *state.ResourceRequest {
		over := r.Ended(w.opts.Account.Now(), types.OperationStatusSuccess, "", "")
		over.Identifier = Identifier(w.kind, identity)
		return over
	})
	return true, err
}

// Identifier returns what identifies a resource as Cloud Control writes it: the values joined by |.
func Identifier(kind resources.Type, identity map[string]string) string {
	var values []string
	for _, name := range kind.Identifier() {
		values = append(values, identity[name])
	}
	return strings.Join(values, "|")
}

// fail ends a request with the reason. An error that isn't the call's is returned, to be tried again.
func (w *work) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		return w.end(ctx, w.request, types.OperationStatusFailed, types.HandlerErrorCodeGeneralServiceException, err.Error())
	}
	if refused.ErrorFault() == smithy.FaultServer {
		return err
	}
	code := types.HandlerErrorCode(resources.HandlerCode(refused))
	return w.end(ctx, w.request, types.OperationStatusFailed, code, refused.ErrorMessage())
}

// end ends a request.
func (l *Loop) end(
	ctx context.Context, r *state.ResourceRequest, status types.OperationStatus, code types.HandlerErrorCode, message string,
) error {
	_, err := l.change(ctx, r, func(r *state.ResourceRequest) *state.ResourceRequest {
		return r.Ended(l.opts.Account.Now(), status, code, message)
	})
	return err
}

// change changes a request's row as it is by now: somebody may have cancelled it.
func (l *Loop) change(
	ctx context.Context, r *state.ResourceRequest, to func(*state.ResourceRequest) *state.ResourceRequest,
) (next *state.ResourceRequest, err error) {
	err = l.rows.Update(ctx, func(tx *state.Tx) error {
		now := tx.ResourceRequests.Get(r.Token)
		if now == nil || now.IsOver() {
			next = r.Ended(l.opts.Account.Now(), types.OperationStatusCancelComplete, "", "")
			return nil
		}
		next = to(now)
		if now.Status == types.OperationStatusCancelInProgress && !next.IsOver() {
			next.Status = now.Status
		}
		tx.ResourceRequests.Put(next)
		return nil
	})
	return next, err
}

// Seal encrypts a resource's properties for a request.
func (l *Loop) Seal(token string, properties map[string]any) ([]byte, error) {
	return l.opts.Vault.Seal(properties, purpose(token))
}

func purpose(token string) string { return vault.Purpose("resource request", token, "properties") }

func (l *Loop) unseal(r *state.ResourceRequest, sealed []byte) (map[string]any, error) {
	properties, err := l.opts.Vault.Unseal(sealed, purpose(r.Token))
	if err != nil {
		return nil, fmt.Errorf("read the properties of a request: %w", err)
	}
	return properties, nil
}

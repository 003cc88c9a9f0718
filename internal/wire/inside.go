package wire

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// inside finds the operation that takes an input.
type inside struct {
	api  *served
	name string
	op   *codec.Operation
}

// index adds an API's operations to those that Call finds.
func (h *Handler) index(a *served) {
	for name, o := range a.operations {
		h.byInput[o.In.Type] = inside{a, name, o}
	}
}

// Call runs an operation for somebody in this process, with the checks that a call from outside passes. It implements call.Caller. Whoever
// calls is the identity in ctx, and the service that calls for it is the one that ctx's call is of. Where and how somebody reached us counts for
// what they ask for themselves, as in the console; what a service asks for on somebody's behalf comes from within, as aws:ViaAWSService tells.
func (h *Handler) Call(ctx context.Context, in any) (out any, err error) {
	t := reflect.TypeOf(in)
	if t == nil || t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("wire: %T is no operation's input", in)
	}
	found, ok := h.byInput[t.Elem()]
	if !ok {
		return nil, fmt.Errorf("wire: %T is no operation's input", in)
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, refusal.Panic(p)
		}
	}()
	from := call.From(ctx)
	made := call.Call{
		RequestID: uuid.NewString(),
		Service:   found.api.Name,
		Operation: found.name,
		Identity:  from.Identity,
		Via:       from.Service,
		Stack:     from.Stack,
		Token:     from.Token,
	}
	if from.Service == "" {
		made.AccessKeyID = from.AccessKeyID
		made.Peer = from.Peer
		made.Endpoint = from.Endpoint
	}
	return found.op.Call(call.With(ctx, made), in)
}

package wire

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/validation"
)

// readOperations indexes the service's table of operations and makes their shapes.
func (a *served) readOperations(admit func(service, operation string) error) error {
	a.shapes = codec.NewShapes(rulesOf(&a.API))
	a.operations = map[string]*codec.Operation{}
	if a.Service == nil {
		return nil
	}
	constraints := validation.New(a.Constraints)
	for _, o := range a.Service.Operations() {
		if !slices.Contains(a.Operations, o.Name) || a.operations[o.Name] != nil {
			return fmt.Errorf("wire: %s has no operation %s, or the service has two", a.Name, o.Name)
		}
		made, err := a.shapes.Operation(o)
		if err != nil {
			return fmt.Errorf("wire: %s.%w", a.Name, err)
		}
		made.Call = a.admitted(admit, o.Name, checked(constraints, o.Call))
		made.Lenient = slices.Contains(a.Lenient, o.Name)
		a.operations[o.Name] = made
	}
	return nil
}

// checked returns a call that checks its input against the model's constraints first, in whatever protocol it comes.
func checked(constraints *validation.Service, call callFunc) callFunc {
	return func(ctx context.Context, in any) (any, error) {
		if err := constraints.Check(in); err != nil {
			return nil, err
		}
		return call(ctx, in)
	}
}

// find returns an implemented operation, or a refusal that says why there is none.
func (a *served) find(name string) (*codec.Operation, error) {
	if o := a.operations[name]; o != nil {
		return o, nil
	}
	if slices.Contains(a.Operations, name) {
		return nil, refusal.With(
			http.StatusNotImplemented, "NotImplementedException", "Pintle does not implement %s of %s yet.", name, a.Title,
		)
	}
	return nil, refusal.New("UnknownOperationException", "%s has no operation %q.", a.Title, name)
}

// answer runs the request's operation and returns its answer. The answer's memory belongs to the request.
func (q *request) answer(ctx context.Context, caller sign.Caller) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b = nil
			err = refusal.Panic(p)
		}
	}()
	if q.op, err = q.api.find(q.operation); err != nil {
		return nil, err
	}
	in := reflect.New(q.op.In.Type)
	if err := q.protocol.decode(q, q.op.In, in.Elem()); err != nil {
		return nil, err
	}
	if m := q.op.In.ByName[q.api.URLMember]; m != nil && in.Elem().Field(m.Index).IsNil() && q.URL.Path != "/" {
		in.Elem().Field(m.Index).Set(reflect.ValueOf(new("http://" + q.Host + q.URL.Path)))
	}
	ctx = call.With(ctx, call.Call{
		RequestID:   q.id,
		Service:     q.api.Name,
		Operation:   q.operation,
		AccessKeyID: caller.AccessKeyID,
		Peer:        q.RemoteAddr,
		Endpoint:    call.EndpointOf(q.Request),
		Trace:       q.Header.Get("X-Amzn-Trace-Id"),
		Traceparent: q.Header.Get("Traceparent"),
		Identity:    caller.Identity,
	})
	out, err := q.op.Call(ctx, in.Interface())
	if err != nil {
		return nil, err
	}
	q.out, err = q.protocol.encode(q.out[:0], q, q.op.Out, reflect.ValueOf(out).Elem())
	return q.out, err
}

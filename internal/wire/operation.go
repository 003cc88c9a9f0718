package wire

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/pintle/pintle/internal/wire/call"
)

// operation is one that is implemented.
type operation struct {
	call    func(ctx context.Context, in any) (any, error)
	in, out *shape // of the structs
	lenient bool
}

// readOperations reads the service's table.
func (a *API) readOperations() error {
	a.shapes = newShapes(a)
	a.operations = map[string]*operation{}
	if a.Service == nil {
		return nil
	}
	for _, o := range a.Service.Operations() {
		if !slices.Contains(a.Operations, o.Name) || a.operations[o.Name] != nil {
			return fmt.Errorf("wire: %s has no operation %s, or the service has two", a.Name, o.Name)
		}
		made, err := a.newOperation(o)
		if err != nil {
			return err
		}
		a.operations[o.Name] = made
	}
	return nil
}

func (a *API) newOperation(o call.Operation) (*operation, error) {
	made := &operation{
		call:    o.Call,
		in:      a.shapes.of(o.In),
		out:     a.shapes.of(o.Out),
		lenient: slices.Contains(a.Lenient, o.Name),
	}
	for _, sh := range []*shape{made.in, made.out} {
		if err := sh.check(a.Name+"."+sh.typ.Name(), map[*shape]bool{}); err != nil {
			return nil, fmt.Errorf("wire: %w", err)
		}
	}
	return made, nil
}

// find returns an implemented operation, or the refusal that says why there is none.
func (a *API) find(name string) (*operation, error) {
	if o := a.operations[name]; o != nil {
		return o, nil
	}
	if slices.Contains(a.Operations, name) {
		return nil, refuseWith(http.StatusNotImplemented, "NotImplementedException", "Pintle does not implement %s of %s yet.", name, a.Title)
	}
	return nil, refuse("UnknownOperationException", "%s has no operation %q.", a.Title, name)
}

// answer runs the request's operation and returns its answer, in memory that is the request's.
func (q *request) answer(ctx context.Context, caller Caller) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, &panicked{p, debug.Stack()}
		}
	}()
	if q.op, err = q.api.find(q.operation); err != nil {
		return nil, err
	}
	in := reflect.New(q.op.in.typ)
	if err := q.protocol.decode(q, q.op.in, in.Elem()); err != nil {
		return nil, err
	}
	if m := q.op.in.byName[q.api.URLMember]; m != nil && in.Elem().Field(m.index).IsNil() && q.URL.Path != "/" {
		in.Elem().Field(m.index).Set(reflect.ValueOf(new("http://" + q.Host + q.URL.Path)))
	}
	if err := q.api.Validation.Check(in.Interface()); err != nil {
		return nil, err
	}
	ctx = call.With(ctx, call.Call{RequestID: q.id, Service: q.api.Name, Operation: q.operation, AccessKeyID: caller.AccessKeyID, Principal: caller.Arn})
	out, err := q.op.call(ctx, in.Interface())
	if err != nil {
		return nil, err
	}
	q.out, err = q.protocol.encode(q.out[:0], q, q.op.out, reflect.ValueOf(out).Elem())
	return q.out, err
}

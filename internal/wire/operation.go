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

// operation is a method that answers an operation.
type operation struct {
	method  reflect.Value
	in, out *shape // of the structs
	lenient bool
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// newOperation returns the operation that a method is for, nil where the service has no such method.
func (a *API) newOperation(name string) (*operation, error) {
	if a.Service == nil {
		return nil, nil
	}
	m := reflect.ValueOf(a.Service).MethodByName(name)
	if !m.IsValid() {
		return nil, nil
	}
	t := m.Type()
	if !isOperation(t) {
		return nil, fmt.Errorf("wire: %s.%s is a %s, not a method of an SDK client", a.Name, name, t)
	}
	o := &operation{method: m, in: a.shapes.of(t.In(1).Elem()), out: a.shapes.of(t.Out(0).Elem()), lenient: slices.Contains(a.Lenient, name)}
	for _, sh := range []*shape{o.in, o.out} {
		if err := sh.check(a.Name+"."+sh.typ.Name(), map[*shape]bool{}); err != nil {
			return nil, fmt.Errorf("wire: %w", err)
		}
	}
	return o, nil
}

func isOperation(t reflect.Type) bool {
	return t.NumIn() == 2 && t.In(0) == contextType && isStructPointer(t.In(1)) &&
		t.NumOut() == 2 && isStructPointer(t.Out(0)) && t.Out(1) == errorType
}

func isStructPointer(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
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
	ctx = call.With(ctx, call.Call{RequestID: q.id, Service: q.api.Name, Operation: q.operation, AccessKeyID: caller.AccessKeyID, Principal: caller.Arn})
	results := q.op.method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, _ := results[1].Interface().(error); err != nil {
		return nil, err
	}
	q.out, err = q.protocol.encode(q.out[:0], q, q.op.out, results[0].Elem())
	return q.out, err
}

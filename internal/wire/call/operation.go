package call

import (
	"context"
	"reflect"
)

// Service is what answers an API's operations. Each service's table is generated beside its methods.
type Service interface {
	// Operations are those that are implemented.
	Operations() []Operation
}

// Operation is a method of a service that answers an operation of its API.
type Operation struct {
	Name string
	In   reflect.Type // the struct that the input is read into
	Out  reflect.Type // the struct that the answer is made from
	// Call calls the method. The input is a pointer to an In, the answer one to an Out.
	Call func(ctx context.Context, in any) (any, error)
}

// Op is the operation of the name, answered by a method shaped like the SDK client's.
func Op[In, Out any](name string, method func(context.Context, *In) (*Out, error)) Operation {
	return Operation{
		Name: name,
		In:   reflect.TypeFor[In](),
		Out:  reflect.TypeFor[Out](),
		Call: func(ctx context.Context, in any) (any, error) { return method(ctx, in.(*In)) },
	}
}

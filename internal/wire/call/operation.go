package call

import (
	"context"
	"reflect"
)

// Service implements an API's operations. Its table is generated beside its methods.
type Service interface {
	// Operations returns the implemented operations.
	Operations() []Operation
}

// Operation is an operation and the method that implements it.
type Operation struct {
	Name string
	In   reflect.Type // the input's struct
	Out  reflect.Type // the output's struct
	// Call calls the method with a pointer to an In. The result is a pointer to an Out.
	Call func(ctx context.Context, in any) (any, error)
}

// Op returns the operation with a name, implemented by a method with the signature of the SDK client's. In and Out are pointers: the compiler
// makes one function for all pointers, and one for each struct.
func Op[In, Out any](name string, method func(context.Context, In) (Out, error)) Operation {
	return Operation{
		Name: name,
		In:   reflect.TypeFor[In]().Elem(),
		Out:  reflect.TypeFor[Out]().Elem(),
		Call: func(ctx context.Context, in any) (any, error) { return method(ctx, in.(In)) },
	}
}

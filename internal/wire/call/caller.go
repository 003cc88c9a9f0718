package call

import (
	"context"
	"fmt"
)

// Caller calls operations of all services from inside the process. The operation is the one whose input in is: a pointer to the SDK's
// struct. The result is a pointer to the SDK's output.
type Caller interface {
	Call(ctx context.Context, in any) (out any, err error)
}

// Do calls the operation whose input and output these are.
func Do[Out, In any](ctx context.Context, c Caller, in *In) (*Out, error) {
	got, err := c.Call(ctx, in)
	if err != nil {
		return nil, err
	}
	out, ok := got.(*Out)
	if !ok {
		return nil, fmt.Errorf("%T answers with %T, not with %T", in, got, out)
	}
	return out, nil
}

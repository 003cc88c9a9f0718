package codec

import (
	"context"

	"github.com/pintle/pintle/internal/wire/call"
)

// Operation is a service's method, and the shapes of its input and output.
type Operation struct {
	Call    func(ctx context.Context, in any) (any, error)
	In, Out *Shape // of the structs
	Lenient bool   // whether callers may send members that the input doesn't have
}

// Operation returns a method with its shapes. It fails if a struct can't be encoded.
func (s *Shapes) Operation(o call.Operation) (*Operation, error) {
	made := &Operation{
		Call: o.Call,
		In:   s.Of(o.In),
		Out:  s.Of(o.Out),
	}
	for _, sh := range []*Shape{made.In, made.Out} {
		if err := sh.check(sh.Type.Name(), map[*Shape]bool{}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

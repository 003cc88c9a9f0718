package codec

import (
	"context"

	"github.com/pintle/pintle/internal/wire/call"
)

// Operation is a method, and the shapes of what it takes and gives.
type Operation struct {
	Call    func(ctx context.Context, in any) (any, error)
	In, Out *Shape // of the structs
	Lenient bool   // whether its callers may send members that it does not have
}

// Operation returns a method with its shapes. It refuses structs that cannot be put on the wire.
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

package wire

import (
	"context"

	"github.com/pintle/pintle/internal/wire/call"
)

// operation is a method, and the shapes of what it takes and gives.
type operation struct {
	call    func(ctx context.Context, in any) (any, error)
	in, out *shape // of the structs
	lenient bool   // whether its callers may send members that it does not have
}

// operation returns a method with its shapes. It refuses structs that cannot be put on the wire.
func (s *shapes) operation(o call.Operation) (*operation, error) {
	made := &operation{
		call: o.Call,
		in:   s.of(o.In),
		out:  s.of(o.Out),
	}
	for _, sh := range []*shape{made.in, made.out} {
		if err := sh.check(sh.typ.Name(), map[*shape]bool{}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

package wire

import (
	"context"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// admitted returns a call that is refused while the disk has no room for it, or that turns out not to be writable. SDKs try again after that.
func (a *served) admitted(admit func(service, operation string) error, operation string, call callFunc) callFunc {
	return func(ctx context.Context, in any) (out any, err error) {
		if admit != nil {
			err = admit(a.Name, operation)
		}
		if err == nil {
			out, err = call(ctx, in)
		}
		if disk.IsUnwritable(err) {
			return nil, refusal.Unavailable(a.Unavailable, err)
		}
		return out, err
	}
}

type callFunc = func(context.Context, any) (any, error)

package underway

import (
	"cmp"
	"context"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// CallerOf returns who makes the call that begins something, for its row. What limits the caller goes with it: the calls of the steps are to
// be bound by that, too.
func CallerOf(ctx context.Context) state.StackCaller {
	who := call.From(ctx).Identity
	return state.StackCaller{Principal: who.Principal, Task: who.Task, Role: who.Role, Session: who.Session}
}

// IdentityOf returns who began something, by its row. root is the account's, for rows of nobody in particular.
func IdentityOf(by state.StackCaller, root string) call.Identity {
	return call.Identity{Principal: cmp.Or(by.Principal, root), Task: by.Task, Role: by.Role, Session: by.Session}
}

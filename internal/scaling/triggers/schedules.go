package triggers

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// action is a row of a table of scheduled actions.
type action[A any] interface {
	*A
	Key() string
	Due(now time.Time) bool
}

// Schedules performs a table's due scheduled actions, each in a transaction of its own. perform also sets when the
// action is next due.
func Schedules[A any, P action[A]](
	ctx context.Context, store *state.Store, table func(*state.View) state.Table[*A], now time.Time, perform func(*state.Tx, P, time.Time),
) error {
	for a := range table(store.View()).All() {
		if !P(a).Due(now) {
			continue
		}
		err := store.Update(ctx, func(tx *state.Tx) error {
			if row := P(table(tx.View).Get(P(a).Key())); row != nil && row.Due(now) {
				perform(tx, row, now)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

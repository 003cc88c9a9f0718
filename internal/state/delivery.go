package state

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/store"
)

// Delivery is a debt: an alarm's action, a lifecycle hook's notice, metrics from a log's lines, or a topic's message.
type Delivery struct {
	delivery.Debt
	Due time.Time
	// Alarm is the name of the alarm whose action this is, or "". The alarm's history records the outcome.
	Alarm string `json:",omitzero"`
	// Moved is when that alarm changed to its state.
	Moved time.Time `json:",omitzero"`
	// Publication is the id of the topic's message that this is about, or "". The message lives as long as the last debt of it.
	Publication string `json:",omitzero"`
	// Size is how many bytes that message has, or the event that this is.
	Size int `json:",omitzero"`
	// Event is the id of the event's text that this is about, or "". The text lives as long as the last debt of it.
	Event string `json:",omitzero"`
	// Own is whether the event is one of Pintle's services, which nobody could be refused: the oldest gives way when too many wait for a target.
	Own bool `json:",omitzero"`
	// Line is what this debt waits in, or "". Of a line only the first debt is told, by the order of their IDs, whatever becomes of it.
	Line string `json:",omitzero"`
	// Waits is whether another debt stands before this one in its line, so that it isn't due. When it's the first, it no longer waits.
	Waits bool `json:",omitzero"`
}

// dueAt orders debts by when they are due. Those that wait for others have no place in that order.
func (d *Delivery) dueAt() string {
	if d.Waits {
		return ""
	}
	return d.Due.UTC().Format("2006-01-02T15:04:05.000000000")
}

// dueAtDestination orders those of each destination so.
func (d *Delivery) dueAtDestination() string {
	if d.Waits {
		return ""
	}
	return d.Destination + "\x00" + d.dueAt()
}

var (
	deliveriesByPublication = store.Index[*Delivery]{Name: "publication", Value: func(d *Delivery) string { return d.Publication }}
	deliveriesByEvent       = store.Index[*Delivery]{Name: "event", Value: func(d *Delivery) string { return d.Event }}
	deliveriesByTarget      = store.Index[*Delivery]{Name: "target", Value: func(d *Delivery) string {
		if d.Own {
			return d.Destination
		}
		return ""
	}}
	deliveriesByDue         = store.Index[*Delivery]{Name: "due", Value: (*Delivery).dueAt}
	deliveriesByDestination = store.Index[*Delivery]{Name: "destination", Value: (*Delivery).dueAtDestination}
	deliveriesByLine        = store.Index[*Delivery]{Name: "line", Value: func(d *Delivery) string { return d.Line }}

	deliveries = &store.Definition[*Delivery]{
		Name: "deliveries",
		Key:  func(d *Delivery) string { return d.ID },
		Indexes: []store.Index[*Delivery]{
			deliveriesByPublication, deliveriesByEvent, deliveriesByTarget, deliveriesByLine, deliveriesByDue, deliveriesByDestination,
		},
	}
)

// firstOf returns the first debt of a line, or nil.
func (v *View) firstOf(line string) *Delivery {
	for first := range v.Deliveries.After(deliveriesByLine, line, "") {
		return first
	}
	return nil
}

// OldestOwn returns the oldest event of Pintle's services that waits for a destination, or nil.
func (v *View) OldestOwn(destination string) *Delivery {
	for oldest := range v.Deliveries.After(deliveriesByTarget, destination, "") {
		return oldest
	}
	return nil
}

// isHeld reports whether a debt waits for another one in its line.
func (v *View) isHeld(d *Delivery) bool { return d.Line != "" && v.firstOf(d.Line).ID != d.ID }

// moveUp has the first debt of a line no longer wait.
func (tx *Tx) moveUp(line string) {
	first := tx.firstOf(line)
	if first == nil || !first.Waits {
		return
	}
	row := *first
	row.Waits = false
	tx.Deliveries.Put(&row)
}

// forgetPublication deletes a topic's message that nobody is owed any more.
func (tx *Tx) forgetPublication(id string) {
	for range tx.Deliveries.By(deliveriesByPublication, id) {
		return
	}
	tx.Publications.Delete(id)
}

// forgetEvent deletes an event's text that nobody is owed any more.
func (tx *Tx) forgetEvent(id string) {
	for range tx.Deliveries.By(deliveriesByEvent, id) {
		return
	}
	tx.EventTexts.Delete(id)
}

// Owe stores a debt and returns its row. It sets Since, Due and, unless the debt has one, ID. A debt whose ID is owed already changes
// nothing, but for a void one, which takes the other's place.
func (tx *Tx) Owe(d Delivery, now time.Time) *Delivery {
	if d.ID == "" {
		d.ID = uuid.Must(uuid.NewV7()).String() // sorts by time
	} else if old := tx.Deliveries.Get(d.ID); old != nil && (old.Void || !d.Void) {
		return old
	}
	d.Since = now
	d.Due = now
	if d.NotBefore.After(now) {
		d.Due = d.NotBefore
	}
	if first := tx.firstOf(d.Line); d.Line != "" && first != nil {
		d.Waits = first.ID < d.ID
	}
	tx.Deliveries.Put(&d)
	return &d
}

// SettleDelivery removes a debt. If an alarm owed it, the alarm's history records the outcome.
func (tx *Tx) SettleDelivery(id string, outcome error, now time.Time) {
	row := tx.Deliveries.Get(id)
	if row == nil {
		return
	}
	tx.Deliveries.Delete(id)
	if row.Line != "" {
		tx.moveUp(row.Line)
	}
	if row.Publication != "" {
		tx.forgetPublication(row.Publication)
	}
	if row.Event != "" {
		tx.forgetEvent(row.Event)
	}
	a := tx.Alarms.Get(row.Alarm)
	if a == nil {
		return
	}
	data := map[string]any{
		"version": "1.0", "actionState": "Succeeded", "notificationResource": row.Destination,
		"stateUpdateTimestamp": row.Moved.UnixMilli(),
	}
	summary := "Successfully executed action " + row.Destination
	if outcome != nil {
		data["actionState"] = "Failed"
		data["error"] = outcome.Error()
		summary = "Failed to execute action " + row.Destination + ". Received error: \"" + outcome.Error() + "\""
	}
	tx.AddAlarmHistory(a, types.HistoryItemTypeAction, summary, data, now)
}

// Outbox presents a store's debts to the delivery loop.
type Outbox struct {
	Store *Store
	Now   func() time.Time
}

// Owe stores debts, and returns them as stored. They are made in the transaction, and told when that is: since transactions run one
// after the other, no debt that is not due before some moment was told when one that is made before that moment comes.
func (o Outbox) Owe(ctx context.Context, debts func(now time.Time) []delivery.Debt) (owed []delivery.Debt, err error) {
	err = o.Store.Update(ctx, func(tx *Tx) error {
		owed = nil
		now := o.Now()
		for _, d := range debts(now) {
			owed = append(owed, tx.Owe(Delivery{Debt: d}, now).Debt)
		}
		return nil
	})
	return owed, err
}

// Many debts may be due that aren't taken, since too much is under way to their destination: a listener that hangs, say. After maxSkipped of
// them, Owed looks at the first maxPerDestination of each destination only.
const (
	maxSkipped        = 1024
	maxPerDestination = 32
)

// Owed implements delivery.Outbox. It reads no further than what is due.
func (o Outbox) Owed(_ context.Context, limit int, take func(delivery.Debt) bool) (
	due []delivery.Debt, next time.Time, changed func(context.Context) <-chan struct{}, err error,
) {
	v := o.Store.Watch()
	now := o.Now()
	changed = func(ctx context.Context) <-chan struct{} { return changes(ctx, v) }
	skipped := 0
	for d := range v.Deliveries.InOrder(deliveriesByDue) {
		if d.Due.After(now) {
			next = d.Due
			break
		}
		if len(due) == limit {
			break
		}
		if !v.isHeld(d) && take(d.Debt) {
			due = append(due, d.Debt)
		} else if skipped++; skipped == maxSkipped {
			more, next := v.owedByDestination(now, limit-len(due), take)
			return append(due, more...), next, changed, nil
		}
	}
	return due, next, changed, nil
}

// owedByDestination is Owed, but doesn't look behind the first debts of each destination.
func (v *View) owedByDestination(now time.Time, limit int, take func(delivery.Debt) bool) (due []delivery.Debt, next time.Time) {
	var all []*Delivery
	for after, found := "", true; found; {
		destination, seen := "", 0
		for d := range v.Deliveries.InOrderAfter(deliveriesByDestination, after) {
			if seen == maxPerDestination || seen > 0 && d.Destination != destination {
				break
			}
			destination = d.Destination
			seen++
			if d.Due.After(now) {
				if next.IsZero() || d.Due.Before(next) {
					next = d.Due
				}
				break
			}
			all = append(all, d)
		}
		after = destination + "\x01"
		found = seen > 0
	}
	slices.SortFunc(all, func(a, b *Delivery) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
	for _, d := range all {
		if len(due) < limit && !v.isHeld(d) && take(d.Debt) {
			due = append(due, d.Debt)
		}
	}
	return due, next
}

// changes returns a channel that is closed when what the view has read changes, or ctx ends.
func changes(ctx context.Context, v *View) <-chan struct{} {
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		v.Changed(ctx) //nolint:errcheck // the only error is that of ctx
	}()
	return changed
}

// Settle implements delivery.Outbox.
func (o Outbox) Settle(ctx context.Context, d delivery.Debt, outcome error) error {
	return o.Store.Update(ctx, func(tx *Tx) error {
		tx.SettleDelivery(d.ID, outcome, o.Now())
		return nil
	})
}

// Postpone implements delivery.Outbox.
func (o Outbox) Postpone(ctx context.Context, d delivery.Debt, until time.Time) error {
	return o.Store.Update(ctx, func(tx *Tx) error {
		old := tx.Deliveries.Get(d.ID)
		if old == nil {
			return nil
		}
		row := *old
		row.Tries++
		row.Due = until
		tx.Deliveries.Put(&row)
		return nil
	})
}

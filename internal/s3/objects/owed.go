package objects

import (
	"context"
	"database/sql"
	"time"

	"github.com/pintle/pintle/internal/delivery"
)

// owe stores a change's messages with the change.
func (s *Store) owe(tx *sql.Tx, b *Bucket, o *Object, c Conditions) error {
	if c.Owe == nil {
		return nil
	}
	now := s.now().UnixNano()
	for _, m := range c.Owe(b, o) {
		const insert = `INSERT INTO owed (destination, body, since, due, tries) VALUES (?, ?, ?, ?, 0)`
		if _, err := tx.Exec(insert, m.Destination, m.Body, now, now); err != nil {
			return err
		}
		s.owes = true
	}
	return nil
}

// Subject is the subject of the messages that go to topics.
const Subject = "Amazon S3 Notification"

// patience is how long delivery of a message is retried.
const patience = 24 * time.Hour

// Owed implements delivery.Outbox.
func (s *Store) Owed(ctx context.Context, limit int, take func(delivery.Debt) bool) (
	due []delivery.Debt, next time.Time, changed func(context.Context) <-chan struct{}, err error,
) {
	now := s.now().UnixNano()
	// What goes to queues and topics here never hangs, so that it's enough to look at the first ones.
	rows, err := s.reads.QueryContext(ctx, `SELECT id, destination, body, since, due, tries FROM owed ORDER BY due, id LIMIT ?`, 2*limit)
	if err != nil {
		return nil, next, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var d delivery.Debt
		var since, at int64
		if err := rows.Scan(&d.ID, &d.Destination, &d.Body, &since, &at, &d.Tries); err != nil {
			return due, next, nil, err
		}
		if at > now {
			next = unix(at)
			break
		}
		if len(due) == limit {
			break
		}
		d.Since = unix(since)
		d.Subject = Subject
		d.Until = d.Since.Add(patience)
		if take(d) {
			due = append(due, d)
		}
	}
	return due, next, func(context.Context) <-chan struct{} { return s.owing }, rows.Err()
}

// Settle implements delivery.Outbox.
func (s *Store) Settle(ctx context.Context, d delivery.Debt, _ error) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`DELETE FROM owed WHERE id = ?`, d.ID)
		return err
	})
}

// Postpone implements delivery.Outbox.
func (s *Store) Postpone(ctx context.Context, d delivery.Debt, until time.Time) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE owed SET due = ?, tries = tries + 1 WHERE id = ?`, until.UnixNano(), d.ID)
		return err
	})
}

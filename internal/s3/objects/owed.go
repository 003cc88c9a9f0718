package objects

import (
	"context"
	"database/sql"
	"time"
)

// Owed is a message that somebody has still to be told.
type Owed struct {
	ID int64
	Message
	Since time.Time
	Tries int
}

// owe keeps a change's messages with it.
func (s *Store) owe(tx *sql.Tx, b *Bucket, o *Object, c Conditions) error {
	if c.Owe == nil {
		return nil
	}
	now := s.now().UnixNano()
	for _, m := range c.Owe(b, o) {
		if _, err := tx.Exec(`INSERT INTO owed (destination, body, since, due, tries) VALUES (?, ?, ?, ?, 0)`, m.Destination, m.Body, now, now); err != nil {
			return err
		}
		s.owes = true
	}
	return nil
}

// Owing has a value when something may be newly owed. It is for one receiver.
func (s *Store) Owing() <-chan struct{} { return s.owing }

// Owed are up to limit messages that are due, the longest due first, and when the next one will be; zero where
// none will.
func (s *Store) Owed(ctx context.Context, limit int) (due []*Owed, next time.Time, err error) {
	now := s.now().UnixNano()
	rows, err := s.reads.QueryContext(ctx, `SELECT id, destination, body, since, due, tries FROM owed ORDER BY due, id LIMIT ?`, limit)
	if err != nil {
		return nil, next, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Owed
		var since, at int64
		if err := rows.Scan(&o.ID, &o.Destination, &o.Body, &since, &at, &o.Tries); err != nil {
			return nil, next, err
		}
		if at > now {
			next = unix(at)
			break
		}
		o.Since = unix(since)
		due = append(due, &o)
	}
	return due, next, rows.Err()
}

// Settle strikes out a message.
func (s *Store) Settle(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`DELETE FROM owed WHERE id = ?`, id)
		return err
	})
}

// Postpone puts a message off.
func (s *Store) Postpone(ctx context.Context, id int64, until time.Time) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE owed SET due = ?, tries = tries + 1 WHERE id = ?`, until.UnixNano(), id)
		return err
	})
}

package objects

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// Versioning is the one setting that the store itself follows: Enabled or Suspended, or none if the bucket never kept versions.
const Versioning = "versioning"

// KeepsVersions reports whether each put makes a version of its own, and a delete a marker.
func (b *Bucket) KeepsVersions() bool { return string(b.Settings[Versioning]) == `"Enabled"` }

// HasVersions reports whether the bucket keeps or has kept versions.
func (b *Bucket) HasVersions() bool { return b.Settings[Versioning] != nil }

// CreateBucket makes a bucket.
func (s *Store) CreateBucket(ctx context.Context, name string, settings map[string]json.RawMessage) error {
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return s.update(ctx, func(tx *sql.Tx) error {
		done, err := tx.Exec(`INSERT INTO buckets VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, name, s.now().UnixNano(), text)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return ErrExists
		}
		return nil
	})
}

// DeleteBucket removes a bucket that has no objects. Its unfinished uploads go with it.
func (s *Store) DeleteBucket(ctx context.Context, name string) error {
	var gone []string
	err := s.update(ctx, func(tx *sql.Tx) error {
		if _, err := bucket(ctx, tx, name); err != nil {
			return err
		}
		var one int
		err := tx.QueryRow(`SELECT 1 FROM objects WHERE bucket = ? LIMIT 1`, name).Scan(&one)
		if err == nil {
			return ErrNotEmpty
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if gone, err = names(tx, `SELECT name FROM files WHERE owner IN (SELECT id FROM uploads WHERE bucket = ?)`, name); err != nil {
			return err
		}
		return exec(tx, []any{name},
			`DELETE FROM files WHERE owner IN (SELECT id FROM uploads WHERE bucket = ?)`,
			`DELETE FROM uploads WHERE bucket = ?`,
			`DELETE FROM buckets WHERE name = ?`)
	})
	if err != nil {
		return err
	}
	s.remove(gone)
	return nil
}

func exec(tx *sql.Tx, args []any, statements ...string) error {
	for _, text := range statements {
		if _, err := tx.Exec(text, args...); err != nil {
			return err
		}
	}
	return nil
}

func names(q *sql.Tx, query string, args ...any) ([]string, error) {
	rows, err := q.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// Bucket returns a bucket.
func (s *Store) Bucket(ctx context.Context, name string) (*Bucket, error) {
	return bucket(ctx, s.reads, name)
}

func bucket(ctx context.Context, q querier, name string) (*Bucket, error) {
	row := q.QueryRowContext(ctx, `SELECT name, created, settings FROM buckets WHERE name = ?`, name)
	b, err := scanBucket(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoBucket
	}
	return b, err
}

func scanBucket(scan func(...any) error) (*Bucket, error) {
	var b Bucket
	var created int64
	var settings []byte
	if err := scan(&b.Name, &created, &settings); err != nil {
		return nil, err
	}
	b.Created = unix(created)
	return &b, json.Unmarshal(settings, &b.Settings)
}

// Buckets returns up to limit buckets with the prefix behind a name, in order.
func (s *Store) Buckets(ctx context.Context, prefix, after string, limit int) ([]*Bucket, error) {
	rows, err := s.reads.QueryContext(
		ctx,
		`SELECT name, created, settings FROM buckets WHERE name > ? AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?`,
		after,
		prefix,
		prefix,
		limit,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*Bucket
	for rows.Next() {
		b, err := scanBucket(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}

// Set gives one of a bucket's settings a value, or takes it away with nil.
func (s *Store) Set(ctx context.Context, name, setting string, value json.RawMessage) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		b, err := bucket(ctx, tx, name)
		if err != nil {
			return err
		}
		if b.Settings == nil {
			b.Settings = map[string]json.RawMessage{}
		}
		if b.Settings[setting] = value; value == nil {
			delete(b.Settings, setting)
		}
		text, err := json.Marshal(b.Settings)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE buckets SET settings = ? WHERE name = ?`, text, name)
		return err
	})
}

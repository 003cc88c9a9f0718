package objects

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/sqlitefile"
)

// Upload is an unfinished object, made of parts.
type Upload struct {
	Bucket, Key, ID string
	Started         time.Time
	Attributes      json.RawMessage
}

// CreateUpload begins an upload.
func (s *Store) CreateUpload(ctx context.Context, bucketName, key string, attributes json.RawMessage) (*Upload, error) {
	id, err := uuid.NewV7() // uploads of one key are listed in the order in which they began
	if err != nil {
		return nil, err
	}
	u := &Upload{bucketName, key, id.String(), s.now(), attributes}
	return u, s.update(ctx, func(tx *sql.Tx) error {
		if _, err := bucket(ctx, tx, bucketName); err != nil {
			return err
		}
		_, err := tx.Exec(
			`INSERT INTO uploads VALUES (?, ?, ?, ?, ?)`,
			u.Bucket,
			[]byte(u.Key),
			u.ID,
			u.Started.UnixNano(),
			[]byte(attributes),
		)
		return err
	})
}

// Upload returns an upload.
func (s *Store) Upload(ctx context.Context, bucketName, key, id string) (*Upload, error) {
	return upload(ctx, s.reads, bucketName, key, id)
}

func upload(ctx context.Context, q querier, bucketName, key, id string) (*Upload, error) {
	if _, err := bucket(ctx, q, bucketName); err != nil {
		return nil, err
	}
	row := q.QueryRowContext(
		ctx,
		`SELECT bucket, key, id, started, attributes FROM uploads WHERE bucket = ? AND key = ? AND id = ?`,
		bucketName,
		[]byte(key),
		id,
	)
	u, err := scanUpload(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoUpload
	}
	return u, err
}

func scanUpload(scan func(...any) error) (*Upload, error) {
	var u Upload
	var key, attributes []byte
	var started int64
	if err := scan(&u.Bucket, &key, &u.ID, &started, &attributes); err != nil {
		return nil, err
	}
	u.Key, u.Started, u.Attributes = string(key), unix(started), json.RawMessage(attributes)
	return &u, nil
}

// PutPart adds a part to an upload, replacing one with the same number. On an error the file is discarded.
func (s *Store) PutPart(ctx context.Context, u *Upload, f *File) error {
	var gone []string
	err := s.update(ctx, func(tx *sql.Tx) error {
		if _, err := upload(ctx, tx, u.Bucket, u.Key, u.ID); err != nil {
			return err
		}
		var err error
		if gone, err = names(tx, `DELETE FROM files WHERE owner = ? AND number = ? RETURNING name`, u.ID, f.Number); err != nil {
			return err
		}
		return take(tx, u.ID, []*File{f})
	})
	if err != nil {
		if !errors.Is(err, sqlitefile.ErrInDoubt) {
			s.Discard(f)
		}
		return err
	}
	s.remove(gone)
	return nil
}

// Parts returns an upload's parts after a number, in order.
func (s *Store) Parts(ctx context.Context, u *Upload, after, limit int) ([]*File, error) {
	return filesOf(ctx, s.reads, withoutBytes, u.ID, after, limit)
}

// Complete makes an object of the chosen parts and ends the upload. It copies no bytes.
func (s *Store) Complete(ctx context.Context, u *Upload, o *Object, choose func(parts []*File) ([]*File, error), c Conditions) error {
	parts, err := s.Parts(ctx, u, -1, math.MaxInt32)
	if err != nil {
		return err
	}
	chosen, err := choose(parts)
	if err != nil {
		return err
	}
	return s.putAs(ctx, o, chosen, c, func(tx *sql.Tx) ([]string, error) {
		if _, err := upload(ctx, tx, u.Bucket, u.Key, u.ID); err != nil {
			return nil, err
		}
		for _, f := range chosen {
			done, err := tx.Exec(
				`UPDATE files SET owner = ? WHERE owner = ? AND number = ? AND name = ? AND etag = ? AND size = ?`,
				o.ID,
				u.ID,
				f.Number,
				f.name,
				f.ETag,
				f.Size,
			)
			if err != nil {
				return nil, err
			}
			if n, _ := done.RowsAffected(); n == 0 {
				return nil, errChanged
			}
		}
		return end(tx, u)
	})
}

// end removes an upload and its remaining parts from the index, and returns the names of their files.
func end(tx *sql.Tx, u *Upload) ([]string, error) {
	gone, err := names(tx, `DELETE FROM files WHERE owner = ? RETURNING name`, u.ID)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(`DELETE FROM uploads WHERE bucket = ? AND key = ? AND id = ?`, u.Bucket, []byte(u.Key), u.ID)
	return gone, err
}

// errChanged says that a part was replaced while the upload was being completed.
var errChanged = errors.New("a part was put again while the upload was completed")

// Abort ends an upload and removes its parts.
func (s *Store) Abort(ctx context.Context, bucketName, key, id string) error {
	var gone []string
	err := s.update(ctx, func(tx *sql.Tx) error {
		u, err := upload(ctx, tx, bucketName, key, id)
		if err != nil {
			return err
		}
		gone, err = end(tx, u)
		return err
	})
	if err != nil {
		return err
	}
	s.remove(gone)
	return nil
}

// Uploads returns up to limit uploads of a bucket with the prefix, after a key and, within that key, after an id.
func (s *Store) Uploads(ctx context.Context, bucketName, prefix, key, id string, limit int) ([]*Upload, error) {
	if _, err := s.Bucket(ctx, bucketName); err != nil {
		return nil, err
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT bucket, key, id, started, attributes FROM uploads
		WHERE bucket = ? AND (key, id) > (?, ?) AND substr(key, 1, ?) = ? ORDER BY key, id LIMIT ?`,
		bucketName, []byte(key), id, len(prefix), []byte(prefix), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*Upload
	for rows.Next() {
		u, err := scanUpload(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, rows.Err()
}

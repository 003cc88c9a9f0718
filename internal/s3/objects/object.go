package objects

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/sqlitefile"
)

// Message is something that a change owes somebody, as an outbox has it.
type Message struct {
	Destination string
	Body        []byte
}

// Conditions are callbacks that a change makes inside its transaction, where nothing else changes. They must be quick and do no IO. Each
// may be nil.
type Conditions struct {
	// Allow refuses the change with an error. The object is the present one, nil if there is none.
	Allow func(*Bucket, *Object) error
	// Owe returns the messages that the change owes. The object is as the change left it, or the one that it removed.
	Owe func(*Bucket, *Object) []Message
}

func (c Conditions) allow(b *Bucket, o *Object) error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(b, o)
}

// Put replaces an object's content by the files, which have their sizes and order. On an error the files are discarded.
func (s *Store) Put(ctx context.Context, o *Object, files []*File, c Conditions) error {
	err := s.putAs(ctx, o, files, c, func(tx *sql.Tx) ([]string, error) { return nil, take(tx, o.ID, files) })
	if err != nil && !errors.Is(err, sqlitefile.ErrInDoubt) {
		for _, f := range files {
			s.Discard(f)
		}
	}
	return err
}

// putAs puts an object; own assigns the object its files. It returns the names of files that nothing uses any more.
func (s *Store) putAs(ctx context.Context, o *Object, files []*File, c Conditions, own func(*sql.Tx) ([]string, error)) error {
	o.ID, o.Size, o.Modified = uuid.NewString(), 0, s.now()
	for _, f := range files {
		o.Size += f.Size
	}
	var gone []string
	err := s.update(ctx, func(tx *sql.Tx) error {
		b, before, err := current(ctx, tx, o.Bucket, o.Key)
		if err != nil {
			return err
		}
		if err := c.allow(b, before); err != nil {
			return err
		}
		if gone, err = drop(tx, before); err != nil {
			return err
		}
		rest, err := own(tx)
		if err != nil {
			return err
		}
		gone = append(gone, rest...)
		if err := sequence(tx, o); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			o.Bucket, []byte(o.Key), o.ID, o.Size, o.ETag, o.Modified.UnixNano(), o.Sequence, o.Parts, []byte(o.Attributes))
		if err != nil {
			return err
		}
		return s.owe(tx, b, o, c)
	})
	if err != nil {
		return err
	}
	s.remove(gone)
	return nil
}

// current returns a bucket, and its object under a key, nil if there is none.
func current(ctx context.Context, tx *sql.Tx, bucketName, key string) (*Bucket, *Object, error) {
	b, err := bucket(ctx, tx, bucketName)
	if err != nil {
		return nil, nil, err
	}
	o, err := object(ctx, tx, bucketName, key)
	if errors.Is(err, ErrNoObject) {
		return b, nil, nil
	}
	return b, o, err
}

// drop removes an object from the index, and returns the names of its files.
func drop(tx *sql.Tx, o *Object) (files []string, err error) {
	if o == nil {
		return nil, nil
	}
	if files, err = names(tx, `DELETE FROM files WHERE owner = ? RETURNING name`, o.ID); err != nil {
		return nil, err
	}
	_, err = tx.Exec(`DELETE FROM objects WHERE bucket = ? AND key = ?`, o.Bucket, []byte(o.Key))
	return files, err
}

// sequence gives the object the next number.
func sequence(tx *sql.Tx, o *Object) error {
	return tx.QueryRow(`UPDATE meta SET value = value + 1 WHERE name = 'sequence' RETURNING value`).Scan(&o.Sequence)
}

// Delete removes an object. If there is none that's no error, and nothing is owed.
func (s *Store) Delete(ctx context.Context, bucketName, key string, c Conditions) error {
	var gone []string
	err := s.update(ctx, func(tx *sql.Tx) error {
		b, o, err := current(ctx, tx, bucketName, key)
		if err != nil {
			return err
		}
		if err := c.allow(b, o); err != nil || o == nil {
			return err
		}
		if gone, err = drop(tx, o); err != nil {
			return err
		}
		if err := sequence(tx, o); err != nil {
			return err
		}
		return s.owe(tx, b, o, c)
	})
	if err != nil {
		return err
	}
	s.remove(gone)
	return nil
}

// Describe changes an object's attributes.
func (s *Store) Describe(ctx context.Context, bucketName, key string, change func(*Object) error, c Conditions) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		b, o, err := current(ctx, tx, bucketName, key)
		if err != nil {
			return err
		}
		if o == nil {
			return ErrNoObject
		}
		if err := change(o); err != nil {
			return err
		}
		if err := sequence(tx, o); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE objects SET attributes = ? WHERE bucket = ? AND key = ?`, []byte(o.Attributes), bucketName, []byte(key))
		if err != nil {
			return err
		}
		return s.owe(tx, b, o, c)
	})
}

// Object returns an object.
func (s *Store) Object(ctx context.Context, bucketName, key string) (*Object, error) {
	o, err := object(ctx, s.reads, bucketName, key)
	if errors.Is(err, ErrNoObject) {
		if _, err := bucket(ctx, s.reads, bucketName); err != nil {
			return nil, err
		}
	}
	return o, err
}

const objectColumns = `bucket, key, id, size, etag, modified, sequence, parts, attributes`

func object(ctx context.Context, q querier, bucketName, key string) (*Object, error) {
	row := q.QueryRowContext(ctx, `SELECT `+objectColumns+` FROM objects WHERE bucket = ? AND key = ?`, bucketName, []byte(key))
	o, err := scanObject(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoObject
	}
	return o, err
}

func scanObject(scan func(...any) error) (*Object, error) {
	var o Object
	var key, attributes []byte
	var modified int64
	if err := scan(&o.Bucket, &key, &o.ID, &o.Size, &o.ETag, &modified, &o.Sequence, &o.Parts, &attributes); err != nil {
		return nil, err
	}
	o.Key, o.Attributes, o.Modified = string(key), json.RawMessage(attributes), unix(modified)
	return &o, nil
}

// Stretch says which bytes of an object are wanted.
type Stretch struct{ From, Length int64 }

// Read returns an object with the bytes that pick asks for. A later put doesn't affect what is read.
func (s *Store) Read(ctx context.Context, bucketName, key string, pick func(*Object) (Stretch, error)) (*Object, io.ReadCloser, error) {
	for {
		o, err := s.Object(ctx, bucketName, key)
		if err != nil {
			return nil, nil, err
		}
		want, err := pick(o)
		if err != nil {
			return o, nil, err
		}
		r, err := s.open(ctx, o, want)
		switch {
		case err == nil:
			return o, r, nil
		case errors.Is(err, fs.ErrNotExist) && s.replaced(ctx, o):
		default:
			return o, nil, logDamage(missing(err))
		}
	}
}

// replaced reports whether an object no longer exists.
func (s *Store) replaced(ctx context.Context, o *Object) bool {
	now, err := object(ctx, s.reads, o.Bucket, o.Key)
	return err != nil || now.ID != o.ID
}

// open opens the first file of a stretch and pins the others, so that it can be read whatever happens to the object.
func (s *Store) open(ctx context.Context, o *Object, want Stretch) (io.ReadCloser, error) {
	files, err := filesOf(ctx, s.reads, withBytes, o.ID, -1, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fs.ErrNotExist
	}
	for len(files) > 1 && want.From >= files[0].Size {
		want.From -= files[0].Size
		files = files[1:]
	}
	b := &body{store: s, files: files, skip: want.From, left: want.Length}
	if len(files) > 1 {
		b.pins = files
		s.pin(files)
		if s.replaced(ctx, o) { // perhaps before the files were pinned
			return nil, errors.Join(fs.ErrNotExist, b.Close())
		}
	}
	if want.Length > 0 { // while the caller can still report that the first block is bad
		if err := b.load(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// Files returns an object's parts after a number.
func (s *Store) Files(ctx context.Context, o *Object, after, limit int) ([]*File, error) {
	return filesOf(ctx, s.reads, withoutBytes, o.ID, after, limit)
}

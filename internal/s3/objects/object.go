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
	// Allow refuses the change with an error. The object is the present one, or the version to delete, nil if there is none.
	Allow func(*Bucket, *Object) error
	// Owe returns the messages that the change owes. The object is as the change left it, or what it removed.
	Owe func(*Bucket, *Object) []Message
	// OweAbsent owes the messages of a deletion for an object that isn't there, too.
	OweAbsent bool
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
		b, latest, err := current(ctx, tx, o.Bucket, o.Key)
		if err != nil {
			return err
		}
		if gone, err = s.replace(ctx, tx, b, latest, o, c); err != nil {
			return err
		}
		rest, err := own(tx)
		gone = append(gone, rest...)
		return err
	})
	if err != nil {
		return err
	}
	s.remove(gone)
	return nil
}

// replace makes an object the latest version of its key, and returns the names of files that nothing uses any more.
func (s *Store) replace(ctx context.Context, tx *sql.Tx, b *Bucket, latest, o *Object, c Conditions) (gone []string, err error) {
	if err := c.allow(b, present(latest)); err != nil {
		return nil, err
	}
	if gone, err = makeRoom(ctx, tx, b, latest, o.Key); err != nil {
		return nil, err
	}
	if err := sequence(tx, o); err != nil {
		return nil, err
	}
	o.Latest = true
	o.Version = Null
	if b.KeepsVersions() {
		o.Version = versionOf(o)
	}
	if err := insert(tx, o); err != nil {
		return nil, err
	}
	return gone, s.owe(tx, b, o, c)
}

// present returns an object, or nil if that is a delete marker.
func present(o *Object) *Object {
	if o == nil || o.Marker {
		return nil
	}
	return o
}

func insert(tx *sql.Tx, o *Object) error {
	_, err := tx.Exec(`INSERT INTO objects (`+objectColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, o.Bucket, []byte(o.Key), o.ID,
		o.Version, o.Marker, o.Size, o.ETag, o.Modified.UnixNano(), o.Sequence, o.Parts, []byte(o.Attributes))
	return err
}

// current returns a bucket, and the latest version under a key, nil if there is none.
func current(ctx context.Context, tx *sql.Tx, bucketName, key string) (*Bucket, *Object, error) {
	b, err := bucket(ctx, tx, bucketName)
	if err != nil {
		return nil, nil, err
	}
	o, err := object(ctx, tx, bucketName, key, "")
	if errors.Is(err, ErrNoObject) {
		return b, nil, nil
	}
	return b, o, err
}

// drop removes a version from the index, and returns the names of its files.
func drop(tx *sql.Tx, o *Object) (files []string, err error) {
	if o == nil {
		return nil, nil
	}
	if files, err = names(tx, `DELETE FROM files WHERE owner = ? RETURNING name`, o.ID); err != nil {
		return nil, err
	}
	if o.Latest {
		return files, exec(tx, []any{o.Bucket, []byte(o.Key)}, `DELETE FROM objects WHERE bucket = ? AND key = ?`)
	}
	return files, exec(tx, []any{o.Bucket, []byte(o.Key), o.Sequence}, `DELETE FROM versions WHERE bucket = ? AND key = ? AND sequence = ?`)
}

// sequence gives the object the next number.
func sequence(tx *sql.Tx, o *Object) error {
	return tx.QueryRow(`UPDATE meta SET value = value + 1 WHERE name = 'sequence' RETURNING value`).Scan(&o.Sequence)
}

// Delete deletes an object, or one version of it if the call names one. It returns the delete marker that it made, or what it removed, or
// nil. If there is nothing that's no error, and nothing is owed.
func (s *Store) Delete(ctx context.Context, bucketName, key, version string, c Conditions) (deleted *Object, err error) {
	var gone []string
	err = s.update(ctx, func(tx *sql.Tx) error {
		b, latest, err := current(ctx, tx, bucketName, key)
		if err != nil {
			return err
		}
		if version == "" && b.HasVersions() {
			deleted = &Object{Bucket: bucketName, Key: key, ID: uuid.NewString(), Modified: s.now(), Marker: true}
			gone, err = s.replace(ctx, tx, b, latest, deleted, c)
			return err
		}
		deleted, err = object(ctx, tx, bucketName, key, version)
		if errors.Is(err, ErrNoObject) || errors.Is(err, ErrNoVersion) {
			deleted, err = nil, nil
		}
		if err != nil {
			return err
		}
		if err := c.allow(b, deleted); err != nil {
			return err
		}
		if deleted == nil {
			return s.oweAbsent(tx, b, key, c)
		}
		if gone, err = remove(tx, deleted); err != nil {
			return err
		}
		if err := sequence(tx, deleted); err != nil {
			return err
		}
		return s.owe(tx, b, deleted, c)
	})
	if err != nil {
		return nil, err
	}
	s.remove(gone)
	return deleted, nil
}

// oweAbsent owes the messages of a deletion that found nothing.
func (s *Store) oweAbsent(tx *sql.Tx, b *Bucket, key string, c Conditions) error {
	if !c.OweAbsent {
		return nil
	}
	o := &Object{Bucket: b.Name, Key: key, Version: Null}
	if err := sequence(tx, o); err != nil {
		return err
	}
	return s.owe(tx, b, o, c)
}

// Describe changes the attributes of an object, or of one version of it, and returns that.
func (s *Store) Describe(
	ctx context.Context, bucketName, key, version string, change func(*Object) error, c Conditions,
) (described *Object, err error) {
	return described, s.update(ctx, func(tx *sql.Tx) error {
		b, err := bucket(ctx, tx, bucketName)
		if err != nil {
			return err
		}
		if described, err = live(ctx, tx, bucketName, key, version); err != nil {
			return err
		}
		if err := change(described); err != nil {
			return err
		}
		if err := sequence(tx, described); err != nil {
			return err
		}
		table := `versions`
		if described.Latest {
			table = `objects`
		}
		_, err = tx.Exec(`UPDATE `+table+` SET attributes = ? WHERE bucket = ? AND key = ? AND id = ?`,
			[]byte(described.Attributes), bucketName, []byte(key), described.ID)
		if err != nil {
			return err
		}
		return s.owe(tx, b, described, c)
	})
}

// Object returns an object, or one version of it. A delete marker in its place is a DeletedError.
func (s *Store) Object(ctx context.Context, bucketName, key, version string) (*Object, error) {
	o, err := live(ctx, s.reads, bucketName, key, version)
	if errors.Is(err, ErrNoObject) || errors.Is(err, ErrNoVersion) {
		if _, err := bucket(ctx, s.reads, bucketName); err != nil {
			return nil, err
		}
	}
	return o, err
}

// live returns an object that is no delete marker.
func live(ctx context.Context, q querier, bucketName, key, version string) (*Object, error) {
	o, err := object(ctx, q, bucketName, key, version)
	if err == nil && o.Marker {
		return nil, &DeletedError{Marker: o, Named: version != ""}
	}
	return o, err
}

const objectColumns = `bucket, key, id, version, marker, size, etag, modified, sequence, parts, attributes`

// object returns the latest version of an object, or the named one. Either may be a delete marker.
func object(ctx context.Context, q querier, bucketName, key, version string) (*Object, error) {
	row := q.QueryRowContext(ctx, `SELECT `+objectColumns+`, 1 FROM objects WHERE bucket = ? AND key = ?`, bucketName, []byte(key))
	o, err := scanObject(row.Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows) && version == "":
		return nil, ErrNoObject
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNoVersion
	case err != nil || version == "" || o.Version == version:
		return o, err
	}
	return olderVersion(ctx, q, bucketName, key, version)
}

func scanObject(scan func(...any) error) (*Object, error) {
	var o Object
	var key, attributes []byte
	var modified int64
	err := scan(&o.Bucket, &key, &o.ID, &o.Version, &o.Marker, &o.Size, &o.ETag, &modified, &o.Sequence, &o.Parts, &attributes, &o.Latest)
	if err != nil {
		return nil, err
	}
	o.Key, o.Attributes, o.Modified = string(key), json.RawMessage(attributes), unix(modified)
	return &o, nil
}

// Stretch says which bytes of an object are wanted.
type Stretch struct{ From, Length int64 }

// Read returns an object, or one version of it, with the bytes that pick asks for. A later put doesn't affect what is read.
func (s *Store) Read(
	ctx context.Context, bucketName, key, version string, pick func(*Object) (Stretch, error),
) (*Object, io.ReadCloser, error) {
	for {
		o, err := s.Object(ctx, bucketName, key, version)
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
	now, err := object(ctx, s.reads, o.Bucket, o.Key, o.Version)
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

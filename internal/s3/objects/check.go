package objects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/sqlitefile"
)

// Check lists the damage of a store that nobody has open. With repair, it takes damaged objects out of the store and keeps their bytes
// beside it; everything else stays.
func Check(ctx context.Context, dir string, repair bool) ([]file.Damage, error) {
	path := filepath.Join(dir, "index.db")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	damage, err := sqlitefile.Check(ctx, path, index, repair)
	if err != nil || len(damage) > 0 && !repair {
		return damage, err
	}
	s, err := Open(dir, time.Now)
	if err != nil {
		return damage, err
	}
	c := &checker{store: s, repair: repair, damage: damage, known: map[string]bool{}}
	err = c.check(ctx, len(damage) > 0)
	return c.damage, errors.Join(err, s.Close())
}

// checker checks a store.
type checker struct {
	store  *Store
	repair bool
	damage []file.Damage
	known  map[string]bool // files in the index
}

// owner is a version of an object, or an upload. It owns parts.
type owner struct {
	id, bucket, key string
	size            int64 // of an object; -1 of an upload
}

func (o owner) String() string {
	if o.size < 0 {
		return fmt.Sprintf("an upload of %s/%s", o.bucket, o.key)
	}
	return fmt.Sprintf("object %s/%s", o.bucket, o.key)
}

// missing says what an object lacks whose files have so many bytes; nothing of an upload is missing.
func (o owner) missing(size int64, hasFiles bool) string {
	switch {
	case o.size < 0:
		return ""
	case !hasFiles: // an empty object has a file, too
		return "its list of files is missing"
	case size != o.size:
		return fmt.Sprintf("%d of %d bytes are missing", o.size-size, o.size)
	}
	return ""
}

// check checks all objects and uploads. If the index was rebuilt, files that it doesn't know are kept, and numbers continue after the ones
// that it has.
func (c *checker) check(ctx context.Context, rebuilt bool) error {
	owners, err := c.owners(ctx)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if err := c.checkOwner(ctx, o); err != nil {
			return err
		}
	}
	if !rebuilt {
		return nil
	}
	if err := c.store.update(ctx, c.settle); err != nil {
		return err
	}
	return c.keepUnknown()
}

func (c *checker) owners(ctx context.Context) ([]owner, error) {
	rows, err := c.store.reads.QueryContext(
		ctx,
		`SELECT id, bucket, key, size FROM objects WHERE NOT marker UNION ALL SELECT id, bucket, key, size FROM versions WHERE NOT marker
			UNION ALL SELECT id, bucket, key, -1 FROM uploads`,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []owner
	for rows.Next() {
		var o owner
		if err := rows.Scan(&o.id, &o.bucket, &o.key, &o.size); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, rows.Err()
}

// checkOwner reads everything that an object or an upload has.
func (c *checker) checkOwner(ctx context.Context, o owner) error {
	var size int64
	var damaged bool
	var names []string
	after := -1
	for {
		files, err := filesOf(ctx, c.store.reads, withBytes, o.id, after, 1) // each may have 64 KiB
		if err != nil {
			return err
		}
		if len(files) == 0 {
			break
		}
		f := files[0]
		after = f.Number
		size += f.Size
		if f.name != "" {
			names = append(names, f.name)
			c.known[f.name] = true
		}
		if d := c.store.verify(f); d != nil {
			damaged = true
			c.found(d, o)
		}
	}
	if what := o.missing(size, after >= 0); what != "" && !damaged {
		damaged = true
		c.found(&file.Damage{Path: c.store.index(), Offset: -1, What: what}, o)
	}
	if !damaged || !c.repair {
		return nil
	}
	return c.remove(ctx, o, names)
}

func (c *checker) found(d *file.Damage, o owner) {
	d.What += fmt.Sprintf(", of %s", o)
	d.Repair = "removes it, and keeps its bytes as *.damaged"
	if c.repair {
		d.Repair = "was removed; its bytes are kept as *.damaged"
	}
	c.damage = append(c.damage, *d)
}

// remove takes an object or an upload out of the index, once its files are kept under other names.
func (c *checker) remove(ctx context.Context, o owner, names []string) error {
	for _, name := range names {
		if err := file.Quarantine(c.store.path(name)); err != nil {
			return err
		}
	}
	err := c.store.update(ctx, func(tx *sql.Tx) error {
		err := exec(
			tx,
			[]any{o.id},
			`DELETE FROM files WHERE owner = ?`,
			`DELETE FROM objects WHERE id = ?`,
			`DELETE FROM versions WHERE id = ?`,
			`DELETE FROM uploads WHERE id = ?`,
		)
		return errors.Join(err, promoteAll(tx))
	})
	if err != nil {
		return err
	}
	c.store.remove(names)
	return nil
}

// settle makes a rebuilt index consistent: it adds missing buckets, makes some version of each key the latest, drops files without an owner,
// and doesn't reuse sequence numbers. A bucket that had versions and has lost its settings keeps none from now on.
func (c *checker) settle(tx *sql.Tx) error {
	if err := exec(tx, nil, `DELETE FROM versions WHERE id IN (SELECT id FROM objects)`); err != nil {
		return err
	}
	if err := promoteAll(tx); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT OR IGNORE INTO buckets SELECT bucket, ?, 'null' FROM objects UNION SELECT bucket, ?, 'null' FROM uploads`,
		c.store.now().UnixNano(), c.store.now().UnixNano())
	if err != nil {
		return err
	}
	return exec(tx, nil,
		`UPDATE buckets SET settings = '{"versioning":"Suspended"}'
			WHERE settings = 'null' AND name IN (SELECT bucket FROM objects WHERE version != 'null' UNION SELECT bucket FROM versions)`,
		`DELETE FROM files WHERE owner NOT IN (SELECT id FROM objects UNION ALL SELECT id FROM versions UNION ALL SELECT id FROM uploads)`,
		`UPDATE meta SET value = max(value, coalesce((SELECT max(sequence) FROM objects), 0), coalesce((SELECT max(sequence) FROM versions), 0))
			WHERE name = 'sequence'`)
}

// promoteAll gives each key that has lost its latest version the newest that it still has.
func promoteAll(tx *sql.Tx) error {
	rows, err := tx.Query(`SELECT DISTINCT bucket, key FROM versions v
		WHERE NOT EXISTS (SELECT 1 FROM objects o WHERE o.bucket = v.bucket AND o.key = v.key)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var lost []*Object
	for rows.Next() {
		var bucketName string
		var key []byte
		if err := rows.Scan(&bucketName, &key); err != nil {
			return err
		}
		lost = append(lost, &Object{Bucket: bucketName, Key: string(key)})
	}
	for _, o := range lost {
		if err := promote(tx, o.Bucket, o.Key); err != nil {
			return err
		}
	}
	return rows.Err()
}

// keepUnknown renames files that the index doesn't know, which Collect would remove.
func (c *checker) keepUnknown() error {
	paths, err := file.Glob(c.store.dir, "??/*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if _, ours := madeAt(name); !ours || c.known[name] {
			continue
		}
		if err := os.Rename(path, path+".damaged"); err != nil {
			return err
		}
		c.damage = append(
			c.damage,
			file.Damage{Path: path, Offset: -1, What: "the index doesn't know the file", Repair: "was renamed to *.damaged"},
		)
	}
	return nil
}

// verify reads a file and returns its first damage.
func (s *Store) verify(f *File) *file.Damage {
	b := &body{store: s, files: []*File{f}, left: f.Size}
	for b.left > 0 {
		if err := b.load(); err != nil {
			return s.asDamage(f, errors.Join(err, b.Close()))
		}
		b.left -= int64(len(b.block))
	}
	if err := b.Close(); err != nil {
		return s.asDamage(f, err)
	}
	return nil
}

// asDamage turns an error of reading a file into damage.
func (s *Store) asDamage(f *File, err error) *file.Damage {
	var d *file.Damage
	if errors.As(missing(err), &d) {
		return d
	}
	path := s.index()
	if f.name != "" {
		path = s.path(f.name)
	}
	return &file.Damage{Path: path, Offset: -1, What: err.Error()}
}

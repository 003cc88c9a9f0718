package objects

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

// File is bytes on disk that belong to no object yet, or a part of an object.
type File struct {
	Number   int
	Size     int64
	ETag     string
	Modified time.Time
	Checksum string // in the caller's form

	name string // "" if the index holds the bytes
	data []byte // the bytes, in that case
	sums []byte // of its blocks
}

// path returns a file's path. The store makes up the names; a request never does.
func (s *Store) path(name string) string {
	return filepath.Join(s.dir, name[len(name)-2:], name)
}

func newName() (string, error) {
	id, err := uuid.NewV7() // ordered by time, so that Collect can tell older files
	return hex.EncodeToString(id[:]), err
}

// small is the most bytes that the index itself holds. Such files need no sync of their own.
const small = 64 << 10

// Write stores what r has. A small file stays in memory until its object goes into the index. A larger one goes to disk, and is durable
// when Write returns. The caller must give the file to an object or an upload, or Discard it. Opening the store again removes forgotten
// ones.
func (s *Store) Write(r io.Reader) (f *File, err error) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	n, ended, err := file.Fill(r, buf[:small+1])
	if err != nil {
		return nil, err
	}
	if ended {
		data := bytes.Clone(buf[:n])
		return &File{Size: int64(n), Modified: s.now(), data: data, sums: appendSums(nil, data)}, nil
	}
	name, err := newName()
	if err != nil {
		return nil, err
	}
	path := s.path(name)
	out, err := s.create(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := out.Close(); err == nil {
			err = closing
		}
		if err != nil {
			os.Remove(path) //nolint:errcheck // Collect takes it
		}
	}()
	size, sums, err := writeBlocks(out, buf, n, r)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(out.Sync(), file.SyncDir(filepath.Dir(path))); err != nil {
		return nil, disk.Unwritable(err)
	}
	return &File{Size: size, Modified: s.now(), name: name, sums: sums}, nil
}

// create creates a file in a directory that is durable.
func (s *Store) create(path string) (*os.File, error) {
	if err := s.makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// makeDir makes a directory of files, durably, when the first file goes there. A directory that exists may not be durable yet: another
// write may be making it, or a crash came before the sync. So each is synced once in a process, and others wait for that.
func (s *Store) makeDir(dir string) error {
	s.dirsMu.Lock()
	defer s.dirsMu.Unlock()
	if s.dirs[dir] {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := file.SyncDir(s.dir); err != nil {
		return disk.Unwritable(err)
	}
	s.dirs[dir] = true
	return nil
}

// Discard removes a file that wasn't used.
func (s *Store) Discard(f *File) { s.remove([]string{f.name}) }

// remove removes files. One that is being read goes with its last reader.
func (s *Store) remove(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if name == "" {
			continue
		}
		if s.held > 0 || s.pinned[name] > 0 {
			s.doomed[name] = true
			continue
		}
		os.Remove(s.path(name)) //nolint:errcheck // Collect takes it
	}
}

// pin keeps files from being removed.
func (s *Store) pin(files []*File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		if f.name != "" {
			s.pinned[f.name]++
		}
	}
}

func (s *Store) unpin(files []*File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		if f.name == "" {
			continue
		}
		if s.pinned[f.name]--; s.pinned[f.name] > 0 {
			continue
		}
		delete(s.pinned, f.name)
		if s.doomed[f.name] && s.held == 0 {
			delete(s.doomed, f.name)
			os.Remove(s.path(f.name)) //nolint:errcheck // Collect takes it
		}
	}
}

// Collect removes files that nothing refers to, which a crash may leave. It can run at any time, since it only looks at files from before
// the given time.
func (s *Store) Collect(ctx context.Context, before time.Time) error {
	for i := range 256 {
		dir := filepath.Join(s.dir, fmt.Sprintf("%02x", i))
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // no file went there yet
			return err
		}
		for _, e := range entries {
			if err := s.collect(ctx, e.Name(), before); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) collect(ctx context.Context, name string, before time.Time) error {
	if made, ok := madeAt(name); !ok || !made.Before(before) {
		return nil
	}
	var one int
	err := s.reads.QueryRowContext(ctx, `SELECT 1 FROM files WHERE name = ?`, name).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		s.remove([]string{name}) // later, if it's still being read
		return nil
	}
	return err
}

// madeAt returns when a file was started, which is in its name.
func madeAt(name string) (time.Time, bool) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != 16 {
		return time.Time{}, false
	}
	ms := int64(b[0])<<40 | int64(b[1])<<32 | int64(b[2])<<24 | int64(b[3])<<16 | int64(b[4])<<8 | int64(b[5])
	return time.UnixMilli(ms), true
}

// take gives files to an owner.
func take(tx *sql.Tx, owner string, files []*File) error {
	for _, f := range files {
		_, err := tx.Exec(`INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			owner, f.Number, f.name, f.Size, f.ETag, f.Modified.UnixNano(), f.Checksum, f.sums, f.data)
		if err != nil {
			return err
		}
	}
	return nil
}

// Which columns of a file to read: all, with the bytes in the index, or without the bytes and their checksums.
const (
	withBytes    = `number, name, size, etag, modified, checksum, sums, data`
	withoutBytes = `number, name, size, etag, modified, checksum, NULL, NULL`
)

// filesOf returns an owner's files after a number, in order.
func filesOf(ctx context.Context, q querier, what, owner string, after, limit int) ([]*File, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+what+` FROM files WHERE owner = ? AND number > ? ORDER BY number LIMIT ?`, owner, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*File
	for rows.Next() {
		var f File
		var modified int64
		if err := rows.Scan(&f.Number, &f.name, &f.Size, &f.ETag, &modified, &f.Checksum, &f.sums, &f.data); err != nil {
			return nil, err
		}
		f.Modified = unix(modified)
		out = append(out, &f)
	}
	return out, rows.Err()
}

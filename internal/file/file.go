// Package file writes files so that a crash leaves the old content or the new, never a mix. It also seals files with a checksum,
// describes damage, and has locks that end with their process.
package file

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished is the prefix of files that aren't complete yet. A crash may leave some for Clean.
const Unfinished = ".new-"

// Clean removes incomplete files from a directory.
func Clean(dir string) error {
	left, err := Glob(dir, Unfinished+"*")
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// Replace replaces a file whole, or not at all. If durable, the content also survives a power failure; the name of a new file does
// so only after SyncDir.
func Replace(path string, b []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), Unfinished+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already when all went well
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Glob returns the paths in a directory whose names match a pattern, in order. Unlike filepath.Glob it doesn't treat the directory's
// own name as a pattern.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	paths := make([]string, 0, len(names))
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, err
}

// SyncDir makes the names in a directory survive a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteJSON replaces a file's content by a value.
func WriteJSON(path string, v any, durable bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Replace(path, b, durable)
}

// ReadJSON reads a value from a file.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// Fill reads until the buffer is full or the reader ends. io.ReadFull can't tell that end from an io.ErrUnexpectedEOF of the reader's own.
func Fill(r io.Reader, buf []byte) (n int, ended bool, err error) {
	for n < len(buf) {
		read, err := r.Read(buf[n:])
		n += read
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

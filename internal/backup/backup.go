// Package backup writes and reads archives of a control plane's data directory. An archive is a tar file, so that tar can list and unpack it
// in need, with a running checksum in it: each entry's header says what all before it amounts to, so damage is found where it begins, and an
// archive that was cut off isn't taken for a whole one. The stores say which files they have, and keep them as they were meanwhile; package
// plane puts all of it together. It knows no store, and holds no more of a file in memory than a piece.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Format is the version of the archives that Writer makes. Readers refuse later ones.
const Format = 1

// About says what an archive is of. It is the archive's first entry.
type About struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the Pintle that made it
	Made    time.Time `json:"made"`
	Region  string    `json:"region,omitempty"`
	Account string    `json:"account,omitempty"`
}

// File is a file as it is to be in the archive.
type File struct {
	Name string // its path in the data directory, with slashes
	// Path is where the file is, and Size how many of its first bytes count.
	Path string
	Size int64
	// Bytes are what counts if there is no Path.
	Bytes []byte
	// MayGo says that the file may be gone, which is not missed.
	MayGo bool
}

// Under returns the file with its name in a folder.
func (f File) Under(folder string) File {
	f.Name = path.Join(folder, f.Name)
	return f
}

// Held is a store that is held for a backup. The archive has what the store had acknowledged when it was held.
type Held struct {
	// Resume lets the store acknowledge changes again.
	Resume func()
	// Files passes the store's files as they were.
	Files func(add func(File) error) error
	// Release says that the store's files are no longer needed as they were.
	Release func()
}

const (
	aboutName = "pintle-backup.json"
	endName   = "pintle-backup.end"
	sumRecord = "comment" // the PAX record with the sum of all before an entry; other programs pass over it
)

// Writer writes an archive.
type Writer struct {
	tar *tar.Writer
	sum hash.Hash
	now time.Time
}

// NewWriter begins an archive.
func NewWriter(to io.Writer, about About) (*Writer, error) {
	about.Format = Format
	b, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	w := &Writer{tar: tar.NewWriter(to), sum: sha256.New(), now: about.Made}
	return w, w.Add(File{Name: aboutName, Bytes: b})
}

// Add adds a file. One that may be gone and is gone is left out.
func (w *Writer) Add(f File) error {
	if f.Path == "" {
		return w.add(f.Name, int64(len(f.Bytes)), bytes.NewReader(f.Bytes))
	}
	in, err := os.Open(f.Path)
	if f.MayGo && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = w.add(f.Name, f.Size, io.LimitReader(in, f.Size))
	return errors.Join(err, in.Close())
}

func (w *Writer) add(name string, size int64, content io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{
		Typeflag:   tar.TypeReg,
		Name:       name,
		Size:       size,
		Mode:       0o600,
		ModTime:    w.now.Truncate(time.Second),
		Format:     tar.FormatPAX,
		PAXRecords: map[string]string{sumRecord: hex.EncodeToString(w.sum.Sum(nil))},
	})
	if err != nil {
		return err
	}
	addHead(w.sum, name, size)
	if n, err := io.Copy(io.MultiWriter(w.tar, w.sum), content); err != nil || n != size {
		return errors.Join(fmt.Errorf("%s: %d bytes of %d were read", name, n, size), err)
	}
	return nil
}

// Close ends the archive. One without an end is not whole.
func (w *Writer) Close() error {
	return errors.Join(w.add(endName, 0, strings.NewReader("")), w.tar.Close())
}

// addHead makes a file's name and size part of the sum.
func addHead(sum hash.Hash, name string, size int64) { fmt.Fprintf(sum, "%q %d\n", name, size) } //nolint:errcheck // a hash takes all

// ErrDamaged marks the error of an archive that isn't what was written.
var ErrDamaged = errors.New("the archive is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Read reads an archive to its end, and passes each file to keep, which may read it or not. Nothing that keep got counts before Read has
// returned nil: only then was all of it as it was written.
func Read(from io.Reader, keep func(name string, size int64, content io.Reader) error) (About, error) {
	r := &reader{tar: tar.NewReader(from), sum: sha256.New()}
	about, err := r.about()
	if err != nil {
		return about, err
	}
	for {
		head, err := r.next()
		if err != nil {
			return about, err
		}
		if head.Name == endName {
			return about, nil
		}
		if !filepath.IsLocal(head.Name) || path.Clean(head.Name) != head.Name {
			return about, damaged("%q is no path of a file in a data directory", head.Name)
		}
		content := io.TeeReader(r.tar, r.sum)
		if err := keep(head.Name, head.Size, content); err != nil {
			return about, r.explain(err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return about, r.explain(err)
		}
	}
}

type reader struct {
	tar  *tar.Reader
	sum  hash.Hash
	last string // the entry that was read last
}

// about reads the first entry.
func (r *reader) about() (a About, err error) {
	head, err := r.tar.Next()
	if err != nil || head.Name != aboutName || head.Size > 1<<16 {
		return a, errors.New("this is no archive of pintle backup")
	}
	r.last = head.Name
	addHead(r.sum, head.Name, head.Size)
	b, err := io.ReadAll(io.TeeReader(r.tar, r.sum))
	if err != nil {
		return a, r.explain(err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, damaged("%s: %v", aboutName, err)
	}
	if a.Format > Format {
		return a, fmt.Errorf("the archive has format %d, of pintle %s; this version of pintle reads formats up to %d: use that version, or a later one",
			a.Format, a.Version, Format)
	}
	return a, nil
}

// next returns the next entry, if all before it is as it was written.
func (r *reader) next() (*tar.Header, error) {
	before := hex.EncodeToString(r.sum.Sum(nil))
	head, err := r.tar.Next()
	if err != nil {
		return nil, r.explain(err)
	}
	if head.PAXRecords[sumRecord] != before {
		return nil, damaged("%s, or what says how it was written, isn't as it was", r.last)
	}
	if head.Typeflag != tar.TypeReg {
		return nil, damaged("%s is no file", head.Name)
	}
	r.last = head.Name
	addHead(r.sum, head.Name, head.Size)
	return head, nil
}

// explain says of an error of reading where the archive ended or what is wrong with it.
func (r *reader) explain(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends in or behind %s; the end is missing", r.last)
	}
	if errors.Is(err, tar.ErrHeader) {
		return damaged("what comes after %s can't be read", r.last)
	}
	return err
}

// Tree passes the files below a directory that nobody writes to, but for those that skip names by their paths in it.
func Tree(dir string, skip func(name string) bool, add func(File) error) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if at == dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		if skip != nil && skip(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return add(File{Name: name, Path: at, Size: info.Size(), MayGo: true})
	})
}

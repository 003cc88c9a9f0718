package blobs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

// maxUploads is how many uploads to one repository may be incomplete.
const maxUploads = 1000

// upload is a blob on its way, as far as this process has seen it. The file has what came.
type upload struct {
	mu   sync.Mutex
	file *os.File  // while somebody is at it
	size int64     // of the file, once there is a sum
	sum  hash.Hash // of the file; nil if it must be read for that
	over bool      // it was completed or given up
}

var validID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// folder returns the directory of a repository's uploads.
func (s *Store) folder(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return filepath.Join(s.pending(), hex.EncodeToString(sum[:16]))
}

// Begin begins an upload to a repository and returns its id.
func (s *Store) Begin(repository string) (id string, err error) {
	if err := s.room(); err != nil {
		return "", err
	}
	dir := s.folder(repository)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(dir); err != nil {
		return "", err
	} else if len(entries) >= maxUploads {
		return "", ErrTooMany
	}
	var b [16]byte
	rand.Read(b[:]) // never fails
	x := hex.EncodeToString(b[:])
	id = x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
	path := filepath.Join(dir, id)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	return id, f.Close()
}

// with calls do with an upload, which nobody else changes meanwhile.
func (s *Store) with(repository, id string, do func(path string, u *upload) error) error {
	if !validID.MatchString(id) {
		return ErrNoUpload
	}
	path := filepath.Join(s.folder(repository), id)
	s.mu.Lock()
	u := s.uploads[path]
	if u == nil {
		u = &upload{}
		s.uploads[path] = u
	}
	s.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.open(path)
	if err == nil {
		err = do(path, u)
		u.file.Close() //nolint:errcheck // what counts was synced
	}
	if err != nil {
		u.sum = nil // the file knows better
	}
	if u.over {
		s.mu.Lock()
		delete(s.uploads, path)
		s.mu.Unlock()
	}
	return err
}

// open opens an upload's file, and hashes what another process has left in it.
func (u *upload) open(path string) (err error) {
	if u.over {
		return ErrNoUpload
	}
	u.file, err = os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		u.over = true
		return ErrNoUpload
	}
	if err != nil || u.sum != nil {
		return err
	}
	u.sum = sha256.New()
	if u.size, err = io.Copy(u.sum, u.file); err != nil {
		return errors.Join(err, u.file.Close())
	}
	return nil
}

// Size returns how many bytes of an upload have come.
func (s *Store) Size(repository, id string) (size int64, err error) {
	err = s.with(repository, id, func(_ string, u *upload) error {
		size = u.size
		return nil
	})
	return size, err
}

// Follow opens an upload for reading what has come, and what comes later.
func (s *Store) Follow(repository, id string) (*os.File, error) {
	if !validID.MatchString(id) {
		return nil, ErrNoUpload
	}
	return os.Open(filepath.Join(s.folder(repository), id))
}

// OutOfOrder is the error for bytes that don't follow those that have come.
type OutOfOrder struct{ Size int64 }

func (o *OutOfOrder) Error() string {
	return fmt.Sprintf("the bytes don't follow the %d that have come", o.Size)
}

// Append adds what r has to an upload, from the byte at on; -1 stands for the end. It returns how many bytes there are now. What came before r
// failed stays.
func (s *Store) Append(repository, id string, at int64, r io.Reader) (size int64, err error) {
	var failed error
	err = s.with(repository, id, func(_ string, u *upload) error {
		size = u.size
		if at >= 0 && at != u.size {
			failed = &OutOfOrder{u.size}
			return nil
		}
		failed = s.append(u, r)
		size = u.size
		if disk.IsUnwritable(failed) {
			return failed
		}
		return nil
	})
	return size, errors.Join(err, failed)
}

// between is how many bytes are written before the disk's room is looked at again.
const between = 8 << 20

// append writes what r has, also what came before r failed.
func (s *Store) append(u *upload, r io.Reader) error {
	buf := make([]byte, 256<<10)
	looked := u.size - between
	for {
		n, ended, failed := file.Fill(r, buf)
		if u.size+int64(n) > MaxBlob {
			return ErrTooLarge
		}
		if n > 0 && u.size >= looked+between {
			looked = u.size
			if err := s.room(); err != nil {
				return err
			}
		}
		if err := u.write(buf[:n]); err != nil {
			return err
		}
		if ended || failed != nil {
			return failed
		}
	}
}

// write adds bytes. The sum is kept in step with the file: a write that fails is taken back.
func (u *upload) write(b []byte) error {
	if _, err := u.file.WriteAt(b, u.size); err != nil {
		return errors.Join(err, u.file.Truncate(u.size))
	}
	u.sum.Write(b) //nolint:errcheck // a hash takes all
	u.size += int64(len(b))
	return nil
}

// digest returns the digest of what has come.
func (u *upload) digest() string {
	copied := sha256.New()
	if state, err := u.sum.(encoding.BinaryMarshaler).MarshalBinary(); err == nil {
		err = copied.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
		if err == nil {
			return "sha256:" + hex.EncodeToString(copied.Sum(nil))
		}
	}
	return "sha256:" + hex.EncodeToString(u.sum.Sum(nil))
}

// Finish makes a blob of an upload, if it has the digest, and then runs keep, which gets the blob's size. If keep fails, the upload is over all
// the same: the blob is there, and nobody's.
func (s *Store) Finish(repository, id, digest string, keep func(size int64) error) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	return s.with(repository, id, func(path string, u *upload) error {
		if u.digest() != digest {
			return ErrDigest
		}
		if err := u.file.Sync(); err != nil {
			return err
		}
		s.keeping.RLock()
		defer s.keeping.RUnlock()
		to := s.path(digest)
		if err := s.makeDir(filepath.Dir(to)); err != nil {
			return err
		}
		if err := os.Rename(path, to); err != nil { // over the same bytes, if they were there
			return err
		}
		u.over = true
		if err := file.SyncDir(filepath.Dir(to)); err != nil {
			return err
		}
		return keep(u.size)
	})
}

// Cancel gives an upload up.
func (s *Store) Cancel(repository, id string) error {
	return s.with(repository, id, func(path string, u *upload) error {
		u.over = true
		return os.Remove(path)
	})
}

// CancelOld gives up the uploads to which nothing has come for a while.
func (s *Store) CancelOld(age time.Duration) error {
	old := s.opts.Now().Add(-age)
	folders, err := os.ReadDir(s.pending())
	if err != nil {
		return err
	}
	for _, d := range folders {
		dir := filepath.Join(s.pending(), d.Name())
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.ModTime().Before(old) {
				s.forget(filepath.Join(dir, e.Name()))
			}
		}
		os.Remove(dir) //nolint:errcheck // if it's empty
	}
	return nil
}

// forget removes an upload, unless somebody is at it.
func (s *Store) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uploads[path]; u != nil {
		if !u.mu.TryLock() {
			return
		}
		defer u.mu.Unlock()
		u.over = true
		delete(s.uploads, path)
	}
	os.Remove(path) //nolint:errcheck // the next round takes it
}

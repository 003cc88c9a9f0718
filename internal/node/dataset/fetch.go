package dataset

import (
	"context"
	"crypto/md5" //nolint:gosec // it's what the ETags of most objects are
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pintle/pintle/internal/file"
)

// fetch is an object with what is needed to get it.
type fetch struct {
	client Client
	object
	progress *progress
	opaque   bool // whether the ETag isn't the content's MD5, whatever it looks like
}

// encrypted notes how S3 encrypts the object: by a key of KMS or the caller's, and its ETag isn't an MD5.
func (f *fetch) encrypted(how types.ServerSideEncryption, callersKey *string) {
	f.opaque = strings.HasPrefix(string(how), "aws:kms") || callersKey != nil
}

// maxStalls is how often an object's transfer may break off without having brought anything.
const maxStalls = 5

// stallTimeout is how long a transfer may bring nothing.
const stallTimeout = time.Minute

// lockPause is how long to wait between two looks at whether another has finished fetching an object.
const lockPause = 50 * time.Millisecond

// check checks that the client may read the object, and that it's still the same.
func (f *fetch) check(ctx context.Context) error {
	out, err := f.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &f.bucket, Key: &f.key, IfMatch: &f.etag})
	if err != nil {
		return explain(err)
	}
	f.encrypted(out.ServerSideEncryption, out.SSECustomerAlgorithm)
	return nil
}

// explain finds out whether an error means that the object has changed or gone.
func explain(err error) error {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && (answer.HTTPStatusCode() == http.StatusPreconditionFailed || answer.HTTPStatusCode() == http.StatusNotFound) {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return err
}

// fetch brings an object into the cache, from where an earlier fetch of it has come to. Of all who want one, in whatever process, one
// fetches; if it fails, the next one goes on.
func (c *Cache) fetch(ctx context.Context, f *fetch) error {
	part, err := c.lockPartial(ctx, &f.object)
	if err != nil {
		return err
	}
	defer part.Close()    //nolint:errcheck // it was synced
	if c.has(&f.object) { // another has fetched it meanwhile
		c.root.Remove(f.partial()) //nolint:errcheck // then room is made later
		if err := f.check(ctx); err != nil {
			return err
		}
		c.reused.Add(f.size)
		f.progress.add(f.size)
		return nil
	}
	if err := c.fill(ctx, f, part); err != nil {
		return err
	}
	return c.store(f, part)
}

// lockPartial opens the file that an object is fetched to, once nobody else has it.
func (c *Cache) lockPartial(ctx context.Context, o *object) (*os.File, error) {
	for {
		f, err := c.root.OpenFile(o.partial(), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if tryLock(f) {
			mine, err := f.Stat()
			there, gone := c.root.Stat(o.partial())
			if err == nil && gone == nil && os.SameFile(mine, there) {
				return f, nil
			}
		}
		f.Close() //nolint:errcheck // nothing was written
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// tryLock takes a file's lock, which ends with the process at the latest, and reports whether it was free.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// fill fetches what a file lacks of the object.
func (c *Cache) fill(ctx context.Context, f *fetch, part *os.File) error {
	n, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if n > f.size {
		n = 0
	}
	if n == f.size { // nothing more is asked for, so nobody has said yet that the client may read it
		if err := f.check(ctx); err != nil {
			return err
		}
	}
	f.progress.add(n)
	for stalls := 0; n < f.size; {
		got, err := c.append(ctx, f, part, n)
		n += got
		if stalls++; got > 0 {
			stalls = 0
		}
		if err != nil && (ctx.Err() != nil || stalls > maxStalls || !errors.As(err, new(brokenOff))) {
			return err
		}
	}
	return nil
}

// brokenOff is the error of a transfer that can be continued. Others can't: S3 refused as often as the SDK tries, or the disk did.
type brokenOff struct{ error }

func (b brokenOff) Unwrap() error { return b.error }

// append fetches the object from an offset on, and returns how much it got.
func (c *Cache) append(ctx context.Context, f *fetch, part *os.File, from int64) (n int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := &s3.GetObjectInput{Bucket: &f.bucket, Key: &f.key, IfMatch: &f.etag, ChecksumMode: types.ChecksumModeEnabled}
	if from > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", from))
	}
	out, err := f.client.GetObject(ctx, in)
	if err != nil {
		return 0, explain(err)
	}
	defer out.Body.Close() //nolint:errcheck // it was only read
	f.encrypted(out.ServerSideEncryption, out.SSECustomerAlgorithm)
	if from > 0 && !strings.HasPrefix(aws.ToString(out.ContentRange), fmt.Sprintf("bytes %d-", from)) {
		return 0, errors.New("the store doesn't answer the range that was asked for")
	}
	if err := part.Truncate(from); err != nil {
		return 0, err
	}
	stall := time.AfterFunc(stallTimeout, cancel)
	defer stall.Stop()
	w := &sink{to: io.NewOffsetWriter(part, from), cache: c, progress: f.progress, stall: stall}
	n, err = io.Copy(w, io.LimitReader(out.Body, f.size-from+1))
	switch whole := from+n >= f.size; {
	case w.err != nil:
		return n, w.err
	case whole && (err != nil || from+n > f.size): // by the SDK's check, which comes at the end
		return n, errors.Join(errWrong, err, part.Truncate(0))
	case !whole:
		return n, brokenOff{errors.Join(io.ErrUnexpectedEOF, err)}
	}
	return n, nil
}

// errWrong says that content isn't the object's.
var errWrong = errors.New("what was fetched isn't what its checksum or size says")

// sink writes what is fetched and counts it. It tells an error of the disk from one of the transfer.
type sink struct {
	to       io.Writer
	cache    *Cache
	progress *progress
	stall    *time.Timer
	err      error
}

// Write implements io.Writer.
func (s *sink) Write(b []byte) (n int, err error) {
	s.stall.Reset(stallTimeout)
	n, s.err = s.to.Write(b)
	s.cache.fetched.Add(int64(n))
	s.progress.add(int64(n))
	return n, s.err
}

// store makes a whole file an object of the cache, if it is what its ETag says.
func (c *Cache) store(f *fetch, part *os.File) error {
	if err := f.verify(part); err != nil {
		c.root.Remove(f.partial()) //nolint:errcheck // then the next fetch finds the same
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if err := part.Chmod(stored); err != nil {
		return err
	}
	if err := c.root.Chtimes(f.partial(), time.Now(), f.modified); err != nil {
		return err
	}
	if err := c.root.Rename(f.partial(), f.stored()); err != nil {
		return err
	}
	return file.SyncDir(filepath.Join(c.dir, objectsDir))
}

// verify compares a file with the object's ETag where that is the content's MD5, as of all that were put in one part and aren't encrypted
// with a key of KMS. Of others the SDK has checked what checksum they have.
func (f *fetch) verify(part *os.File) error {
	want, err := hex.DecodeString(strings.Trim(f.etag, `"`))
	if err != nil || len(want) != md5.Size || f.opaque {
		return nil //nolint:nilerr // it's no MD5
	}
	sum := md5.New() //nolint:gosec // see above
	if _, err := io.Copy(sum, io.NewSectionReader(part, 0, f.size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) == hex.EncodeToString(want) {
		return nil
	}
	return errWrong
}

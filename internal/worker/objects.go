package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// Results says where results go.
type Results struct {
	Bucket string // "" for nowhere
	Prefix string // goes before the input's key
	Suffix string // goes after it, for the command's answer
}

// include reports whether an object is a result. It refuses one that might be a result or an input, because its results would be processed
// in turn, without end.
func (r Results) include(bucket, key string) (bool, error) {
	if bucket != r.Bucket {
		return false, nil
	}
	if r.Prefix == "" {
		return false, permanent{
			fmt.Errorf("the object is in bucket %s, into which results go without a prefix: they would be worked on in turn", bucket),
		}
	}
	return strings.HasPrefix(key, r.Prefix), nil
}

// A round's directory has two parts.
const (
	objects = "objects"
	results = "results"
)

// Limits of a transfer.
const (
	tries      = 3
	stallTime  = time.Minute // without any data
	uploadTime = time.Hour
)

var (
	errNoRoom  = errors.New("there is no room for the object now")
	errStalled = fmt.Errorf("nothing has come for %s", stallTime)
)

// fetch writes an input to a file, and creates the directories for its results.
func (w *Worker) fetch(ctx context.Context, in *Input, dir, name string, room int64) error {
	in.Path = filepath.Join(dir, objects, name, fileName(in.Key))
	in.ResultDir = filepath.Join(dir, results, name, "files")
	if w.opts.Results.Bucket != "" {
		in.Output = filepath.Join(dir, results, name, "output")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(in.Path), 0o700), in.clear()); err != nil {
		return err
	}
	if in.Bucket == "" {
		return os.WriteFile(in.Path, []byte(in.Body), 0o600)
	}
	var err error
	for try := range tries {
		if err = w.get(ctx, in, room); err == nil || errors.As(err, new(permanent)) || errors.Is(err, errNoRoom) {
			return err
		}
		sleep(ctx, backoff(time.Second, try, time.Minute))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}

// clear empties an input's directories for results.
func (in *Input) clear() error {
	dir := filepath.Dir(in.ResultDir)
	return errors.Join(os.RemoveAll(dir), os.MkdirAll(in.ResultDir, 0o700))
}

// fileName returns the last part of a key, made fit for a file name.
func fileName(key string) string {
	name := strings.ReplaceAll(path.Base(key), "\x00", "_")
	if name == "." || name == ".." || name == "/" {
		return "object"
	}
	return name[max(0, len(name)-200):] // the end, to keep the extension
}

// get downloads an object, all or nothing.
func (w *Worker) get(ctx context.Context, in *Input, room int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTime, func() { cancel(errStalled) })
	defer stalled.Stop()
	get := &s3.GetObjectInput{Bucket: &in.Bucket, Key: &in.Key}
	if in.VersionID != "" {
		get.VersionId = &in.VersionID
	}
	out, err := w.opts.S3.GetObject(ctx, get)
	if err != nil {
		return in.wrap(ctx, err)
	}
	defer out.Body.Close() //nolint:errcheck // only read
	in.Size = aws.ToInt64(out.ContentLength)
	switch {
	case in.Size > w.opts.MaxInput:
		return permanent{
			fmt.Errorf("s3://%s/%s has %d bytes, more than the %d that are taken", in.Bucket, in.Key, in.Size, w.opts.MaxInput),
		}
	case in.Size > room:
		return errNoRoom
	}
	f, err := os.Create(in.Path)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(moving{out.Body, stalled}, in.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return in.wrap(ctx, err)
	}
	if n != in.Size {
		return fmt.Errorf("s3://%s/%s has %d bytes, but %d came", in.Bucket, in.Key, in.Size, n)
	}
	return nil
}

// wrap adds the object to an error. If the object doesn't exist, a retry won't help.
func (in *Input) wrap(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var refused smithy.APIError
	missing := errors.As(err, &refused) && slices.Contains([]string{"NoSuchKey", "NoSuchVersion"}, refused.ErrorCode())
	if err = fmt.Errorf("get s3://%s/%s: %w", in.Bucket, in.Key, err); missing {
		return permanent{err}
	}
	return err
}

// moving is a reader that resets a timer whenever data comes.
type moving struct {
	io.Reader
	stalled *time.Timer
}

func (m moving) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if n > 0 {
		m.stalled.Reset(stallTime)
	}
	return n, err
}

// upload uploads an input's results: the files first, the command's answer last. Whoever sees the answer sees all files.
func (w *Worker) upload(ctx context.Context, in *Input) error {
	r := w.opts.Results
	if r.Bucket == "" {
		return nil
	}
	key := r.Prefix + in.Key
	err := filepath.WalkDir(in.ResultDir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("the result %s is no plain file", d.Name())
		}
		name, err := filepath.Rel(in.ResultDir, file)
		if err != nil {
			return err
		}
		return w.put(ctx, key+"/"+filepath.ToSlash(name), file)
	})
	if err != nil {
		return err
	}
	if info, err := os.Stat(in.Output); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return w.put(ctx, key+r.Suffix, in.Output)
}

func (w *Worker) put(ctx context.Context, key, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	if _, err := w.opts.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &w.opts.Results.Bucket, Key: &key, Body: f}); err != nil {
		return fmt.Errorf("put s3://%s/%s: %w", w.opts.Results.Bucket, key, err)
	}
	return nil
}

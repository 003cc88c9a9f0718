package lambda

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// The limits of deployment packages: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const (
	maxZipped   = 50 << 20
	maxUnzipped = 262144000
)

// code is code as calls bring it.
type code struct {
	zip                  []byte
	bucket, key, version *string
	image                *string
}

// found is code that has been brought here.
type found struct {
	state.FunctionCode
	Size int64
	Sum  string // as CodeSha256: of a zip file in Base64, of an image its digest
}

// bring brings code here: a zip file is kept before any row names it, and at least until the caller lets go of what was found.
func (s *Service) bring(ctx context.Context, c code, kind types.PackageType) (found, error) {
	if kind == types.PackageTypeImage {
		if aws.ToString(c.image) == "" || c.zip != nil || c.bucket != nil || c.key != nil {
			return found{}, invalid("Please provide ImageUri, and neither ZipFile nor S3Bucket and S3Key, when updating a function with packageType Image.")
		}
		return s.resolve(ctx, *c.image)
	}
	if aws.ToString(c.image) != "" {
		return found{}, invalid("Please don't provide ImageUri when updating a function with packageType Zip.")
	}
	if c.bucket != nil {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
		case <-ctx.Done():
			return found{}, ctx.Err()
		}
	}
	content, err := s.read(ctx, c)
	if err != nil {
		return found{}, err
	}
	size, err := checkZip(content)
	if err != nil {
		return found{}, err
	}
	if s.opts.Zips.Fresh() > s.unused {
		s.collect()
	}
	sha, err := s.opts.Zips.Put(content)
	if err != nil {
		return found{}, err
	}
	sum, _ := hex.DecodeString(sha) //nolint:errcheck // it was encoded just now
	return found{state.FunctionCode{SHA256: sha, Unzipped: size}, int64(len(content)), base64.StdEncoding.EncodeToString(sum)}, nil
}

// read returns the bytes of a zip file: those in the call, or those of an object.
func (s *Service) read(ctx context.Context, c code) ([]byte, error) {
	inObject := aws.ToString(c.bucket) != "" || aws.ToString(c.key) != ""
	switch {
	case len(c.zip) > 0 && inObject:
		return nil, invalid("Please do not provide other FunctionCode parameters when providing a ZipFile.")
	case len(c.zip) > maxZipped:
		return nil, invalid("Code.ZipFile: a zip file in a call may have up to %d bytes; put a larger one into a bucket.", maxZipped)
	case len(c.zip) > 0:
		return c.zip, nil
	case aws.ToString(c.bucket) == "" || aws.ToString(c.key) == "":
		return nil, invalid("Please provide a source for function code.")
	}
	out, err := s.opts.Buckets.GetObject(ctx, &s3.GetObjectInput{Bucket: c.bucket, Key: c.key, VersionId: c.version})
	if err != nil {
		return nil, invalid("Error occurred while GetObject. S3 Error: %v", err)
	}
	defer out.Body.Close() //nolint:errcheck // it's only read
	content, err := io.ReadAll(io.LimitReader(out.Body, maxUnzipped+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxUnzipped {
		return nil, tooLarge()
	}
	return content, nil
}

func tooLarge() error { return invalid("Unzipped size must be smaller than %d bytes", maxUnzipped) }

// maxFiles is the most files in a zip file. AWS names no limit; nodes have this one.
const maxFiles = 200_000

// checkZip refuses what is no zip file, or has too much in it, and returns how many bytes are in it. A file that has more than its zip file says
// can't be read, here and on nodes.
func checkZip(content []byte) (size int64, err error) {
	z, err := openZip(content, maxDirectory)
	if err != nil {
		return 0, invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
	}
	if len(z.File) == 0 {
		return 0, invalid("Uploaded file must be a non-empty zip")
	}
	if len(z.File) > maxFiles {
		return 0, invalid("Uploaded file must have at most %d files", maxFiles)
	}
	for _, f := range z.File {
		if f.UncompressedSize64 > uint64(maxUnzipped-size) { // a sum could overflow
			return 0, tooLarge()
		}
		size += int64(f.UncompressedSize64)
	}
	return size, nil
}

// maxDirectory is how many bytes are read to learn which files there are: enough for maxFiles with names of 80 bytes. Each takes several times its
// memory, and a file could have millions.
const maxDirectory = maxFiles * (46 + 80)

// openZip reads a zip file's directory, of which it reads so many bytes at most.
func openZip(content []byte, most int64) (*zip.Reader, error) {
	return zip.NewReader(&budgeted{bytes.NewReader(content), most}, int64(len(content)))
}

// budgeted reads no more than so many bytes in all.
type budgeted struct {
	of   io.ReaderAt
	left int64
}

func (b *budgeted) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("the zip file's directory is too large")
	}
	return b.of.ReadAt(p, at)
}

// checkTogether refuses a version whose code and layers have too much in them.
func checkTogether(v *state.FunctionVersion) error {
	if size := v.Code.Unzipped + v.Code.LayersUnzipped; size > maxUnzipped {
		return invalid("Function code combined with layers exceeds the maximum allowed size of %d bytes. The actual size is %d bytes.", maxUnzipped, size)
	}
	return nil
}

// maxStored is how many bytes of code an account's versions and layers may have, as GetAccountSettings says. Like Lambda's, the sum counts the code of
// each version, though equal files are kept once.
const maxStored = 75 << 30

func stored(v *state.View) (size int64) {
	for f := range v.FunctionVersions.All() {
		size += f.CodeSize
	}
	for l := range v.LayerVersions.All() {
		if !l.Deleted {
			size += l.Content.CodeSize
		}
	}
	return size
}

// checkStored refuses what makes the account's code too much. It's for transactions that have added some.
func (s *Service) checkStored(tx *state.Tx) error {
	if stored(tx.View) > s.opts.Storage {
		return account.Refuse("CodeStorageExceededException", "Code storage limit exceeded.")
	}
	return nil
}

// letGo is for calls that have committed what was found, or won't.
func (s *Service) letGo(f found) {
	if f.SHA256 != "" {
		s.opts.Zips.Release(f.SHA256)
	}
}

// keepUnused is how long a zip file stays that no row names any more: nodes may be fetching it, and whoever has its URL. maxUnused is how many bytes such
// files may have together, which are looked at whenever as many have come: whoever has a function's code replaced all the time doesn't fill the disk.
const (
	keepUnused = time.Hour
	maxUnused  = 1 << 30
)

// Collect removes zip files that no function and no layer has any more, from time to time, until ctx ends.
func (s *Service) Collect(ctx context.Context) error {
	for {
		s.collect()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(keepUnused):
		}
	}
}

func (s *Service) collect() {
	before := time.Now().Add(-keepUnused) // files have the machine's time
	if err := s.opts.Zips.Remove(s.used, before, s.unused); err != nil {
		s.opts.Log.Warn("cannot remove functions' code that nothing uses", "error", err)
	}
}

// used returns the zip files that functions and layers have.
func (s *Service) used() map[string]bool {
	used := map[string]bool{}
	v := s.store.View()
	for f := range v.FunctionVersions.All() {
		for _, sha := range f.Code.Files() {
			used[sha] = true
		}
	}
	for l := range v.LayerVersions.All() {
		used[l.SHA256] = used[l.SHA256] || !l.Deleted
	}
	return used
}

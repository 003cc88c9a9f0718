package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/s3/objects"
)

var aes256 = aws.String("AES256")

// customer returns a customer's key as calls have it.
func customer(b byte) (key, sum *string) {
	k := bytes.Repeat([]byte{b}, 32)
	digest := md5.Sum(k)
	return aws.String(base64.StdEncoding.EncodeToString(k)), aws.String(base64.StdEncoding.EncodeToString(digest[:]))
}

func withKey(algorithm, key, sum *string) s3.PutObjectInput {
	return s3.PutObjectInput{SSECustomerAlgorithm: algorithm, SSECustomerKey: key, SSECustomerKeyMD5: sum}
}

// TestCustomerKeyRefusals checks S3's answers to keys that are none, or not the object's.
func TestCustomerKeyRefusals(t *testing.T) {
	s, _ := newService(t)
	key, sum := customer(1)
	other, otherSum := customer(2)
	short := aws.String("c2hvcnQ=")
	both := withKey(aes256, key, sum)
	both.ServerSideEncryption = types.ServerSideEncryptionAes256
	for name, c := range map[string]struct {
		in   s3.PutObjectInput
		want string
	}{
		"no key":           {withKey(aes256, nil, nil), "InvalidArgument"},
		"no algorithm":     {withKey(nil, key, sum), "InvalidArgument"},
		"short key":        {withKey(aes256, short, sum), "InvalidArgument"},
		"another's sum":    {withKey(aes256, key, otherSum), "InvalidArgument"},
		"no sum":           {withKey(aes256, key, nil), "InvalidArgument"},
		"other algorithm":  {withKey(aws.String("DES"), key, sum), "InvalidEncryptionAlgorithmError"},
		"two encryptions":  {both, "InvalidArgument"},
		"a key that is it": {withKey(aes256, key, sum), ""},
	} {
		c.in.Bucket, c.in.Key, c.in.Body = theBucket, aws.String("k"), strings.NewReader("x")
		if _, err := s.PutObject(t.Context(), &c.in); code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	put(t, s, "plain", "x")
	for name, c := range map[string]struct {
		object   string
		key, sum *string
		want     string
	}{
		"no key":         {"k", nil, nil, "InvalidRequest"},
		"another key":    {"k", other, otherSum, "AccessDenied"},
		"a key for none": {"plain", key, sum, "InvalidRequest"},
		"the key":        {"k", key, sum, ""},
	} {
		var algorithm *string
		if c.key != nil {
			algorithm = aes256
		}
		_, get := s.GetObject(t.Context(), &s3.GetObjectInput{
			Bucket: theBucket, Key: &c.object, SSECustomerAlgorithm: algorithm, SSECustomerKey: c.key, SSECustomerKeyMD5: c.sum,
		})
		_, head := s.HeadObject(t.Context(), &s3.HeadObjectInput{
			Bucket: theBucket, Key: &c.object, SSECustomerAlgorithm: algorithm, SSECustomerKey: c.key, SSECustomerKeyMD5: c.sum,
		})
		_, copied := s.CopyObject(t.Context(), &s3.CopyObjectInput{
			Bucket: theBucket, Key: aws.String("copy"), CopySource: aws.String("bucket/" + c.object),
			CopySourceSSECustomerAlgorithm: algorithm, CopySourceSSECustomerKey: c.key, CopySourceSSECustomerKeyMD5: c.sum,
		})
		if code(get) != c.want || code(head) != c.want || code(copied) != c.want {
			t.Errorf("%s: %v, %v, %v, want %q", name, get, head, copied, c.want)
		}
	}
}

// TestCustomerKey puts an object in parts under a customer's key, and reads ranges of it and of copies. Neither the content nor the key is
// on the disk.
func TestCustomerKey(t *testing.T) {
	dir := t.TempDir()
	now := func() time.Time { return noon }
	store, err := objects.Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := New(store, Options{Account: accounttest.New(now)})
	if _, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: theBucket}); err != nil {
		t.Fatal(err)
	}
	key, sum := customer(1)
	name := aws.String("k")
	u, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: theBucket, Key: name, SSECustomerAlgorithm: aes256, SSECustomerKey: key, SSECustomerKeyMD5: sum,
	})
	if err != nil || *u.SSECustomerKeyMD5 != *sum || u.ServerSideEncryption != "" {
		t.Fatalf("%+v, %v", u, err)
	}
	content := strings.Repeat("what nobody else may read. ", (5<<20)/27+5000)
	var parts []types.CompletedPart
	for i, text := range []string{content[:5<<20+5], content[5<<20+5:]} {
		in := &s3.UploadPartInput{Bucket: theBucket, Key: name, UploadId: u.UploadId, PartNumber: aws.Int32(int32(i + 1))}
		if _, err := s.UploadPart(t.Context(), in); code(err) != "InvalidRequest" {
			t.Errorf("a part without the key: %v", err)
		}
		in.Body = strings.NewReader(text)
		in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = aes256, key, sum
		p, err := s.UploadPart(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, types.CompletedPart{PartNumber: in.PartNumber, ETag: p.ETag})
	}
	if _, err := s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: theBucket, Key: name, UploadId: u.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}); err != nil {
		t.Fatal(err)
	}
	copied := &s3.CopyObjectInput{
		Bucket: theBucket, Key: aws.String("copy"), CopySource: aws.String("bucket/k"),
		CopySourceSSECustomerAlgorithm: aes256, CopySourceSSECustomerKey: key, CopySourceSSECustomerKeyMD5: sum,
	}
	copied.SSECustomerAlgorithm = aes256
	copied.SSECustomerKey, copied.SSECustomerKeyMD5 = customer(2)
	if _, err := s.CopyObject(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(content)-1).Draw(t, "from")
		if rapid.Bool().Draw(t, "at the border") {
			from = 5<<20 + 5 - rapid.IntRange(0, 40).Draw(t, "before")
		}
		to := min(len(content)-1, from+rapid.IntRange(0, 100).Draw(t, "length"))
		in := &s3.GetObjectInput{Bucket: theBucket, Key: name, SSECustomerAlgorithm: aes256}
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", from, to))
		in.SSECustomerKey, in.SSECustomerKeyMD5 = key, sum
		if rapid.Bool().Draw(t, "copy") {
			in.Key = copied.Key
			in.SSECustomerKey, in.SSECustomerKeyMD5 = copied.SSECustomerKey, copied.SSECustomerKeyMD5
		}
		out, err := s.GetObject(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		if b, err := io.ReadAll(out.Body); err != nil || string(b) != content[from:to+1] {
			t.Fatalf("bytes %d to %d: %q, %v", from, to, b, err)
		}
	})
	put := &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("small"), Body: strings.NewReader("nobody else may read")}
	put.SSECustomerAlgorithm, put.SSECustomerKey, put.SSECustomerKeyMD5 = aes256, key, sum
	if _, err := s.PutObject(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	notOnDisk(t, dir, "nobody else may", strings.Repeat("\x01", 32), *key, *sum)
}

func notOnDisk(t *testing.T, dir string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s has %q", path, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

package s3

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
)

// sum is the checksum of an object or a part.
type sum struct {
	Algorithm checksum.Algorithm
	Value     string
	Composite bool `json:",omitzero"` // computed from the parts' checksums
}

// value returns the field of types.Checksum for an algorithm.
func value(c *types.Checksum, a checksum.Algorithm) **string {
	switch a {
	case checksum.CRC32:
		return &c.ChecksumCRC32
	case checksum.CRC32C:
		return &c.ChecksumCRC32C
	case checksum.CRC64NVME:
		return &c.ChecksumCRC64NVME
	case checksum.SHA1:
		return &c.ChecksumSHA1
	}
	return &c.ChecksumSHA256
}

// wire returns the checksum in the SDK's form.
func (s sum) wire() types.Checksum {
	var c types.Checksum
	if s.Value == "" {
		return c
	}
	*value(&c, s.Algorithm) = aws.String(s.Value)
	c.ChecksumType = types.ChecksumTypeFullObject
	if s.Composite {
		c.ChecksumType = types.ChecksumTypeComposite
	}
	return c
}

// attribute returns the checksum as GetObjectAttributes tells it: without the number of parts.
func (s sum) attribute() types.Checksum {
	s.Value, _, _ = strings.Cut(s.Value, "-")
	return s.wire()
}

// claim is what a request says about its body.
type claim struct {
	key       *customerKey // encrypts the body
	part      bool         // of an upload; S3's error repeats its Content-MD5 as it came, and an object's in hex
	length    *int64
	md5       *string
	algorithm types.ChecksumAlgorithm
	values    types.Checksum
	other     []*string // checksums of algorithms that Pintle doesn't have
}

// trailing is a body followed by trailing headers.
type trailing interface {
	Announced() string
	Trailer(name string) string
}

// maxPut is the most bytes that one put may have. Larger objects need a multipart upload.
const maxPut = 5 << 30

// refuseOtherSums refuses checksums of algorithms that Pintle doesn't have, which nothing would be compared with.
func refuseOtherSums(sums []*string) error {
	for _, s := range sums {
		if s != nil {
			return notImplemented("checksums other than CRC32, CRC32C, CRC64NVME, SHA1 and SHA256")
		}
	}
	return nil
}

// check refuses a bad request before its body is read.
func (c claim) check() error {
	if err := refuseOtherSums(c.other); err != nil {
		return err
	}
	if c.algorithm != "" && !checksum.Algorithm(c.algorithm).Known() {
		return errAlgorithm
	}
	if err := c.checkValues(); err != nil {
		return err
	}
	if c.md5 != nil {
		if b, err := base64.StdEncoding.DecodeString(*c.md5); err != nil || len(b) != md5.Size {
			return &apiError{
				code:    "InvalidDigest",
				message: "The Content-MD5 you specified was invalid.",
				status:  400,
				detail:  map[string]string{"Content-MD5": *c.md5},
			}
		}
	}
	if c.length != nil && *c.length > maxPut {
		return refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
	}
	return nil
}

var errAlgorithm = refuse(
	400, "InvalidRequest",
	"Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
)

// checkValues refuses more than one checksum, and one that can't be of its algorithm.
func (c claim) checkValues() error {
	var sent []checksum.Algorithm
	for _, a := range checksum.Algorithms {
		if *value(&c.values, a) != nil {
			sent = append(sent, a)
		}
	}
	if len(sent) > 1 {
		return refuse(400, "InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
	}
	if len(sent) == 1 && !sent[0].Valid(**value(&c.values, sent[0])) {
		return refuse(400, "InvalidRequest", "Value for x-amz-checksum-%s header is invalid.", strings.ToLower(string(sent[0])))
	}
	return nil
}

// choose picks the algorithm for a body's checksum: that of the checksum in the request, or else the one that the
// request announces, or else the caller's default, otherwise.
func (c claim) choose(body io.Reader, otherwise checksum.Algorithm) checksum.Algorithm {
	for _, a := range checksum.Algorithms {
		if *value(&c.values, a) != nil {
			return a
		}
	}
	if t, ok := body.(trailing); ok {
		name, _ := strings.CutPrefix(strings.ToLower(t.Announced()), "x-amz-checksum-")
		if a := checksum.Algorithm(strings.ToUpper(name)); a.Known() {
			return a
		}
	}
	if c.algorithm != "" {
		return checksum.Algorithm(c.algorithm)
	}
	return otherwise
}

// receive writes a body to the disk and checks it against the request's claim.
func (s *Service) receive(body io.Reader, c claim, otherwise checksum.Algorithm) (*objects.File, sum, error) {
	if err := c.check(); err != nil {
		return nil, sum{}, err
	}
	if body == nil {
		body = strings.NewReader("")
	}
	a := c.choose(body, otherwise)
	digest := md5.New()
	chosen := a.New()
	content, etag := c.key.encrypt(&limited{io.TeeReader(body, io.MultiWriter(digest, chosen)), maxPut})
	f, err := s.store.Write(content)
	if err != nil {
		return nil, sum{}, err
	}
	f.ETag = cmp.Or(etag, hex.EncodeToString(digest.Sum(nil)))
	computed := sum{Algorithm: a, Value: checksum.Of(chosen)}
	if err := c.verify(body, digest, computed); err != nil {
		s.store.Discard(f)
		return nil, sum{}, err
	}
	f.Checksum = string(a) + ":" + computed.Value
	return f, computed, nil
}

// verify compares the body that came with the claim.
func (c claim) verify(body io.Reader, digest hash.Hash, computed sum) error {
	if sum := base64.StdEncoding.EncodeToString(digest.Sum(nil)); c.md5 != nil && *c.md5 != sum {
		expected := *c.md5
		if !c.part {
			b, _ := base64.StdEncoding.DecodeString(expected) // check has decoded it
			expected = hex.EncodeToString(b)
		}
		return &apiError{
			code:    "BadDigest",
			message: "The Content-MD5 you specified did not match what we received.",
			status:  400,
			detail:  map[string]string{"ExpectedDigest": expected, "CalculatedDigest": sum},
		}
	}
	want := aws.ToString(*value(&c.values, computed.Algorithm))
	if t, ok := body.(trailing); ok && want == "" {
		want = t.Trailer("x-amz-checksum-" + strings.ToLower(string(computed.Algorithm)))
	}
	if want != "" && want != computed.Value {
		return refuse(400, "BadDigest", "The %s you specified did not match the calculated checksum.", computed.Algorithm)
	}
	return nil
}

// limited refuses a body that grows too large. It catches bodies of unknown length, which check can't.
type limited struct {
	r    io.Reader
	left int64 // bytes
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
	}
	return n, err
}

// sumOf returns a file's checksum.
func sumOf(f *objects.File) sum {
	a, v, _ := strings.Cut(f.Checksum, ":")
	return sum{Algorithm: checksum.Algorithm(a), Value: v}
}

// secondSum computes a second checksum while a body is read. A part needs it when its own checksum has another algorithm
// than its upload's.
type secondSum struct {
	io.Reader
	with checksum.Algorithm
	hash hash.Hash
}

func (a *secondSum) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.hash.Write(p[:n])
	return n, err
}

// Announced implements trailing.
func (a *secondSum) Announced() string {
	if t, ok := a.Reader.(trailing); ok {
		return t.Announced()
	}
	return ""
}

// Trailer implements trailing.
func (a *secondSum) Trailer(name string) string {
	if t, ok := a.Reader.(trailing); ok {
		return t.Trailer(name)
	}
	return ""
}

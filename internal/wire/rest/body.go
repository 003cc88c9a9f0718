package rest

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/wire/budget"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
)

// requestBody is a REST request's body without the framing of aws-chunked. Reading it ends with an error unless the body is what the
// request's headers announce, so a service that reads it to its end without an error has what was signed.
type requestBody struct {
	length  int64 // as announced
	left    int64
	content io.Reader
	hash    hash.Hash // nil if the body's hash isn't known
	want    []byte
	chunked *sign.ChunkedReader
	err     error // what every further Read returns
}

// newBody finds out how the request's body is framed.
func newBody(q *request, caller sign.Caller) (*requestBody, error) {
	b := &requestBody{length: q.ContentLength, content: q.Body}
	kind := sign.ContentHash(q.Request, q.query)
	if b.length < 0 && !strings.HasPrefix(kind, "STREAMING-") { // whose length is in a header of its own
		return nil, refusal.With(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if b.length == 0 && strings.EqualFold(q.Header.Get("Expect"), "100-continue") {
		q.w.WriteHeader(http.StatusContinue) // net/http only does it if there is a body; without it botocore confuses the answers on a connection
	}
	switch {
	case strings.HasPrefix(kind, "STREAMING-"):
		length, err := strconv.ParseInt(q.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || length < 0 {
			return nil, refusal.With(
				http.StatusLengthRequired,
				"MissingContentLength",
				"You must provide the x-amz-decoded-content-length HTTP header.",
			)
		}
		if b.chunked, err = sign.NewChunkedReader(b.content, kind, q.Header.Get("X-Amz-Trailer"), caller); err != nil {
			return nil, err
		}
		b.length, b.content = length, b.chunked
	case kind != "" && kind != sign.UnsignedPayload:
		want, err := hex.DecodeString(kind)
		if err != nil || len(want) != sha256.Size {
			return nil, refusal.New(
				"InvalidArgument",
				"x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.",
			)
		}
		b.hash, b.want = sha256.New(), want
	}
	b.left = b.length
	return b, nil
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.content.Read(p)
	if b.hash != nil {
		b.hash.Write(p[:n])
	}
	b.left -= int64(n)
	switch {
	case b.length >= 0 && (b.left < 0 || err == io.EOF && b.left > 0), errors.Is(err, io.ErrUnexpectedEOF):
		err = refusal.New("IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header.")
	case err == io.EOF && b.hash != nil && subtle.ConstantTimeCompare(b.hash.Sum(nil), b.want) == 0:
		err = refusal.New("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	b.err = err
	return n, err
}

// Announced returns the name of the trailer that follows the body, or "" if none does.
func (b *requestBody) Announced() string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.Announced()
}

// Trailer returns a header that followed the body. Call it after reading the body.
func (b *requestBody) Trailer(name string) string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.Trailer(name)
}

// broken reports whether the body wasn't read to its end, so that nothing else can follow on the connection.
func (b *requestBody) broken() bool { return b.err != io.EOF && b.length != 0 }

// wholeBody reads the whole body of an operation whose body isn't a stream, and checks the checksums sent with it.
func (q *request) wholeBody() ([]byte, error) {
	if q.whole != nil {
		return q.whole, q.checkSums(q.whole)
	}
	limit := q.api.MaxBody
	if q.body.length > limit {
		return nil, refusal.New("MaxMessageLengthExceeded", "Your request was too big.")
	}
	var body bytes.Buffer
	err := q.memory.ReadAll(q.Context(), &body, q.body, limit)
	switch {
	case errors.Is(err, budget.ErrTooLarge):
		return nil, refusal.New("MaxMessageLengthExceeded", "Your request was too big.")
	case err != nil:
		return nil, steady.ClientError(err)
	}
	return body.Bytes(), q.checkSums(body.Bytes())
}

// checkSums compares a body with the checksums sent with it. A checksum that is a member of the operation's input belongs to something
// else: that of CompleteMultipartUpload is the object's.
func (q *request) checkSums(body []byte) error {
	if want := q.Header.Get("Content-Md5"); want != "" {
		sum := md5.Sum(body)
		if want != base64.StdEncoding.EncodeToString(sum[:]) {
			return refusal.New("BadDigest", "The Content-MD5 you specified did not match what we received.")
		}
	}
	for _, a := range checksum.Algorithms {
		name := "X-Amz-Checksum-" + string(a)
		want := cmp.Or(q.Header.Get(name), q.body.Trailer(name))
		if want == "" || q.hasHeader(name) {
			continue
		}
		sum := a.New()
		sum.Write(body)
		if want != checksum.Of(sum) {
			return refusal.New("BadDigest", "The %s you specified did not match what we received.", a)
		}
	}
	return nil
}

// hasHeader reports whether a header is a member of the operation's input.
func (q *request) hasHeader(name string) bool {
	return slices.ContainsFunc(q.op.In.Members, func(m codec.Member) bool {
		return m.Place.In == model.InHeader && strings.EqualFold(m.Place.Name, name)
	})
}

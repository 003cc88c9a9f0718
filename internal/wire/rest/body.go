package rest

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
)

// requestBody is the body of a REST request as its sender meant it: without the framing of aws-chunked, and with
// an error instead of its end where it is not what the request says of it. A service that reads it to its end
// without an error has what was signed.
type requestBody struct {
	length  int64 // as it says of itself
	left    int64
	content io.Reader
	hash    hash.Hash // nil where the body's hash is not known
	want    []byte
	chunked *sign.ChunkedReader
	err     error // the one that every further Read gives
}

// newBody finds out how the request's body comes.
func newBody(q *request, caller sign.Caller) (*requestBody, error) {
	b := &requestBody{length: q.ContentLength, content: steady.NewReader(q.Body, http.NewResponseController(q.w))}
	if b.length < 0 {
		return nil, refusal.With(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if b.length == 0 && strings.EqualFold(q.Header.Get("Expect"), "100-continue") {
		q.w.WriteHeader(http.StatusContinue) // net/http does it for bodies alone; botocore muddles up a connection without it
	}
	kind := sign.ContentHash(q.Request, q.query)
	switch {
	case strings.HasPrefix(kind, "STREAMING-"):
		length, err := strconv.ParseInt(q.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || length < 0 {
			return nil, refusal.With(http.StatusLengthRequired, "MissingContentLength", "You must provide the x-amz-decoded-content-length HTTP header.")
		}
		if b.chunked, err = sign.NewChunkedReader(b.content, kind, q.Header.Get("X-Amz-Trailer"), caller); err != nil {
			return nil, err
		}
		b.length, b.content = length, b.chunked
	case kind != "" && kind != sign.UnsignedPayload:
		want, err := hex.DecodeString(kind)
		if err != nil || len(want) != sha256.Size {
			return nil, refusal.New("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.")
		}
		b.hash, b.want = sha256.New(), want
	}
	b.left = b.length
	return b, nil
}

// Read is io.Reader's.
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

// Announced is the name of the header that comes behind the body; "" where none does.
func (b *requestBody) Announced() string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.Announced()
}

// Trailer is a header that came behind the body, once that was read.
func (b *requestBody) Trailer(name string) string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.Trailer(name)
}

// broken says that the body was not read to its end, so that nothing else can come behind it.
func (b *requestBody) broken() bool { return b.err != io.EOF && b.length != 0 }

// all reads the whole body of an operation whose body is no stream, and checks the checksums that came with it.
func (b *requestBody) all(limit int64, h http.Header) ([]byte, error) {
	if b.length > limit {
		return nil, refusal.New("MaxMessageLengthExceeded", "Your request was too big.")
	}
	body, err := io.ReadAll(io.LimitReader(b, limit+1))
	switch {
	case err != nil:
		return nil, steady.ClientError(err)
	case int64(len(body)) > limit:
		return nil, refusal.New("MaxMessageLengthExceeded", "Your request was too big.")
	}
	if want := h.Get("Content-Md5"); want != "" {
		sum := md5.Sum(body)
		if want != base64.StdEncoding.EncodeToString(sum[:]) {
			return nil, refusal.New("BadDigest", "The Content-MD5 you specified did not match what we received.")
		}
	}
	for _, a := range checksum.Algorithms {
		name := "X-Amz-Checksum-" + string(a)
		want := h.Get(name)
		if want == "" {
			want = b.Trailer(name)
		}
		if want == "" {
			continue
		}
		sum := a.New()
		sum.Write(body)
		if want != checksum.Of(sum) {
			return nil, refusal.New("BadDigest", "The %s you specified did not match what we received.", a)
		}
	}
	return body, nil
}

package wire

import (
	"bufio"
	"bytes"
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
	"time"

	"github.com/pintle/pintle/internal/checksum"
)

// restBody is the body of a REST request as its sender meant it: without the framing of aws-chunked, and with
// an error instead of its end where it is not what the request says of it. A service that reads it to its end
// without an error has what was signed.
type restBody struct {
	length  int64 // as it says of itself
	left    int64
	content io.Reader
	hash    hash.Hash // nil where the body's hash is not known
	want    []byte
	chunked *chunkedReader
	err     error // the one that every further Read gives
}

// newRESTBody finds out how the request's body comes.
func newRESTBody(q *restRequest, caller Caller) (*restBody, error) {
	b := &restBody{length: q.ContentLength, content: &steadyReader{q.Body, http.NewResponseController(q.w)}}
	if b.length < 0 {
		return nil, refuseWith(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if b.length == 0 && strings.EqualFold(q.Header.Get("Expect"), "100-continue") {
		q.w.WriteHeader(http.StatusContinue) // net/http does it for bodies alone; botocore muddles up a connection without it
	}
	kind := q.contentHash()
	switch {
	case strings.HasPrefix(kind, "STREAMING-"):
		length, err := strconv.ParseInt(q.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || length < 0 {
			return nil, refuseWith(http.StatusLengthRequired, "MissingContentLength", "You must provide the x-amz-decoded-content-length HTTP header.")
		}
		if b.chunked, err = newChunkedReader(b.content, kind, q.Header.Get("X-Amz-Trailer"), caller.chunks); err != nil {
			return nil, err
		}
		b.length, b.content = length, b.chunked
	case kind != "" && kind != unsignedPayload:
		want, err := hex.DecodeString(kind)
		if err != nil || len(want) != sha256.Size {
			return nil, refuse("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.")
		}
		b.hash, b.want = sha256.New(), want
	}
	b.left = b.length
	return b, nil
}

// Read is io.Reader's.
func (b *restBody) Read(p []byte) (int, error) {
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
		err = refuse("IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header.")
	case err == io.EOF && b.hash != nil && subtle.ConstantTimeCompare(b.hash.Sum(nil), b.want) == 0:
		err = refuse("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	b.err = err
	return n, err
}

// Announced is the name of the header that comes behind the body; "" where none does.
func (b *restBody) Announced() string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.trailer
}

// Trailer is a header that came behind the body, once that was read.
func (b *restBody) Trailer(name string) string {
	if b.chunked == nil {
		return ""
	}
	return b.chunked.trailers.Get(name)
}

// broken says that the body was not read to its end, so that nothing else can come behind it.
func (b *restBody) broken() bool { return b.err != io.EOF && b.length != 0 }

// all reads the whole body of an operation whose body is no stream, and checks the checksums that came with it.
func (b *restBody) all(limit int64, h http.Header) ([]byte, error) {
	if b.length > limit {
		return nil, refuse("MaxMessageLengthExceeded", "Your request was too big.")
	}
	body, err := io.ReadAll(io.LimitReader(b, limit+1))
	switch {
	case err != nil:
		return nil, asClientError(err)
	case int64(len(body)) > limit:
		return nil, refuse("MaxMessageLengthExceeded", "Your request was too big.")
	}
	if want := h.Get("Content-Md5"); want != "" {
		sum := md5.Sum(body)
		if want != base64.StdEncoding.EncodeToString(sum[:]) {
			return nil, refuse("BadDigest", "The Content-MD5 you specified did not match what we received.")
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
			return nil, refuse("BadDigest", "The %s you specified did not match what we received.", a)
		}
	}
	return body, nil
}

// asClientError makes a failing connection the client's fault; what else can fail in reading a body is refused
// by name already.
func asClientError(err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return err
	}
	return refuse("RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")
}

// steadyReader gives every read of its own the time that a client may take.
type steadyReader struct {
	r          io.Reader
	controller *http.ResponseController
}

func (s *steadyReader) Read(p []byte) (int, error) {
	s.controller.SetReadDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	n, err := s.r.Read(p)
	if err == io.EOF {
		s.controller.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		return n, err
	}
	if err != nil { // the deadline stays: what is left of the body is read once the call is answered
		err = asClientError(err)
	}
	return n, err
}

// chunkedReader reads aws-chunked: chunks with their length, perhaps signed, and behind them trailers.
// See "Signature calculations for the Authorization header: transferring payload in multiple chunks" and
// "… including trailing headers" in S3's API reference.
type chunkedReader struct {
	r        *bufio.Reader
	signer   *chainSigner // nil where signatures are not checked
	signed   bool
	trailer  string // the name of the trailer that the request announces; "" where there is none
	trailers http.Header

	left      int64 // of the chunk
	signature string
	hash      hash.Hash
	done      bool
}

// Limits of the framing: a line of a chunk holds a length and a signature.
const (
	maxChunkLine = 1 << 10
	maxTrailers  = 16
)

func newChunkedReader(r io.Reader, kind, trailer string, signer *chainSigner) (*chunkedReader, error) {
	c := &chunkedReader{r: bufio.NewReaderSize(r, 64<<10), trailers: http.Header{}, hash: sha256.New()}
	switch kind {
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		c.signed, c.signer = true, signer
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		c.signed, c.signer, c.trailer = true, signer, trailer
	case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		c.trailer = trailer
	default:
		return nil, refuse("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.")
	}
	return c, nil
}

var errFraming = refuse("InvalidRequest", "The body is not valid aws-chunked.")

// Read is io.Reader's.
func (c *chunkedReader) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
		if c.done {
			return 0, io.EOF
		}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.hash.Write(p[:n])
	c.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && c.left == 0 {
		err = c.endChunk()
	}
	return n, err
}

// next reads a chunk's head; behind the last chunk, the trailers.
func (c *chunkedReader) next() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	size, extension, _ := strings.Cut(line, ";")
	if c.left, err = strconv.ParseInt(strings.TrimSpace(size), 16, 63); err != nil || c.left < 0 {
		return errFraming
	}
	c.signature, _ = strings.CutPrefix(strings.TrimSpace(extension), "chunk-signature=")
	c.hash.Reset()
	if c.left > 0 {
		return nil
	}
	if err := c.checkChunk(); err != nil {
		return err
	}
	if err := c.readTrailers(); err != nil {
		return err
	}
	c.done = true
	return nil
}

// endChunk checks the chunk that was read, and the line's end behind it.
func (c *chunkedReader) endChunk() error {
	if line, err := c.line(); err != nil || line != "" {
		return errors.Join(err, errFraming)
	}
	return c.checkChunk()
}

func (c *chunkedReader) checkChunk() error {
	if c.signer == nil || !c.signed {
		return nil
	}
	want := c.signer.chunk(hex.EncodeToString(c.hash.Sum(nil)))
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) == 0 {
		return noMatch()
	}
	return nil
}

// readTrailers reads what is behind the last chunk. A body without trailers may end at once, or with an
// empty line.
func (c *chunkedReader) readTrailers() error {
	var text bytes.Buffer
	signature := ""
	for range maxTrailers {
		line, err := c.line()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			line, err = "", nil // the end is the end, too
			if _, more := c.r.Peek(1); more == nil {
				return errFraming
			}
		}
		if err != nil {
			return err
		}
		if line == "" {
			return c.checkTrailers(text.Bytes(), signature)
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return errFraming
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "x-amz-trailer-signature" {
			signature = value
			continue
		}
		c.trailers.Set(name, value)
		text.WriteString(name + ":" + value + "\n")
	}
	return errFraming
}

func (c *chunkedReader) checkTrailers(text []byte, signature string) error {
	if c.trailer != "" && c.trailers.Get(c.trailer) == "" {
		return refuse("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
	}
	if c.signer == nil || !c.signed || c.trailer == "" {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(c.signer.trailer(hashHex(text))), []byte(signature)) == 0 {
		return noMatch()
	}
	return nil
}

// line reads a line without its end.
func (c *chunkedReader) line() (string, error) {
	line, err := c.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), len(line) > maxChunkLine:
		return "", errFraming
	case err == io.EOF:
		return "", io.ErrUnexpectedEOF
	case err != nil:
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

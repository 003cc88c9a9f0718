package sign

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// ChunkedReader reads a body in aws-chunked: chunks with their length, perhaps signed, and then trailers.
// See "Signature calculations for the Authorization header: transferring payload in multiple chunks" and
// "… including trailing headers" in S3's API reference.
type ChunkedReader struct {
	r        *bufio.Reader
	signer   *chainSigner // nil if signatures aren't checked
	signed   bool
	trailer  string // the name of the trailer that the request announces; "" for none
	trailers http.Header

	left      int64 // bytes of the current chunk
	signature string
	hash      hash.Hash
	done      bool
}

// Limits of the framing.
const (
	maxChunkLine = 1 << 10 // bytes; a line has a length and a signature
	maxTrailers  = 16
)

// NewChunkedReader returns a reader of the body of the caller's request. kind is the value of x-amz-content-sha256, and trailer the
// name of the trailer that the request announces.
func NewChunkedReader(r io.Reader, kind, trailer string, caller Caller) (*ChunkedReader, error) {
	signer := caller.chunks
	c := &ChunkedReader{r: bufio.NewReaderSize(r, 64<<10), trailers: http.Header{}, hash: sha256.New()}
	switch kind {
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		c.signed = true
		c.signer = signer
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		c.signed = true
		c.signer = signer
		c.trailer = trailer
	case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		c.trailer = trailer
	default:
		return nil, refusal.New(
			"InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.",
		)
	}
	return c, nil
}

// Announced returns the name of the trailer that the request announces, or "".
func (c *ChunkedReader) Announced() string { return c.trailer }

// Trailer returns the value of a trailer, once the body was read to its end.
func (c *ChunkedReader) Trailer(name string) string { return c.trailers.Get(name) }

var errFraming = refusal.New("InvalidRequest", "The body is not valid aws-chunked.")

// Read implements io.Reader.
func (c *ChunkedReader) Read(p []byte) (int, error) {
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

// next reads a chunk's header. After the last chunk it reads the trailers.
func (c *ChunkedReader) next() error {
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

// endChunk reads the line end after a chunk, and checks the chunk's signature.
func (c *ChunkedReader) endChunk() error {
	if line, err := c.line(); err != nil || line != "" {
		return errors.Join(err, errFraming)
	}
	return c.checkChunk()
}

func (c *ChunkedReader) checkChunk() error {
	if c.signer == nil || !c.signed {
		return nil
	}
	want := c.signer.chunk(hex.EncodeToString(c.hash.Sum(nil)))
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) == 0 {
		return noMatch()
	}
	return nil
}

// readTrailers reads the lines after the last chunk. A body without trailers may end at once or with an empty line.
func (c *ChunkedReader) readTrailers() error {
	var text bytes.Buffer
	signature := ""
	for range maxTrailers {
		line, err := c.line()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			line, err = "", nil // the end of the body ends the trailers, too
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
		name = strings.ToLower(strings.TrimSpace(name))
		value = strings.TrimSpace(value)
		if name == "x-amz-trailer-signature" {
			signature = value
			continue
		}
		c.trailers.Set(name, value)
		text.WriteString(name + ":" + value + "\n")
	}
	return errFraming
}

func (c *ChunkedReader) checkTrailers(text []byte, signature string) error {
	if c.trailer != "" && c.trailers.Get(c.trailer) == "" {
		return refusal.New(
			"MalformedTrailerError",
			"The request contained trailing data that was not well-formed or did not conform to our published schema.",
		)
	}
	if c.signer == nil || !c.signed || c.trailer == "" {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(c.signer.trailer(hashHex(text))), []byte(signature)) == 0 {
		return noMatch()
	}
	return nil
}

// line reads a line and returns it without its line end.
func (c *ChunkedReader) line() (string, error) {
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

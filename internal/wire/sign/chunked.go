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

// ChunkedReader reads aws-chunked: chunks with their length, perhaps signed, and behind them trailers.
// See "Signature calculations for the Authorization header: transferring payload in multiple chunks" and
// "… including trailing headers" in S3's API reference.
type ChunkedReader struct {
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

// NewChunkedReader reads the body of the caller's request, of the kind that x-amz-content-sha256 says. The trailer is the one
// that the request announces.
func NewChunkedReader(r io.Reader, kind, trailer string, caller Caller) (*ChunkedReader, error) {
	signer := caller.chunks
	c := &ChunkedReader{r: bufio.NewReaderSize(r, 64<<10), trailers: http.Header{}, hash: sha256.New()}
	switch kind {
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		c.signed, c.signer = true, signer
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		c.signed, c.signer, c.trailer = true, signer, trailer
	case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		c.trailer = trailer
	default:
		return nil, refusal.New("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- kind, or a valid sha256 value.")
	}
	return c, nil
}

// Announced is the name of the trailer that the request announces; "" where there is none.
func (c *ChunkedReader) Announced() string { return c.trailer }

// Trailer is a header that came behind the body, once that was read.
func (c *ChunkedReader) Trailer(name string) string { return c.trailers.Get(name) }

var errFraming = refusal.New("InvalidRequest", "The body is not valid aws-chunked.")

// Read is io.Reader's.
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

// next reads a chunk's head; behind the last chunk, the trailers.
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

// endChunk checks the chunk that was read, and the line's end behind it.
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

// readTrailers reads what is behind the last chunk. A body without trailers may end at once, or with an
// empty line.
func (c *ChunkedReader) readTrailers() error {
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

func (c *ChunkedReader) checkTrailers(text []byte, signature string) error {
	if c.trailer != "" && c.trailers.Get(c.trailer) == "" {
		return refusal.New("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
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

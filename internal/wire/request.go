package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/steady"
)

// request is one HTTP request on its way through the handler, and what the handler has learned about it so far.
type request struct {
	*http.Request
	connection *http.ResponseController
	id         string // for the answer and the log
	api        *served
	protocol   protocol
	operation  string
	op         *codec.Operation // nil until it's known
	body       []byte
	signed     []byte     // the body as it came, perhaps compressed; the signature covers this one
	form       url.Values // the parameters, in a Query protocol

	*scratch
}

// scratch is the memory that a request needs while it runs. Requests share it through a pool, because answers can be large.
type scratch struct {
	in   bytes.Buffer
	json jsontext.Decoder
	out  []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxKept is the most bytes that a scratch may have to go back into the pool.
const maxKept = 1 << 20

func (s *scratch) release() {
	if s.in.Cap()+cap(s.out) > maxKept {
		return
	}
	s.in.Reset()
	s.out = s.out[:0]
	scratches.Put(s)
}

// lenient reports whether callers may send members that the operation doesn't have.
func (q *request) lenient() bool { return q.op.Lenient }

// readBody reads the body, up to the API's limit.
func (q *request) readBody() error {
	limit := int64(defaultMaxBody)
	if q.api != nil {
		limit = q.api.MaxBody
	}
	_, err := q.in.ReadFrom(http.MaxBytesReader(nil, io.NopCloser(steady.NewReader(q.Body, q.connection)), limit))
	q.body = q.in.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refusal.With(
			http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "The request's body is larger than %d bytes.", limit,
		)
	case err != nil:
		return refusal.New("SerializationException", "The request's body could not be read.")
	}
	q.signed = q.body
	return q.decompress(limit)
}

// decompress inflates a compressed body. The SDKs compress large PutMetricData calls.
func (q *request) decompress(limit int64) error {
	switch strings.ToLower(q.Header.Get("Content-Encoding")) {
	case "", "identity":
		return nil
	case "gzip":
	default:
		return refusal.With(
			http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Encoding is %q; only gzip is taken.",
			q.Header.Get("Content-Encoding"),
		)
	}
	in, err := gzip.NewReader(bytes.NewReader(q.signed))
	if err != nil {
		return refusal.New("SerializationException", "The request's body is not valid gzip.")
	}
	q.body, err = io.ReadAll(io.LimitReader(in, maxInflation*limit+1))
	if err != nil {
		return refusal.New("SerializationException", "The request's body is not valid gzip.")
	}
	if int64(len(q.body)) > maxInflation*limit {
		return refusal.With(
			http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException",
			"The request's body is larger than %d bytes once inflated.", maxInflation*limit,
		)
	}
	return nil
}

// maxInflation is how many times the API's limit an inflated body may have.
const maxInflation = 4

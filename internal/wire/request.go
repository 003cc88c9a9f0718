package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pintle/pintle/internal/wire/budget"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// request is one HTTP request on its way through the handler, and what the handler has learned about it so far.
type request struct {
	*http.Request
	id        string // for the answer and the log
	api       *served
	protocol  protocol
	operation string
	op        *codec.Operation // nil until it's known
	memory    *budget.Share
	body      []byte
	form      url.Values // the parameters, in a Query protocol

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

func (q *request) release() {
	q.memory.Release()
	q.scratch.release()
}

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
	err := q.memory.ReadBody(q.Request, &q.in, q.maxBody())
	q.body = q.in.Bytes()
	return err
}

// maxBody is the most bytes that the body may have.
func (q *request) maxBody() int64 {
	if q.api == nil {
		return defaultMaxBody
	}
	return q.api.MaxBody
}

// decompress inflates a compressed body. The SDKs compress large PutMetricData calls.
func (q *request) decompress() error {
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
	in, err := gzip.NewReader(bytes.NewReader(q.body))
	if err != nil {
		return refusal.New("SerializationException", "The request's body is not valid gzip.")
	}
	limit := max(q.maxBody(), maxInflated)
	var inflated bytes.Buffer
	err = q.memory.ReadAll(q.Context(), &inflated, in, limit)
	q.body = inflated.Bytes()
	var r *refusal.Refusal
	switch {
	case errors.Is(err, budget.ErrTooLarge):
		return refusal.With(
			http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException",
			"The request's body is larger than %d bytes once inflated.", limit,
		)
	case err != nil && !errors.As(err, &r):
		return refusal.New("SerializationException", "The request's body is not valid gzip.")
	}
	return err
}

// maxInflated is the most bytes of an inflated body, if the API doesn't take more.
const maxInflated = 4 << 20

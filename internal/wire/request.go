package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/steady"
)

// request is one HTTP request on its way through the handler, and what is known of it so far.
type request struct {
	*http.Request
	connection *http.ResponseController
	id         string // of the request, for the answer and the log
	api        *served
	protocol   protocol
	operation  string
	op         *codec.Operation // what answers it; nil until that is known
	body       []byte
	signed     []byte     // the body as it came, and was signed: body may have been compressed in it
	form       url.Values // the parameters, in a protocol of forms

	*scratch
}

// scratch is the memory that a request needs while it lasts. It is lent: answers can be large.
type scratch struct {
	in   bytes.Buffer
	json jsontext.Decoder
	out  []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxKept is how large a scratch may have grown to be lent again.
const maxKept = 1 << 20

func (s *scratch) release() {
	if s.in.Cap()+cap(s.out) > maxKept {
		return
	}
	s.in.Reset()
	s.out = s.out[:0]
	scratches.Put(s)
}

// lenient reports whether the operation's callers may send members that it does not have.
func (q *request) lenient() bool { return q.op.Lenient }

// readBody reads the body, no more of it than the API takes.
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
		return refusal.With(http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "The request's body is larger than %d bytes.", limit)
	case err != nil:
		return refusal.New("SerializationException", "The request's body could not be read.")
	}
	q.signed = q.body
	return q.decompress(limit)
}

// decompress inflates a body that the client has compressed, as the SDKs do with large PutMetricData.
func (q *request) decompress(limit int64) error {
	switch q.Header.Get("Content-Encoding") {
	case "", "identity":
		return nil
	case "gzip":
	default:
		return refusal.With(http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Encoding is %q; only gzip is taken.", q.Header.Get("Content-Encoding"))
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
		return refusal.With(http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "The request's body is larger than %d bytes once inflated.", maxInflation*limit)
	}
	return nil
}

// maxInflation is how many times the API's limit a compressed body may come to.
const maxInflation = 4

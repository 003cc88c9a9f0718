package wire

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// request is one HTTP request on its way through the handler, and what is known of it so far.
type request struct {
	*http.Request
	id        string // of the request, for the answer and the log
	api       *API
	protocol  Protocol
	operation string
	op        *operation // what answers it; nil until that is known
	body      []byte
	form      url.Values // the parameters, in a protocol of forms

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

// lenient says whether the operation's callers may send members that it does not have.
func (q *request) lenient() bool { return q.op.lenient }

// readBody reads the body, no more of it than the API takes.
func (q *request) readBody() error {
	limit := int64(defaultMaxBody)
	if q.api != nil {
		limit = q.api.MaxBody
	}
	_, err := q.in.ReadFrom(http.MaxBytesReader(nil, q.Body, limit))
	q.body = q.in.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refuseWith(http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "The request's body is larger than %d bytes.", limit)
	case err != nil:
		return refuse("SerializationException", "The request's body could not be read.")
	}
	return nil
}

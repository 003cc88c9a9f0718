// Package steady reads and writes bodies of any length for clients that may be slow but must make progress: each read and each write may
// take a minute, the whole has no limit. Handlers wrap what they read from and write to clients in it.
package steady

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// maxIdle is how long a body may pause.
const maxIdle = time.Minute

// ClientError turns a failed connection into a client's error. Other failures of reading a body already are refusals.
func ClientError(err error) error {
	var r *refusal.Refusal
	if errors.As(err, &r) {
		return err
	}
	return refusal.New("RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")
}

// Reader gives each read its own deadline.
type Reader struct {
	r          io.Reader
	controller *http.ResponseController
}

// NewReader returns a reader of a request's body, with its connection.
func NewReader(r io.Reader, controller *http.ResponseController) *Reader {
	return &Reader{r, controller}
}

func (s *Reader) Read(p []byte) (int, error) {
	s.controller.SetReadDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	n, err := s.r.Read(p)
	if err == io.EOF {
		s.controller.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		return n, err
	}
	if err != nil { // the deadline stays, for the rest of the body is read after the answer
		err = ClientError(err)
	}
	return n, err
}

// Writer gives each write its own deadline.
type Writer struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// NewWriter returns a writer of an answer's body, with its connection.
func NewWriter(w http.ResponseWriter, controller *http.ResponseController) *Writer {
	return &Writer{w, controller}
}

func (s *Writer) Write(b []byte) (int, error) {
	s.controller.SetWriteDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	return s.w.Write(b)
}

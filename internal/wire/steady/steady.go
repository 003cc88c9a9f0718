// Package steady reads and writes bodies of any length for clients that may be slow but have to go on: each read and each
// write has a minute of its own, the whole has no limit. Handlers wrap what they read from and write to clients in it.
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

// ClientError makes a failing connection the client's fault; what else can fail in reading a body is refused
// by name already.
func ClientError(err error) error {
	var r *refusal.Refusal
	if errors.As(err, &r) {
		return err
	}
	return refusal.New("RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")
}

// Reader gives every read of its own the time that a client may take.
type Reader struct {
	r          io.Reader
	controller *http.ResponseController
}

// NewReader reads a request's body on its connection.
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
	if err != nil { // the deadline stays: what is left of the body is read once the call is answered
		err = ClientError(err)
	}
	return n, err
}

// Writer gives every write of its own the time that a client may take.
type Writer struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// NewWriter writes an answer's body on its connection.
func NewWriter(w http.ResponseWriter, controller *http.ResponseController) *Writer {
	return &Writer{w, controller}
}

func (s *Writer) Write(b []byte) (int, error) {
	s.controller.SetWriteDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	return s.w.Write(b)
}

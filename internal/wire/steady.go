package wire

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// maxIdle is how long a body may pause.
const maxIdle = time.Minute

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

// steadyWriter gives every write of its own the time that a client may take.
type steadyWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (s *steadyWriter) Write(b []byte) (int, error) {
	s.controller.SetWriteDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	return s.w.Write(b)
}

// Package steady reads and writes bodies of any length for clients that may be slow but must make progress: the whole has no limit, but
// a body must come at a pace, and each write may take a minute. Wire wraps every request's body in it.
package steady

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// Pace is how slow a body may be. It may pause, and what it sends at the rate makes up for pauses.
type Pace struct {
	Pause time.Duration
	Rate  int64 // bytes a second
}

var (
	// Call is the pace of bodies that are held in memory.
	Call = Pace{20 * time.Second, 16 << 10}
	// Stream is the pace of objects, once the signature of their headers was checked.
	Stream = Pace{time.Minute, 1 << 10}
)

// drain is how long the rest of a refused request may take. Its client reads the answer only then.
const drain = 2 * time.Second

// maxWrite is how long a write may take.
const maxWrite = time.Minute

// ClientError turns a failed connection into a client's error. Other failures of reading a body already are refusals.
func ClientError(err error) error {
	var r *refusal.Refusal
	if errors.As(err, &r) {
		return err
	}
	return refusal.New("RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")
}

// Body is a request's body that must come at a pace.
type Body struct {
	io.ReadCloser
	controller *http.ResponseController
	pace       Pace
	credit     time.Duration // how long reads may still wait
	ended      bool
}

// Watch makes a request's body a Body, at the pace of calls. The pace counts from now on, whether somebody reads the body or not.
func Watch(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	b := &Body{ReadCloser: r.Body, controller: http.NewResponseController(w)}
	b.setPace(Call)
	b.controller.SetReadDeadline(time.Now().Add(b.credit)) //nolint:errcheck // tests' recorders have none
	r.Body = b
}

// Relax gives a request's body the pace of streams.
func Relax(r *http.Request) {
	if b, ok := r.Body.(*Body); ok {
		b.setPace(Stream)
	}
}

func (b *Body) setPace(p Pace) {
	b.pace = p
	b.credit = p.Pause
}

// EndUnread has a request's connection closed after the answer, if its body wasn't read to the end.
func EndUnread(w http.ResponseWriter, r *http.Request) {
	if b, ok := r.Body.(*Body); ok && !b.ended {
		w.Header().Set("Connection", "close")
		b.controller.SetReadDeadline(time.Now().Add(drain)) //nolint:errcheck // as above
	}
}

// Read implements io.Reader. Time that the caller spends between two reads doesn't count.
func (b *Body) Read(p []byte) (int, error) {
	began := time.Now()
	b.controller.SetReadDeadline(began.Add(b.credit)) //nolint:errcheck // as above
	n, err := b.ReadCloser.Read(p)
	earned := time.Duration(n) * time.Second / time.Duration(b.pace.Rate)
	b.credit = min(b.credit-time.Since(began)+earned, b.pace.Pause)
	if err == io.EOF {
		b.ended = true
		b.controller.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
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
	s.controller.SetWriteDeadline(time.Now().Add(maxWrite)) //nolint:errcheck // tests' recorders have none
	return s.w.Write(b)
}

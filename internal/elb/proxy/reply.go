package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reply is the http.ResponseWriter of a porter's request. It frames an answer as net/http's server does, but never guesses a type or a length.
type reply struct {
	porter  *porter
	isHead  bool // the request wants no body
	header  http.Header
	code    int   // 0 before the answer has begun
	noBody  bool  // the answer's code allows none
	chunked bool  // the answer's length isn't known
	left    int64 // how much of the answer's length is to come, if that's known
	last    bool  // no request may follow
}

// Header implements http.ResponseWriter.
func (w *reply) Header() http.Header { return w.header }

// ofBodies are headers that an answer before the answer may not have.
var ofBodies = map[string]bool{"Content-Length": true, "Transfer-Encoding": true}

// WriteHeader implements http.ResponseWriter.
func (w *reply) WriteHeader(code int) {
	if w.code != 0 {
		return
	}
	out := w.porter.out
	writeStatus(out, code)
	if code < 200 {
		w.header.WriteSubset(out, ofBodies) //nolint:errcheck // the next write tells
		out.WriteString("\r\n")             //nolint:errcheck // as above
		out.Flush()                         //nolint:errcheck // as above
		return
	}
	w.code = code
	w.frame()
	w.header.Write(out)     //nolint:errcheck // as above; without an error of the buffer's, it has none
	out.WriteString("\r\n") //nolint:errcheck // as above
}

// frame decides how an answer's end is known, and completes its header.
func (w *reply) frame() {
	h := w.header
	w.noBody = w.code == http.StatusNoContent || w.code == http.StatusNotModified
	length, hasLength := h["Content-Length"]
	switch {
	case w.noBody:
		delete(h, "Content-Length")
		if w.code == http.StatusNotModified {
			delete(h, "Content-Type")
		}
	case hasLength:
		n, err := strconv.ParseInt(length[0], 10, 64)
		w.left, w.last = n, w.last || err != nil // a length that no one can read comes from no target: net/http has read it
	case !w.isHead:
		w.chunked = true
		h["Transfer-Encoding"] = []string{"chunked"}
	}
	if h["Date"] == nil {
		h["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	}
	if w.porter.door.leaving.Load() {
		w.last = true
	}
	if w.last {
		h["Connection"] = []string{"close"}
	}
}

func writeStatus(out *bufio.Writer, code int) {
	text := http.StatusText(code)
	if text == "" {
		text = "status code " + strconv.Itoa(code)
	}
	out.WriteString("HTTP/1.1 " + strconv.Itoa(code) + " " + text + "\r\n") //nolint:errcheck // the next write tells
}

// Write implements http.ResponseWriter.
func (w *reply) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.noBody:
		return 0, http.ErrBodyNotAllowed
	case w.isHead || len(b) == 0:
		return len(b), nil
	case w.chunked:
		return w.writeChunk(b)
	case int64(len(b)) > w.left:
		return 0, http.ErrContentLength
	}
	n, err := w.porter.out.Write(b)
	w.left -= int64(n)
	return n, err
}

func (w *reply) writeChunk(b []byte) (int, error) {
	out := w.porter.out
	fmt.Fprintf(out, "%x\r\n", len(b)) //nolint:errcheck // the next write tells
	n, err := out.Write(b)
	if err == nil {
		_, err = out.WriteString("\r\n")
	}
	return n, err
}

// end ends an answer. It reports whether a request may follow.
func (w *reply) end() bool {
	if w.code == 0 {
		return false // there is nobody to answer
	}
	if w.chunked {
		w.porter.out.WriteString("0\r\n") //nolint:errcheck // the flush tells
		w.trailer().Write(w.porter.out)   //nolint:errcheck // as above
		w.porter.out.WriteString("\r\n")  //nolint:errcheck // as above
	}
	isWhole := w.chunked || w.noBody || w.isHead || w.left == 0
	return w.porter.out.Flush() == nil && isWhole && !w.last
}

// trailer returns what stands behind the body: what the header has announced, or was put there under net/http's names for such.
func (w *reply) trailer() http.Header {
	trailer := http.Header{}
	announced := slices.Collect(tokens(w.header["Trailer"]))
	for name, values := range w.header {
		own, isUnasked := strings.CutPrefix(name, http.TrailerPrefix)
		if isUnasked || slices.Contains(announced, name) {
			trailer[own] = values
		}
	}
	return trailer
}

// Flush implements http.Flusher.
func (w *reply) Flush() { w.FlushError() } //nolint:errcheck // the next write tells

// FlushError is what an http.ResponseController calls.
func (w *reply) FlushError() error {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.porter.out.Flush()
}

// SetReadDeadline is what an http.ResponseController calls. A request without a body has nothing to be read.
func (w *reply) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is what an http.ResponseController calls.
func (w *reply) SetWriteDeadline(t time.Time) error { return w.porter.conn.SetWriteDeadline(t) }

// Package trace tells an OpenTelemetry collector what happens to a request: spans by OTLP over HTTP, in JSON. Whoever does the work makes a
// span of it, and Run sends them. Nothing waits for a collector: what it doesn't take in time is dropped, and counted.
//
// OpenTelemetry's own packages for this, which bring protobuf and gRPC's status, make a program 7 MB larger. What is used of them here is below.
package trace

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"
)

// Span is some work: what, when, and under which other span. Its zero ID stands for a random one.
type Span struct {
	Name       string
	Under      string // the span above it, as the header traceparent has it
	ID         ID
	Server     bool // a request that somebody has made
	Start, End time.Time
	Attributes []Attribute
	Error      string // why it failed, or ""
}

// Attribute is a name and a value, by OpenTelemetry's conventions: aws.ecs.task.arn.
type Attribute struct{ Name, Value string }

// ID is a span's.
type ID [8]byte

// IDOf returns the ID of the span of something that has a name of its own, so that others can be put under it before it ends.
func IDOf(name string) (id ID) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	return id
}

// Tracer takes spans. A nil one makes none.
type Tracer struct {
	opts    Options
	spans   chan Span
	sent    atomic.Uint64
	dropped atomic.Uint64
}

// maxError is the most bytes of a span's error, which may quote what somebody sent.
const maxError = 1 << 10

// Add takes a span, if its trace is one. It never waits.
func (t *Tracer) Add(s Span) {
	if t == nil || s.Under == "" {
		return
	}
	if len(s.Error) > maxError {
		s.Error = strings.Clone(strings.ToValidUTF8(s.Error[:maxError], ""))
	}
	select {
	case t.spans <- s:
	default:
		t.dropped.Add(1)
	}
}

// Counts returns how many spans the collector has taken, and how many it was spared.
func (t *Tracer) Counts() (sent, dropped uint64) {
	if t == nil {
		return 0, 0
	}
	return t.sent.Load(), t.dropped.Load()
}

// Request is the span of a request that is being answered. A nil one is no span.
type Request struct {
	tracer *Tracer
	span   Span
}

// Begin begins a request's span, under the one in the caller's traceparent, if that is one. A caller whose trace isn't sampled gets none.
func (t *Tracer) Begin(name, traceparent string, attributes ...Attribute) *Request {
	if t == nil {
		return nil
	}
	of, id, flags, ok := parse(traceparent)
	switch {
	case !ok || id == (ID{}):
		rand.Read(of[:]) //nolint:errcheck // it never fails
		id = ID{}
	case flags&1 == 0: // it isn't sampled
		return nil
	}
	under := join(of, id) // a caller's header may be far longer than what counts of it
	return &Request{t, Span{Name: name, Under: under, ID: newID(), Server: true, Start: time.Now(), Attributes: attributes}}
}

// Context returns the traceparent for what belongs to the request, or "".
func (r *Request) Context() string {
	if r == nil {
		return ""
	}
	return Join(r.span.Under, r.span.ID)
}

// Add adds a part of the request's work.
func (r *Request) Add(name string, start, end time.Time) {
	if r != nil {
		r.tracer.Add(Span{Name: name, Under: r.Context(), Start: start, End: end})
	}
}

// End ends the request's span.
func (r *Request) End(err error) {
	if r == nil {
		return
	}
	if r.span.End = time.Now(); err != nil {
		r.span.Error = err.Error()
	}
	r.tracer.Add(r.span)
}

// Join returns the traceparent of a span in the trace of another.
func Join(traceparent string, id ID) string {
	of, _, _, ok := parse(traceparent)
	if !ok {
		return ""
	}
	return join(of, id)
}

func join(of [16]byte, id ID) string {
	return "00-" + hex.EncodeToString(of[:]) + "-" + hex.EncodeToString(id[:]) + "-01"
}

func newID() (id ID) {
	rand.Read(id[:]) //nolint:errcheck // it never fails
	return id
}

// The places of a traceparent's parts: https://www.w3.org/TR/trace-context/#traceparent-header
const (
	traceparentLength = 55
	afterVersion      = 3
	afterTrace        = 36
	afterSpan         = 53
)

// parse reads a traceparent: version, trace, span and flags. The span of a trace that begins here is zero, which no caller's may be.
func parse(s string) (of [16]byte, id ID, flags byte, ok bool) {
	if len(s) < traceparentLength || s[2] != '-' || s[afterTrace-1] != '-' || s[afterSpan-1] != '-' || s[:2] == "ff" {
		return of, id, 0, false
	}
	if len(s) > traceparentLength && (s[:2] == "00" || s[traceparentLength] != '-') {
		return of, id, 0, false
	}
	for i := range traceparentLength {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return of, id, 0, false
		}
	}
	var version, f [1]byte
	_, err1 := hex.Decode(version[:], []byte(s[:2]))
	_, err2 := hex.Decode(of[:], []byte(s[afterVersion:afterTrace-1]))
	_, err3 := hex.Decode(id[:], []byte(s[afterTrace:afterSpan-1]))
	_, err4 := hex.Decode(f[:], []byte(s[afterSpan:traceparentLength]))
	ok = err1 == nil && err2 == nil && err3 == nil && err4 == nil && of != [16]byte{}
	return of, id, f[0], ok
}

// Package budget shares out the memory for the bodies of all requests together, so that many large bodies wait instead of filling the
// machine's memory. No address gets all of it: an address may hold as much as it leaves free. Wire reads every body that it holds in
// memory through it.
package budget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// Patience is how long a body waits for memory.
const Patience = 10 * time.Second

// free is how much of a body doesn't count. Nearly all requests are smaller, so they never wait. Connections are limited, and so is
// what this adds up to.
const free = 16 << 10

// Memory is what all bodies together may take.
type Memory struct {
	mu    sync.Mutex
	left  int64
	held  map[netip.Prefix]int64
	freed chan struct{} // closed when somebody gives memory back
}

// New returns a budget of that many bytes.
func New(bytes int64) *Memory {
	return &Memory{left: bytes, held: map[netip.Prefix]int64{}, freed: make(chan struct{})}
}

// take takes n bytes for an address. It waits for them, and returns a refusal if they don't become free.
func (m *Memory) take(ctx context.Context, from netip.Prefix, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		m.mu.Lock()
		if m.held[from]+n <= m.left-n {
			m.left -= n
			m.held[from] += n
			m.mu.Unlock()
			return nil
		}
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return refusal.With(http.StatusServiceUnavailable, "ServiceUnavailable",
				"Too many large requests are being read. Reduce your request rate.")
		}
	}
}

// give gives n bytes back.
func (m *Memory) give(from netip.Prefix, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left += n
	if m.held[from] -= n; m.held[from] == 0 {
		delete(m.held, from)
	}
	close(m.freed)
	m.freed = make(chan struct{})
}

// Share is what one request holds of the memory.
type Share struct {
	memory *Memory
	from   netip.Prefix
	held   int64
}

// Share returns a share for a request, which holds nothing yet.
func (m *Memory) Share(from netip.Prefix) *Share { return &Share{memory: m, from: from} }

// Release gives back what the share holds. Nothing that was read by it may be used any more.
func (s *Share) Release() {
	if s.held > 0 {
		s.memory.give(s.from, s.held)
	}
	s.held = 0
}

// ErrTooLarge means that a body is longer than it may be.
var ErrTooLarge = errors.New("too large")

// ReadAll reads into a buffer until the end, at most limit bytes. It takes memory as it goes, so whoever announces much and sends
// little holds little.
func (s *Share) ReadAll(ctx context.Context, into *bytes.Buffer, from io.Reader, limit int64) error {
	start := into.Len()
	covered := int64(0)
	for {
		size := int64(into.Len() - start)
		if size > limit {
			return ErrTooLarge
		}
		if size == covered {
			next := min(max(covered*4, free), limit+1)
			if err := s.cover(ctx, next-max(covered, free)); err != nil {
				return err
			}
			covered = next
			into.Grow(int(covered - size))
		}
		space := into.AvailableBuffer()[:covered-size]
		n, err := from.Read(space)
		into.Write(space[:n])
		if err == io.EOF {
			if int64(into.Len()-start) > limit {
				return ErrTooLarge
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Hold takes what a request that holds that many bytes of its body needs besides what it has.
func (s *Share) Hold(ctx context.Context, bytes int64) error { return s.cover(ctx, bytes-free-s.held) }

// cover takes n more bytes, if any.
func (s *Share) cover(ctx context.Context, n int64) error {
	if n <= 0 {
		return nil
	}
	if err := s.memory.take(ctx, s.from, n); err != nil {
		return err
	}
	s.held += n
	return nil
}

// discarded is how much of a body that is too large is read, and not kept, so that the client gets the answer.
const discarded = 64 << 20

// ReadBody reads a request's whole body into a buffer. Its errors are refusals.
func (s *Share) ReadBody(r *http.Request, into *bytes.Buffer, limit int64) error {
	err := ErrTooLarge
	if r.ContentLength < 0 {
		err = s.ReadAll(r.Context(), into, r.Body, limit)
	} else if r.ContentLength <= limit { // net/http reads no more than that
		err = s.ReadAll(r.Context(), into, r.Body, r.ContentLength)
	}
	var refused *refusal.Refusal
	switch {
	case errors.Is(err, ErrTooLarge):
		io.CopyN(io.Discard, r.Body, discarded) //nolint:errcheck // clients read the answer once they have sent the body
		return refusal.With(
			http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "The request's body is larger than %d bytes.", limit,
		)
	case err != nil && !errors.As(err, &refused):
		return refusal.New("SerializationException", "The request's body could not be read.")
	}
	return err
}

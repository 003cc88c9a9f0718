package image

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Stall is how long a registry may send nothing before a pull from it fails, as with Amazon's agent.
const Stall = time.Minute

// Watchdog cancels a context once nothing has happened for a while.
type Watchdog struct {
	patience time.Duration
	timer    *time.Timer
	cancel   context.CancelCauseFunc
}

// Watch returns a context and its watchdog.
func Watch(ctx context.Context, patience time.Duration) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{patience: patience, cancel: cancel}
	w.timer = time.AfterFunc(patience, func() { cancel(fmt.Errorf("the registry sent nothing for %v", patience)) })
	return ctx, w
}

// Reset says that something has happened.
func (w *Watchdog) Reset() { w.timer.Reset(w.patience) }

// Pause says that nobody waits for anything at the moment.
func (w *Watchdog) Pause() { w.timer.Stop() }

// Stop ends the watch, and the context with it.
func (w *Watchdog) Stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// watched is a transport that gives up on registries which hang.
type watched struct {
	http.RoundTripper
	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t watched) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, w := Watch(r.Context(), t.patience)
	resp, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		w.Stop()
		return nil, err
	}
	w.Pause()
	resp.Body = &watchedBody{resp.Body, ctx, w}
	return resp, nil
}

type watchedBody struct {
	io.ReadCloser
	ctx context.Context
	*Watchdog
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.Reset()
	defer b.Pause()
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	defer b.Stop()
	return b.ReadCloser.Close()
}

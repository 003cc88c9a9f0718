package pages

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// events writes server-sent events to a browser.
type events struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	mu         sync.Mutex // held to write
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	return &events{w: w, controller: http.NewResponseController(w)}
}

// send sends an event whose data are one line.
func (e *events) send(kind, id string, data []byte) error {
	return e.write(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", kind, id, data))
}

func (e *events) write(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.controller.SetWriteDeadline(time.Now().Add(writeLimit)) //nolint:errcheck // tests' recorders have none
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.controller.Flush()
}

// beat writes something from time to time, until ctx ends. It ends the stream once the session is over or the browser has gone.
func (e *events) beat(ctx context.Context, end context.CancelFunc, lasts func() bool) {
	defer end()
	e.write([]byte("retry: 1000\n\n")) //nolint:errcheck // the next one finds out
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if !lasts() || e.write([]byte(":\n\n")) != nil {
			return
		}
	}
}

package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

func TestReconnect(t *testing.T) {
	hungUp := websocket.CloseError{Code: websocket.StatusNormalClosure}
	for _, c := range []struct {
		name     string
		lasts    time.Duration // of each connection
		err      error
		min, max time.Duration // from the fifth connection's end to the sixth connection
	}{
		{"the control plane hangs up", time.Hour, hungUp, 0, 0},
		{"the control plane hangs up at once", 0, hungUp, time.Second, 2 * time.Second},
		{"it fails", 0, errors.New("refused"), time.Second, 2 * time.Second},
		{"it fails after a good while", time.Hour, errors.New("reset"), 250 * time.Millisecond, 320 * time.Millisecond},
		{"deregistered", 0, &refusal{"InactiveInstanceException", ""}, time.Hour, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
				ctx, cancel := context.WithCancel(t.Context())
				n, ended := 0, time.Time{}
				err := a.reconnect(ctx, "ACS", func(context.Context) error {
					if n++; n == 6 {
						if wait := time.Since(ended); wait < c.min || wait > c.max {
							t.Errorf("waited %v", wait)
						}
						cancel()
					}
					time.Sleep(c.lasts)
					ended = time.Now()
					return c.err
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

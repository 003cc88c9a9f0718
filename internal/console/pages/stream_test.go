package pages

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pintle/pintle/internal/console/screen"
)

// answer tells of what is written to it after it's over.
type answer struct {
	*httptest.ResponseRecorder
	over atomic.Bool
	late atomic.Int32
}

func (a *answer) Write(b []byte) (int, error) {
	if a.over.Load() {
		a.late.Add(1)
	}
	return a.ResponseRecorder.Write(b)
}

// TestNothingIsWrittenLate: what a connection's heartbeat writes after its handler has returned would be in another's answer.
func TestNothingIsWrittenLate(t *testing.T) {
	p, _ := console(true, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the browser has gone
	for range 200 {
		w := &answer{ResponseRecorder: httptest.NewRecorder()}
		p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:4566/console/queues?live=x", nil))
		w.over.Store(true)
		t.Cleanup(func() {
			if w.late.Load() > 0 {
				t.Error("something was written late")
			}
		})
	}
}

// TestAskingProgram: a program that asks the terminal for ever and never reads takes no memory for it.
func TestAskingProgram(t *testing.T) {
	asked := make(answers, maxAnswers)
	screen.New(80, 24, asked).Write([]byte(strings.Repeat("\x1b[6n", 10_000))) //nolint:errcheck // it never fails
	if len(asked) != maxAnswers {
		t.Errorf("%d answers wait", len(asked))
	}
}

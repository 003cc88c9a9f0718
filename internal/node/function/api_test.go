package function

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// oneTask is a node with one task.
type oneTask struct{ record *engine.Record }

func (o oneTask) Task(string) (*engine.Record, bool) { return o.record, true }

// chatter has always said more.
type chatter struct{ line atomic.Int64 }

func (c *chatter) Logs(_ context.Context, _, _ string, _ bool, emit func(runtime.Line) error) error {
	return emit(runtime.Line{Text: "more", Cursor: strings.Repeat("x", int(c.line.Add(1)%7))})
}

// environment returns the Runtime API of an environment whose invocations all want their tail.
func environment(t *testing.T) http.Handler {
	t.Helper()
	const task = "arn:aws:ecs:us-east-1:000000000000:task/default/1"
	answer := func(context.Context, string, string, http.Header, []byte) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{acs.FunctionTail: {"wanted"}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	f, err := New(Options{Dir: t.TempDir(), Call: answer, Output: new(chatter)})
	if err != nil {
		t.Fatal(err)
	}
	f.Use(oneTask{&engine.Record{
		Task:       acs.Task{Arn: task, Containers: []acs.Container{{Name: "function"}}},
		Containers: map[string]*engine.Container{"function": {}},
	}})
	return f.Handler(task)
}

// TestRequestsAtOnce: an environment may ask and answer as often as it likes at the same time.
func TestRequestsAtOnce(t *testing.T) {
	api := environment(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, Path+"invocation/next", nil))
		})
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, Path+"invocation/1/response", strings.NewReader("{}"))
			api.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	all.Wait()
}

// slow is an answer that comes once arrive is closed.
type slow struct {
	begun  *atomic.Int64
	arrive chan struct{}
}

func (s slow) Read([]byte) (int, error) {
	s.begun.Add(1)
	<-s.arrive
	return 0, io.EOF
}

// TestOneAnswerAtATime: the agent has one answer of an environment in memory, however many come.
func TestOneAnswerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := environment(t)
		var begun atomic.Int64
		arrive := make(chan struct{})
		for range 100 {
			go api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path+"invocation/1/response", slow{&begun, arrive}))
		}
		synctest.Wait()
		if n := begun.Load(); n != 1 {
			t.Errorf("%d answers are read at the same time", n)
		}
		close(arrive)
		synctest.Wait()
		if n := begun.Load(); n != 100 {
			t.Errorf("%d of 100 answers were read", n)
		}
	})
}

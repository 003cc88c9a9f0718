package function

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Path begins the paths of the Lambda Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
const Path = "/2018-06-01/runtime/"

// maxBody is the most bytes of an answer that are read. The control plane refuses those with more than 6 MB.
const maxBody = 6<<20 + 101

// Handler serves the Runtime API to the environment that is a task.
func (f *Functions) Handler(task string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"invocation/next", func(w http.ResponseWriter, r *http.Request) { f.next(w, r, task) })
	for _, kind := range []string{"response", "error"} {
		mux.HandleFunc("POST "+Path+"invocation/{id}/"+kind, func(w http.ResponseWriter, r *http.Request) {
			f.pass(w, r, task, kind+"?request="+url.QueryEscape(r.PathValue("id"))+"&")
		})
	}
	mux.HandleFunc("POST "+Path+"init/error", func(w http.ResponseWriter, r *http.Request) { f.pass(w, r, task, "init/error?") })
	return mux
}

// maxPause is the longest pause between tries to reach the control plane.
const maxPause = 2 * time.Second

// call calls the control plane until it answers, or ctx ends: it may be restarting.
func (f *Functions) call(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, maxPause) {
		answer, err := f.opts.Call(ctx, method, path, header, body)
		if err == nil && answer.StatusCode < http.StatusInternalServerError {
			return answer, nil
		}
		if err == nil {
			answer.Body.Close() //nolint:errcheck // it says nothing that's needed
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// next waits for the environment's next invocation.
func (f *Functions) next(w http.ResponseWriter, r *http.Request, task string) {
	for {
		answer, err := f.call(r.Context(), http.MethodGet, acs.FunctionPath+"next?task="+url.QueryEscape(task), nil, nil)
		if err != nil {
			return // the environment has gone
		}
		if answer.StatusCode == http.StatusNoContent { // there was nothing for a while
			answer.Body.Close() //nolint:errcheck // it's empty
			continue
		}
		f.tail(task).begin(r.Context(), answer.Header.Get(acs.FunctionTail) != "")
		f.answer(w, answer)
		return
	}
}

// pass passes an answer on. An environment has one invocation at a time, so that one answer of its is read at a time: each takes memory of the agent's.
func (f *Functions) pass(w http.ResponseWriter, r *http.Request, task, where string) {
	t := f.tail(task)
	select {
	case t.answering <- struct{}{}:
		defer func() { <-t.answering }()
	case <-r.Context().Done():
		return // the environment has gone
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	header := http.Header{}
	if said := t.end(r.Context()); len(said) > 0 {
		header.Set(acs.FunctionTail, base64.StdEncoding.EncodeToString(said))
	}
	answer, err := f.call(r.Context(), http.MethodPost, acs.FunctionPath+where+"task="+url.QueryEscape(task), header, body)
	if err != nil {
		return // the environment has gone
	}
	f.answer(w, answer)
}

// answer passes the control plane's answer on.
func (f *Functions) answer(w http.ResponseWriter, answer *http.Response) {
	defer answer.Body.Close() //nolint:errcheck // it's only read
	for name, values := range answer.Header {
		if strings.HasPrefix(name, "Lambda-Runtime-") || name == "Content-Type" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	io.Copy(w, answer.Body) //nolint:errcheck // the environment has gone, or the control plane, which notices
}

// tail follows what an environment says, as far as somebody wants to know.
type tail struct {
	functions *Functions
	task      string
	answering chan struct{} // has a value while an answer is passed on

	mu     sync.Mutex // held while it's read
	wanted bool
	cursor string
}

// maxTail is how much of what an environment says is passed on.
const maxTail = 4 << 10

func (f *Functions) tail(task string) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := idOf(task)
	if f.tails[id] == nil {
		f.tails[id] = &tail{functions: f, task: task, answering: make(chan struct{}, 1)}
	}
	return f.tails[id]
}

// readLocked returns what the environment has said since the last time.
func (t *tail) readLocked(ctx context.Context) (said []byte) {
	record, ok := t.functions.tasks.Task(t.task)
	if !ok {
		return nil
	}
	for _, c := range record.Task.Containers {
		t.functions.opts.Output.Logs(ctx, record.ContainerID(c.Name), t.cursor, false, func(l runtime.Line) error { //nolint:errcheck // then there's no more
			said = append(append(said, l.Text...), '\n')
			said = said[max(0, len(said)-maxTail):]
			t.cursor = l.Cursor
			return nil
		})
	}
	return said
}

// begin begins an invocation.
func (t *tail) begin(ctx context.Context, wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted = wanted; wanted {
		t.readLocked(ctx) // what was said before isn't wanted
	}
}

// settle is how long what an environment has said may take to arrive, which goes through a pipe and a file.
const settle = 20 * time.Millisecond

// end returns what was said in an invocation, if it's wanted.
func (t *tail) end(ctx context.Context) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted {
		return nil
	}
	t.wanted = false
	var said []byte
	for range 5 {
		more := t.readLocked(ctx)
		said = append(said, more...)
		if len(more) == 0 && len(said) > 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(settle):
		}
	}
	return said[max(0, len(said)-maxTail):]
}

package environments

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// maxResponse is the most bytes of a function's answer, which is an error if it has more: 6 MB and a little.
const maxResponse = 6<<20 + 100

// maxUnchecked is the largest body that is read of a request which doesn't state its hash: who knows a key's id could send such requests.
const maxUnchecked = 4 << 10

// Verify checks a request's signature before its body is read, and returns what then tells who signed. whole says that all was checked but
// that the body is the one that the request states.
type Verify func(*http.Request) (by func(body []byte) (call.Call, error), whole bool, err error)

// Handlers returns what nodes call for the environments on them, by path.
func (m *Manager) Handlers(verify Verify) map[string]http.Handler {
	serve := func(do func(http.ResponseWriter, *http.Request, string, []byte) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := m.check(w, r, verify)
			if err == nil {
				err = do(w, r, r.URL.Query().Get("task"), body)
			}
			if err != nil {
				http.Error(w, err.Error(), statusOf(err))
			}
		})
	}
	return map[string]http.Handler{
		acs.FunctionPath + "next":       serve(m.serveNext),
		acs.FunctionPath + "response":   serve(m.serveResponse),
		acs.FunctionPath + "error":      serve(m.serveError),
		acs.FunctionPath + "init/error": serve(m.serveInitError),
		acs.FunctionPath + "code":       serve(m.serveCode),
	}
}

var errForbidden = errors.New("the task isn't on the caller's container instance")

func statusOf(err error) int {
	switch {
	case errors.Is(err, errForbidden):
		return http.StatusForbidden
	case errors.Is(err, ErrNoEnvironment):
		return http.StatusGone
	case errors.Is(err, ErrNoRequest):
		return http.StatusBadRequest
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// check reads a request of the node that a task is on, or of the account's owner, whose key agents may have.
func (m *Manager) check(w http.ResponseWriter, r *http.Request, verify Verify) ([]byte, error) {
	by, whole, err := verify(r)
	if err != nil {
		return nil, errors.Join(errForbidden, err)
	}
	most := int64(maxUnchecked)
	if whole {
		most = maxResponse + 1
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, err
	}
	c, err := by(body)
	if err != nil {
		return nil, errors.Join(errForbidden, err)
	}
	t := m.store.View().Tasks.Get(r.URL.Query().Get("task"))
	switch {
	case c.IsOwner():
		return body, nil
	case t == nil || !c.Node || aws.ToString(t.ContainerInstanceArn) != c.Instance:
		return nil, errForbidden
	}
	return body, nil
}

func (m *Manager) serveNext(w http.ResponseWriter, r *http.Request, task string, _ []byte) error {
	next, err := m.Next(r.Context(), task)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", next.RequestID)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(next.Deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", next.ARN)
	if next.Trace != "" {
		h.Set("Lambda-Runtime-Trace-Id", next.Trace)
	}
	if next.Context != "" {
		if text, err := base64.StdEncoding.DecodeString(next.Context); err == nil {
			h.Set("Lambda-Runtime-Client-Context", string(text))
		}
	}
	if next.Tail {
		h.Set(acs.FunctionTail, "wanted")
	}
	w.Write(next.Payload) //nolint:errcheck // it's handed out again if it didn't arrive
	return nil
}

func tailOf(r *http.Request) []byte {
	tail, _ := base64.StdEncoding.DecodeString(r.Header.Get(acs.FunctionTail)) //nolint:errcheck // then there's none
	return tail
}

func (m *Manager) serveResponse(w http.ResponseWriter, r *http.Request, task string, body []byte) error {
	result := Result{Payload: body, Tail: tailOf(r)}
	if len(body) > maxResponse {
		result = unhandled("Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size (6291556 bytes).")
	}
	err := m.Answer(task, r.URL.Query().Get("request"), result)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}

func (m *Manager) serveError(w http.ResponseWriter, r *http.Request, task string, body []byte) error {
	err := m.Answer(task, r.URL.Query().Get("request"), Result{Payload: body, Error: "Unhandled", Tail: tailOf(r)})
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}

func (m *Manager) serveInitError(w http.ResponseWriter, _ *http.Request, task string, body []byte) error {
	err := m.FailInit(task, body)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}

// serveCode answers with a zip file of the function whose environment a task is.
func (m *Manager) serveCode(w http.ResponseWriter, r *http.Request, task string, _ []byte) error {
	m.mu.Lock()
	e := m.find(task)
	m.mu.Unlock()
	sha := r.URL.Query().Get("sha256")
	if e == nil || !m.has(e.group.version, sha) {
		return ErrNoEnvironment
	}
	code, err := m.opts.Code(sha)
	if err != nil {
		m.opts.Log.Error("a function's code can't be read", "function", *e.group.version.FunctionName, "error", err)
		return err
	}
	defer code.Close() //nolint:errcheck // it's only read
	w.Header().Set("Content-Type", "application/zip")
	io.Copy(w, code) //nolint:errcheck // the node checks what it got
	return nil
}

func (m *Manager) has(v *state.FunctionVersion, sha string) bool {
	return slices.Contains(v.Code.Files(), sha)
}

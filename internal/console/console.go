// Package console serves what no AWS API has: the control plane's health, and the table of GPUs with their holders and load. It
// reads rows and what nodes report. The only thing that it changes is a simulated GPU's faults.
package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/sign"
)

// Options are what the console needs besides the store and the nodes.
type Options struct {
	Version  string
	Verifier *sign.Verifier // nil if any credentials will do
	Writable func() error   // why changes are refused; nil if they aren't
}

// Console serves Pintle's own paths.
type Console struct {
	store *state.Store
	link  *nodelink.Link
	opts  Options
}

// New returns a console for a control plane's rows and its nodes' reports.
func New(store *state.Store, link *nodelink.Link, opts Options) *Console {
	return &Console{store, link, opts}
}

// Handlers returns the console's handlers by path.
func (c *Console) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"/pintle/health":     http.HandlerFunc(c.health),
		"/pintle/gpus":       c.signed(c.serveGPUs),
		"/pintle/gpus/fault": c.postedJSON(c.signed(c.serveFault)),
	}
}

// health reports that the control plane answers, and whether it takes changes. It needs no signature.
func (c *Console) health(w http.ResponseWriter, _ *http.Request) {
	health := map[string]string{"status": "ok", "version": c.opts.Version}
	if why := c.opts.Writable(); why != nil {
		health["status"] = "read-only"
		health["reason"] = why.Error()
	}
	writeJSON(w, health)
}

// maxBody is the most bytes that a request's body may have.
const maxBody = 4 << 10

// signed passes a request's body to serve. If signatures are checked, the request must be signed.
func (c *Console) signed(serve func(ctx context.Context, w http.ResponseWriter, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if v := c.opts.Verifier; v != nil {
			_, err := v.Verify(r.Context(), "pintle", sign.Signed{
				Method:   r.Method,
				Path:     r.URL.EscapedPath(),
				RawQuery: r.URL.RawQuery,
				Host:     r.Host,
				Header:   r.Header,
				Body:     body,
			})
			if err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		serve(r.Context(), w, body)
	})
}

// postedJSON refuses everything that a web page may send to another site.
func (c *Console) postedJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "post application/json", http.StatusUnsupportedMediaType)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) //nolint:errcheck // it only fails if the caller is gone
}

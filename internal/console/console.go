// Package console is what the control plane serves that no AWS API has: its health, and the table of GPUs, who holds each and what
// it is doing. It reads rows and what nodes tell; the one thing that it changes is a simulated GPU's faults.
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
	Verifier *sign.Verifier // nil where any credentials will do
}

// Console serves Pintle's own paths.
type Console struct {
	store *state.Store
	link  *nodelink.Link
	opts  Options
}

// New returns a console on a control plane's rows, and what its nodes tell.
func New(store *state.Store, link *nodelink.Link, opts Options) *Console {
	return &Console{store, link, opts}
}

// Handlers are the console's, by path.
func (c *Console) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"/pintle/health":     http.HandlerFunc(c.health),
		"/pintle/gpus":       c.signed(c.serveGPUs),
		"/pintle/gpus/fault": c.postedJSON(c.signed(c.serveFault)),
	}
}

// health says that the control plane answers. Nobody has to sign for it.
func (c *Console) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]string{"status": "ok", "version": c.opts.Version})
}

// maxBody is the most bytes that a caller may send.
const maxBody = 4 << 10

// signed serves callers that have signed their request, where signatures are checked, with what they sent.
func (c *Console) signed(serve func(ctx context.Context, w http.ResponseWriter, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if v := c.opts.Verifier; v != nil {
			_, err := v.Verify(r.Context(), "pintle", sign.Signed{
				Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header, Body: body,
			})
			if err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		serve(r.Context(), w, body)
	})
}

// postedJSON takes nothing that a web page may send elsewhere.
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
	json.NewEncoder(w).Encode(v) //nolint:errcheck // the caller is gone
}

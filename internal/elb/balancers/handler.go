package balancers

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/wire/call"
)

// maxProcesses is how many processes there may be, and maxOfNode how many may report with one node's key.
const (
	maxProcesses = 1000
	maxOfNode    = 16
)

// hasRoom reports whether a process is known, or there is room for one more.
func (l *Loop) hasRoom(id, by string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.processes[id] != nil {
		return true
	}
	of := 0
	for _, p := range l.processes {
		if by != "" && p.by == by {
			of++
		}
	}
	return len(l.processes) < maxProcesses && of < maxOfNode
}

// signer returns who reports for a process, as rows have it.
func signer(by call.Call) string {
	if by.IsOwner() {
		return ""
	}
	return by.Principal
}

// maxProcess is how long a process's id may be.
const maxProcess = 128

// Verify checks a request's signature before its body is read, and returns what then tells who signed. whole says that all was checked but
// that the body is the one that the request states.
type Verify func(r *http.Request) (by func(body []byte) (call.Call, error), whole bool, err error)

// maxUnchecked is the largest body that is read of a request which doesn't state its hash.
const maxUnchecked = 4 << 10

// Handlers returns the handlers that processes post to, by path.
func (l *Loop) Handlers(verify Verify) map[string]http.Handler {
	return map[string]http.Handler{
		report.ConfigurationPath: admitted(verify, l.serveConfiguration),
		report.ReportPath:        admitted(verify, l.serveReport),
		report.ListPath:          admitted(verify, l.serveList),
		report.AccessLogPath:     admitted(verify, l.serveAccessLog),
	}
}

// admitted lets the account's owner and nodes pass.
func admitted(verify Verify, serve func(context.Context, http.ResponseWriter, call.Call, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" { // what no web page may send
			http.Error(w, "post application/json", http.StatusUnsupportedMediaType)
			return
		}
		check, whole, err := verify(r)
		if err != nil {
			refuseBalancer(w)
			return
		}
		most := int64(maxUnchecked)
		if whole {
			most = report.MaxBody
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		by, err := check(body)
		if err != nil || !by.IsOwner() && !by.Node {
			refuseBalancer(w)
			return
		}
		serve(r.Context(), w, by, body)
	})
}

func refuseBalancer(w http.ResponseWriter) {
	http.Error(w, "balancers sign with the owner's key or a node's", http.StatusForbidden)
}

func (l *Loop) serveConfiguration(ctx context.Context, w http.ResponseWriter, by call.Call, body []byte) {
	var ask report.Ask
	if err := json.Unmarshal(body, &ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := l.Configuration(ctx, ask)
	if by.Node {
		c.Balancers = withoutKeys(c.Balancers)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(c) //nolint:errcheck // it only fails if the caller is gone
}

// withoutKeys leaves out the listeners that need a private key. A node's key mustn't open more than a node's work does.
func withoutKeys(all routing.Balancers) routing.Balancers {
	all.Balancers = slices.Clone(all.Balancers)
	for i := range all.Balancers {
		b := &all.Balancers[i]
		b.Listeners = slices.DeleteFunc(slices.Clone(b.Listeners), func(l routing.Listener) bool { return len(l.Certificates) > 0 })
	}
	return all
}

func (l *Loop) serveReport(ctx context.Context, w http.ResponseWriter, caller call.Call, body []byte) {
	var r report.Report
	if err := json.Unmarshal(body, &r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Balancer == "" || len(r.Balancer) > maxProcess {
		http.Error(w, "Balancer: the process's id must have 1 to 128 characters", http.StatusBadRequest)
		return
	}
	by := signer(caller)
	if row := l.store.View().Balancers.Get(r.Balancer); row != nil && row.Lost == nil && by != "" && row.By != by {
		http.Error(w, "Balancer: the process reports with another key", http.StatusForbidden)
		return
	}
	if !l.hasRoom(r.Balancer, by) {
		http.Error(w, "there are too many balancers", http.StatusTooManyRequests)
		return
	}
	if err := l.Take(ctx, r, by); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// Package console serves what no AWS API has: the control plane's health, the table of GPUs with their holders and load, why
// something waits, and figures for Prometheus. It reads rows and what nodes report. What it changes is a simulated GPU's faults, and which machines may join.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/console/costs"
	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/tally"
)

// Options are what the console needs besides the store and the nodes.
type Options struct {
	Version  string
	Verifier *sign.Verifier // nil if any credentials will do
	Writable func() error   // why changes are refused; nil if they aren't
	Now      func() time.Time
	Failing  func() error // what an operator must look after, though all calls are answered; nil if there is nothing
	Region   string
	// Serverless is the ARN of the cluster whose instances take Fargate's tasks of all clusters, or "".
	Serverless string
	// Endpoint returns the URL that join tokens name, for whoever has reached the control plane at this one.
	Endpoint func(reached string) string

	// ScrapeToken is what Prometheus must bring where signatures are checked; with "" it gets nothing there.
	ScrapeToken string
	Requests    *tally.Tally        // those that were answered
	Queues      func() []QueueDepth // those that there are
	// MayList says whether the caller in the context may list what is in a cluster.
	MayList func(ctx context.Context, cluster string) error

	Workings   *Workings
	Spans      func() (sent, dropped uint64) // those of traces
	Waiting    func() map[string]int         // changes that wait for a store, by its name
	Enrollment *enrollment.Office
	Authority  *certificate.Authority // the control plane's own; nil without one
	// Costs tells the caller in the context what machines cost.
	Costs func(ctx context.Context) (costs.Report, error)
	// Backup writes an archive of all that is kept.
	Backup func(to io.Writer) error
	// Announce notes from where a node of a cluster serves layers of images.
	Announce func(cluster string, a acs.PeerAnnouncement) acs.PeerWelcome
}

// Console serves Pintle's own paths.
type Console struct {
	store *state.Store
	link  *nodelink.Link
	opts  Options
	began time.Time
}

// New returns a console for a control plane's rows and its nodes' reports.
func New(store *state.Store, link *nodelink.Link, opts Options) *Console {
	return &Console{store, link, opts, time.Now()}
}

// Handlers returns the console's handlers by path.
func (c *Console) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"/pintle/health":               http.HandlerFunc(c.health),
		"/metrics":                     http.HandlerFunc(c.serveMetrics),
		"/pintle/gpus":                 c.signed(refusing(isNode, c.serveGPUs)),
		"/pintle/gpus/fault":           c.postedJSON(c.signed(ownersOnly(c.serveFault))),
		"/pintle/why":                  c.postedJSON(c.signed(refusing(isMachine, c.serveWhy))),
		costs.Path:                     c.signed(refusing(isMachine, c.serveCosts)),
		BackupPath:                     c.postedJSON(c.signed(ownersOnly(c.serveBackup))),
		"/pintle/tokens":               c.signed(ownersOnly(c.serveTokens)),
		"/pintle/tokens/new":           c.postedJSON(c.signed(ownersOnly(c.serveNewToken))),
		"/pintle/tokens/end":           c.postedJSON(c.signed(ownersOnly(c.serveEndToken))),
		"/pintle/instance/credentials": c.postedJSON(c.signed(ownersOnly(c.serveInstanceCredentials))),
		acs.PeerPath:                   c.postedJSON(c.signed(c.serveAnnouncement)),
		"/pintle/join":                 c.postedJSON(c.unsigned(c.serveJoin)),
	}
}

// health reports that the control plane answers, whether it takes changes, and whether something fails that nobody else is told of. It needs no
// signature, but tells reasons, which name the data directory, only to those who have one.
func (c *Console) health(w http.ResponseWriter, r *http.Request) {
	health := map[string]string{"status": "ok", "version": c.opts.Version}
	by, err := c.caller(r, nil)
	told := err == nil && !isNode(by) && by.Task == ""
	if why := c.opts.Writable(); why != nil {
		health["status"] = "read-only"
		if told {
			health["reason"] = why.Error()
		}
	}
	if what := c.opts.Failing(); what != nil {
		health["warning"] = "something fails (the owner is told what)"
		if told {
			health["warning"] = what.Error()
		}
	}
	writeJSON(w, health)
}

// serveCosts answers with a costs.Report.
func (c *Console) serveCosts(ctx context.Context, w http.ResponseWriter, _ []byte) {
	report, err := c.opts.Costs(ctx)
	if err != nil {
		status := http.StatusInternalServerError
		if api := smithy.APIError(nil); errors.As(err, &api) && strings.Contains(api.ErrorCode(), "AccessDenied") {
			status = http.StatusForbidden
		}
		http.Error(w, err.Error(), status)
		return
	}
	writeJSON(w, report)
}

// InstanceCredentials is the body of /pintle/instance/credentials.
type InstanceCredentials struct {
	InstanceID string `json:"instanceId"`
}

// serveInstanceCredentials answers with the credentials of an instance's role, for its user data, which runs before the instance is a node; with
// null if it has no role.
func (c *Console) serveInstanceCredentials(_ context.Context, w http.ResponseWriter, body []byte) {
	var in InstanceCredentials
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(w, c.link.InstanceCredentials(in.InstanceID))
}

// maxBody is the most bytes that a request's body may have.
const maxBody = 4 << 10

// answer answers a request with this body. The context says who signed it.
type answer func(ctx context.Context, w http.ResponseWriter, body []byte)

// ownersOnly refuses everybody but the account's owner.
func ownersOnly(serve answer) answer {
	return refusing(func(c call.Call) bool { return !c.IsOwner() }, serve)
}

func isNode(c call.Call) bool { return c.Node }

// isMachine reports whether a node or a task calls, and no person.
func isMachine(c call.Call) bool { return c.Node || c.Task != "" }

// refusing refuses some callers.
func refusing(whom func(call.Call) bool, serve answer) answer {
	return func(ctx context.Context, w http.ResponseWriter, body []byte) {
		if c := call.From(ctx); whom(c) {
			http.Error(w, account.NotAuthorized(c.Principal, "pintle:"+c.Operation, "*", ""), http.StatusForbidden)
			return
		}
		serve(ctx, w, body)
	}
}

// signed passes a request's body to serve. If signatures are checked, the request must be signed.
func (c *Console) signed(serve answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := readBody(w, r)
		if !ok {
			return
		}
		by, err := c.caller(r, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		serve(call.With(r.Context(), by), w, body)
	})
}

// caller returns who signed a request. If signatures aren't checked, it's the account's owner.
func (c *Console) caller(r *http.Request, body []byte) (call.Call, error) {
	by := call.Call{Service: "pintle", Operation: strings.TrimPrefix(r.URL.Path, "/pintle/"), Peer: r.RemoteAddr, Endpoint: call.EndpointOf(r)}
	if c.opts.Verifier == nil {
		return by, nil
	}
	signed := sign.HeadOf(r)
	signed.Body = body
	caller, err := c.opts.Verifier.Verify(r.Context(), "pintle", signed)
	by.Identity = caller.Identity
	return by, err
}

// unsigned passes a request's body to serve, whoever sent it.
func (c *Console) unsigned(serve answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := readBody(w, r); ok {
			serve(r.Context(), w, body)
		}
	})
}

// readBody reads a request's body, or answers that it's too large.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	}
	return body, err == nil
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

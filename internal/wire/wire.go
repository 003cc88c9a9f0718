// Package wire turns AWS's HTTP protocols into calls of Go methods and back. A service's methods look like the SDK
// client's, with the SDK's own structs: RunTask(ctx, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error). Each service has a
// generated table of its methods, and describes itself as a wire/model API. Wire tells the services on one address apart,
// checks signatures, and answers every operation and every error as AWS does. wire/codec turns bytes into structs, and
// wire/rest answers the REST APIs. Wire never decides what an operation does. Plane passes it the services.
package wire

import (
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/wire/budget"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/rest"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
	"github.com/pintle/pintle/internal/wire/tally"
)

//go:generate go run ./gen

// served is an API and what the handler needs to answer it.
type served struct {
	model.API

	protocols  []protocol
	shapes     *codec.Shapes
	operations map[string]*codec.Operation
}

const defaultMaxBody = 1 << 20

// maxBodies is the memory for all bodies that are being read or answered, of all callers together.
const maxBodies = 32 << 20

// rulesOf returns the rules for making an API's shapes.
func rulesOf(a *model.API) codec.Rules {
	return codec.Rules{
		CamelCase:   a.CamelCase,
		Names:       a.Names,
		InputNames:  a.InputNames,
		FormNames:   a.FormNames,
		Places:      a.Places,
		Unions:      a.Unions,
		NewDocument: a.NewDocument,
		TellZero:    a.TellZero,
	}
}

// Options configures a Handler.
type Options struct {
	// Verifier checks signatures. With nil, the handler accepts any request, for servers on loopback.
	Verifier *sign.Verifier
	// Admit refuses calls for which the disk has no room; nil admits all.
	Admit func(service, operation string) error
	// Answered hears of each request that was answered; nil for nobody.
	Answered func(k tally.Kind, took time.Duration)
	Log      *slog.Logger
}

// Handler answers the requests of all APIs on one address.
type Handler struct {
	opts      Options
	apis      []*served
	byTarget  map[string]*served
	byName    map[string]*served
	byVersion map[string]*served
	byInput   map[reflect.Type]inside
	rest      map[string]*rest.Handler // the REST APIs, by name
	mux       *http.ServeMux           // everything that is no API
	memory    *budget.Memory           // for bodies
}

// New returns a handler for the APIs. It fails if a service has an operation that its API doesn't have, or structs that
// can't be encoded.
func New(opts Options, apis ...model.API) (*Handler, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Answered == nil {
		opts.Answered = func(tally.Kind, time.Duration) {}
	}
	h := &Handler{
		opts:      opts,
		mux:       http.NewServeMux(),
		memory:    budget.New(maxBodies),
		byTarget:  map[string]*served{},
		byName:    map[string]*served{},
		byVersion: map[string]*served{},
		byInput:   map[reflect.Type]inside{},
		rest:      map[string]*rest.Handler{},
	}
	for _, api := range apis {
		if err := h.add(&served{API: api}); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// add adds an API to the handler's tables.
func (h *Handler) add(a *served) error {
	style := a.readProtocols()
	if len(a.protocols) == 0 && style == nil || h.byName[a.Name] != nil {
		return fmt.Errorf("wire: the API %q has no protocol, or comes twice", a.Name)
	}
	if a.MaxBody == 0 {
		a.MaxBody = defaultMaxBody
	}
	if err := a.readOperations(h.opts.Admit); err != nil {
		return err
	}
	h.apis = append(h.apis, a)
	h.index(a)
	h.byName[a.Name] = a
	if style != nil {
		h.rest[a.Name] = rest.New(rest.API{
			Name:        a.Name,
			Title:       a.Title,
			Namespace:   a.Namespace,
			Style:       style,
			MaxBody:     a.MaxBody,
			Routes:      a.Routes,
			Roots:       a.Roots,
			AllowOrigin: a.AllowOrigin,
			Statuses:    a.Statuses,
			Operations:  a.operations,
			Shapes:      a.shapes,
			Memory:      h.memory,
			Answered:    h.opts.Answered,
		}, h.opts.Verifier, h.opts.Log)
	}
	if a.TargetPrefix != "" {
		h.byTarget[a.TargetPrefix] = a
	}
	if a.Version != "" {
		h.byVersion[a.Version] = a
	}
	return nil
}

// Handle adds a handler for something that isn't an AWS API: web sockets, health, the dashboard. The pattern is a
// ServeMux pattern. It hides the APIs on the paths it matches, so it must never be "/". The handler must authenticate its
// own callers. Call Handle only before the first request is served.
func (h *Handler) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	steady.Watch(w, r)
	if api := h.restOf(r); api != nil { // before the paths below: a bucket may have any name
		api.ServeHTTP(w, r)
		return
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	q := &request{
		Request: r,
		id:      uuid.NewString(),
		memory:  h.memory.Share(connection.From(r.RemoteAddr)),
		scratch: scratches.Get().(*scratch),
	}
	defer q.release()
	header := w.Header()
	began := time.Now()
	body, err := h.answer(q)
	h.opts.Answered(q.kind(err), time.Since(began))
	status := http.StatusOK
	if err != nil {
		body, status = h.answerError(q, err)
		q.api.describeError(header, refusal.AsAPIError(err))
		steady.EndUnread(w, r)
	}
	header.Set("x-amzn-RequestId", q.id)
	q.protocol.describe(header)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // nobody is left to tell if the client is gone
}

// kind is what a request is counted as. What isn't an operation has no name there: strangers choose it.
func (q *request) kind(err error) tally.Kind {
	k := tally.Kind{}
	if q.api != nil {
		k.Service = q.api.Name
	}
	if q.op != nil {
		k.Operation = q.operation
	}
	if err != nil {
		k.Code = refusal.AsAPIError(err).ErrorCode()
	}
	return k
}

// answer finds a request's API, authenticates the caller, and runs the operation. It does nothing with the body of a request that
// isn't signed.
func (h *Handler) answer(q *request) (body []byte, err error) {
	q.api = h.apiOf(q.Request)
	caller, err := h.authenticate(q)
	if err != nil {
		return nil, err
	}
	connection.Know(q.Context())
	if err := q.decompress(); err != nil {
		return nil, err
	}
	if err := h.route(q); err != nil {
		return nil, err
	}
	if !h.opts.Verifier.Checks(q.Request) && couldBeLink(q.Request) && !onlyReads(q.operation) {
		return nil, refusal.With(http.StatusForbidden, "MissingAuthenticationTokenException",
			"%s changes something, so a %s of it must be signed with a header. Use an AWS client, or POST.", q.operation, q.Method)
	}
	return q.answer(q.Context(), caller)
}

// unknownAPI stands in for the API of a request that is for none.
var unknownAPI = &served{API: model.API{Name: "unknown"}, protocols: []protocol{protocols[model.JSON11]}}

// answerError encodes an error, in the request's protocol if that's known. It logs errors that are Pintle's fault.
func (h *Handler) answerError(q *request, err error) (body []byte, status int) {
	if q.api == nil {
		q.api = unknownAPI
		q.protocol = protocolOfStranger(q.Request)
	}
	if q.protocol == nil {
		q.protocol = q.api.protocolOf(q.Request)
	}
	if refusal.IsOurs(q.Context(), err) {
		h.opts.Log.Error("request failed", "service", q.api.Name, "operation", q.operation, "request_id", q.id, "error", err)
	}
	return q.protocol.encodeError(q.out[:0], q, refusal.AsAPIError(err))
}

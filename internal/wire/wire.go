// Package wire turns AWS's HTTP protocols into calls of Go methods and back. A service has methods
// that are shaped as the SDK client's: RunTask(ctx, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error), on
// the SDK's own structs, and a generated table of them. Wire tells the services on one address apart, checks signatures,
// and answers every operation and every error as AWS does. Bytes become structs in
// wire/codec, and APIs in REST are answered by wire/rest. It never decides what an operation does; plane
// puts the services into it.
package wire

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/rest"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/validation"
)

//go:generate go run ./gen

// API is one AWS service as clients know it.
type API struct {
	Name         string                    // in the scope of signatures and in host names: "ecs"
	Title        string                    // for people: "Amazon ECS"
	Protocols    []Protocol                // how it is spoken; a request is in the first that claims it
	TargetPrefix string                    // before the operation in X-Amz-Target, for JSON
	Version      string                    // of the API, for Query and EC2's
	Namespace    string                    // of the answers' XML, for Query and EC2's
	CamelCase    bool                      // whether members begin with a lower-case letter
	Names        map[string]string         // of members that are exceptions, by "<Struct>.<Field>"
	InputNames   map[string]string         // of those in requests, for EC2, where the others have the SDK's; nil where they are as in answers
	FormNames    map[string]model.FormName // of members that Query calls otherwise, by "<Struct>.<Field>"
	URLMember    string                    // of inputs: the URL that a request went to, where it does not say so itself
	TellZero     bool                      // whether a 0 that was sent becomes call.Zero where the struct could not tell it from none
	ErrorSpace   string                    // before errors' names in JSON, with a #
	Statuses     map[string]int            // of errors by their codes, where they are not 400 and the SDK does not tell
	QueryErrors  map[string]QueryError     // by their names in the model, for a service that began with Query
	Operations   []string                  // every operation that the service has on AWS
	Lenient      []string                  // those whose unknown members are ignored: nodes of other versions call them
	Validation   *validation.Service       // checks inputs before the service sees them; nil where it has checks of its own
	MaxBody      int64                     // bytes; 1 MiB where it is 0
	Unions       []any                     // a pointer to each variant of the unions that operations use
	NewDocument  func(any) any             // the SDK's document.NewLazyDocument, for a service with documents
	REST         rest.Style                // how it is spoken instead of in Protocols, where the operation is in the address
	Routes       []model.Route             // of the operations, for REST
	Places       map[string]model.Place    // of members, for REST, by "<Struct>.<Field>"
	Roots        map[string]string         // the answers' XML elements, for REST, by operation
	Service      Service                   // what answers; nil where nothing does yet

	shapes     *codec.Shapes
	operations map[string]*codec.Operation
}

// Service is what answers an API's operations. Each service's table is generated beside its methods.
type Service interface {
	// Operations are those that are implemented.
	Operations() []call.Operation
}

const defaultMaxBody = 1 << 20

// rules are what the API's shapes are made by.
func (a *API) rules() codec.Rules {
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

// Options say how requests are checked.
type Options struct {
	// Verifier checks signatures; nil takes any request, for servers on loopback.
	Verifier *sign.Verifier
	Log      *slog.Logger
}

// Handler answers the requests of all APIs on one address.
type Handler struct {
	opts      Options
	apis      []*API
	byTarget  map[string]*API
	byName    map[string]*API
	byVersion map[string]*API
	rest      map[string]*rest.Handler // of those that are spoken in REST, by name
	mux       *http.ServeMux           // of what is no API
}

// New returns a handler for the APIs. It refuses a service with an operation that its API has not, or
// with structs that cannot be put on the wire.
func New(opts Options, apis ...API) (*Handler, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	h := &Handler{
		opts: opts, mux: http.NewServeMux(),
		byTarget: map[string]*API{}, byName: map[string]*API{}, byVersion: map[string]*API{}, rest: map[string]*rest.Handler{},
	}
	for _, api := range apis {
		if err := h.add(&api); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *Handler) add(a *API) error {
	if len(a.Protocols) == 0 && a.REST == nil || h.byName[a.Name] != nil {
		return fmt.Errorf("wire: the API %q has no protocol, or comes twice", a.Name)
	}
	if a.MaxBody == 0 {
		a.MaxBody = defaultMaxBody
	}
	if err := a.readOperations(); err != nil {
		return err
	}
	h.apis = append(h.apis, a)
	h.byName[a.Name] = a
	if a.REST != nil {
		h.rest[a.Name] = rest.New(rest.API{
			Name:       a.Name,
			Title:      a.Title,
			Namespace:  a.Namespace,
			Style:      a.REST,
			MaxBody:    a.MaxBody,
			Routes:     a.Routes,
			Roots:      a.Roots,
			Operations: a.operations,
			Shapes:     a.shapes,
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

// Handle serves what is no AWS API: web sockets, health, the dashboard. The pattern is ServeMux's,
// and what it matches is no API's any more, so it is never "/". The handler checks its own callers.
// Handle is not to be called once requests are served.
func (h *Handler) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

// ServeHTTP is http.Handler's.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if api := h.restOf(r); api != nil { // before the paths below: a bucket may have any name
		api.ServeHTTP(w, r)
		return
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	q := &request{Request: r, connection: http.NewResponseController(w), id: uuid.NewString(), scratch: scratches.Get().(*scratch)}
	defer q.release()
	header := w.Header()
	body, err := h.answer(q)
	status := http.StatusOK
	if err != nil {
		body, status = h.answerError(q, err)
		q.api.describeError(header, refusal.AsAPIError(err))
	}
	header.Set("x-amzn-RequestId", q.id)
	q.protocol.describe(header)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // a client that is gone is no one's to tell
}

// answer is a request's way through the handler.
func (h *Handler) answer(q *request) (body []byte, err error) {
	if err := h.route(q); err != nil {
		return nil, err
	}
	if q.operation, err = q.protocol.operation(q); err != nil {
		return nil, err
	}
	caller, err := h.authenticate(q)
	if err != nil {
		return nil, err
	}
	return q.answer(q.Context(), caller)
}

// nowhere stands in for the API of a request that is for none.
var nowhere = &API{Name: "unknown", Protocols: []Protocol{JSON11}}

func (h *Handler) answerError(q *request, err error) (body []byte, status int) {
	if q.api == nil {
		q.api = nowhere
		if q.Method == http.MethodPost && isForm(q.Request) { // as services like IAM are asked, whose clients expect XML
			q.protocol = Query
		}
	}
	if q.protocol == nil {
		q.protocol = q.api.protocolOf(q.Request)
	}
	if refusal.IsOurs(q.Context(), err) {
		h.opts.Log.Error("request failed", "service", q.api.Name, "operation", q.operation, "request_id", q.id, "error", err)
	}
	return q.protocol.encodeError(q.out[:0], q, refusal.AsAPIError(err))
}

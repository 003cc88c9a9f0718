// Package wire turns AWS's HTTP protocols into calls of Go methods and back. A service is any value
// whose methods are shaped as the SDK client's: Op(ctx, *OpInput) (*OpOutput, error), on the SDK's
// own structs. The codecs work by reflection, with a plan made once for each type; reflection stays
// in here. Wire checks signatures, tells services apart and shapes errors. It knows no service.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
)

//go:generate go run ./gen

// Protocol is one of AWS's ways to put a call into HTTP.
type Protocol int

// The protocols that there are so far. The SDKs' older and newer ones come with their services.
const (
	JSON10 Protocol = iota + 1
	JSON11
	Query
)

// API is one AWS service as clients know it.
type API struct {
	Name         string   // in the SigV4 credential scope and in host names: "ecs"
	Title        string   // for people: "Amazon ECS"
	Protocol     Protocol // how it is spoken
	TargetPrefix string   // before the operation in X-Amz-Target, for JSON
	Version      string   // the API version, for Query
	CamelCase    bool     // members begin with a lower-case letter, as ECS's and Logs' do
	Operations   []string // every operation that the service has on AWS
	Lenient      []string // operations whose unknown members are ignored: nodes of other versions call them
	MaxBody      int64    // bytes; 0 is 1 MiB
	Service      any      // its methods are the operations that are implemented

	codec *codec
	calls map[string]*call
}

// Options say how requests are checked.
type Options struct {
	// Verifier checks signatures; nil takes any request, for servers on loopback.
	Verifier *Verifier
	Log      *slog.Logger
}

// Handler answers the APIs' requests on one address.
type Handler struct {
	opts    Options
	apis    []*API
	targets map[string]*API // by TargetPrefix
	scopes  map[string]*API // by Name
	mux     *http.ServeMux
}

// New returns a handler for the APIs. It refuses a service with a method that has an operation's
// name and another shape.
func New(opts Options, apis ...API) (*Handler, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	h := &Handler{opts: opts, targets: map[string]*API{}, scopes: map[string]*API{}, mux: http.NewServeMux()}
	for i := range apis {
		api := &apis[i]
		if err := api.init(); err != nil {
			return nil, err
		}
		h.apis = append(h.apis, api)
		h.scopes[api.Name] = api
		if api.TargetPrefix != "" {
			h.targets[api.TargetPrefix] = api
		}
	}
	h.mux.HandleFunc("/", h.serveAPI)
	return h, nil
}

// Handle serves a pattern that is no AWS API: web sockets, health. The handler checks its own callers.
func (h *Handler) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

// ServeHTTP is http.Handler's.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// call is one implemented operation.
type call struct {
	method  reflect.Value
	in      reflect.Type
	lenient bool
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func (a *API) init() error {
	a.codec = newCodec(a.CamelCase)
	a.calls = map[string]*call{}
	if a.MaxBody == 0 {
		a.MaxBody = 1 << 20
	}
	lenient := map[string]bool{}
	for _, op := range a.Lenient {
		lenient[op] = true
	}
	for _, op := range a.Operations {
		m := reflect.ValueOf(a.Service).MethodByName(op)
		if !m.IsValid() {
			continue
		}
		t := m.Type()
		ok := t.NumIn() == 2 && t.In(0) == contextType && isStructPointer(t.In(1)) &&
			t.NumOut() == 2 && isStructPointer(t.Out(0)) && t.Out(1) == errorType
		if !ok {
			return fmt.Errorf("wire: %s.%s is %s, not a method of an SDK client", a.Name, op, t)
		}
		a.calls[op] = &call{method: m, in: t.In(1).Elem(), lenient: lenient[op]}
	}
	return nil
}

func isStructPointer(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// serveAPI answers one AWS request.
func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request) {
	id := uuid.NewString()
	w.Header().Set("x-amzn-RequestId", id)
	route, err := h.route(r)
	if err != nil {
		writeError(w, route, err, id)
		return
	}
	body, err := readBody(w, r, route.api.MaxBody)
	if err != nil {
		writeError(w, route, err, id)
		return
	}
	if err := route.readOperation(body); err != nil {
		writeError(w, route, err, id)
		return
	}
	caller, err := h.authenticate(r, route.api, body)
	if err != nil {
		writeError(w, route, err, id)
		return
	}
	out, err := h.invoke(withCaller(r.Context(), caller), route, body)
	switch {
	case r.Context().Err() != nil:
		return // the client is gone
	case err != nil:
		h.log(route, err, id)
		writeError(w, route, err, id)
	default:
		h.writeOutput(w, route, out, id)
	}
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &statusError{http.StatusRequestEntityTooLarge, &smithy.GenericAPIError{
			Code: "RequestEntityTooLargeException", Message: fmt.Sprintf("The request's body is larger than %d bytes.", limit),
		}}
	}
	if err != nil {
		return nil, clientError("SerializationException", "The request's body could not be read: %v", err)
	}
	return body, nil
}

// route is where a request goes.
type route struct {
	api       *API
	protocol  Protocol
	operation string
	form      map[string][]string // for Query
}

// route finds the API that a request is for: by its target, by the scope of its signature, by its host.
func (h *Handler) route(r *http.Request) (*route, error) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		prefix, operation, _ := strings.Cut(target, ".")
		if api := h.targets[prefix]; api != nil && r.Method == http.MethodPost {
			return &route{api: api, protocol: api.Protocol, operation: operation}, nil
		}
		return nil, clientError("UnknownOperationException", "X-Amz-Target %q names no operation of a service that runs here.", target)
	}
	scope := credentialScope(r)
	if scope == "" {
		scope, _, _ = strings.Cut(r.Host, ".")
	}
	if api := h.scopes[scope]; api != nil {
		return &route{api: api, protocol: api.Protocol}, nil
	}
	return nil, clientError("UnknownOperationException", "The request names no operation of a service that runs here: it has no X-Amz-Target, and its signature is for %q.", scope)
}

// readOperation finds the operation where it stands in the body.
func (r *route) readOperation(body []byte) error {
	if r.protocol == Query {
		return r.readForm(body)
	}
	if r.operation == "" {
		return clientError("UnknownOperationException", "The request to %s has no X-Amz-Target.", r.api.Name)
	}
	return nil
}

// invoke decodes the input, runs the operation and returns its output.
func (h *Handler) invoke(ctx context.Context, r *route, body []byte) (out any, err error) {
	c, err := r.api.find(r.operation)
	if err != nil {
		return nil, err
	}
	in := reflect.New(c.in)
	if r.protocol == Query {
		err = r.api.codec.decodeForm(r.form, in.Elem())
	} else {
		err = r.api.codec.decodeJSON(body, in.Elem(), !c.lenient)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v\n%s", r.operation, p, debug.Stack())
		}
	}()
	results := c.method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, _ := results[1].Interface().(error); err != nil {
		return nil, err
	}
	return results[0].Interface(), nil
}

// find returns an implemented operation, or the error that says why there is none.
func (a *API) find(operation string) (*call, error) {
	if c := a.calls[operation]; c != nil {
		return c, nil
	}
	for _, op := range a.Operations {
		if op == operation {
			return nil, &statusError{http.StatusNotImplemented, &smithy.GenericAPIError{
				Code: "NotImplementedException", Message: fmt.Sprintf("Pintle does not implement %s of %s yet.", operation, a.Title),
			}}
		}
	}
	code := "UnknownOperationException"
	if a.Protocol == Query {
		code = "InvalidAction"
	}
	return nil, clientError(code, "%s has no operation %q.", a.Title, operation)
}

func (h *Handler) writeOutput(w http.ResponseWriter, r *route, out any, id string) {
	var body []byte
	var err error
	if r.protocol == Query {
		body, err = r.api.encodeXML(r.operation, out, id)
	} else {
		body, err = r.api.codec.encodeJSON(nil, reflect.ValueOf(out).Elem())
	}
	if err != nil {
		h.log(r, err, id)
		writeError(w, r, err, id)
		return
	}
	w.Header().Set("Content-Type", contentType(r.protocol))
	w.Write(body) //nolint:errcheck // a client that is gone is no one's to tell
}

func contentType(p Protocol) string {
	switch p {
	case JSON10:
		return "application/x-amz-json-1.0"
	case Query:
		return "text/xml"
	}
	return "application/x-amz-json-1.1"
}

// log notes what went wrong here; a refusal of the caller's own is no news.
func (h *Handler) log(r *route, err error, id string) {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() != smithy.FaultServer {
		return
	}
	h.opts.Log.Error("request failed", "service", r.api.Name, "operation", r.operation, "request_id", id, "error", err)
}

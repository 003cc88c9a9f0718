// Package rest serves APIs whose operations are in the address. Input and output are spread over headers, parameters, the path and a body,
// which can be a stream of any length. Package wire finds the API for a request and hands the request over.
package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/wire/budget"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
	"github.com/pintle/pintle/internal/wire/tally"
)

// API is one REST API.
type API struct {
	Name        string
	Title       string
	Namespace   string // of the XML in answers
	Style       Style
	MaxBody     int64 // bytes, if the body isn't a stream
	Routes      []model.Route
	Roots       map[string]string // of the XML in answers, by operation, if not named after it
	AllowOrigin model.AllowOrigin // nil if browsers get no answers to preflights
	Statuses    map[string]int    // of errors, by code, if not 400
	Operations  map[string]*codec.Operation
	Shapes      *codec.Shapes // of errors
	Memory      *budget.Memory
	Answered    func(k tally.Kind, took time.Duration)
}

// Style is how an API maps calls to HTTP.
type Style interface {
	// claims reports how sure the API is that a request is its own, if neither signature nor host says so.
	claims(api *API, r *http.Request) Claim
	// find parses the request's address: its labels, its query and its route. A preflight has no route.
	find(q *request) error
	// open authenticates the request and opens its body.
	open(q *request, v *sign.Verifier) (sign.Caller, error)
	// inline reports whether a member is in the body.
	inline(m *codec.Member) bool
	// decode decodes the body into a structure.
	decode(q *request, sh *codec.Shape, into reflect.Value) error
	// encode sends the output's members that are in the body.
	encode(q *request, status int, out reflect.Value) error
	// encodePayload sends the structure that is the body.
	encodePayload(q *request, status int, m *codec.Member, sh *codec.Shape, v reflect.Value) error
	// mediaType returns the body's Content-Type.
	mediaType() string
	// refuse sends an error.
	refuse(q *request, err smithy.APIError)
	// describe sets the headers of every answer.
	describe(h http.Header, id string)
}

// The styles.
var (
	JSON Style = jsonStyle{} // paths with labels, JSON in bodies
	S3   Style = s3Style{}   // buckets and keys in the address, XML and streams in bodies

)

// Claim says how sure an API is that a request without a signature is its own.
type Claim uint8

const (
	No     Claim = iota
	Maybe        // if nobody else claims it
	Likely       // it looks like one of its operations
	Surely       // no other API looks like that
)

// Handler serves one API.
type Handler struct {
	api      API
	verifier *sign.Verifier // nil accepts any request
	log      *slog.Logger
}

// New returns the handler of an API. Without a verifier it accepts any request.
func New(api API, v *sign.Verifier, log *slog.Logger) *Handler {
	return &Handler{api: api, verifier: v, log: log}
}

// Claims reports how sure the API is that a request without a signature is its own.
func (h *Handler) Claims(r *http.Request) Claim { return h.api.Style.claims(&h.api, r) }

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{
		Request: r,
		w:       w,
		api:     &h.api,
		id:      uuid.NewString(),
		memory:  h.api.Memory.Share(connection.From(r.RemoteAddr)),
	}
	defer q.memory.Release()
	q.api.Style.describe(w.Header(), q.id)
	began := time.Now()
	err := h.answer(q)
	h.api.Answered(q.kind(err), time.Since(began))
	if err == nil {
		return
	}
	if errors.Is(err, errCutOff) {
		panic(http.ErrAbortHandler) // the headers are sent: only closing the connection can signal an error
	}
	if refusal.IsOurs(r.Context(), err) {
		h.log.Error("request failed", "service", q.api.Name, "operation", q.operation(), "request_id", q.id, "error", err)
	}
	steady.EndUnread(w, r)
	q.api.Style.refuse(q, refusal.AsAPIError(err))
}

// errCutOff means that an answer ended early.
var errCutOff = errors.New("the answer was cut off")

// request is one request being served.
type request struct {
	*http.Request
	w      http.ResponseWriter
	id     string
	api    *API
	labels map[string]string // in the path
	query  url.Values
	route  *model.Route
	op     *codec.Operation
	memory *budget.Share
	body   *requestBody
	form   *form  // an upload by a form, or nil
	whole  []byte // the body, in the styles that read it before they know who calls
}

// kind is what a request is counted as.
func (q *request) kind(err error) tally.Kind {
	k := tally.Kind{Service: q.api.Name}
	if q.op != nil {
		k.Operation = q.operation()
	}
	switch {
	case errors.Is(err, errCutOff):
		k.Code = "CutOff"
	case err != nil:
		k.Code = refusal.AsAPIError(err).ErrorCode()
	}
	return k
}

func (q *request) operation() string {
	if q.route == nil {
		return ""
	}
	return q.route.Operation
}

func (h *Handler) answer(q *request) error {
	if err := q.api.Style.find(q); err != nil {
		return err
	}
	if q.route == nil {
		return q.preflight()
	}
	if q.api.AllowOrigin != nil && q.Header.Get("Origin") != "" {
		q.allowOrigin() //nolint:errcheck // the call is answered all the same, and the browser keeps the answer from the page
	}
	caller, err := q.api.Style.open(q, h.verifier)
	if err != nil {
		return err
	}
	connection.Know(q.Context())
	if q.op = q.api.Operations[q.route.Operation]; q.op == nil {
		return refusal.With(
			http.StatusNotImplemented,
			"NotImplemented",
			"Pintle does not implement %s of %s yet.",
			q.route.Operation,
			q.api.Title,
		)
	}
	in := reflect.New(q.op.In.Type)
	if err := q.decode(in.Elem()); err != nil {
		return err
	}
	ctx := call.With(q.Context(), call.Call{
		RequestID:   q.id,
		Service:     q.api.Name,
		Operation:   q.route.Operation,
		AccessKeyID: caller.AccessKeyID,
		Peer:        q.RemoteAddr,
		Endpoint:    call.EndpointOf(q.Request),
		Form:        q.form != nil,
		Identity:    caller.Identity,
	})
	out, err := q.call(ctx, in.Interface())
	if err != nil {
		return err
	}
	return q.encode(reflect.ValueOf(out).Elem())
}

func (q *request) call(ctx context.Context, in any) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refusal.Panic(p)
		}
	}()
	return q.op.Call(ctx, in)
}

// send sends an answer whose body is complete or empty.
func (q *request) send(status int, contentType string, body []byte) {
	h := q.w.Header()
	if len(body) > 0 {
		h.Set("Content-Type", contentType)
	}
	if status != http.StatusNoContent && status != http.StatusNotModified && h.Get("Content-Length") == "" {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	q.w.WriteHeader(status)
	q.w.Write(body) //nolint:errcheck // a client that is gone is no one's to tell
}

// stream sends an answer while reading its body.
func (q *request) stream(status int, body io.ReadCloser) error {
	defer body.Close()
	q.w.WriteHeader(status)
	if q.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(steady.NewWriter(q.w, http.NewResponseController(q.w)), body); err != nil {
		return errCutOff
	}
	return nil
}

// Package rest answers the requests of APIs in which the operation is in the address: input and output are spread over headers,
// parameters, the path and a body that can be a stream of any length. Wire finds the API that a request is for and hands it over.
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

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
)

// API is one API that is spoken in REST.
type API struct {
	Name       string
	Title      string
	Namespace  string // of the answers' XML
	Style      Style
	MaxBody    int64 // bytes, where the body is no stream
	Routes     []model.Route
	Roots      map[string]string // the answers' XML elements, by operation, where they are not called after it
	Operations map[string]*codec.Operation
	Shapes     *codec.Shapes // of errors
}

// Style is how an API puts calls into HTTP.
type Style interface {
	// claims reports how sure the API is of a request that does not say by its signature or host which API it is for.
	claims(api *API, r *http.Request) Claim
	// find reads the request's address: its labels, its query and its route.
	find(q *request) error
	// open checks who sent the request, and opens its body.
	open(q *request, v *sign.Verifier) (sign.Caller, error)
	// inline reports whether a member is one of the body's.
	inline(m *codec.Member) bool
	// decode reads the body into a structure.
	decode(q *request, sh *codec.Shape, into reflect.Value) error
	// encode answers with the output's members that are in the body.
	encode(q *request, status int, out reflect.Value) error
	// encodePayload answers with the structure that is the body.
	encodePayload(q *request, status int, m *codec.Member, sh *codec.Shape, v reflect.Value) error
	// mediaType is the body's.
	mediaType() string
	// refuse answers with an error.
	refuse(q *request, err smithy.APIError)
	// describe sets the header that every answer has.
	describe(h http.Header, id string)
}

// The styles that there are.
var (
	JSON Style = jsonStyle{} // paths of labels, JSON in bodies
	S3   Style = s3Style{}   // buckets and keys in the address, XML and streams in bodies

)

// Claim is how sure an API is that a request without a signature is its own.
type Claim uint8

const (
	No     Claim = iota
	Maybe        // where nobody else wants it
	Likely       // it looks like one of its operations
	Surely       // nobody else is spoken to like that
)

// Handler answers the requests of one API.
type Handler struct {
	api      API
	verifier *sign.Verifier // nil takes any request
	log      *slog.Logger
}

// New returns the handler of an API. Without a verifier it takes any request.
func New(api API, v *sign.Verifier, log *slog.Logger) *Handler {
	return &Handler{api: api, verifier: v, log: log}
}

// Claims reports how sure the API is that a request without a signature is its own.
func (h *Handler) Claims(r *http.Request) Claim { return h.api.Style.claims(&h.api, r) }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, w: w, api: &h.api, id: uuid.NewString()}
	q.api.Style.describe(w.Header(), q.id)
	err := h.answer(q)
	if err == nil {
		return
	}
	if errors.Is(err, errCutOff) {
		panic(http.ErrAbortHandler) // the headers are gone: only the end of the connection can tell
	}
	if refusal.IsOurs(r.Context(), err) {
		h.log.Error("request failed", "service", q.api.Name, "operation", q.operation(), "request_id", q.id, "error", err)
	}
	q.api.Style.refuse(q, refusal.AsAPIError(err))
}

// errCutOff says that an answer ended before its end.
var errCutOff = errors.New("the answer was cut off")

// request is one request on its way through the handler.
type request struct {
	*http.Request
	w      http.ResponseWriter
	id     string
	api    *API
	labels map[string]string // what the path says
	query  url.Values
	route  *model.Route
	op     *codec.Operation
	body   *requestBody
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
	caller, err := q.api.Style.open(q, h.verifier)
	if err != nil {
		return err
	}
	if q.op = q.api.Operations[q.route.Operation]; q.op == nil {
		return refusal.With(http.StatusNotImplemented, "NotImplemented", "Pintle does not implement %s of %s yet.", q.route.Operation, q.api.Title)
	}
	in := reflect.New(q.op.In.Type)
	if err := q.decode(in.Elem()); err != nil {
		return err
	}
	ctx := call.With(q.Context(), call.Call{
		RequestID: q.id, Service: q.api.Name, Operation: q.route.Operation, AccessKeyID: caller.AccessKeyID, Principal: caller.Arn, Peer: q.RemoteAddr,
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

// send answers with a body that is there as a whole, or with none.
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

// stream answers with a body that is read as it is sent.
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

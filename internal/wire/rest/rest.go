// Package rest answers the requests of APIs in which the operation is in the address: input and output are spread over headers,
// parameters, the path and a body that can be a stream of any length. Wire finds the API that a request is for and hands it over.
package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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

// REST-XML is no Protocol as the others are: which operation a request is for is in its address, input and
// output are spread over headers, parameters and XML, and bodies can be streams of any length. So an API
// that speaks it has a way of its own through the handler.

// API is one API that is spoken in REST.
type API struct {
	Name       string
	Title      string
	Namespace  string
	MaxBody    int64
	Routes     []model.Route
	Roots      map[string]string
	Operations map[string]*codec.Operation
}

// Handler answers the requests of one API.
type Handler struct {
	Api      API
	verifier *sign.Verifier // nil takes any request
	log      *slog.Logger
}

func New(api API, v *sign.Verifier, log *slog.Logger) *Handler {
	return &Handler{Api: api, verifier: v, log: log}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, w: w, api: &h.Api, id: uuid.NewString()}
	w.Header().Set("x-amz-request-id", q.id)
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
	q.refuse(refusal.AsAPIError(err))
}

// errCutOff says that an answer ended before its end.
var errCutOff = errors.New("the answer was cut off")

// request is one request on its way through the handler.
type request struct {
	*http.Request
	w      http.ResponseWriter
	id     string
	api    *API
	target target
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

func (h *Handler) answer(q *request) (err error) {
	if q.target, err = parseTarget(q.Request); err != nil {
		return err
	}
	if q.Method == http.MethodOptions {
		return refusal.With(http.StatusForbidden, "AccessForbidden", "CORSResponse: CORS requests are not answered.")
	}
	if q.route, err = routeTo(q.api.Routes, q.Request, q.target); err != nil {
		return err
	}
	caller, err := sign.VerifyREST(h.verifier, q.Request, q.api.Name, q.target.query, BucketOfHost(q.Host))
	if err != nil {
		return err
	}
	if q.body, err = newBody(q, caller); err != nil {
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

// send answers with XML, or with nothing.
func (q *request) send(status int, body []byte) {
	h := q.w.Header()
	if len(body) > 0 {
		h.Set("Content-Type", "application/xml")
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

// New answers with an error as S3 has it.
func (q *request) refuse(err smithy.APIError) {
	code, status := errorOf(err)
	if q.body != nil && q.body.broken() || q.Header.Get("Expect") != "" { // nor can clients tell whether the body that they expected to send belongs to this answer
		q.w.Header().Set("Connection", "close")
	}
	for name, value := range headersOf(err) {
		q.w.Header()[name] = value
	}
	if q.Method == http.MethodHead || status == http.StatusNotModified {
		q.w.WriteHeader(status)
		return
	}
	e := codec.XML{B: []byte(xmlHeader)}
	e.Open("Error")
	e.Element("Code", code)
	e.Element("Message", err.ErrorMessage())
	if d, ok := err.(interface{ Detail() map[string]string }); ok {
		for name, value := range d.Detail() {
			e.Element(name, value)
		}
	}
	e.Element("Resource", q.URL.Path)
	e.Element("RequestId", q.id)
	e.Element("HostId", q.id)
	e.Close("Error")
	q.send(status, e.B)
}

func headersOf(err smithy.APIError) http.Header {
	if h, ok := err.(interface{ Header() http.Header }); ok {
		return h.Header()
	}
	return nil
}

// errorOf is an error's code and status in S3, whose words for wire's refusals are its own.
func errorOf(err smithy.APIError) (code string, status int) {
	r, ok := err.(*refusal.Refusal)
	if !ok {
		if err == smithy.APIError(refusal.Fault) {
			return "InternalError", http.StatusInternalServerError
		}
		return err.ErrorCode(), refusal.StatusOf(err)
	}
	switch r.Code {
	case "SerializationException":
		return "MalformedXML", r.Status
	case "UnrecognizedClientException":
		return "InvalidAccessKeyId", http.StatusForbidden
	case "InvalidSignatureException":
		return "SignatureDoesNotMatch", http.StatusForbidden
	case "MissingAuthenticationTokenException":
		return "AccessDenied", http.StatusForbidden
	case "ExpiredTokenException":
		return "ExpiredToken", http.StatusBadRequest
	case "IncompleteSignatureException":
		return "AuthorizationHeaderMalformed", http.StatusBadRequest
	}
	return r.Code, r.Status
}

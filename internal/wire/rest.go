package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/wire/call"
)

// REST-XML is no Protocol as the others are: which operation a request is for is in its address, input and
// output are spread over headers, parameters and XML, and bodies can be streams of any length. So an API
// that speaks it has a way of its own through the handler.

// maxIdle is how long a body may pause.
const maxIdle = time.Minute

// serveREST answers one request.
func (h *Handler) serveREST(w http.ResponseWriter, r *http.Request) {
	q := &restRequest{Request: r, w: w, api: h.rest, id: uuid.NewString()}
	w.Header().Set("x-amz-request-id", q.id)
	err := h.answerREST(q)
	if err == nil {
		return
	}
	if errors.Is(err, errCutOff) {
		panic(http.ErrAbortHandler) // the headers are gone: only the end of the connection can tell
	}
	if ours(r.Context(), err) {
		h.opts.Log.Error("request failed", "service", q.api.Name, "operation", q.operation(), "request_id", q.id, "error", err)
	}
	q.refuse(asAPIError(err))
}

// errCutOff says that an answer ended before its end.
var errCutOff = errors.New("the answer was cut off")

// restRequest is one request on its way through the handler.
type restRequest struct {
	*http.Request
	w      http.ResponseWriter
	id     string
	api    *API
	target restTarget
	route  *Route
	op     *operation
	body   *restBody
}

func (q *restRequest) operation() string {
	if q.route == nil {
		return ""
	}
	return q.route.Operation
}

func (h *Handler) answerREST(q *restRequest) (err error) {
	if q.target, err = parseTarget(q.Request); err != nil {
		return err
	}
	if q.Method == http.MethodOptions {
		return refuseWith(http.StatusForbidden, "AccessForbidden", "CORSResponse: CORS requests are not answered.")
	}
	if q.route, err = q.api.routeTo(q.Request, q.target); err != nil {
		return err
	}
	caller, err := h.authenticateREST(q)
	if err != nil {
		return err
	}
	if q.body, err = newRESTBody(q, caller); err != nil {
		return err
	}
	if q.op = q.api.operations[q.route.Operation]; q.op == nil {
		return refuseWith(http.StatusNotImplemented, "NotImplemented", "Pintle does not implement %s of %s yet.", q.route.Operation, q.api.Title)
	}
	in := reflect.New(q.op.in.typ)
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

func (q *restRequest) call(ctx context.Context, in any) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
		}
	}()
	return q.op.call(ctx, in)
}

// send answers with XML, or with nothing.
func (q *restRequest) send(status int, body []byte) {
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
func (q *restRequest) stream(status int, body io.ReadCloser) error {
	defer body.Close()
	q.w.WriteHeader(status)
	if q.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(&steadyWriter{q.w, http.NewResponseController(q.w)}, body); err != nil {
		return errCutOff
	}
	return nil
}

// steadyWriter gives every write of its own the time that a client may take.
type steadyWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (s *steadyWriter) Write(b []byte) (int, error) {
	s.controller.SetWriteDeadline(time.Now().Add(maxIdle)) //nolint:errcheck // tests' recorders have none
	return s.w.Write(b)
}

// refuse answers with an error as S3 has it.
func (q *restRequest) refuse(err smithy.APIError) {
	code, status := restError(q.api, err)
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
	e := xmlEncoder{b: []byte(xmlHeader)}
	e.open("Error")
	e.element("Code", code)
	e.element("Message", err.ErrorMessage())
	if d, ok := err.(interface{ Detail() map[string]string }); ok {
		for name, value := range d.Detail() {
			e.element(name, value)
		}
	}
	e.element("Resource", q.URL.Path)
	e.element("RequestId", q.id)
	e.element("HostId", q.id)
	e.close("Error")
	q.send(status, e.b)
}

func headersOf(err smithy.APIError) http.Header {
	if h, ok := err.(interface{ Header() http.Header }); ok {
		return h.Header()
	}
	return nil
}

// restError is an error's code and status in S3, whose words for wire's refusals are its own.
func restError(a *API, err smithy.APIError) (code string, status int) {
	r, ok := err.(*refusal)
	if !ok {
		if err == smithy.APIError(fault) {
			return "InternalError", http.StatusInternalServerError
		}
		return err.ErrorCode(), a.statusOf(err)
	}
	switch r.code {
	case "SerializationException":
		return "MalformedXML", r.status
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
	return r.code, r.status
}

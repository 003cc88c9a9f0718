package rest

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
)

// jsonStyle is REST-JSON, which AWS Batch speaks: paths with labels, and JSON objects as bodies.
type jsonStyle struct{}

func (jsonStyle) mediaType() string { return "application/json" }

func (jsonStyle) describe(h http.Header, id string) { h.Set("x-amzn-RequestId", id) }

func (jsonStyle) claims(api *API, r *http.Request) Claim {
	for i := range api.Routes {
		if _, ok := matchPath(&api.Routes[i], r); ok {
			return Likely
		}
	}
	return No
}

func (jsonStyle) find(q *request) (err error) {
	if q.query, err = url.ParseQuery(q.URL.RawQuery); err != nil {
		return refusal.New("SerializationException", "The request's query string is malformed.")
	}
	for i := range q.api.Routes {
		route := &q.api.Routes[i]
		if labels, ok := matchPath(route, q.Request); ok && hasConstants(route, q.query) && (q.route == nil || len(labels) < len(q.labels)) {
			q.route = route
			q.labels = labels
		}
	}
	if q.route == nil {
		return refusal.With(
			http.StatusNotFound,
			"UnknownOperationException",
			"%s has no operation %s %s.",
			q.api.Title,
			q.Method,
			q.URL.Path,
		)
	}
	return nil
}

// hasConstants reports whether a request has the parameters that tell an operation from another one at its path, such as find=LayerVersion.
func hasConstants(route *model.Route, query url.Values) bool {
	for _, need := range route.Query {
		if name, value, isConstant := strings.Cut(need, "="); isConstant && query.Get(name) != value {
			return false
		}
	}
	return true
}

// matchPath returns the labels in a request's path if the route matches. A label with a plus takes the rest of the path.
func matchPath(route *model.Route, r *http.Request) (labels map[string]string, ok bool) {
	if route.Method != r.Method {
		return nil, false
	}
	labels = map[string]string{}
	rest := r.URL.EscapedPath()
	for part := range strings.SplitSeq(strings.TrimPrefix(route.Path, "/"), "/") {
		if rest, ok = strings.CutPrefix(rest, "/"); !ok {
			return nil, false
		}
		segment, _, _ := strings.Cut(rest, "/")
		name, isLabel := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		greedy := false
		if name, greedy = strings.CutSuffix(name, "+"); isLabel && greedy {
			segment = rest
		}
		rest = rest[len(segment):]
		text, err := url.PathUnescape(segment)
		if err != nil || isLabel && text == "" || !isLabel && text != part {
			return nil, false
		}
		if isLabel {
			labels[name] = text
		}
	}
	return labels, rest == ""
}

// open reads the whole body, because the signature covers it.
func (jsonStyle) open(q *request, v *sign.Verifier) (sign.Caller, error) {
	if !v.Checks(q.Request) {
		return sign.Unverified(q.Request), q.readBody()
	}
	claim, err := v.Check(q.Context(), q.api.Name, sign.HeadOf(q.Request), q.ContentLength)
	if err != nil {
		return sign.Caller{}, err
	}
	if err := q.readBody(); err != nil {
		return sign.Caller{}, err
	}
	return claim.Verify(q.Context(), q.whole)
}

// readBody reads the whole body.
func (q *request) readBody() error {
	var read bytes.Buffer
	if err := q.memory.ReadBody(q.Request, &read, q.api.MaxBody); err != nil {
		return err
	}
	q.whole = read.Bytes()
	q.body = &requestBody{
		length:  int64(len(q.whole)),
		left:    int64(len(q.whole)),
		content: bytes.NewReader(q.whole),
	}
	return nil
}

func (jsonStyle) inline(*codec.Member) bool { return true }

func (jsonStyle) decode(q *request, sh *codec.Shape, into reflect.Value) error {
	body, err := q.wholeBody()
	if err != nil {
		return err
	}
	return codec.DecodeJSON(new(jsontext.Decoder), body, sh, into, q.op.Lenient)
}

func (s jsonStyle) encode(q *request, status int, out reflect.Value) error {
	b, err := codec.AppendJSON(nil, q.op.Out, out)
	if err == nil {
		q.send(status, s.mediaType(), b)
	}
	return err
}

func (s jsonStyle) encodePayload(q *request, status int, _ *codec.Member, sh *codec.Shape, v reflect.Value) error {
	b, err := codec.AppendJSON(nil, sh, v)
	if err == nil {
		q.send(status, s.mediaType(), b)
	}
	return err
}

// refuse sends an error. Its name is also in a header.
func (s jsonStyle) refuse(q *request, err smithy.APIError) {
	var sh *codec.Shape
	members, ok := refusal.Modeled(err)
	if ok {
		sh = q.api.Shapes.Of(members.Type())
	}
	q.w.Header().Set("x-amzn-ErrorType", err.ErrorCode())
	body := codec.AppendJSONError(nil, err.ErrorCode(), refusal.MessageOf(err), sh, members)
	q.send(refusal.StatusOf(err, q.api.Statuses), s.mediaType(), body)
}

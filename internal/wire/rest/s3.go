package rest

import (
	"cmp"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
)

// s3Style is S3's protocol: REST-XML with the bucket in the host or the path, and its own signatures and body framing.
type s3Style struct{}

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

func (s3Style) mediaType() string { return "application/xml" }

func (s3Style) describe(h http.Header, id string) {
	h.Set("x-amz-request-id", id)
	h.Set("x-amz-id-2", id)
}

// claims takes what nobody else claims, because a bucket may have any name. Clients of Query call the root.
func (s3Style) claims(_ *API, r *http.Request) Claim {
	query := r.URL.Query()
	switch {
	case query.Has("AWSAccessKeyId"), strings.HasPrefix(r.Header.Get("Authorization"), "AWS "), awsname.BucketOf(r.Host) != "":
		return Surely
	case r.URL.Path != "/" && !query.Has("Action"):
		return Maybe
	}
	return No
}

func (s3Style) find(q *request) error {
	t, err := parseTarget(q.Request)
	if err != nil {
		return err
	}
	q.labels = map[string]string{"Bucket": t.bucket, "Key": t.key}
	q.query = t.query
	if q.Method == http.MethodOptions && q.api.AllowOrigin != nil {
		return nil // a preflight is no operation
	}
	if isForm(q.Request, t) {
		i := slices.IndexFunc(q.api.Routes, func(r model.Route) bool { return r.Operation == "PutObject" })
		q.route = &q.api.Routes[i]
		q.form = new(form)
		return nil
	}
	q.route, err = routeTo(q.api.Routes, q.Request, t)
	return err
}

func (s3Style) open(q *request, v *sign.Verifier) (sign.Caller, error) {
	if q.form != nil {
		return q.openForm(v)
	}
	caller, err := sign.VerifyREST(v, q.Request, q.api.Name, q.query, awsname.BucketOf(q.Host))
	if err != nil {
		return caller, err
	}
	steady.Relax(q.Request)
	q.body, err = newBody(q, caller)
	return caller, err
}

// inline implements Style. The tables list every member of the body, too, so one without a place is not in the body.
func (s3Style) inline(m *codec.Member) bool { return m.Place.Name != "" }

func (s3Style) decode(q *request, sh *codec.Shape, into reflect.Value) error {
	body, err := q.wholeBody()
	if err != nil || len(body) == 0 {
		return err
	}
	return codec.DecodeXML(body, sh, into)
}

func (s s3Style) encode(q *request, status int, out reflect.Value) error {
	if q.form != nil {
		q.answerForm()
		return nil
	}
	inline := slices.ContainsFunc(q.op.Out.Members, func(m codec.Member) bool { return m.Place.In == model.InBody && s.inline(&m) })
	if !inline || status == http.StatusNoContent {
		q.send(status, "", nil)
		return nil
	}
	e := codec.XML{B: []byte(xmlHeader), REST: true}
	root := cmp.Or(q.api.Roots[q.route.Operation], q.route.Operation+"Result")
	if q.route.Operation == "GetBucketLocation" { // its only member is the root
		m := &q.op.Out.Members[0]
		e.Open(root + ` xmlns="` + q.api.Namespace + `"`)
		e.Value(m.Shape, m.In(codec.Address(out)))
		e.Close(root)
	} else {
		e.Root(root, q.api.Namespace, q.op.Out, codec.Address(out))
	}
	if e.Err == nil {
		q.send(status, s.mediaType(), e.B)
	}
	return e.Err
}

func (s s3Style) encodePayload(q *request, status int, m *codec.Member, sh *codec.Shape, v reflect.Value) error {
	e := codec.XML{B: []byte(xmlHeader), REST: true}
	e.Root(cmp.Or(q.api.Roots[q.route.Operation], m.Place.Name), q.api.Namespace, sh, codec.Address(v))
	if e.Err == nil {
		q.send(status, s.mediaType(), e.B)
	}
	return e.Err
}

// refuse sends an error in S3's form.
func (s s3Style) refuse(q *request, err smithy.APIError) {
	code, status := errorOf(err)
	if q.body != nil && q.body.broken() ||
		q.Header.Get("Expect") != "" { // clients couldn't tell whether this answer is about the body they were going to send
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
	e.Element("Message", refusal.MessageOf(err))
	if d, ok := err.(interface{ Detail() map[string]string }); ok {
		detail := d.Detail()
		for _, name := range slices.Sorted(maps.Keys(detail)) {
			e.Element(name, detail[name])
		}
	}
	e.Element("RequestId", q.id)
	e.Element("HostId", q.id)
	e.Close("Error")
	q.send(status, s.mediaType(), e.B)
}

func headersOf(err smithy.APIError) http.Header {
	if h, ok := err.(interface{ Header() http.Header }); ok {
		return h.Header()
	}
	return nil
}

// errorOf returns an error's code and status in S3, which has its own names for wire's refusals.
func errorOf(err smithy.APIError) (code string, status int) {
	r, ok := err.(*refusal.Refusal)
	if !ok {
		if err == smithy.APIError(refusal.Fault) {
			return "InternalError", http.StatusInternalServerError
		}
		return err.ErrorCode(), refusal.StatusOf(err, nil)
	}
	switch r.Code {
	case "SerializationException":
		return "MalformedXML", r.Status
	case "ServiceUnavailable":
		return "SlowDown", r.Status
	case "UnrecognizedClientException":
		return "InvalidAccessKeyId", http.StatusForbidden
	case "InvalidSignatureException":
		return "SignatureDoesNotMatch", http.StatusForbidden
	case "MissingAuthenticationTokenException", "AccessDeniedException":
		return "AccessDenied", http.StatusForbidden
	case "ExpiredTokenException":
		return "ExpiredToken", http.StatusBadRequest
	case "IncompleteSignatureException":
		return "AuthorizationHeaderMalformed", http.StatusBadRequest
	}
	return r.Code, r.Status
}

package wire

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
)

// queryProtocol is AWS Query. Operation and input are a form; the output is XML.
type queryProtocol struct{}

func (queryProtocol) describe(h http.Header) { h.Set("Content-Type", "text/xml") }

func (queryProtocol) claims(r *http.Request) bool { return r.Header.Get(sign.TargetHeader) == "" }

func (queryProtocol) operation(q *request) (string, error) {
	if err := q.parseForm(); err != nil {
		return "", err
	}
	if title := absentVersions[q.form.Get("Version")]; title != "" {
		return "", refuseAbsent(title)
	}
	if operation := q.form.Get("Action"); operation != "" {
		return operation, nil
	}
	return "", refusal.New("MissingAction", "The request to %s has no Action.", q.api.Title)
}

// parseForm parses the query string and the body. It does so only once.
func (q *request) parseForm() error {
	if q.form != nil {
		return nil
	}
	encoded := string(q.body)
	if q.URL.RawQuery != "" {
		encoded += "&" + q.URL.RawQuery
	}
	form, err := url.ParseQuery(encoded)
	if err != nil {
		return refusal.New("MalformedQueryString", "The request's form could not be read: %v.", err)
	}
	q.form = form
	return nil
}

func (queryProtocol) decode(q *request, sh *codec.Shape, into reflect.Value) error {
	return codec.DecodeForm(q.form, sh, into, q.lenient() || q.api.LenientForms)
}

func (queryProtocol) encode(b []byte, q *request, sh *codec.Shape, out reflect.Value) ([]byte, error) {
	e := codec.XML{B: b}
	e.Open(q.operation + `Response xmlns="` + q.api.Namespace + `"`)
	e.Open(q.operation + "Result")
	e.Value(sh, codec.Address(out))
	e.Close(q.operation + "Result")
	e.Open("ResponseMetadata")
	e.Element("RequestId", q.id)
	e.Close("ResponseMetadata")
	e.Close(q.operation + "Response")
	return e.B, e.Err
}

func (queryProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	code, status := q.api.queryError(err)
	e := codec.XML{B: b}
	e.Open(`ErrorResponse xmlns="` + q.api.Namespace + `"`)
	e.Open("Error")
	e.Element("Type", culprit(status))
	e.Element("Code", code)
	e.Element("Message", cmp.Or(q.api.QueryErrors[err.ErrorCode()].Message, refusal.MessageOf(err)))
	if q.api.ErrorDetail {
		e.Element("Detail", "")
	}
	e.Close("Error")
	e.Element("RequestId", q.id)
	e.Close("ErrorResponse")
	return e.B, status
}

// queryError returns an error's code and HTTP status. Some of wire's own refusals have other codes in Query, and the rest
// lose their suffix "Exception". A service's errors keep their codes, unless the API's QueryErrors has another.
func (a *served) queryError(err smithy.APIError) (code string, status int) {
	r, ok := err.(*refusal.Refusal)
	if !ok {
		return cmp.Or(a.QueryErrors[err.ErrorCode()].Code, err.ErrorCode()), a.statusOf(err)
	}
	switch r.Code {
	case "UnknownOperationException":
		return "InvalidAction", r.Status
	case "SerializationException", "UnknownParameterException":
		return "MalformedInput", r.Status
	case "UnrecognizedClientException":
		return "InvalidClientTokenId", http.StatusForbidden
	case "InvalidSignatureException":
		return "SignatureDoesNotMatch", http.StatusForbidden
	case "MissingAuthenticationTokenException":
		return "MissingAuthenticationToken", http.StatusForbidden
	case "ExpiredTokenException":
		return "ExpiredToken", http.StatusForbidden
	case "AccessDeniedException":
		return cmp.Or(a.QueryErrors[r.Code].Code, "AccessDenied"), http.StatusForbidden
	}
	return strings.TrimSuffix(r.Code, "Exception"), r.Status
}

package wire

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
)

// queryProtocol is AWS Query: operation and input in a form, the output in XML.
type queryProtocol struct{}

func (queryProtocol) describe(h http.Header) { h.Set("Content-Type", "text/xml") }

func (queryProtocol) claims(r *http.Request) bool { return r.Header.Get(targetHeader) == "" }

func (queryProtocol) operation(q *request) (string, error) {
	if err := q.parseForm(); err != nil {
		return "", err
	}
	if operation := q.form.Get("Action"); operation != "" {
		return operation, nil
	}
	return "", refuse("MissingAction", "The request to %s has no Action.", q.api.Title)
}

// parseForm reads the query string and the body, once.
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
		return refuse("MalformedQueryString", "The request's form could not be read: %v.", err)
	}
	q.form = form
	return nil
}

func (queryProtocol) decode(q *request, sh *shape, into reflect.Value) error {
	root, err := newFormTree(q.form)
	if err != nil {
		return err
	}
	d := formDecoder{lenient: q.lenient()}
	return d.structure(sh, root, "", into)
}

func (queryProtocol) encode(b []byte, q *request, sh *shape, out reflect.Value) ([]byte, error) {
	e := xmlEncoder{b: b}
	e.open(q.operation + `Response xmlns="` + q.api.Namespace + `"`)
	e.open(q.operation + "Result")
	e.value(sh, address(out))
	e.close(q.operation + "Result")
	e.open("ResponseMetadata")
	e.element("RequestId", q.id)
	e.close("ResponseMetadata")
	e.close(q.operation + "Response")
	return e.b, e.err
}

func (queryProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	code, status := q.api.queryError(err)
	e := xmlEncoder{b: b}
	e.open(`ErrorResponse xmlns="` + q.api.Namespace + `"`)
	e.open("Error")
	e.element("Type", culprit(status))
	e.element("Code", code)
	e.element("Message", err.ErrorMessage())
	e.close("Error")
	e.element("RequestId", q.id)
	e.close("ErrorResponse")
	return e.b, status
}

// queryError is an error's code and status: wire's refusals have other names here, and most lose
// their "Exception"; services' errors are what they are, or what the API says.
func (a *API) queryError(err smithy.APIError) (code string, status int) {
	r, ok := err.(*refusal)
	if !ok {
		return cmp.Or(a.QueryErrors[err.ErrorCode()].Code, err.ErrorCode()), a.statusOf(err)
	}
	switch r.code {
	case "UnknownOperationException":
		return "InvalidAction", r.status
	case "SerializationException", "UnknownParameterException":
		return "MalformedInput", r.status
	case "UnrecognizedClientException":
		return "InvalidClientTokenId", http.StatusForbidden
	case "InvalidSignatureException":
		return "SignatureDoesNotMatch", http.StatusForbidden
	case "MissingAuthenticationTokenException":
		return "MissingAuthenticationToken", http.StatusForbidden
	case "ExpiredTokenException":
		return "ExpiredToken", http.StatusForbidden
	}
	return strings.TrimSuffix(r.code, "Exception"), r.status
}

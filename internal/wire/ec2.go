package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
)

// ec2Protocol is EC2 Query: AWS Query with lists that are always flat, and answers and errors in a form
// of its own.
type ec2Protocol struct{ queryProtocol }

func (ec2Protocol) encode(b []byte, q *request, sh *shape, out reflect.Value) ([]byte, error) {
	e := xmlEncoder{b: b, item: "item"}
	e.open(q.operation + `Response xmlns="` + q.api.Namespace + `"`)
	e.element("requestId", q.id)
	e.value(sh, address(out))
	e.close(q.operation + "Response")
	return e.b, e.err
}

func (ec2Protocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	code, status := q.api.ec2Error(err)
	e := xmlEncoder{b: b}
	e.open("Response")
	e.open("Errors")
	e.open("Error")
	e.element("Code", code)
	e.element("Message", err.ErrorMessage())
	e.close("Error")
	e.close("Errors")
	e.element("RequestID", q.id)
	e.close("Response")
	return e.b, status
}

// ec2Error is an error's code and status, of wire's refusals in EC2's words:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (a *API) ec2Error(err smithy.APIError) (code string, status int) {
	if r, ok := err.(*refusal); ok {
		switch r.code {
		case "SerializationException":
			return "InvalidParameterValue", r.status
		case "NotImplementedException":
			return "UnsupportedOperation", r.status
		case "UnrecognizedClientException", "InvalidSignatureException":
			return "AuthFailure", http.StatusUnauthorized
		case "ExpiredTokenException":
			return "RequestExpired", r.status
		case "UnknownParameterException":
			return "UnknownParameter", r.status
		}
	}
	return a.queryError(err)
}

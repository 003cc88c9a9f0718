package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// ec2Protocol is EC2 Query. It differs from AWS Query in that lists are always flat, and in the form of answers and
// errors.
type ec2Protocol struct{ queryProtocol }

func (ec2Protocol) encode(b []byte, q *request, sh *codec.Shape, out reflect.Value) ([]byte, error) {
	e := codec.XML{B: b, Item: "item"}
	e.Open(q.operation + `Response xmlns="` + q.api.Namespace + `"`)
	e.Element("requestId", q.id)
	e.Value(sh, codec.Address(out))
	e.Close(q.operation + "Response")
	return e.B, e.Err
}

func (ec2Protocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	code, status := q.api.ec2Error(err)
	e := codec.XML{B: b}
	e.Open("Response")
	e.Open("Errors")
	e.Open("Error")
	e.Element("Code", code)
	e.Element("Message", refusal.MessageOf(err))
	e.Close("Error")
	e.Close("Errors")
	e.Element("RequestID", q.id)
	e.Close("Response")
	return e.B, status
}

// ec2Error returns an error's code and HTTP status. Wire's own refusals get EC2's codes:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (a *served) ec2Error(err smithy.APIError) (code string, status int) {
	if r, ok := err.(*refusal.Refusal); ok {
		switch r.Code {
		case "SerializationException":
			return "InvalidParameterValue", r.Status
		case "NotImplementedException":
			return "UnsupportedOperation", r.Status
		case "UnrecognizedClientException", "InvalidSignatureException":
			return "AuthFailure", http.StatusUnauthorized
		case "ExpiredTokenException":
			return "RequestExpired", r.Status
		case "AccessDeniedException":
			return "UnauthorizedOperation", http.StatusForbidden
		case "UnknownParameterException":
			return "UnknownParameter", r.Status
		}
	}
	return a.queryError(err)
}

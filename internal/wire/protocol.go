package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
	"github.com/pintle/pintle/internal/wire/codec"
)

// Protocol is one of AWS's ways to put a call into HTTP. A new one is a type with these methods, and
// a name below. Its methods hold no state: what they learn of a request is kept in the request.
type Protocol interface {
	// claims says whether a request, known to be for the API, is in this protocol.
	claims(*http.Request) bool
	// operation finds the operation's name.
	operation(*request) (string, error)
	// decode reads the input into a struct.
	decode(q *request, sh *codec.Shape, into reflect.Value) error
	// encode appends the answer.
	encode(b []byte, q *request, sh *codec.Shape, out reflect.Value) ([]byte, error)
	// encodeError appends an error's answer, and gives its status.
	encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int)
	// describe sets the headers that every answer has.
	describe(http.Header)
}

// The protocols that there are so far.
var (
	JSON10   Protocol = jsonProtocol{"application/x-amz-json-1.0"}
	JSON11   Protocol = jsonProtocol{"application/x-amz-json-1.1"}
	Query    Protocol = queryProtocol{}
	EC2Query Protocol = ec2Protocol{}
	CBOR     Protocol = cborProtocol{}
)

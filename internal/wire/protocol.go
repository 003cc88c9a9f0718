package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/rest"
)

// protocol is one of AWS's ways to put a call into HTTP. A new one is a type with these methods, and
// an entry below. Its methods hold no state: what they learn of a request is kept in the request.
type protocol interface {
	// claims reports whether a request, known to be for the API, is in this protocol.
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

// protocols are those whose calls have their operation beside the address.
var protocols = map[model.Protocol]protocol{
	model.JSON10:   jsonProtocol{"application/x-amz-json-1.0"},
	model.JSON11:   jsonProtocol{"application/x-amz-json-1.1"},
	model.Query:    queryProtocol{},
	model.EC2Query: ec2Protocol{},
	model.CBOR:     cborProtocol{},
}

// styles are the protocols in which the operation is in the address. An API in one of them speaks no other.
var styles = map[model.Protocol]rest.Style{
	model.RESTJSON: rest.JSON,
	model.S3:       rest.S3,
}

// readProtocols finds what the API is spoken in: protocols, or a style of REST.
func (a *served) readProtocols() (style rest.Style) {
	for _, p := range a.Protocols {
		if spoken := protocols[p]; spoken != nil {
			a.protocols = append(a.protocols, spoken)
		}
		if s := styles[p]; s != nil {
			style = s
		}
	}
	return style
}

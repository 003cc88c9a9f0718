package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/rest"
)

// protocol is one of AWS's ways to put a call into HTTP. To add a protocol, write a type with these methods and add it to
// protocols. Protocols have no state: they keep what they learn in the request.
type protocol interface {
	// claims reports whether a request is in this protocol. The request is already known to be for the API.
	claims(*http.Request) bool
	// operation finds the operation's name.
	operation(*request) (string, error)
	// decode reads the input into a struct.
	decode(q *request, sh *codec.Shape, into reflect.Value) error
	// encode appends the answer.
	encode(b []byte, q *request, sh *codec.Shape, out reflect.Value) ([]byte, error)
	// encodeError appends an error's answer and returns its HTTP status.
	encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int)
	// describe sets the headers of every answer.
	describe(http.Header)
}

// protocols has the protocols whose requests name the operation somewhere else than in method and path.
var protocols = map[model.Protocol]protocol{
	model.JSON10:   jsonProtocol{"application/x-amz-json-1.0"},
	model.JSON11:   jsonProtocol{"application/x-amz-json-1.1"},
	model.Query:    queryProtocol{},
	model.EC2Query: ec2Protocol{},
	model.CBOR:     cborProtocol{},
}

// styles has the REST protocols, where method and path select the operation. A REST API has no other protocol.
var styles = map[model.Protocol]rest.Style{
	model.RESTJSON: rest.JSON,
	model.S3:       rest.S3,
}

// readProtocols sets the API's protocols, or returns its style of REST.
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

package wire

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// cborProtocol is Smithy RPC v2 CBOR. The path names service and operation; input and output are CBOR.
type cborProtocol struct{}

const (
	smithyHeader = "Smithy-Protocol"
	smithyCBOR   = "rpc-v2-cbor"
)

func (cborProtocol) describe(h http.Header) {
	h.Set("Content-Type", "application/cbor")
	h.Set(smithyHeader, smithyCBOR)
}

func (cborProtocol) claims(r *http.Request) bool { return r.Header.Get(smithyHeader) == smithyCBOR }

func (cborProtocol) operation(q *request) (string, error) {
	_, operation := rpcPath(q.Request)
	if operation == "" || q.Method != http.MethodPost {
		return "", refusal.New(
			"UnknownOperationException", "A request to %s in CBOR is a POST to /service/%s/operation/<Operation>.", q.api.Title,
			q.api.TargetPrefix,
		)
	}
	switch sent := q.Header.Get("Content-Type"); sent {
	case "", "application/cbor": // a request without a body has no type
		return operation, nil
	default:
		return "", refusal.With(
			http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Type is %q; %s takes application/cbor.",
			sent, q.api.Title,
		)
	}
}

// rpcPath returns the service and operation in an RPC v2 request's path. Both are empty if the request is in another protocol.
func rpcPath(r *http.Request) (service, operation string) {
	if r.Header.Get(smithyHeader) == "" {
		return "", ""
	}
	_, path, _ := strings.Cut(r.URL.Path, "/service/")
	service, operation, _ = strings.Cut(path, "/operation/")
	return service, operation
}

func (cborProtocol) decode(q *request, sh *codec.Shape, into reflect.Value) error {
	return codec.DecodeCBOR(q.body, sh, into, q.lenient())
}

func (cborProtocol) encode(b []byte, _ *request, sh *codec.Shape, out reflect.Value) ([]byte, error) {
	return codec.AppendCBOR(b, sh, out)
}

// encodeError appends a map with the error's name and members.
func (cborProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	sh, members := q.api.modeled(err)
	return codec.AppendCBORError(b, err.ErrorCode(), refusal.MessageOf(err), sh, members), q.api.statusOf(err)
}

package wire

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
)

// cborProtocol is Smithy RPC v2 CBOR: service and operation in the path, input and output in CBOR.
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
		return "", refuse("UnknownOperationException", "A request to %s in CBOR is a POST to /service/%s/operation/<Operation>.", q.api.Title, q.api.TargetPrefix)
	}
	switch sent := q.Header.Get("Content-Type"); sent {
	case "", "application/cbor": // without a body there is no type
		return operation, nil
	default:
		return "", refuseWith(http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Type is %q; %s takes application/cbor.", sent, q.api.Title)
	}
}

// rpcPath is the service and the operation that an RPC v2 request names; both empty where it is none.
func rpcPath(r *http.Request) (service, operation string) {
	if r.Header.Get(smithyHeader) == "" {
		return "", ""
	}
	_, path, _ := strings.Cut(r.URL.Path, "/service/")
	service, operation, _ = strings.Cut(path, "/operation/")
	return service, operation
}

func (cborProtocol) decode(q *request, sh *shape, into reflect.Value) error {
	d := cborDecoder{lenient: q.lenient()}
	return d.body(q.body, sh, into)
}

func (cborProtocol) encode(b []byte, _ *request, sh *shape, out reflect.Value) ([]byte, error) {
	e := cborEncoder{b: b}
	e.value(sh, address(out))
	return e.b, e.err
}

// encodeError puts the error's name beside its members.
func (cborProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	e := cborEncoder{b: b}
	e.open()
	e.text("__type")
	e.text(err.ErrorCode())
	if v, ok := modeled(err); ok {
		e.members(q.api.shapes.of(v.Type()), address(v))
	} else {
		e.text("message")
		e.text(err.ErrorMessage())
	}
	e.end()
	return e.b, q.api.statusOf(err)
}

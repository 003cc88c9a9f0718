package wire

import (
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
)

// jsonProtocol is AWS JSON: the operation in X-Amz-Target, input and output as JSON objects.
type jsonProtocol struct{ mediaType string }

const targetHeader = "X-Amz-Target"

func (p jsonProtocol) describe(h http.Header) { h.Set("Content-Type", p.mediaType) }

func (p jsonProtocol) claims(r *http.Request) bool { return r.Header.Get(targetHeader) != "" }

func (p jsonProtocol) operation(q *request) (string, error) {
	_, operation, _ := strings.Cut(q.Header.Get(targetHeader), ".")
	if operation == "" || q.Method != http.MethodPost {
		return "", refuse("UnknownOperationException", "A request to %s is a POST with %s: %s.<Operation>.", q.api.Title, targetHeader, q.api.TargetPrefix)
	}
	sent := q.Header.Get("Content-Type")
	switch mediaType, _, _ := mime.ParseMediaType(sent); mediaType {
	case "", "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		return operation, nil
	}
	return "", refuseWith(http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Type is %q; %s takes %s.", sent, q.api.Title, p.mediaType)
}

func (p jsonProtocol) decode(q *request, sh *shape, into reflect.Value) error {
	d := jsonDecoder{in: &q.json, lenient: q.lenient(), newDocument: q.api.NewDocument}
	return d.body(q.body, sh, into)
}

func (p jsonProtocol) encode(b []byte, _ *request, sh *shape, out reflect.Value) ([]byte, error) {
	e := jsonEncoder{b: b}
	e.value(sh, address(out))
	return e.b, e.err
}

// encodeError puts the error's name beside its members.
func (p jsonProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	e := jsonEncoder{b: append(b, `{"__type":`...)}
	e.string(q.api.errorName(err))
	v, ok := modeled(err)
	if !ok {
		e.b = append(e.b, `,"message":`...)
		e.string(err.ErrorMessage())
		return append(e.b, '}'), q.api.statusOf(err)
	}
	members := jsonEncoder{}
	members.structure(q.api.shapes.of(v.Type()), address(v))
	if len(members.b) > len("{}") {
		e.b = append(e.b, ',')
	}
	return append(e.b, members.b[1:]...), q.api.statusOf(err)
}

package wire

import (
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
)

// jsonProtocol is AWS JSON. X-Amz-Target names the operation; input and output are JSON objects.
type jsonProtocol struct{ mediaType string }

func (p jsonProtocol) describe(h http.Header) { h.Set("Content-Type", p.mediaType) }

func (p jsonProtocol) claims(r *http.Request) bool { return r.Header.Get(sign.TargetHeader) != "" }

func (p jsonProtocol) operation(q *request) (string, error) {
	_, operation, _ := strings.Cut(q.Header.Get(sign.TargetHeader), ".")
	if operation == "" || q.Method != http.MethodPost {
		return "", refusal.New(
			"UnknownOperationException", "A request to %s is a POST with %s: %s.<Operation>.", q.api.Title, sign.TargetHeader,
			q.api.TargetPrefix,
		)
	}
	sent := q.Header.Get("Content-Type")
	switch mediaType, _, _ := mime.ParseMediaType(sent); mediaType {
	case "", "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		return operation, nil
	}
	return "", refusal.With(
		http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "The Content-Type is %q; %s takes %s.", sent, q.api.Title,
		p.mediaType,
	)
}

func (p jsonProtocol) decode(q *request, sh *codec.Shape, into reflect.Value) error {
	return codec.DecodeJSON(&q.json, q.body, sh, into, q.lenient())
}

func (p jsonProtocol) encode(b []byte, _ *request, sh *codec.Shape, out reflect.Value) ([]byte, error) {
	return codec.AppendJSON(b, sh, out)
}

// encodeError appends an object with the error's name and members.
func (p jsonProtocol) encodeError(b []byte, q *request, err smithy.APIError) ([]byte, int) {
	sh, members := q.api.modeled(err)
	return codec.AppendJSONError(b, q.api.errorName(err), refusal.MessageOf(err), sh, members), q.api.statusOf(err)
}

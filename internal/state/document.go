package state

import (
	"bytes"
	std "encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
	documentjson "github.com/aws/smithy-go/document/json"
	"github.com/go-json-experiment/json"
)

// documents keep what callers have given as the SDK's documents, such as the details of a service's lifecycle hooks. They are an interface, of which
// JSON can't make a value.
var documents = json.JoinOptions(
	json.WithMarshalers(json.MarshalFunc(func(d document.Interface) ([]byte, error) { return d.MarshalSmithyDocument() })),
	json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, to *document.Interface) (err error) {
		*to, err = Document(text)
		return err
	})),
)

// Document makes one of the SDK's documents of JSON. Numbers keep their text, so that none loses digits.
func Document(text []byte) (document.Interface, error) {
	numbers := std.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	var parsed, held any
	if err := numbers.Decode(&parsed); err != nil {
		return nil, err
	}
	if err := documentjson.NewDecoder().DecodeJSONInterface(parsed, &held); err != nil {
		return nil, err
	}
	return document.NewLazyDocument(held), nil
}

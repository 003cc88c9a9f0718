package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// statusOf returns an error's HTTP status.
func (a *served) statusOf(err smithy.APIError) int {
	if e, ok := a.QueryErrors[err.ErrorCode()]; ok {
		return e.Status
	}
	return refusal.StatusOf(err, a.Statuses)
}

// errorName returns an error's name in JSON.
func (a *served) errorName(err smithy.APIError) string {
	if _, ok := err.(*refusal.Refusal); ok {
		return err.ErrorCode()
	}
	return a.ErrorSpace + err.ErrorCode()
}

// modeled returns the shape and struct of an error that the SDK generated from the service's model. The shape is nil for other
// errors.
func (a *served) modeled(err smithy.APIError) (*codec.Shape, reflect.Value) {
	v, ok := refusal.Modeled(err)
	if !ok {
		return nil, v
	}
	return a.shapes.Of(v.Type()), v
}

// queryHeader has the Query protocol's code for an error. Services that once spoke Query send it in every protocol.
const queryHeader = "X-Amzn-Query-Error"

func (a *served) describeError(h http.Header, err smithy.APIError) {
	if a.QueryErrors == nil {
		return
	}
	code, status := a.queryError(err)
	h.Set(queryHeader, code+";"+culprit(status))
}

// culprit returns who caused an error, in Query's terms.
func culprit(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

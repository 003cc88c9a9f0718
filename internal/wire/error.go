package wire

import (
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/refusal"
)

func (a *served) statusOf(err smithy.APIError) int {
	if e, ok := a.QueryErrors[err.ErrorCode()]; ok {
		return e.Status
	}
	_, told := err.(interface{ HTTPStatusCode() int })
	if status := a.Statuses[err.ErrorCode()]; status != 0 && !told {
		return status
	}
	return refusal.StatusOf(err)
}

// errorName is an error's name in JSON.
func (a *served) errorName(err smithy.APIError) string {
	if _, ok := err.(*refusal.Refusal); ok {
		return err.ErrorCode()
	}
	return a.ErrorSpace + err.ErrorCode()
}

// Modeled is the shape of an error that the SDK made from the service's model, and its struct; nil for others.
func (a *served) modeled(err smithy.APIError) (*codec.Shape, reflect.Value) {
	v, ok := refusal.Modeled(err)
	if !ok {
		return nil, v
	}
	return a.shapes.Of(v.Type()), v
}

// queryHeader tells clients that once spoke Query an error's code there, whatever they speak now.
const queryHeader = "X-Amzn-Query-Error"

func (a *served) describeError(h http.Header, err smithy.APIError) {
	if a.QueryErrors == nil {
		return
	}
	code, status := a.queryError(err)
	h.Set(queryHeader, code+";"+culprit(status))
}

// culprit is whose fault an error is, as Query says it.
func culprit(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

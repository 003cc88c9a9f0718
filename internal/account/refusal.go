package account

import (
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
)

// Refusal is an error that clients know by its code, for services whose model has no type for it.
type Refusal struct {
	Code    string
	Message string
	Status  int // of the HTTP answer
}

// Refuse returns a refusal of a call that the caller got wrong.
func Refuse(code, format string, args ...any) *Refusal {
	return RefuseWith(http.StatusBadRequest, code, format, args...)
}

// RefuseWith returns a refusal with a status other than 400.
func RefuseWith(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: *Message(format, args...), Status: status}
}

// Message is the text of an error of a service's model. Without arguments the format is the text.
func Message(format string, args ...any) *string {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &format
}

func (r *Refusal) Error() string        { return r.Code + ": " + r.Message }
func (r *Refusal) ErrorCode() string    { return r.Code }
func (r *Refusal) ErrorMessage() string { return r.Message }
func (r *Refusal) HTTPStatusCode() int  { return r.Status }

// ErrorFault says whose fault it is. What is not implemented is no fault of the server's.
func (r *Refusal) ErrorFault() smithy.ErrorFault {
	if r.Status >= http.StatusInternalServerError && r.Status != http.StatusNotImplemented {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

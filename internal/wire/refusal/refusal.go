// Package refusal is what wire answers with where it is not a service that answers: refusals of requests that no
// operation could take, and what callers hear of failures that are ours. Refusals have the codes of AWS JSON; protocols
// translate them. It knows no service and no protocol.
package refusal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"

	"github.com/aws/smithy-go"
)

// Refusal is an error that wire itself answers with. Its code is that of AWS JSON; protocols whose
// clients know it by another name translate it.
type Refusal struct {
	Code, message string
	Status        int
}

func (r *Refusal) Error() string                 { return r.Code + ": " + r.message }
func (r *Refusal) ErrorCode() string             { return r.Code }
func (r *Refusal) ErrorMessage() string          { return r.message }
func (r *Refusal) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }

// HTTPStatusCode is the status of the answer. Services' errors may have the method too.
func (r *Refusal) HTTPStatusCode() int { return r.Status }

// New refuses a request with the status 400.
func New(code, format string, args ...any) error {
	return With(http.StatusBadRequest, code, format, args...)
}

// With refuses a request with another status.
func With(status int, code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...), status}
}

// Fault is what a caller hears of an error that is ours. Its text stays here: the log has it, under
// the same request id.
var Fault = &smithy.GenericAPIError{
	Code:    "ServerException",
	Message: "The request failed inside Pintle. Its log has the reason under this request's id.",
	Fault:   smithy.FaultServer,
}

// AsAPIError is the error as a caller gets it.
func AsAPIError(err error) smithy.APIError {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api
	}
	return Fault
}

// StatusOf is the status of an error's answer, where the API says nothing else.
func StatusOf(err smithy.APIError) int {
	if s, ok := err.(interface{ HTTPStatusCode() int }); ok {
		return s.HTTPStatusCode()
	}
	if err.ErrorFault() == smithy.FaultServer {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// Modeled returns the struct of an error that the SDK made from the service's model, whose members
// go to the caller. Those errors, and no others, can override their code.
func Modeled(err smithy.APIError) (reflect.Value, bool) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return v, false
	}
	return v.Elem(), v.Elem().FieldByName("ErrorCodeOverride").IsValid()
}

// IsOurs says whether an error is news for the log: not a refusal, and not a caller's hanging up.
func IsOurs(ctx context.Context, err error) bool {
	return AsAPIError(err).ErrorFault() == smithy.FaultServer && ctx.Err() == nil
}

// Panic is a panic in a service, as an error. It is called where the panic was recovered.
func Panic(value any) error { return &panicked{value, debug.Stack()} }

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

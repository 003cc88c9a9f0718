package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
)

// refusal is an error that wire itself answers with. Its code is that of AWS JSON; protocols whose
// clients know it by another name translate it.
type refusal struct {
	code, message string
	status        int
}

func (r *refusal) Error() string                 { return r.code + ": " + r.message }
func (r *refusal) ErrorCode() string             { return r.code }
func (r *refusal) ErrorMessage() string          { return r.message }
func (r *refusal) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }

// HTTPStatusCode is the status of the answer. Services' errors may have the method too.
func (r *refusal) HTTPStatusCode() int { return r.status }

func refuse(code, format string, args ...any) error {
	return refuseWith(http.StatusBadRequest, code, format, args...)
}

func refuseWith(status int, code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...), status}
}

// fault is what a caller hears of an error that is ours. Its text stays here: the log has it, under
// the same request id.
var fault = &smithy.GenericAPIError{
	Code:    "ServerException",
	Message: "The request failed inside Pintle. Its log has the reason under this request's id.",
	Fault:   smithy.FaultServer,
}

// asAPIError is the error as a caller gets it.
func asAPIError(err error) smithy.APIError {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api
	}
	return fault
}

// statusOf is the status of an error's answer, where the API says nothing else.
func statusOf(err smithy.APIError) int {
	if s, ok := err.(interface{ HTTPStatusCode() int }); ok {
		return s.HTTPStatusCode()
	}
	if err.ErrorFault() == smithy.FaultServer {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// modeled returns the struct of an error that the SDK made from the service's model, whose members
// go to the caller. Those errors, and no others, can override their code.
func modeled(err smithy.APIError) (reflect.Value, bool) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return v, false
	}
	return v.Elem(), v.Elem().FieldByName("ErrorCodeOverride").IsValid()
}

// ours says whether an error is news for the log: not a refusal, and not a caller's hanging up.
func ours(ctx context.Context, err error) bool {
	return asAPIError(err).ErrorFault() == smithy.FaultServer && ctx.Err() == nil
}

// panicked is a panic in a service, as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// Package refusal has the errors that wire itself returns: refusals of requests that never reach a service, and what callers see of
// failures that are Pintle's. Refusals have the codes of AWS JSON, which other protocols translate. It knows no service and no protocol.
package refusal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/aws/smithy-go"
)

// Refusal is an error of wire's own. Its code is AWS JSON's; protocols with another name for it translate it.
type Refusal struct {
	Code, message string
	Status        int
}

func (r *Refusal) Error() string                 { return r.Code + ": " + r.message }
func (r *Refusal) ErrorCode() string             { return r.Code }
func (r *Refusal) ErrorMessage() string          { return r.message }
func (r *Refusal) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }

// HTTPStatusCode returns the answer's status. Services' errors may have this method too.
func (r *Refusal) HTTPStatusCode() int { return r.Status }

// New returns a refusal with status 400.
func New(code, format string, args ...any) error {
	return With(http.StatusBadRequest, code, format, args...)
}

// With returns a refusal with another status.
func With(status int, code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...), status}
}

// Unavailable returns the refusal of a call for which the disk can't be written now. code is the service's for this, if it has one of its own;
// all services have ServiceUnavailable among their common errors.
func Unavailable(code string, err error) error {
	return With(http.StatusServiceUnavailable, cmp.Or(code, "ServiceUnavailable"), "%s", err)
}

// Fault is what a caller sees of an error that is Pintle's. The text isn't sent; the log has it under the same request id.
var Fault = &smithy.GenericAPIError{
	Code:    "ServerException",
	Message: "The request failed inside Pintle. Its log has the reason under this request's id.",
	Fault:   smithy.FaultServer,
}

// AsAPIError returns the error in the form that a caller gets.
func AsAPIError(err error) smithy.APIError {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api
	}
	return Fault
}

// maxMessage is the most bytes of an error's message that are sent. Messages repeat what is wrong, and a caller may have sent megabytes.
const maxMessage = 4 << 10

// MessageOf returns an error's message as it's sent.
func MessageOf(err smithy.APIError) string { return shorten(err.ErrorMessage()) }

// shorten leaves out the middle of a long message. The rest often says what would be right.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const part = maxMessage / 2
	return strings.ToValidUTF8(message[:part], "") + " … " + strings.ToValidUTF8(message[len(message)-part:], "")
}

// StatusOf returns an error's HTTP status: what it says itself, if that's more than that the call was wrong, or else what the service's model has
// for its code.
func StatusOf(err smithy.APIError, model map[string]int) int {
	own, ok := err.(interface{ HTTPStatusCode() int })
	if status := model[err.ErrorCode()]; status != 0 && (!ok || own.HTTPStatusCode() == http.StatusBadRequest) {
		return status
	}
	if ok {
		return own.HTTPStatusCode()
	}
	if err.ErrorFault() == smithy.FaultServer {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// Modeled returns an error's struct if the SDK generated it from the service's model. The caller gets the struct's members, the message
// as MessageOf returns it. Only these errors can override their code.
func Modeled(err smithy.APIError) (reflect.Value, bool) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("ErrorCodeOverride").IsValid() {
		return v, false
	}
	members := reflect.New(v.Elem().Type()).Elem()
	members.Set(v.Elem())
	if message, ok := members.FieldByName("Message").Interface().(*string); ok && message != nil {
		members.FieldByName("Message").Set(reflect.ValueOf(new(shorten(*message))))
	}
	return members, true
}

// IsOurs reports whether an error belongs in the log: it's neither a refusal nor a caller that hung up, nor does it say, with a bad gateway, that
// something behind Pintle isn't there yet, such as a function's environment.
func IsOurs(ctx context.Context, err error) bool {
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusBadGateway {
		return false
	}
	return AsAPIError(err).ErrorFault() == smithy.FaultServer && ctx.Err() == nil
}

// Panic turns a recovered panic of a service into an error.
func Panic(value any) error { return &panicked{value, debug.Stack()} }

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

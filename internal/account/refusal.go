package account

import (
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
)

// Refusal is an error that clients identify by its code. Services use it for errors that their model has no type for.
type Refusal struct {
	Code    string
	Message string
	Status  int // the HTTP status
}

// Refuse returns the refusal of an invalid call, with status 400.
func Refuse(code, format string, args ...any) *Refusal {
	return RefuseWith(http.StatusBadRequest, code, format, args...)
}

// RefuseWith returns a refusal with another status than 400.
func RefuseWith(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: *Message(format, args...), Status: status}
}

// Message returns the message of a modeled error. Without arguments, the format is used as it is. Slices of strings are written as people do,
// with commas.
func Message(format string, args ...any) *string {
	if len(args) == 0 {
		return &format
	}
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a
		if v := reflect.ValueOf(a); v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
			all[i] = commas{v}
		}
	}
	return new(fmt.Sprintf(format, all...))
}

// commas is a slice of strings that %v writes with commas.
type commas struct{ slice reflect.Value }

// Format implements fmt.Formatter.
func (l commas) Format(s fmt.State, verb rune) {
	if verb != 'v' {
		fmt.Fprintf(s, fmt.FormatString(s, verb), l.slice.Interface())
		return
	}
	for i := range l.slice.Len() {
		if i > 0 {
			io.WriteString(s, ", ") //nolint:errcheck // it's memory
		}
		io.WriteString(s, l.slice.Index(i).String()) //nolint:errcheck // it's memory
	}
}

func (r *Refusal) Error() string        { return r.Code + ": " + r.Message }
func (r *Refusal) ErrorCode() string    { return r.Code }
func (r *Refusal) ErrorMessage() string { return r.Message }
func (r *Refusal) HTTPStatusCode() int  { return r.Status }

// ErrorFault returns whose fault the error is. An unimplemented operation is not the server's fault.
func (r *Refusal) ErrorFault() smithy.ErrorFault {
	if r.Status >= http.StatusInternalServerError && r.Status != http.StatusNotImplemented {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// NotAuthorized returns AWS's message for a call that its caller may not make. why is empty or says the reason.
func NotAuthorized(principal, action, resource, why string) string {
	text := fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s", principal, action, resource)
	if why != "" {
		text += " because " + why
	}
	return text
}

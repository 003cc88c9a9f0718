package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/aws/smithy-go"
)

// statusError is an API error with an HTTP status other than its fault's.
type statusError struct {
	status int
	smithy.APIError
}

// Unwrap gives the API error.
func (e *statusError) Unwrap() error { return e.APIError }

func clientError(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// asAPIError is the error as the caller gets it. What is no API error is a fault of ours, and its
// text stays here: the log has it, under the same request id.
func asAPIError(err error) (smithy.APIError, int) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		api = &smithy.GenericAPIError{Code: "ServerException", Message: "Something went wrong in Pintle; its log has the error under this request's id.", Fault: smithy.FaultServer}
	}
	var s *statusError
	switch {
	case errors.As(err, &s):
		return s.APIError, s.status
	case api.ErrorFault() == smithy.FaultServer:
		return api, http.StatusInternalServerError
	}
	return api, http.StatusBadRequest
}

// writeError answers a refusal in the protocol's shape. Without a route it is JSON.
func writeError(w http.ResponseWriter, r *route, err error, id string) {
	api, status := asAPIError(err)
	if r != nil && r.protocol == Query {
		writeXMLError(w, api, status, id)
		return
	}
	w.Header().Set("Content-Type", contentType(JSON11))
	if r != nil {
		w.Header().Set("Content-Type", contentType(r.protocol))
	}
	w.Header().Set("x-amzn-ErrorType", api.ErrorCode())
	w.WriteHeader(status)
	w.Write(jsonError(r, api)) //nolint:errcheck // a client that is gone is no one's to tell
}

// jsonError is the error's members, with its code as __type.
func jsonError(r *route, err smithy.APIError) []byte {
	b := append([]byte(`{"__type":`), quote(err.ErrorCode())...)
	v := reflect.ValueOf(err)
	if _, generic := err.(*smithy.GenericAPIError); r == nil || generic || !isStructPointer(v.Type()) {
		b = append(b, `,"message":`...)
		return append(append(b, quote(err.ErrorMessage())...), '}')
	}
	members, encodeErr := r.api.codec.encodeJSON(nil, v.Elem())
	if encodeErr != nil || len(members) <= 2 {
		return append(b, '}')
	}
	return append(append(b, ','), members[1:]...)
}

func quote(s string) []byte { return strconv.AppendQuoteToGraphic(nil, s) }

func writeXMLError(w http.ResponseWriter, err smithy.APIError, status int, id string) {
	fault := "Sender"
	if status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	var b bytes.Buffer
	b.WriteString("<ErrorResponse><Error><Type>" + fault + "</Type><Code>")
	xml.EscapeText(&b, []byte(err.ErrorCode())) //nolint:errcheck // a buffer takes all
	b.WriteString("</Code><Message>")
	xml.EscapeText(&b, []byte(err.ErrorMessage())) //nolint:errcheck // a buffer takes all
	b.WriteString("</Message></Error><RequestId>" + id + "</RequestId></ErrorResponse>")
	w.Header().Set("Content-Type", contentType(Query))
	w.WriteHeader(status)
	w.Write(b.Bytes()) //nolint:errcheck // a client that is gone is no one's to tell
}

package s3

import (
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
)

// apiError is an S3 error. See "Error responses" in the API reference.
type apiError struct {
	code    string
	message string
	status  int
	detail  map[string]string // more elements of the answer
	header  http.Header
}

func (e *apiError) Error() string             { return e.code + ": " + e.message }
func (e *apiError) ErrorCode() string         { return e.code }
func (e *apiError) ErrorMessage() string      { return e.message }
func (e *apiError) HTTPStatusCode() int       { return e.status }
func (e *apiError) Detail() map[string]string { return e.detail }
func (e *apiError) Header() http.Header       { return e.header }
func (e *apiError) ErrorFault() smithy.ErrorFault {
	if e.status >= http.StatusInternalServerError && e.status != http.StatusNotImplemented {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

func refuse(status int, code, format string, args ...any) error {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	return &apiError{code: code, message: message, status: status}
}

func invalidArgument(name, value, format string, args ...any) error {
	return &apiError{
		code:    "InvalidArgument",
		message: fmt.Sprintf(format, args...),
		status:  http.StatusBadRequest,
		detail:  map[string]string{"ArgumentName": name, "ArgumentValue": value},
	}
}

func malformedXML(why string) error {
	return refuse(
		http.StatusBadRequest, "MalformedXML",
		"The XML you provided was not well-formed or did not validate against our published schema: %s.", why,
	)
}

func noSuchBucket(name string) error {
	return &apiError{
		code:    "NoSuchBucket",
		message: "The specified bucket does not exist",
		status:  http.StatusNotFound,
		detail:  map[string]string{"BucketName": name},
	}
}

// notImplemented refuses what the caller asked for and would otherwise silently not get.
func notImplemented(what string) error {
	return refuse(
		http.StatusNotImplemented, "NotImplemented",
		"A header or member you provided implies functionality that Pintle does not implement: %s.", what,
	)
}

// unsupported is something S3 offers and Pintle doesn't, and whether the caller asked for it.
type unsupported struct {
	name  string
	asked bool
}

func refuseUnsupported(all ...unsupported) error {
	for _, u := range all {
		if u.asked {
			return notImplemented(u.name)
		}
	}
	return nil
}

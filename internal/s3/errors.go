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
	detail := map[string]string{"ArgumentName": name}
	if value != "" {
		detail["ArgumentValue"] = value
	}
	return &apiError{code: "InvalidArgument", message: fmt.Sprintf(format, args...), status: http.StatusBadRequest, detail: detail}
}

func malformedXML(why string) error {
	return refuse(
		http.StatusBadRequest, "MalformedXML",
		"The XML you provided was not well-formed or did not validate against our published schema: %s.", why,
	)
}

// refuseBucket returns an error about a bucket.
func refuseBucket(status int, code, name, message string) error {
	return &apiError{code: code, message: message, status: status, detail: map[string]string{"BucketName": name}}
}

func noSuchBucket(name string) error {
	return refuseBucket(http.StatusNotFound, "NoSuchBucket", name, "The specified bucket does not exist")
}

func noSuchKey(key string) error {
	return &apiError{
		code:    "NoSuchKey",
		message: "The specified key does not exist.",
		status:  http.StatusNotFound,
		detail:  map[string]string{"Key": key},
	}
}

func noSuchUpload(id string) error {
	return &apiError{
		code:    "NoSuchUpload",
		message: "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
		status:  http.StatusNotFound,
		detail:  map[string]string{"UploadId": id},
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

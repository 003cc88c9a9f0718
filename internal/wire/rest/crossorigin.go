package rest

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// preflight answers a browser that asks whether a page of another origin may make a call. Nobody signs that question.
func (q *request) preflight() error {
	if q.Header.Get("Origin") == "" {
		return refusal.With(http.StatusBadRequest, "BadRequest", "Insufficient information. Origin request header needed.")
	}
	if err := q.allowOrigin(); err != nil {
		return err
	}
	q.send(http.StatusOK, "", nil)
	return nil
}

// allowOrigin sets the headers by which the browser shows the answer to a page of another origin. As in S3, what a call says of a
// preflight's method and headers counts in the call, too.
func (q *request) allowOrigin() error {
	headers, err := q.api.AllowOrigin(q.Context(), model.CrossOrigin{
		Bucket:  q.labels["Bucket"],
		Key:     q.labels["Key"],
		Origin:  q.Header.Get("Origin"),
		Method:  cmp.Or(q.Header.Get("Access-Control-Request-Method"), q.Method),
		Headers: askedHeaders(q.Header.Get("Access-Control-Request-Headers")),
	})
	for name, value := range headers {
		q.w.Header().Set(name, value)
	}
	return err
}

func askedHeaders(list string) []string {
	return strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || r == ' ' })
}

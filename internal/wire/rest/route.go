package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// target is the bucket and the object's key in a request's address.
type target struct {
	bucket, key string
	query       url.Values
}

// path returns the path in the form of routes, which only say whether there is a bucket and a key.
func (t target) path() string {
	switch {
	case t.bucket == "":
		return "/"
	case t.key == "":
		return "/{Bucket}"
	}
	return "/{Bucket}/{Key+}"
}

// parseTarget parses a request's address. The bucket is in the host, or first in the path.
func parseTarget(r *http.Request) (t target, err error) {
	if t.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return t, refusal.New("InvalidURI", "Couldn't parse the specified URI: its query is malformed.")
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if t.bucket = awsname.BucketOf(r.Host); t.bucket != "" {
		t.key = path
	} else {
		t.bucket, t.key, _ = strings.Cut(path, "/")
	}
	if !utf8.ValidString(path) || t.bucket == "" && t.key != "" {
		return t, refusal.New("InvalidURI", "Couldn't parse the specified URI.")
	}
	return t, nil
}

// routeTo returns the route for a request. If several match, the one with the most requirements wins.
func routeTo(routes []model.Route, r *http.Request, t target) (*model.Route, error) {
	method := r.Method
	var best *model.Route
	for i := range routes {
		route := &routes[i]
		if route.Method != method || route.Path != t.path() || !metBy(route, r, t) {
			continue
		}
		if best == nil || needs(route) > needs(best) {
			best = route
		}
	}
	if best == nil {
		return nil, refusal.With(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	return best, nil
}

func needs(r *model.Route) int { return len(r.Query) + len(r.Headers) }

func metBy(r *model.Route, q *http.Request, t target) bool {
	for _, need := range r.Query {
		name, value, fixed := strings.Cut(need, "=")
		values, there := t.query[name]
		if !there || fixed && !slices.Contains(values, value) {
			return false
		}
	}
	for _, name := range r.Headers {
		if len(q.Header.Values(name)) == 0 { // an empty one is the operation's to refuse
			return false
		}
	}
	return true
}

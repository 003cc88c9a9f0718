package wire

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Route is how requests for an operation look in REST: its method, a path of labels in braces, and what
// else has to be there.
type Route struct {
	Operation, Method, Path string
	Query                   []string // parameters that have to be there, some with a value
	Headers                 []string // that have to be there
	Status                  int      // of the answer
}

// Place is where a member is in HTTP.
type Place struct {
	In   place
	Name string
	Item string // the name of a list's elements, inside an element of its own; flattened where it is ""
}

// place is a part of an HTTP request or answer.
type place uint8

const (
	inBody      place = iota // an element of the body's XML
	inPayload                // the body itself
	inPath                   // a label of the path
	inQuery                  // a parameter
	inHeader                 // a header
	inHeaders                // all headers with a prefix
	inAttribute              // an attribute of the element that the struct is
)

// restTarget is what a REST request's address says: a bucket, an object's key.
type restTarget struct {
	bucket, key string
	query       url.Values
}

// path is the path as routes have it: whether there is a bucket, and a key.
func (t restTarget) path() string {
	switch {
	case t.bucket == "":
		return "/"
	case t.key == "":
		return "/{Bucket}"
	}
	return "/{Bucket}/{Key+}"
}

// parseTarget reads a request's address: the bucket is in the host, or first in the path.
func parseTarget(r *http.Request) (t restTarget, err error) {
	if t.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return t, refuse("InvalidURI", "Couldn't parse the specified URI: its query is malformed.")
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if t.bucket = bucketOfHost(r.Host); t.bucket != "" {
		t.key = path
	} else {
		t.bucket, t.key, _ = strings.Cut(path, "/")
	}
	if !utf8.ValidString(path) || t.bucket == "" && t.key != "" {
		return t, refuse("InvalidURI", "Couldn't parse the specified URI.")
	}
	return t, nil
}

// bucketOfHost is the bucket that a host names: bucket.s3.us-east-1.amazonaws.com, bucket.s3.localhost or
// bucket.localhost, also as tflocal and its like call them, bucket.s3.localhost.localstack.cloud; "" where there is none.
func bucketOfHost(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".localstack.cloud")
	if rest, ok := strings.CutSuffix(host, ".localhost"); ok {
		if rest == "s3" {
			return ""
		}
		return strings.TrimSuffix(rest, ".s3")
	}
	if !strings.HasSuffix(host, ".amazonaws.com") {
		return ""
	}
	for _, mark := range []string{".s3.", ".s3-"} { // a bucket's name may itself have ".s3." in it
		if i := strings.LastIndex(host, mark); i > 0 {
			return host[:i]
		}
	}
	return ""
}

// routeTo finds the route that a request is for: of those whose every need it meets, the one that needs most.
func (a *API) routeTo(r *http.Request, t restTarget) (*Route, error) {
	method := r.Method
	var best *Route
	for i := range a.Routes {
		route := &a.Routes[i]
		if route.Method != method || route.Path != t.path() || !route.metBy(r, t) {
			continue
		}
		if best == nil || route.needs() > best.needs() {
			best = route
		}
	}
	if best == nil {
		return nil, refuseWith(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	return best, nil
}

func (r *Route) needs() int { return len(r.Query) + len(r.Headers) }

func (r *Route) metBy(q *http.Request, t restTarget) bool {
	for _, need := range r.Query {
		name, value, fixed := strings.Cut(need, "=")
		values, there := t.query[name]
		if !there || fixed && !slices.Contains(values, value) {
			return false
		}
	}
	for _, name := range r.Headers {
		if q.Header.Get(name) == "" {
			return false
		}
	}
	return true
}

// isREST says whether a request is for the API that is spoken in REST: its signature's scope says so, or
// nothing says that it is for another, and it has no form of its own.
func (h *Handler) isREST(r *http.Request) bool {
	if h.rest == nil {
		return false
	}
	if scope := scopeOf(r); scope != "" {
		return scope == h.rest.Name
	}
	if r.Header.Get(targetHeader) != "" {
		return false
	}
	if service, _ := rpcPath(r); service != "" {
		return false
	}
	query := r.URL.Query()
	if query.Has("AWSAccessKeyId") || strings.HasPrefix(r.Header.Get("Authorization"), "AWS ") || bucketOfHost(r.Host) != "" {
		return true
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		return false
	}
	host, _, _ := strings.Cut(r.Host, ".")
	if api := h.byName[host]; api != nil {
		return api == h.rest
	}
	return r.URL.Path != "/" && !query.Has("Action") // Query's clients call the root
}

package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/wire/model"
)

// FuzzPath: a path that matches a route is made of the route and its labels.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/v1/tags/a", "/v1/tags/arn%3Aa%2Fb", "/v1/tags/", "/v1/tags/a/b", "//", "/v1/%zz", "/v1/keys/a/b%2Fc"} {
		f.Add(path)
	}
	one := &model.Route{Method: "GET", Path: "/v1/tags/{arn}"}
	all := &model.Route{Method: "GET", Path: "/v1/keys/{key+}"}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		r := &http.Request{Method: "GET", URL: u}
		if labels, ok := matchPath(one, r); ok && (u.Path != "/v1/tags/"+labels["arn"] || strings.Count(u.EscapedPath(), "/") != 3) {
			t.Fatalf("%q has the labels %v", path, labels)
		}
		if labels, ok := matchPath(all, r); ok && u.Path != "/v1/keys/"+labels["key"] {
			t.Fatalf("%q has the labels %v", path, labels)
		}
	})
}

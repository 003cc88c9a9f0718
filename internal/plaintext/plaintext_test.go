package plaintext

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGuard: credentials and images go without TLS over loopback alone, and where that is allowed.
func TestGuard(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:5000/v2/": true, "http://[::1]:5000/v2/": true, "http://localhost/v2/": true, "http://ecr.localhost:4566/v2/": true,
		"http://192.168.1.5:5000/v2/": false, "http://10.0.0.1/v2/": false, "http://registry.local/v2/": false, "https://10.0.0.1/v2/": true,
	} {
		for _, allowed := range []bool{false, true} {
			asked := false
			next := roundTripper(func(*http.Request) (*http.Response, error) { asked = true; return nil, io.EOF })
			if _, err := (Guard{next, allowed}).RoundTrip(httptest.NewRequest("GET", url, nil)); err == nil || asked != (want || allowed) {
				t.Errorf("%s, allowed %v: asked %v, %v", url, allowed, asked, err)
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

package plane

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestLocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:4566":                       true,
		"localhost:4566":                       true,
		"localhost":                            true,
		"[::1]:4566":                           true,
		"bucket.localhost:4566":                true,
		"ecs.us-east-1.amazonaws.com":          true,
		"LOCALHOST:1":                          true,
		"localhost.localstack.cloud:4566":      true,
		"b.s3.localhost.localstack.cloud:4566": true,
		"evillocalhost.localstack.cloud":       false,
		"localstack.cloud":                     false,
		"evil.example":                         false,
		"evil.example:4566":                    false,
		"10.0.0.1:4566":                        false,
		"localhost.evil.example":               false,
		"":                                     false,
		"amazonaws.com.evil.example":           false,
	} {
		if got := isLocalHost(host); got != want {
			t.Errorf("%q is %v, want %v", host, got, want)
		}
	}
}

// TestGuardKeepsPagesOut: a web page from elsewhere can call nothing, though browsers let it submit forms and load images.
func TestGuardKeepsPagesOut(t *testing.T) {
	served := guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		who    string
		header map[string]string
		want   int
	}{
		{"an SDK", nil, http.StatusOK},
		{"a form of a page elsewhere", map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		{"a form in a sandboxed frame", map[string]string{"Origin": "null"}, http.StatusForbidden},
		{"a form of a page in somebody's bucket", map[string]string{"Origin": "https://evil.s3.amazonaws.com"}, http.StatusForbidden},
		{"an image of a page elsewhere", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{"a page of this machine", map[string]string{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"}, http.StatusOK},
		{"somebody who types the address", map[string]string{"Sec-Fetch-Site": "none"}, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:4566/?Action=TerminateInstances&Version=2016-11-15", nil)
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		if served.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s gets %d, want %d", c.who, w.Code, c.want)
		}
	}
}

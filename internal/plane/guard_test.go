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
	served := guard("", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
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

// TestGuardTellsHosts: whoever answers DNS can make a web site of any name but a loopback one, so browsers are answered at those alone.
// Others are answered at the advertised host, too.
func TestGuardTellsHosts(t *testing.T) {
	served := guard("gpus.example", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		host    string
		program int
		browser int
	}{
		{"127.0.0.1:4566", http.StatusOK, http.StatusOK},
		{"bucket.s3.localhost:4566", http.StatusOK, http.StatusOK},
		{"gpus.example:4566", http.StatusOK, http.StatusForbidden},
		{"GPUS.example", http.StatusOK, http.StatusForbidden},
		{"other.gpus.example", http.StatusForbidden, http.StatusForbidden},
		{"page.amazonaws.com:4566", http.StatusOK, http.StatusForbidden},
		{"page.localhost.localstack.cloud:4566", http.StatusOK, http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+c.host+"/bucket/key", nil)
		for name, want := range map[string]int{"": c.program, "Accept-Language": c.browser} {
			if name != "" {
				r.Header.Set(name, "") // a page may empty it, but not take it out
			}
			w := httptest.NewRecorder()
			if served.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s with %q gets %d, want %d", c.host, name, w.Code, want)
			}
			r.Header.Del("Accept-Language")
		}
	}
}

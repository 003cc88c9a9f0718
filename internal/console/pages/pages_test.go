package pages

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"
)

// nasty is what a user may call things.
const nasty = "<script>alert(1)<img src=x>\"'\x1b[31m"

// services answers as a control plane would that has one queue, and counts redrives.
type services struct{ redriven int }

func (s *services) Call(_ context.Context, in any) (any, error) {
	switch in.(type) {
	case *sqs.ListQueuesInput:
		return &sqs.ListQueuesOutput{QueueUrls: []string{"http://x/0/" + nasty}}, nil
	case *sqs.GetQueueAttributesInput:
		return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{string(types.QueueAttributeNameApproximateNumberOfMessages): "3"}}, nil
	case *sqs.StartMessageMoveTaskInput:
		s.redriven++
		return &sqs.StartMessageMoveTaskOutput{}, nil
	}
	return &cloudformation.DescribeStacksOutput{}, nil
}

// everybody may list what is in clusters.
func everybody(context.Context, string) error { return nil }

const secret = "the secret of the key"

// console returns pages for which one must log in, unless they're open.
func console(open, readOnly bool) (*Pages, *services) {
	s := &services{}
	o := login.Options{Now: time.Now}
	if !open {
		o.Lookup = func(_ context.Context, id, _ string) (sign.Credential, error) {
			if id != "AKIDALICE" {
				return sign.Credential{}, sign.ErrUnknownKey
			}
			return sign.Credential{SecretAccessKey: secret, Identity: call.Identity{Principal: "arn:aws:iam::0:user/alice"}}, nil
		}
	}
	return New(Options{MayList: everybody, Now: time.Now, Services: s, Sessions: login.New(o), ReadOnly: readOnly}), s
}

// send sends a request and returns the answer.
func send(p *Pages, method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:4566"+path, strings.NewReader(form.Encode()))
	r.RemoteAddr = "127.0.0.1:1234"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// enter logs in, and returns the cookie and the token.
func enter(t *testing.T, p *Pages) (cookie, token string) {
	t.Helper()
	w := send(p, "POST", "/console/login", url.Values{"id": {"AKIDALICE"}, "secret": {secret}, "next": {"//evil.example/"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/" {
		t.Fatalf("logging in answered %d, %s", w.Code, w.Header().Get("Location"))
	}
	set := w.Header().Get("Set-Cookie")
	if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") {
		t.Errorf("the cookie is %s", set)
	}
	cookie, _, _ = strings.Cut(set, ";")
	page := send(p, "GET", "/console/queues", nil, "Cookie", cookie).Body.String()
	_, rest, _ := strings.Cut(page, `name="token" content="`)
	token, _, _ = strings.Cut(rest, `"`)
	if len(token) < 20 {
		t.Fatalf("the page has no token: %s", page)
	}
	return cookie, token
}

// TestWhoMayAct: neither a cookie without the token, nor the token without a cookie, nor another site's page does anything.
func TestWhoMayAct(t *testing.T) {
	p, s := console(false, false)
	cookie, token := enter(t, p)
	form := url.Values{"token": {token}, "arn": {"x"}, "queue": {"x"}}
	for name, c := range map[string]struct {
		form    url.Values
		headers []string
		want    int
	}{
		"the page itself":     {form, []string{"Cookie", cookie}, http.StatusSeeOther},
		"a stolen cookie":     {url.Values{"queue": {"x"}}, []string{"Cookie", cookie}, http.StatusForbidden},
		"another's token":     {url.Values{"token": {"x"}}, []string{"Cookie", cookie}, http.StatusForbidden},
		"no cookie":           {form, nil, http.StatusForbidden},
		"another site":        {form, []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another origin":      {form, []string{"Cookie", cookie, "Origin", "http://evil.example"}, http.StatusForbidden},
		"another port's page": {form, []string{"Cookie", cookie, "Origin", "http://127.0.0.1:8080"}, http.StatusForbidden},
	} {
		before := s.redriven
		w := send(p, "POST", "/console/do/redrive", c.form, c.headers...)
		if w.Code != c.want || (s.redriven > before) != (c.want == http.StatusSeeOther) {
			t.Errorf("%s: %d, and %d redrives: %s", name, w.Code, s.redriven-before, w.Body)
		}
	}
	send(p, "POST", "/console/logout", form, "Cookie", cookie)
	if w := send(p, "GET", "/console/queues", nil, "Cookie", cookie); w.Code != http.StatusSeeOther {
		t.Errorf("after logging out a page answered %d", w.Code)
	}
}

// TestLogin: wrong secrets are refused, soon all of them, and none is taken over plain HTTP from elsewhere.
func TestLogin(t *testing.T) {
	p, _ := console(false, false)
	if w := send(p, "GET", "/console/queues", nil); !strings.HasPrefix(w.Header().Get("Location"), "/console/login?next=") {
		t.Errorf("a stranger got %d %s", w.Code, w.Body)
	}
	wrong := url.Values{"id": {"AKIDALICE"}, "secret": {"guess"}}
	for n := range 12 {
		want := http.StatusForbidden
		if n >= 10 {
			want = http.StatusTooManyRequests
		}
		if w := send(p, "POST", "/console/login", wrong); w.Code != want {
			t.Errorf("guess %d was answered with %d", n, w.Code)
		}
	}
	p, _ = console(false, false)
	r := httptest.NewRequest("POST", "http://10.0.0.1:4566/console/login", strings.NewReader(url.Values{"id": {"AKIDALICE"}, "secret": {secret}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = "10.0.0.9:1234"
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "plain HTTP") {
		t.Errorf("a secret over plain HTTP was answered with %d", w.Code)
	}
}

// TestReadOnly: nothing can be done, and no form offers it.
func TestReadOnly(t *testing.T) {
	p, s := console(true, true)
	page := send(p, "GET", "/console/queues", nil).Body.String()
	_, rest, _ := strings.Cut(page, `name="token" content="`)
	token, _, _ := strings.Cut(rest, `"`)
	if w := send(p, "POST", "/console/do/redrive", url.Values{"token": {token}}); w.Code != http.StatusForbidden || s.redriven != 0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := send(p, "POST", "/console/keys/x", nil, "X-Token", token); w.Code != http.StatusForbidden {
		t.Errorf("keys got %d", w.Code)
	}
}

// TestPagesAreSafe: what users call things is text, and browsers load nothing but the console's own files.
func TestPagesAreSafe(t *testing.T) {
	p, _ := console(true, false)
	w := send(p, "GET", "/console/queues", nil)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "&lt;script&gt;alert(1)") || strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy is %s", policy)
		}
	}
	for _, path := range []string{"/console/../etc/passwd", "/console/assets/..%2fpages.go", "/console/assets/%2e%2e/pages.go"} {
		if w := send(p, "GET", path, nil); w.Code == http.StatusOK {
			t.Errorf("%s was answered: %s", path, w.Body)
		}
	}
}

// whence answers with the address of whoever asks.
type whence struct{ call.Caller }

func (whence) Call(ctx context.Context, in any) (any, error) {
	if _, ok := in.(*sqs.ListQueuesInput); ok {
		c := call.From(ctx)
		return &sqs.ListQueuesOutput{QueueUrls: []string{"http://x/0/" + c.Peer + " by " + strings.ReplaceAll(c.Endpoint, "/", "")}}, nil
	}
	return &sqs.GetQueueAttributesOutput{}, nil
}

// TestPagesAreOfAPlace: policies may depend on where somebody is and on TLS, so nobody gets a page that was made for somebody elsewhere.
func TestPagesAreOfAPlace(t *testing.T) {
	p := New(Options{MayList: everybody, Now: time.Now, Services: whence{}, Sessions: login.New(login.Options{Now: time.Now})})
	for _, address := range []string{"127.0.0.1", "10.0.0.9"} {
		for _, scheme := range []string{"http", "https"} {
			r := httptest.NewRequest("GET", scheme+"://x/console/queues", nil) // with TLS, for https
			r.RemoteAddr = address + ":1234"
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			if want := address + ":1234 by " + scheme + ":x"; !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s by %s got %s", address, scheme, w.Body)
			}
		}
	}
}

// TestHere: whoever logs in is sent to one of the console's pages, and to nobody else's.
func TestHere(t *testing.T) {
	for next, want := range map[string]string{
		"/console/":                     "/console/",
		"/console/queues?q=a//b/../c":   "/console/queues?q=a//b/../c",
		"":                              "/console/",
		"//evil.example/":               "/console/",
		"https://evil.example/console/": "/console/",
		"/console/..//evil.example":     "/console/",
		"/console/../data/page.html":    "/console/",
		"/console/\\evil.example":       "/console/",
		"/console/x\r\nSet-Cookie: a=b": "/console/",
	} {
		if got := here(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}

// TestViewsShowChangesWithinASecond: each view is told of changes, or looks often enough. Money and replays are of what CloudWatch has by the minute.
func TestViewsShowChangesWithinASecond(t *testing.T) {
	p, _ := console(true, false)
	for _, v := range p.views() {
		if v.path == "/console/money" || strings.HasSuffix(v.path, "/replay") || v.reads != nil || v.arm != nil {
			continue
		}
		if v.every == 0 || v.every > often {
			t.Errorf("%s looks every %s", v.path, v.every)
		}
	}
}

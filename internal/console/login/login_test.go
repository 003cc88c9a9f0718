package login

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"
)

// office has one access key, and a clock.
type office struct {
	*Sessions
	key sign.Credential
	err error
	now time.Time
}

func newOffice() *office {
	o := &office{
		key: sign.Credential{SecretAccessKey: "secret", Identity: call.Identity{Principal: "arn:aws:iam::0:user/ann"}},
		now: time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC),
	}
	o.Sessions = New(Options{
		Now:    func() time.Time { return o.now },
		Lookup: func(context.Context, string, string) (sign.Credential, error) { return o.key, o.err },
	})
	return o
}

// enter logs in, and returns a request with the session's cookie.
func (o *office) enter(t *testing.T, secret string) (*http.Request, error) {
	t.Helper()
	w := httptest.NewRecorder()
	err := o.Begin(w, httptest.NewRequest(http.MethodPost, "/console/login", nil), "AKID", secret)
	r := httptest.NewRequest(http.MethodGet, "/console/", nil)
	for _, c := range w.Result().Cookies() {
		r.AddCookie(c)
	}
	return r, err
}

// TestHowSessionsEnd: each with what it depends on, and none comes back.
func TestHowSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(o *office){
		"idle":                  func(o *office) { o.now = o.now.Add(idleness) },
		"the key is gone":       func(o *office) { o.err = sign.ErrUnknownKey },
		"another secret":        func(o *office) { o.key.SecretAccessKey = "another" },
		"another's key":         func(o *office) { o.key.Identity.Principal = "arn:aws:iam::0:user/bob" },
		"many others have come": func(o *office) { comeMany(t, o) },
	} {
		o := newOffice()
		r, err := o.enter(t, "secret")
		if err != nil || o.Of(r) == nil {
			t.Fatalf("%s: logging in: %v", name, err)
		}
		before := *o
		end(o)
		if o.Of(r) != nil {
			t.Errorf("%s: the session lasts", name)
		}
		o.key, o.err, o.now = before.key, before.err, before.now
		if o.Of(r) != nil {
			t.Errorf("%s: the session comes back", name)
		}
	}
}

func comeMany(t *testing.T, o *office) {
	for range mostOfKey {
		o.now = o.now.Add(time.Second)
		if _, err := o.enter(t, "secret"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSessionsEndInTheEnd: also those that are used all the time.
func TestSessionsEndInTheEnd(t *testing.T) {
	o := newOffice()
	r, err := o.enter(t, "secret")
	if err != nil {
		t.Fatal(err)
	}
	began := o.now
	for o.Of(r) != nil {
		o.now = o.now.Add(idleness / 2)
	}
	if took := o.now.Sub(began); took != lifetime {
		t.Errorf("it lasted %v", took)
	}
}

// TestWhoMayLogIn: people, and neither nodes nor tasks nor sessions of roles; nor anybody without a secret.
func TestWhoMayLogIn(t *testing.T) {
	for name, change := range map[string]func(k *sign.Credential){
		"a node":       func(k *sign.Credential) { k.Identity.Node = true },
		"a task":       func(k *sign.Credential) { k.Identity.Task = "t" },
		"a role":       func(k *sign.Credential) { k.Identity.Role = "r" },
		"no secret":    func(k *sign.Credential) { k.SecretAccessKey = "" },
		"wrong secret": func(k *sign.Credential) { k.SecretAccessKey = "another" },
	} {
		o := newOffice()
		change(&o.key)
		secret := "secret"
		if o.key.SecretAccessKey == "" {
			secret = ""
		}
		if r, err := o.enter(t, secret); err != ErrRefused || o.Of(r) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package login

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
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

	token string // that is typed
	age   int    // of the cookie
}

func newOffice() *office {
	o := &office{
		key: sign.Credential{SecretAccessKey: "secret", Identity: call.Identity{Principal: "arn:aws:iam::0:user/ann"}},
		now: time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC),
	}
	o.Sessions = New(Options{
		Now: func() time.Time { return o.now },
		Lookup: func(_ context.Context, _, token string) (sign.Credential, error) {
			if o.key.SessionToken != "" && token != o.key.SessionToken {
				return sign.Credential{}, sign.ErrUnknownKey
			}
			return o.key, o.err
		},
	})
	return o
}

// enter logs in, and returns a request with the session's cookie.
func (o *office) enter(t *testing.T, secret string) (*http.Request, error) {
	t.Helper()
	w := httptest.NewRecorder()
	err := o.Begin(w, httptest.NewRequest(http.MethodPost, "/console/login", nil), "AKID", secret, o.token)
	r := httptest.NewRequest(http.MethodGet, "/console/", nil)
	for _, c := range w.Result().Cookies() {
		o.age = c.MaxAge
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

// TestTemporaryKeys: a session of one ends with it, and begins with its token alone.
func TestTemporaryKeys(t *testing.T) {
	o := newOffice()
	o.key.SessionToken, o.token = "token", "token"
	o.key.Identity.Role = "arn:aws:iam::0:role/ops"
	o.key.Expires = o.now.Add(20 * time.Minute)
	r, err := o.enter(t, "secret")
	if err != nil || o.Of(r) == nil || o.age != 20*60 {
		t.Fatalf("logging in: %v; the cookie lasts %d s", err, o.age)
	}
	o.now = o.key.Expires.Add(-time.Second)
	if one := o.Of(r); one == nil || one.Holder() != "arn:aws:iam::0:role/ops" {
		t.Errorf("a second before its end it's %v", one)
	}
	o.now = o.key.Expires
	if o.Of(r) != nil {
		t.Error("it lasts longer than its key")
	}
	if _, err := o.enter(t, "secret"); err != ErrExpired {
		t.Errorf("a key that is over: %v", err)
	}
	if _, err := o.enter(t, "another"); err != ErrRefused {
		t.Errorf("whoever doesn't know the secret is told %v", err)
	}
	o.key.Expires = o.now.Add(48 * time.Hour)
	for token, want := range map[string]error{"": ErrRefused, "another": ErrRefused, "token": nil} {
		o.token = token
		if _, err := o.enter(t, "secret"); err != want || err == nil && o.age != int(lifetime.Seconds()) {
			t.Errorf("with the token %q: %v, and the cookie lasts %d s", token, err, o.age)
		}
	}
	o = newOffice()
	o.token = "of no key"
	if _, err := o.enter(t, "secret"); err != ErrRefused {
		t.Errorf("a token for a key that has none: %v", err)
	}
}

// TestRolesMakeRoom: whoever may assume a role makes as many keys as they like, and puts out nobody but those who assumed it.
func TestRolesMakeRoom(t *testing.T) {
	o := newOffice()
	mine, err := o.enter(t, "secret")
	if err != nil {
		t.Fatal(err)
	}
	known := o.key
	o.Sessions.opts.Lookup = func(_ context.Context, id, _ string) (sign.Credential, error) {
		k := known
		if id != "AKID" {
			k.Identity.Role = "r"
		}
		return k, nil
	}
	for n := range most + 1 {
		o.now = o.now.Add(time.Second)
		if err := o.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/console/login", nil), "ASIA"+strconv.Itoa(n), "secret", ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.all) != mostOfRole+1 || o.Of(mine) == nil {
		t.Errorf("there are %d sessions, and the first is %v", len(o.all), o.Of(mine))
	}
}

// TestWhoMayLogIn: people, and neither nodes nor tasks, nor anybody without a secret.
func TestWhoMayLogIn(t *testing.T) {
	for name, change := range map[string]func(k *sign.Credential){
		"a node":                     func(k *sign.Credential) { k.Identity.Node = true },
		"a task":                     func(k *sign.Credential) { k.Identity.Task = "t" },
		"a task that assumed a role": func(k *sign.Credential) { k.Identity.Task, k.Identity.Role = "t", "r" },
		"no secret":                  func(k *sign.Credential) { k.SecretAccessKey = "" },
		"wrong secret":               func(k *sign.Credential) { k.SecretAccessKey = "another" },
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

package login

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestGuesses: guessing is stopped by address, and by key at an address. By many addresses it's slowed down, and so are the others for that while, who
// are kept out by none of it.
func TestGuesses(t *testing.T) { synctest.Test(t, testGuesses) }

func testGuesses(t *testing.T) {
	const operator, neighbour = "10.0.0.1:99", "10.0.0.1:7"
	for name, c := range map[string]struct {
		guesses, addresses, keys int    // from so many addresses and for so many keys each
		unknown                  bool   // whether no key has these ids
		most                     int    // how many of the guesses are looked at in a while
		from                     string // where the operator is
		id                       string // whose key they have
		want                     error
		wait                     time.Duration // how long the operator waits
	}{
		"the same key, at another address":  {20, 1, 1, false, 10, "10.9.9.9:1", "AKID0", nil, 0},
		"the same key, at the same address": {20, 1, 1, false, 10, operator, "AKID0", ErrTooMany, 0},
		"another key, at the same address":  {20, 1, 1, false, 10, operator, "AKIDOPS", nil, 0},
		"some keys, at the same address":    {20, 1, 9, false, 90, operator, "AKIDOPS", nil, 0},
		"many keys, at the same address":    {20, 1, 50, false, 100, operator, "AKIDOPS", ErrTooMany, 0},
		"ids of no keys":                    {20, 1, 50, true, 1000, operator, "AKIDOPS", nil, 0},
		"many addresses, and another key":   {20, 50, 1, false, 500, "10.9.9.9:1", "AKIDOPS", nil, 0},
		"many addresses, and the same key":  {20, 50, 1, false, 500, "10.9.9.9:1", "AKID0", nil, pause},
		"many addresses, and many keys":     {10, 110, 10, false, 11_000, "10.9.9.9:1", "AKIDOPS", nil, pause},
	} {
		o := newOffice()
		o.Sessions.opts.Lookup = func(_ context.Context, id, _ string) (sign.Credential, error) {
			if c.unknown && id != "AKIDOPS" {
				return sign.Credential{}, sign.ErrUnknownKey
			}
			return o.key, nil
		}
		try := func(from, id, secret string) error {
			r := httptest.NewRequest(http.MethodPost, "/console/login", nil)
			r.RemoteAddr = from
			return o.Begin(httptest.NewRecorder(), r, id, secret, "")
		}
		var seen atomic.Int32
		var guessing sync.WaitGroup
		for a := range c.addresses {
			from := neighbour
			if c.addresses > 1 {
				from = "10.1.2." + strconv.Itoa(a) + ":7"
			}
			for n := range c.guesses * c.keys {
				guessing.Go(func() {
					if try(from, "AKID"+strconv.Itoa(n%c.keys), "guess") == ErrRefused {
						seen.Add(1)
					}
				})
			}
			synctest.Wait() // they wait, or are refused
		}
		began := time.Now()
		err := try(c.from, c.id, "secret")
		if took := time.Since(began); err != c.want || took != c.wait {
			t.Errorf("%s: the operator gets %v after %v", name, err, took)
		}
		guessing.Wait()
		if n := int(seen.Load()); n != c.most {
			t.Errorf("%s: %d guesses are looked at, not %d", name, n, c.most)
		}
		if n := len(o.failures); n > mostPlaces {
			t.Errorf("%s: there are %d counts", name, n)
		}
		o.now = o.now.Add(while)
		began = time.Now()
		if err := try(c.from, c.id, "secret"); err != nil || time.Since(began) > 0 {
			t.Errorf("%s: a minute later the operator gets %v after %v", name, err, time.Since(began))
		}
	}
}

// TestManyPlaces: memory is bounded, however many addresses guess.
func TestManyPlaces(t *testing.T) {
	o := newOffice()
	for n := range 2 * mostPlaces {
		from := netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)})
		if _, ok := o.mayTry(place{netip.PrefixFrom(from, 32), "AKID"}); !ok {
			t.Fatal(n, "is kept out")
		}
	}
	if len(o.failures) > mostPlaces {
		t.Errorf("there are %d counts", len(o.failures))
	}
	if wait, ok := o.mayTry(place{netip.MustParsePrefix("10.9.9.9/32"), "AKIDOPS"}); wait != pause || !ok {
		t.Errorf("one more waits for %v, %v", wait, ok)
	}
}

// TestKeysOfARole: whoever makes many keys of a role guesses no more for it.
func TestKeysOfARole(t *testing.T) {
	o := newOffice()
	o.key.Identity.Role = "r"
	for n := range 2 * tries {
		want := ErrRefused
		if n >= tries {
			want = ErrTooMany
		}
		if err := o.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/console/login", nil), "ASIA"+strconv.Itoa(n), "guess", ""); err != want {
			t.Errorf("guess %d: %v", n, err)
		}
	}
}

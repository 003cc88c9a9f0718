// Package login knows who looks at the console: sessions that begin with an access key and its secret, end after a while or with the key, and are few.
// Where signatures aren't checked, everybody is the account's owner, as for the APIs. It asks whoever verifies signatures for keys, and keeps no secret.
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/sign"
)

const (
	// lifetime is how long a session lasts, and idleness how long one that nobody uses.
	lifetime, idleness = 12 * time.Hour, time.Hour
	// most is how many sessions there may be at once, and mostOfKey those of one access key. The one that was used longest ago makes room.
	most, mostOfKey = 1000, 20
	// tries is how often somebody at one place may fail in a while, and triesOfAll everybody together.
	tries, triesOfAll, while = 10, 300, time.Minute
	cookie                   = "pintle-console"
)

// The errors of logging in.
var (
	ErrRefused = errors.New("there is no such access key, or the secret is another")
	ErrTooMany = errors.New("too many failed attempts; try again in a minute")
)

// Options are what sessions need.
type Options struct {
	// Lookup finds an access key, as for a signature; nil where no signatures are checked.
	Lookup func(ctx context.Context, accessKeyID, sessionToken string) (sign.Credential, error)
	Now    func() time.Time
}

// Session is somebody who has logged in.
type Session struct {
	call.Identity
	AccessKeyID string
	Token       string // that each POST must bring besides the cookie

	secret     [32]byte // the hash of the access key's
	began      time.Time
	lastUsed   time.Time
	cookieHash [32]byte
}

// Sessions are all sessions.
type Sessions struct {
	opts  Options
	owner *Session // everybody, where no signatures are checked

	mu       sync.Mutex
	all      map[[32]byte]*Session // by the hash of the cookie
	failures map[netip.Prefix]int
	failed   int
	since    time.Time // since when failures are counted
}

// New returns no sessions yet.
func New(o Options) *Sessions {
	s := &Sessions{opts: o, all: map[[32]byte]*Session{}, failures: map[netip.Prefix]int{}}
	if o.Lookup == nil {
		s.owner = &Session{Token: rand.Text()}
	}
	return s
}

// IsOpen reports whether nobody needs to log in.
func (s *Sessions) IsOpen() bool { return s.owner != nil }

// Of returns the session of a request, or nil.
func (s *Sessions) Of(r *http.Request) *Session {
	if s.owner != nil {
		return s.owner
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil
	}
	hash := sha256.Sum256([]byte(c.Value))
	s.mu.Lock()
	one := s.all[hash]
	s.mu.Unlock()
	if one == nil || !s.Lasts(r.Context(), one) {
		return nil
	}
	s.mu.Lock()
	one.lastUsed = s.opts.Now()
	s.mu.Unlock()
	return one
}

// Lasts reports whether a session is still good: it's no older than it may be, and its access key has the secret that it had and is the same
// principal's. One that isn't is forgotten.
func (s *Sessions) Lasts(ctx context.Context, one *Session) bool {
	if one == s.owner {
		return true
	}
	now := s.opts.Now()
	known, err := s.opts.Lookup(ctx, one.AccessKeyID, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all[one.cookieHash] != one:
		return false
	case now.Sub(one.began) < lifetime && now.Sub(one.lastUsed) < idleness &&
		err == nil && sha256.Sum256([]byte(known.SecretAccessKey)) == one.secret && known.Identity == one.Identity:
		return true
	}
	delete(s.all, one.cookieHash)
	return false
}

// Begin begins a session for whoever knows an access key's secret, and sets its cookie.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, accessKeyID, secret string) error {
	from := connection.From(r.RemoteAddr)
	if !s.mayTry(from) {
		return ErrTooMany
	}
	c, err := s.opts.Lookup(r.Context(), accessKeyID, "")
	want := sha256.Sum256([]byte(c.SecretAccessKey))
	got := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(want[:], got[:]); err != nil || same == 0 || c.SecretAccessKey == "" || !isPerson(c.Identity) {
		return ErrRefused
	}
	value := rand.Text() + rand.Text()
	now := s.opts.Now()
	s.add(from, &Session{
		Identity: c.Identity, AccessKeyID: accessKeyID, Token: rand.Text(),
		secret: want, began: now, lastUsed: now, cookieHash: sha256.Sum256([]byte(value)),
	})
	setCookie(w, r, value, int(lifetime.Seconds()))
	return nil
}

// isPerson reports whether an access key is for somebody to use, and neither a node's nor one that ends with a session.
func isPerson(i call.Identity) bool {
	return !i.Node && i.Task == "" && i.Role == "" && i.Session == ""
}

// mayTry counts a try as failed until it succeeds, and reports whether there were too many.
func (s *Sessions) mayTry(from netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.opts.Now(); now.Sub(s.since) >= while {
		s.since = now
		s.failed = 0
		clear(s.failures)
	}
	if s.failures[from] >= tries || s.failed >= triesOfAll {
		return false
	}
	s.failures[from]++
	s.failed++
	return true
}

// add adds a session, whose beginning was no failure, and makes room for it.
func (s *Sessions) add(from netip.Prefix, one *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[from] = max(0, s.failures[from]-1)
	s.failed = max(0, s.failed-1)
	s.all[one.cookieHash] = one
	s.makeRoomLocked(most, func(*Session) bool { return true })
	s.makeRoomLocked(mostOfKey, func(other *Session) bool { return other.AccessKeyID == one.AccessKeyID })
}

// makeRoomLocked forgets sessions of a kind that there are too many of, those first that were used longest ago.
func (s *Sessions) makeRoomLocked(most int, isOfKind func(*Session) bool) {
	var oldest *Session
	n := 0
	for _, one := range s.all {
		if !isOfKind(one) {
			continue
		}
		n++
		if oldest == nil || one.lastUsed.Before(oldest.lastUsed) {
			oldest = one
		}
	}
	if n > most {
		delete(s.all, oldest.cookieHash)
	}
}

// End ends a request's session.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) {
	if one := s.Of(r); one != nil && one != s.owner {
		s.mu.Lock()
		delete(s.all, one.cookieHash)
		s.mu.Unlock()
	}
	setCookie(w, r, "", -1)
}

// Knows reports whether a token is the session's.
func (one *Session) Knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(one.Token)) == 1
}

// cookieName is the cookie's name. Over TLS it's one that browsers take from this very host alone.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + cookie
	}
	return cookie
}

func setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

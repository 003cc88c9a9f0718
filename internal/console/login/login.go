// Package login knows who looks at the console: sessions that begin with an access key and its secret, and a temporary key's token, end after a while or
// with the key, and are few. Where signatures aren't checked, everybody is the account's owner, as for the APIs. It asks whoever verifies signatures for
// keys, and keeps no secret.
package login

import (
	"cmp"
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
	// most is how many sessions there may be at once, mostOfKey those of one access key, and mostOfRole those of all who assumed one role: they make as
	// many keys as they like. The one that was used longest ago makes room.
	most, mostOfKey, mostOfRole = 1000, 20, 200
	// tries is how often somebody at one address may guess one key's secret wrongly in a while, and triesOfAddress all keys' secrets. Ids that no key
	// has aren't counted: there is no secret to guess, so who knows no ids keeps nobody out who has the same address.
	tries, triesOfAddress, while = 10, 100, time.Minute
	// triesOfKey is after how many wrong guesses of one key's secret, by all addresses together, each try waits for a pause, and triesOfAll the same for
	// everybody's guesses. A refusal would let those who guess keep out those who don't. A connection that waits is one of the few that strangers have.
	triesOfKey, triesOfAll, pause = 300, 10_000, 5 * time.Second
	// mostPlaces bounds memory. Tries at more places in a while aren't counted there, but all of them wait.
	mostPlaces = 3 * triesOfAll
	cookie     = "pintle-console"
)

// The errors of logging in.
var (
	ErrRefused = errors.New("there is no such access key, or the secret or the session token is another")
	// ErrExpired has AWS's words, which pages write as a sentence.
	ErrExpired = errors.New("the security token included in the request is expired")
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
	ofKey      string   // a temporary key's token, without which nobody knows the key; no secret: it signs nothing by itself
	began      time.Time
	lastUsed   time.Time
	cookieHash [32]byte
}

// Holder is whose a session is, for what somebody can have so much of: the role's that a temporary key is for, else the access key's.
func (one *Session) Holder() string { return cmp.Or(one.Role, one.AccessKeyID) }

// Sessions are all sessions.
type Sessions struct {
	opts  Options
	owner *Session // everybody, where no signatures are checked

	mu       sync.Mutex
	all      map[[32]byte]*Session // by the hash of the cookie
	failures map[place]int
	since    time.Time // since when failures are counted
}

// place is where somebody tries: an address, a key, or a key from an address.
type place struct {
	from netip.Prefix
	key  string
}

// New returns no sessions yet.
func New(o Options) *Sessions {
	s := &Sessions{opts: o, all: map[[32]byte]*Session{}, failures: map[place]int{}}
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
	known, err := s.opts.Lookup(ctx, one.AccessKeyID, one.ofKey)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all[one.cookieHash] != one:
		return false
	case now.Sub(one.began) < lifetime && now.Sub(one.lastUsed) < idleness &&
		err == nil && !isOver(known, now) && sha256.Sum256([]byte(known.SecretAccessKey)) == one.secret && known.Identity == one.Identity:
		return true
	}
	delete(s.all, one.cookieHash)
	return false
}

// isOver reports whether a temporary key has ended.
func isOver(c sign.Credential, now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// Begin begins a session for whoever knows an access key's secret, and sets its cookie. token is a temporary key's, with which the session ends at the
// latest, else "".
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, accessKeyID, secret, token string) error {
	c, err := s.opts.Lookup(r.Context(), accessKeyID, token)
	if err != nil || c.SecretAccessKey == "" || !isPerson(c.Identity) {
		return ErrRefused // there is nothing to guess
	}
	tried := place{connection.From(r.RemoteAddr), cmp.Or(c.Identity.Role, accessKeyID)} // those who may assume a role make as many keys as they like
	wait, ok := s.mayTry(tried)
	if !ok {
		return ErrTooMany
	}
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return r.Context().Err()
	}
	want := sha256.Sum256([]byte(c.SecretAccessKey))
	got := sha256.Sum256([]byte(secret))
	same := subtle.ConstantTimeCompare(want[:], got[:]) & subtle.ConstantTimeCompare([]byte(c.SessionToken), []byte(token))
	now := s.opts.Now()
	switch {
	case same == 0:
		return ErrRefused
	case isOver(c, now):
		return ErrExpired
	}
	lasts := lifetime
	if !c.Expires.IsZero() {
		lasts = min(lasts, c.Expires.Sub(now))
	}
	value := rand.Text() + rand.Text()
	s.add(tried, &Session{
		Identity: c.Identity, AccessKeyID: accessKeyID, Token: rand.Text(),
		secret: want, ofKey: token, began: now, lastUsed: now, cookieHash: sha256.Sum256([]byte(value)),
	})
	setCookie(w, r, value, max(1, int(lasts.Seconds())))
	return nil
}

// isPerson reports whether an access key is for somebody to use, and neither a node's nor a task's.
func isPerson(i call.Identity) bool { return !i.Node && i.Task == "" }

// own are where a try counts against those who are there, and how many failures there may be.
func (p place) own() map[place]int { return map[place]int{p: tries, {from: p.from}: triesOfAddress} }

// shared are where a try counts against everybody, and after how many failures there one waits.
func (p place) shared() map[place]int { return map[place]int{{key: p.key}: triesOfKey, {}: triesOfAll} }

// mayTry counts a try as failed until it succeeds. It says how long the try waits, or reports that there were too many.
func (s *Sessions) mayTry(at place) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.opts.Now(); now.Sub(s.since) >= while {
		s.since = now
		clear(s.failures)
	}
	for p, most := range at.own() {
		if s.failures[p] >= most {
			return 0, false
		}
	}
	for p, most := range at.shared() {
		if s.failures[p] >= most {
			wait = pause
		}
	}
	s.countLocked(at, 1)
	return wait, true
}

// countLocked adds to the failures of a try.
func (s *Sessions) countLocked(at place, n int) {
	for _, places := range []map[place]int{at.own(), at.shared()} {
		for p := range places {
			if _, known := s.failures[p]; known || len(s.failures) < mostPlaces {
				s.failures[p] = max(0, s.failures[p]+n)
			}
		}
	}
}

// add adds a session, whose beginning was no failure, and makes room for it.
func (s *Sessions) add(at place, one *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(at, -1)
	s.all[one.cookieHash] = one
	s.makeRoomLocked(mostOfKey, func(other *Session) bool { return other.AccessKeyID == one.AccessKeyID })
	if one.Role != "" {
		s.makeRoomLocked(mostOfRole, func(other *Session) bool { return other.Role == one.Role })
	}
	s.makeRoomLocked(most, func(*Session) bool { return true }) // after the above, which may have made it
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

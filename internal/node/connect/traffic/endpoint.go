package traffic

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// endpoint has the targets of one endpoint.
type endpoint struct {
	opts Options
	turn atomic.Uint64

	mu      sync.Mutex // held to change targets
	targets atomic.Pointer[[]*target]
}

func (e *endpoint) all() []*target {
	if all := e.targets.Load(); all != nil {
		return *all
	}
	return nil
}

// set replaces the targets. One that stays keeps what is known of it, and its connections.
func (e *endpoint) set(wanted []Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := map[string]*target{}
	for _, t := range e.all() {
		before[t.address] = t
	}
	after := []*target{}
	for _, w := range wanted {
		t := before[w.Address]
		if t == nil {
			t = newTarget(w.Address, e.opts)
		}
		delete(before, w.Address)
		t.unhealthy.Store(w.Unhealthy)
		after = append(after, t)
	}
	e.targets.Store(&after)
	for _, t := range before {
		t.leave()
	}
}

// pick returns the next target that isn't among those tried, or nil.
func (e *endpoint) pick(tried []*target) *target {
	all := e.all()
	now := time.Now()
	states := make([]standing, len(all))
	for i, t := range all {
		states[i] = standing{unhealthy: t.unhealthy.Load(), ejected: t.isEjected(now)}
		for _, other := range tried {
			states[i].tried = states[i].tried || other == t
		}
	}
	if i := choose(states, e.turn.Add(1)); i >= 0 {
		return all[i]
	}
	return nil
}

// target is one target as long as it's there.
type target struct {
	address   string
	unhealthy atomic.Bool
	http1     *http.Transport
	http2     *http.Transport

	mu     sync.Mutex
	record record
}

func newTarget(address string, o Options) *target {
	t := &target{address: address}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := o.Dial(ctx, "tcp", address)
		if err != nil {
			return nil, dialError{err}
		}
		return c, nil
	}
	newTransport := func(set func(*http.Protocols)) *http.Transport {
		protocols := new(http.Protocols)
		set(protocols)
		return &http.Transport{
			DialContext:            dial,
			Protocols:              protocols,
			TLSClientConfig:        &tls.Config{}, //nolint:gosec // never used: targets speak plain HTTP
			DisableCompression:     true,          // answers pass as they are
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        maxIdleTime,
			MaxResponseHeaderBytes: maxHeader,
			ExpectContinueTimeout:  time.Second,
		}
	}
	t.http1 = newTransport(func(p *http.Protocols) { p.SetHTTP1(true) })
	t.http2 = newTransport(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
	return t
}

// How many connections to a target are kept for later, for how long, and how large the head of an answer may be.
const (
	maxIdle     = 64
	maxIdleTime = time.Minute
	maxHeader   = 64 << 10
)

// leave lets what is under way come to its end; then the connections are closed.
func (t *target) leave() {
	t.http1.CloseIdleConnections()
	t.http2.CloseIdleConnections()
}

// dialError says that a target wasn't reached, so that it has seen nothing.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func (t *target) isEjected(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.record.until)
}

// note notes how a request or connection went, and says if the target is left out or taken back.
func (d *door) note(t *target, failed bool) {
	t.mu.Lock()
	before := t.record
	t.record = before.after(failed, time.Now())
	after := t.record
	t.mu.Unlock()
	switch log := d.proxy.opts.Log.With("task", t.address, "name", d.Name); {
	case after.until.After(before.until):
		log.Warn("a task is left out for a while, because it fails")
	case after.until.IsZero() && !before.until.IsZero():
		log.Info("a task that was left out is taken back")
	}
}

// failures are requests and connections that no task took, since that was said last.
type failures struct {
	mu    sync.Mutex
	said  time.Time
	count int
}

// sayEvery is how often a listener says that something fails, at most.
const sayEvery = 10 * time.Second

// fail says that a request or a connection has failed, together with those since it was said last.
func (d *door) fail(reason string) {
	f := &d.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if time.Since(f.said) < sayEvery {
		return
	}
	d.proxy.opts.Log.Warn("no answer", "name", d.Name, "reason", reason, "failures", f.count)
	f.said, f.count = time.Now(), 0
}

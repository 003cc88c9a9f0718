package proxy

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// newReverse returns what carries the requests to their targets that no lane takes.
func (p *Proxy) newReverse() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // a target decides for itself what it can't read
			exchangeOf(r.In.Context()).rewrite(r.Out)
		},
		Transport: transport{},
		ModifyResponse: func(resp *http.Response) error {
			exchangeOf(resp.Request.Context()).setCookies(resp.Header, resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { exchangeOf(r.Context()).failed(err) },
		BufferPool:   buffers,
		ErrorLog:     log.New(logWriter{p}, "", 0),
	}
}

// bufferPool lends buffers.
type bufferPool struct{ sync.Pool }

var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

// Get implements httputil.BufferPool.
func (b *bufferPool) Get() []byte { return b.Pool.Get().(*[32 << 10]byte)[:] }

// Put implements httputil.BufferPool.
func (b *bufferPool) Put(buffer []byte) { b.Pool.Put((*[32 << 10]byte)(buffer)) }

// rewrite makes the target's request of what was copied of the client's.
func (x *exchange) rewrite(out *http.Request) {
	if out.Host = x.request.Host; out.Host == "" { // else it would be the target's own
		out.Host = x.request.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	}
	h := out.Header
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") { // another protocol would carry requests past the rules
		h.Del("Connection")
		h.Del("Upgrade")
	}
	if x.route.balancer.Attributes.DropInvalidHeaders {
		dropInvalid(h)
	}
	x.forwardedFor(h)
	h["X-Forwarded-Proto"] = []string{x.route.scheme}
	h["X-Forwarded-Port"] = []string{x.route.port}
	x.record.TraceID = traceID(x.request.Header.Get("X-Amzn-Trace-Id"), x.start)
	h["X-Amzn-Trace-Id"] = []string{x.record.TraceID}
}

// dropInvalid removes headers whose names aren't of letters, digits and hyphens, as API_LoadBalancerAttribute says of
// routing.http.drop_invalid_header_fields.enabled.
func dropInvalid(h http.Header) {
	for name := range h {
		if strings.Trim(name, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			delete(h, name)
		}
	}
}

func (x *exchange) forwardedFor(h http.Header) {
	before := x.request.Header["X-Forwarded-For"]
	switch x.route.balancer.Attributes.XFFMode {
	case "remove":
	case "preserve":
		if len(before) > 0 {
			h["X-Forwarded-For"] = before
		}
	default:
		all := x.facts.Source.String()
		if len(before) > 0 {
			all = strings.Join(before, ", ") + ", " + all
		}
		h["X-Forwarded-For"] = []string{all}
	}
}

// traceID returns the trace header: a client's root is kept, and the balancer adds what is its own. See "Request tracing for your
// Application Load Balancer".
func traceID(before string, now time.Time) string {
	id := newTrace(now)
	switch {
	case before == "":
		return "Root=" + id
	case strings.Contains(before, "Root="):
		return "Self=" + id + ";" + withoutSelf(before)
	}
	return before + ";Root=" + id
}

// withoutSelf removes what a balancer before this one has added.
func withoutSelf(trace string) string {
	var kept []string
	for part := range strings.SplitSeq(trace, ";") {
		if part != "" && !strings.HasPrefix(part, "Self=") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ";")
}

func newTrace(now time.Time) string {
	var raw [16]byte
	seconds, a, b := uint32(now.Unix()), rand.Uint64(), rand.Uint32()
	for i := range 4 {
		raw[i] = byte(seconds >> (24 - 8*i))
		raw[12+i] = byte(b >> (8 * i))
	}
	for i := range 8 {
		raw[4+i] = byte(a >> (8 * i))
	}
	text := make([]byte, 0, 35)
	text = append(text, "1-"...)
	text = hex.AppendEncode(text, raw[:4])
	text = append(text, '-')
	return string(hex.AppendEncode(text, raw[4:]))
}

// choosePool picks the request's group; nil if there is none with a weight.
func (x *exchange) choosePool() *pool {
	f := x.forward
	if f.StickinessSeconds > 0 {
		if arn, ok := x.remembered(groupCookie, x.record.Rule); ok {
			for _, g := range f.Groups {
				if g.ARN == arn && g.Weight > 0 { // one without a weight gets no requests anymore
					return x.route.pools[arn]
				}
			}
		}
	}
	if len(f.Groups) == 1 && f.Groups[0].Weight > 0 {
		return x.route.pools[f.Groups[0].ARN]
	}
	i := routing.ChooseGroup(f, rand.Uint64())
	if i < 0 {
		return nil
	}
	return x.route.pools[f.Groups[i].ARN]
}

// chooseTarget picks a target and counts the request there: the one that the client's cookie names, if that may serve.
func (x *exchange) chooseTarget() *target {
	id, isSticky := x.stickyTarget()
	p, t := x.door.acquire(x.pool, x.tried, func(p *pool, all []routing.Standing) int {
		if isSticky {
			i := slices.IndexFunc(p.targets, func(t *target) bool { return cookieValue(t) == id })
			if i >= 0 && routing.MayServe(all)(i) {
				return i
			}
		}
		return routing.Choose(p.group, all, p.turn.Add(1))
	})
	x.pool = p
	return t
}

func cookieValue(t *target) string { return t.ID + "\x00" + strconv.Itoa(t.Port) }

func (x *exchange) stickyTarget() (string, bool) {
	s := x.pool.group.Attributes.Stickiness
	switch s.Type {
	case routing.LBCookie:
		return x.remembered(targetCookie, x.pool.group.ARN)
	case routing.AppCookie:
		if len(x.request.CookiesNamed(s.CookieName)) > 0 {
			return x.remembered(appCookie, x.pool.group.ARN)
		}
	}
	return "", false
}

// setCookies adds the balancer's cookies to an answer's header.
func (x *exchange) setCookies(h http.Header, resp *http.Response) {
	if x.forward.StickinessSeconds > 0 {
		x.remember(h, groupCookie, x.record.Rule, x.pool.group.ARN, x.forward.StickinessSeconds)
	}
	switch s := x.pool.group.Attributes.Stickiness; s.Type {
	case routing.LBCookie:
		x.remember(h, targetCookie, x.pool.group.ARN, cookieValue(x.target), s.Seconds())
	case routing.AppCookie:
		for _, c := range resp.Cookies() {
			if c.Name == s.CookieName {
				x.remember(h, appCookie, x.pool.group.ARN, cookieValue(x.target), s.Seconds())
				break
			}
		}
	}
}

// transport sends a request to a target of its group, for the reverse proxy.
type transport struct{}

// RoundTrip implements http.RoundTripper.
func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return exchangeOf(r.Context()).roundTrip(r)
}

var errNoTarget = errors.New("no target may serve")

// maxTries is how many targets a request or a flow may be offered to, if they refuse it within maxTrying.
const (
	maxTries  = 16
	maxTrying = 2 * dialTimeout
)

// roundTrip sends a request to a target. Only one that was refused a connection goes to another target.
func (x *exchange) roundTrip(r *http.Request) (*http.Response, error) {
	last := errNoTarget
	if _, ok := r.Body.(*body); !ok && hasBody(r) {
		r.Body = &body{ReadCloser: r.Body}
	}
	for range maxTries {
		t := x.chooseTarget()
		if t == nil {
			return nil, last
		}
		resp, err := x.send(t, r)
		if err == nil {
			return resp, nil
		}
		t.end()
		last = err
		var unreached dialError
		if !errors.As(err, &unreached) || x.isOver() {
			break
		}
		x.record.Unreached++
		if isBegun(r) || time.Since(x.start) > maxTrying {
			break
		}
		x.tried = append(x.tried, t)
	}
	return nil, last
}

// isOver reports whether nobody waits for an answer anymore.
func (x *exchange) isOver() bool { return x.timedOut.Load() || x.request.Context().Err() != nil }

// body is a request's body as it's sent to targets. It stays open until something of it was read: what can't be sent is closed by who sends it, and
// another target may get it. The client's is never closed, which is the server's to do. Nothing of it is read once the exchange is over.
type body struct {
	io.ReadCloser
	begun atomic.Bool
	over  atomic.Bool
	cause atomic.Pointer[error]
}

func (b *body) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.cause.Store(&err)
	}
	return n, err
}

func (b *body) Close() error {
	if b.begun.Load() {
		b.over.Store(true)
	}
	return nil
}

// failed returns why the client's body could not be read, or nil.
func (b *body) failed() error {
	if err := b.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// isBegun reports whether something of a request's body is gone.
func isBegun(r *http.Request) bool {
	b, ok := r.Body.(*body)
	return ok && b.begun.Load()
}

// send sends a request to one target, which counts it until its answer has ended.
func (x *exchange) send(t *target, r *http.Request) (*http.Response, error) {
	x.target = t
	x.record.Target = t.Target
	r.URL.Scheme, r.URL.Host = "http", t.address
	if x.pool.group.Protocol == routing.HTTPS {
		r.URL.Scheme = "https"
	}
	begun := time.Now()
	var resp *http.Response
	var err error
	if x.call != nil {
		resp, err = t.lane.send(x.call)
	} else {
		resp, err = t.transport.RoundTrip(r)
	}
	if err == nil && resp.StatusCode < 100 {
		resp.Body.Close() //nolint:errcheck // nobody wants it
		err = errNoCode
	}
	if err != nil {
		return nil, err
	}
	x.progress()
	x.record.TargetStatus = resp.StatusCode
	x.record.Waited = begun.Sub(x.start)
	x.record.TargetTime = time.Since(begun)
	resp.Body = x.watch(resp.Body, t)
	return resp, nil
}

// watch counts the request off when its answer has ended. What an upgraded connection is written must go on, too.
func (x *exchange) watch(body io.ReadCloser, t *target) io.ReadCloser {
	answer := &answer{ReadCloser: body, x: x, target: t}
	if both, ok := body.(io.ReadWriteCloser); ok {
		x.record.Type = map[string]string{"http": "ws", "https": "wss"}[x.record.Type]
		x.mu.Lock()
		x.record.Status = http.StatusSwitchingProtocols // which goes to the client past WriteHeader
		x.mu.Unlock()
		return &upgraded{answer: answer, Writer: both}
	}
	return answer
}

type answer struct {
	io.ReadCloser
	x      *exchange
	target *target
	closed atomic.Bool
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.x.progress()
	return n, err
}

func (a *answer) Close() error {
	if !a.closed.Swap(true) {
		defer a.target.end()
	}
	return a.ReadCloser.Close()
}

type upgraded struct {
	*answer
	io.Writer
}

func (u *upgraded) Read(p []byte) (int, error) {
	n, err := u.answer.Read(p)
	u.x.sent.Add(int64(n))
	return n, err
}

func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.Writer.Write(p)
	u.x.received.Add(int64(n))
	u.x.progress()
	return n, err
}

// failed answers a request that has no answer of a target's.
func (x *exchange) failed(err error) {
	var network net.Error
	switch {
	case errors.Is(err, errNoTarget):
		x.fail(http.StatusServiceUnavailable, "")
	case x.malformed.Load():
		x.fail(http.StatusBadRequest, "")
	case x.timedOut.Load() && !x.bodyRead.Load():
		x.fail(http.StatusRequestTimeout, "")
	case x.timedOut.Load(), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		x.fail(http.StatusGatewayTimeout, "")
	case errors.Is(err, context.Canceled): // the client is gone
	default:
		x.fail(http.StatusBadGateway, "")
	}
}

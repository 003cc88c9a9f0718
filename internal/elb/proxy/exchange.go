package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// exchange is a request and its answer. It is the answer's http.ResponseWriter, and counts what passes.
type exchange struct {
	proxy   *Proxy
	door    *door
	route   *route
	cookies *cookies
	w       http.ResponseWriter
	request *http.Request
	facts   routing.Request
	start   time.Time
	record  Request
	forward *routing.Forward
	pool    *pool
	target  *target
	tried   []*target
	call    *call        // to the target, if a lane carries it
	out     http.Request // the call's
	outURL  url.URL

	passed    atomic.Int64 // when something last did, in nanoseconds after start
	timedOut  atomic.Bool
	received  atomic.Int64
	sent      atomic.Int64
	bodyRead  atomic.Bool
	malformed atomic.Bool // the request's body is

	mu    sync.Mutex
	done  bool        // w may be used no more
	timer *time.Timer // to look at it
	leave func() bool // hears no more of the client's end
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// ServeHTTP does what the first rule that a request meets says.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(d, w, r)
	defer x.finish()
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// It may have had a length, too, of which net/http doesn't tell. Whoever went by that takes for a body what's a request here, so there is none
		// after it: RFC 9112, 6.1.
		x.Header().Set("Connection", "close")
	}
	if r.ProtoMajor == 1 && d.leaving.Load() && len(r.Header["Upgrade"]) == 0 {
		x.Header().Set("Connection", "close") // net/http's server doesn't know yet
	}
	if code := x.refusal(); code != 0 {
		x.fail(code, "")
		return
	}
	rule := routing.Match(x.route.listener, &x.facts)
	x.record.Rule, x.record.Priority = rule.ARN, rule.Priority
	action := &rule.Actions[0]
	x.record.Action = action.Type
	switch action.Type {
	case routing.RedirectTo:
		x.record.RedirectURL = action.Redirect.Location(&x.facts, x.route.balancer)
		x.Header().Set("Location", x.record.RedirectURL)
		x.fail(action.Redirect.Code(), "")
	case routing.FixedResponse:
		x.fixed(action.Fixed)
	case routing.ForwardAction:
		x.forward = action.Forward
		x.serve()
	}
}

func newExchange(d *door, w http.ResponseWriter, r *http.Request) *exchange {
	p, route := d.proxy, d.route.Load()
	x := &exchange{proxy: p, door: d, route: route, cookies: p.cookies.Load(), w: w, request: r, start: time.Now()}
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // the request names a whole URL
		path, query = r.URL.EscapedPath(), r.URL.RawQuery
	}
	l := route.listener
	x.facts = routing.Request{
		Method: r.Method, Protocol: l.Protocol, Host: r.Host, Port: l.ServedPort(),
		Path: path, Query: query, Header: r.Header, Source: client.Addr().Unmap(),
	}
	x.record = Request{
		Balancer: route.balancer.ARN, Listener: l.ARN, Start: x.start, Client: client, Method: r.Method, Host: r.Host,
		URL: route.url(r.Host, path, query), Proto: r.Proto, UserAgent: r.UserAgent(), TargetTime: -1,
		Type: route.scheme,
	}
	x.record.describeTLS(r)
	return x
}

// The most addresses in X-Forwarded-For, and the most bytes of a URL: "Troubleshoot your Application Load Balancers", and its quotas.
const (
	maxForwarded = 30
	maxURL       = 16 << 10
)

// refusal returns the code of a request that no rule is asked about, or 0.
func (x *exchange) refusal() int {
	r := x.request
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return http.StatusMethodNotAllowed
	case r.URL.Opaque != "", r.Method == "PRI": // such as http:admin, which no rule for paths meets; HTTP/2 without TLS
		return http.StatusBadRequest
	case strings.Contains(r.RequestURI, " ") || strings.ContainsFunc(r.Method, isNoToken):
		// HTTP/2 carries it; on a target's request line it would be more than a URL and a method.
		return http.StatusBadRequest
	case strings.ContainsFunc(r.Host, isNoHost), r.RequestURI == "*" && r.Method != http.MethodOptions:
		// A target would get another host than rules are asked about, or none.
		return http.StatusBadRequest
	case len(r.RequestURI) > maxURL:
		return http.StatusRequestURITooLong
	case strings.Count(strings.Join(r.Header["X-Forwarded-For"], ","), ",") >= maxForwarded:
		return 463
	}
	return 0
}

// isNoToken reports whether a character can't be in a method: RFC 9110, 5.6.2.
func isNoToken(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// isNoHost reports whether a character can't be in a host and its port: RFC 3986, 3.2. HTTP/2 and whole URLs carry it.
func isNoHost(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"#/<>?@\^`+"`{|}", c)
}

// fail answers in the balancer's own name.
func (x *exchange) fail(code int, reason string) {
	x.record.ErrorReason = reason
	text := strconv.Itoa(code) + " " + http.StatusText(code) + "\n"
	x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.Header().Set("Content-Length", strconv.Itoa(len(text)))
	x.WriteHeader(code)
	io.WriteString(x, text) //nolint:errcheck // the client is gone if it fails
}

func (x *exchange) fixed(f *routing.Fixed) {
	if f.ContentType != "" {
		x.Header().Set("Content-Type", f.ContentType)
	} else {
		x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	x.Header().Set("Content-Length", strconv.Itoa(len(f.MessageBody)))
	x.WriteHeader(f.StatusCode)
	io.WriteString(x, f.MessageBody) //nolint:errcheck // the client is gone if it fails
}

// serve forwards the request.
func (x *exchange) serve() {
	x.pool = x.choosePool()
	if x.pool == nil {
		x.fail(http.StatusServiceUnavailable, "")
		return
	}
	x.record.Group = x.pool.group.ARN
	if takes(x.pool.group, x.request) {
		x.carry()
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(x.request.Context(), exchangeKey{}, x))
	defer cancel()
	ctx = context.WithValue(ctx, http.ServerContextKey, x.door) // or ReverseProxy would end an answer that breaks off as if it were whole
	x.guard(func(error) { cancel() })
	r := x.request.WithContext(ctx)
	if !hasBody(r) {
		x.bodyRead.Store(true)
	} else {
		r.Body = &requestBody{ReadCloser: r.Body, x: x}
	}
	x.proxy.reverse.ServeHTTP(x, r)
}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// soon is when an exchange is first looked at. Most have ended by then, and it costs less to see late that a client is gone than to be told
// of each that it's there.
const soon = 20 * time.Millisecond

// guard has the exchange cut when its client is gone, or nothing passes for the idle time-out.
func (x *exchange) guard(cut func(why error)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(soon, func() { x.look(cut) })
}

// look looks after an exchange that takes its time.
func (x *exchange) look(cut func(error)) {
	x.mu.Lock()
	if x.done {
		x.mu.Unlock()
		return
	}
	if x.leave == nil {
		x.leave = x.whenGone(func() { cut(context.Canceled) })
	}
	left := x.route.idle() - time.Since(x.start.Add(time.Duration(x.passed.Load())))
	if left > 0 {
		x.timer.Reset(left)
	}
	x.mu.Unlock()
	if left <= 0 {
		x.expire(cut)
	}
}

// whenGone calls f when the client is gone.
func (x *exchange) whenGone(f func()) (stop func() bool) {
	if w, ok := x.w.(*reply); ok {
		return w.porter.whenGone(f)
	}
	return context.AfterFunc(x.request.Context(), f)
}

// expire ends an exchange in which nothing has passed for too long, whoever is waited for. It looks how far the answer is before it cuts:
// then the balancer's own answer begins, which is to get through.
func (x *exchange) expire(cut func(error)) {
	x.timedOut.Store(true)
	defer cut(os.ErrDeadlineExceeded)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return
	}
	control := http.NewResponseController(x.w)
	if !x.bodyRead.Load() {
		control.SetReadDeadline(longAgo) //nolint:errcheck // a web socket has none, and ends with its context
	}
	if x.record.Status != 0 {
		control.SetWriteDeadline(longAgo) //nolint:errcheck // as above
	}
}

// progress notes that something has passed.
func (x *exchange) progress() { x.passed.Store(int64(time.Since(x.start))) }

// finish tells the observer.
func (x *exchange) finish() {
	x.mu.Lock()
	x.done = true
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.leave != nil {
		x.leave()
	}
	x.mu.Unlock()
	if idle := x.route.idle(); idle > 0 && x.request.ProtoMajor == 2 && x.request.Context().Err() == nil {
		// The server sends the end of the answer when its handler has returned, and would wait for ever for a client that takes nothing.
		http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(idle)) //nolint:errcheck // HTTP/2 has it
	}
	if x.record.Status == 0 {
		x.record.Status = 460 // the client is gone
	}
	x.record.Received, x.record.Sent = x.received.Load(), x.sent.Load()
	x.record.Duration = time.Since(x.start)
	x.proxy.Observer.Request(&x.record)
}

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		x.mu.Lock()
		x.record.Status = code
		x.mu.Unlock()
	}
	x.w.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(b []byte) (int, error) {
	n, err := x.w.Write(b)
	x.sent.Add(int64(n))
	x.progress()
	return n, err
}

// Unwrap lets an http.ResponseController flush and hijack.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// requestBody counts a request's body.
type requestBody struct {
	io.ReadCloser
	x *exchange
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.received.Add(int64(n))
	b.x.progress()
	switch {
	case err == io.EOF:
		b.x.bodyRead.Store(true)
	case isMalformed(err) && b.x.request.Context().Err() == nil:
		b.x.malformed.Store(true)
	}
	return n, err
}

// isMalformed reports whether a body couldn't be read since it's no chunks or, over HTTP/2, hasn't the length that was said, and not because its
// client has left or was too slow.
func isMalformed(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok || err == nil {
		return false
	}
	for _, other := range []error{io.ErrUnexpectedEOF, net.ErrClosed, http.ErrBodyReadAfterClose, context.Canceled} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

package traffic

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"
)

// newServer returns the server of a listener for requests. It speaks HTTP/1.1 and HTTP/2 without TLS, whatever the targets speak.
func (d *door) newServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	reverse := &httputil.ReverseProxy{
		Rewrite:      rewrite,
		Transport:    d,
		ErrorHandler: d.failed,
		ErrorLog:     log.New(debugWriter{d.proxy.opts.Log}, "", 0),
	}
	return &http.Server{
		Handler:           d.handler(reverse),
		Protocols:         protocols,
		IdleTimeout:       d.Idle,
		ReadHeaderTimeout: d.Idle,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          128,
			MaxReceiveBufferPerConnection: 256 << 10,
			MaxReceiveBufferPerStream:     128 << 10,
		},
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				d.counter.opened()
			case http.StateClosed, http.StateHijacked:
				d.counter.closed()
			}
		},
		ErrorLog: log.New(debugWriter{d.proxy.opts.Log}, "", 0),
	}
}

// debugWriter takes what servers say of their clients, which is for who looks closely only.
type debugWriter struct{ log *slog.Logger }

func (w debugWriter) Write(b []byte) (int, error) {
	w.log.Debug("client", "problem", string(b))
	return len(b), nil
}

// rewrite leaves a request as the client sent it, apart from what belongs to its connection.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.Host = r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // the target decides for itself what it can't read
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if given := r.In.Header[name]; given != nil {
			r.Out.Header[name] = given
		}
	}
}

// exchange is a request and its answer.
type exchange struct {
	door     *door
	start    time.Time
	timer    *time.Timer // runs out when the answer takes too long; nil if it may
	timedOut atomic.Bool
	target   *target
	broken   atomic.Bool // the client's body couldn't be read to its end
	status   int         // of the target's answer
	took     time.Duration
}

type exchangeKey struct{}

// lastWords is how long a client may take for the rest of an answer, or for one that says so, once its request has taken too long.
const lastWords = 5 * time.Second

// isNoToken reports whether a character can't be in a method: RFC 9110, 5.6.2.
func isNoToken(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// isNoHost reports whether a character can't be in a host and its port: RFC 3986, 3.2.
func isNoHost(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"#/<>?@\^`+"`{|}", c)
}

// handler counts requests, and ends those that take too long.
func (d *door) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		case strings.Contains(r.RequestURI, " ") || strings.ContainsFunc(r.Method, isNoToken) || strings.ContainsFunc(r.Host, isNoHost):
			// HTTP/2 carries it; on a target's request line it would be more than a URL and a method, and of such a host a target gets nothing.
			http.Error(w, "Bad Request", http.StatusBadRequest)
			return
		}
		x := &exchange{door: d, start: time.Now()}
		if !d.proxy.requests.enter() {
			refuse(w, r, http.StatusServiceUnavailable)
			return
		}
		defer d.proxy.requests.leave()
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), exchangeKey{}, x))
		defer cancel()
		control := http.NewResponseController(w)
		if d.Request > 0 {
			x.timer = time.AfterFunc(d.Request, func() {
				x.timedOut.Store(true)
				control.SetWriteDeadline(time.Now().Add(lastWords)) //nolint:errcheck // both versions have it
				cancel()
			})
			defer x.timer.Stop()
		}
		sent := &sized{ResponseWriter: w}
		body := &received{ReadCloser: r.Body}
		r = r.WithContext(ctx)
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = body
		}
		defer func() {
			if r.ProtoMajor == 2 && sent.size > 0 {
				control.Flush() //nolint:errcheck // as long as a client takes nothing of a short answer, that's a request, too
			}
			d.counter.requested(x, isGRPC(r), body.size.Load()+sent.size)
		}()
		next.ServeHTTP(sent, r)
	})
}

// maxTries is how many targets a request may be offered to: AWS's proxies retry twice.
const maxTries = 3

var errNoTarget = errors.New("there is no task")

// RoundTrip implements http.RoundTripper: it sends a request to a target. Another one gets it if the first wasn't reached, or if the
// request may be sent twice and wasn't answered.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	body := &heldBody{ReadCloser: r.Body, broken: &x.broken}
	var tried []*target
	last := errNoTarget
	for range maxTries {
		t := d.endpoint.pick(tried)
		if t == nil {
			return nil, last
		}
		x.target = t
		resp, err := d.send(x, t, r, body)
		if err == nil {
			return resp, nil
		}
		last = err
		if r.Context().Err() != nil || !mayTryAgain(r, err, body) {
			break
		}
		tried = append(tried, t)
	}
	return nil, last
}

// send sends a request to one target.
func (d *door) send(x *exchange, t *target, r *http.Request, body *heldBody) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", t.address
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = body
	}
	transport := t.http1
	if d.Protocol == "http2" || d.Protocol == "grpc" {
		transport = t.http2
	}
	begun := time.Now()
	resp, err := transport.RoundTrip(out)
	failed := err != nil && !errors.Is(err, context.Canceled) || x.timedOut.Load() || err == nil && resp.StatusCode >= 500
	if err == nil || !x.broken.Load() {
		d.note(t, failed)
	}
	if err != nil {
		return nil, err
	}
	x.status, x.took = resp.StatusCode, time.Since(begun)
	if resp.StatusCode == http.StatusSwitchingProtocols && x.timer != nil {
		x.timer.Stop() // there is no answer that would end
	}
	return resp, nil
}

func mayTryAgain(r *http.Request, err error, body *heldBody) bool {
	if _, unreached := errors.AsType[dialError](err); unreached {
		return !body.touched.Load()
	}
	if r.Body != nil && r.Body != http.NoBody {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// heldBody is a request's body that outlives an attempt to send it, as long as nothing of it was read. In the end the server closes it.
type heldBody struct {
	io.ReadCloser
	touched atomic.Bool
	broken  *atomic.Bool // set when the client has left in the middle of it, or it's malformed
}

func (b *heldBody) Read(p []byte) (int, error) {
	b.touched.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) { // which is closed when a target takes no more of it
		b.broken.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	if b.touched.Load() {
		return b.ReadCloser.Close()
	}
	return nil
}

// failed answers a request that no target has answered.
func (d *door) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	code := http.StatusServiceUnavailable
	switch {
	case x.timedOut.Load():
		code = http.StatusGatewayTimeout
		d.fail("it took longer than " + d.Request.String())
	case r.Context().Err() != nil:
		return // the client is gone
	case x.broken.Load():
		code = http.StatusBadRequest
	default:
		d.fail(err.Error())
	}
	refuse(w, r, code)
}

// refuse answers a request in place of a target.
func refuse(w http.ResponseWriter, r *http.Request, code int) {
	if isGRPC(r) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", grpcStatus[code])
		w.Header().Set("Grpc-Message", http.StatusText(code))
		w.WriteHeader(http.StatusOK)
		return
	}
	http.Error(w, http.StatusText(code), code)
}

// grpcStatus are the codes that gRPC's clients know: DEADLINE_EXCEEDED and UNAVAILABLE.
var grpcStatus = map[int]string{http.StatusGatewayTimeout: "4", http.StatusServiceUnavailable: "14"}

func isGRPC(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// sized counts an answer's bytes.
type sized struct {
	http.ResponseWriter
	size int64
}

func (s *sized) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b)
	s.size += int64(n)
	return n, err
}

// Unwrap lets an http.ResponseController flush and hijack.
func (s *sized) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// received counts a request's bytes.
type received struct {
	io.ReadCloser
	size atomic.Int64
}

func (b *received) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size.Add(int64(n))
	return n, err
}

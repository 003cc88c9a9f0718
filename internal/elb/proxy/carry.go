package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// carry sends the request to a target by a lane, and the answer to the client. httputil.ReverseProxy does the same for all that lanes don't
// take. It copies each request, its headers and its contexts several times on the way.
func (x *exchange) carry() {
	x.call = &call{Request: x.outgoing(), hint: x.hint}
	if b, ok := x.out.Body.(*body); ok {
		defer b.over.Store(true)
	}
	x.guard(x.call.cut)
	resp, err := x.roundTrip(x.call.Request)
	if err != nil {
		x.failed(err)
		return
	}
	defer resp.Body.Close()
	h := x.Header()
	copyOnward(h, resp.Header)
	x.setCookies(h, resp)
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // or net/http would guess one
	}
	announced := len(resp.Trailer)
	if announced > 0 {
		h["Trailer"] = []string{strings.Join(slices.Collect(maps.Keys(resp.Trailer)), ", ")}
	}
	x.WriteHeader(resp.StatusCode)
	if err := x.pass(resp); err != nil {
		x.proxy.Log.Debug("answer", "problem", err)
		panic(http.ErrAbortHandler) // what the client has of it is to look cut
	}
	x.endWith(resp.Trailer, announced)
}

// outgoing makes the target's request of the client's.
func (x *exchange) outgoing() *http.Request {
	r := &x.out
	*r = *x.request
	x.outURL = *x.request.URL
	r.URL = &x.outURL
	r.Header = make(http.Header, len(x.request.Header)+4)
	copyOnward(r.Header, x.request.Header)
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		delete(r.Header, name)
	}
	if hasToken(x.request.Header["Te"], "trailers") {
		r.Header["Te"] = []string{"trailers"}
	}
	if r.Header["User-Agent"] == nil {
		r.Header["User-Agent"] = []string{""} // or net/http would name itself
	}
	r.Body = x.sentBody()
	r.Trailer = nil
	r.Close = false
	x.rewrite(r)
	return r
}

// sentBody returns what is sent of the request's body; nil without one.
func (x *exchange) sentBody() io.ReadCloser {
	if !hasBody(x.request) {
		x.bodyRead.Store(true)
		return nil
	}
	return &body{ReadCloser: &requestBody{ReadCloser: x.request.Body, x: x}}
}

// copyOnward copies headers but those that belong to a connection.
func copyOnward(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		default:
			to[name] = values
		}
	}
	for token := range tokens(from["Connection"]) {
		to.Del(token)
	}
}

// tokens are what a header lists, such as Connection.
func tokens(values []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, value := range values {
			for token := range strings.SplitSeq(value, ",") {
				if token = textproto.TrimString(token); token != "" && !yield(token) {
					return
				}
			}
		}
	}
}

func hasToken(values []string, wanted string) bool {
	for token := range tokens(values) {
		if strings.EqualFold(token, wanted) {
			return true
		}
	}
	return false
}

// hint passes on an answer that comes before the answer.
func (x *exchange) hint(code int, header http.Header) {
	h := x.Header()
	copyOnward(h, header)
	x.WriteHeader(code)
	clear(h)
}

// pass sends an answer's body to the client. One whose length isn't known may come bit by bit, so each bit goes on at once.
func (x *exchange) pass(resp *http.Response) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	streams := resp.ContentLength < 0 || strings.EqualFold(textproto.TrimString(kind), "text/event-stream")
	if streams {
		x.flush()
	}
	buffer := buffers.Get()
	defer buffers.Put(buffer)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if _, err := x.Write(buffer[:n]); err != nil {
				return err
			}
			if streams {
				x.flush()
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (x *exchange) flush() {
	http.NewResponseController(x.w).Flush() //nolint:errcheck // the next write tells
}

// endWith sends what stands behind an answer's body. If that isn't what was announced, it has names that net/http knows for such.
func (x *exchange) endWith(trailer http.Header, announced int) {
	if len(trailer) == 0 {
		return
	}
	x.flush() // so that a short body isn't sent with its length, which has no room for trailers
	prefix := ""
	if len(trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range trailer {
		x.Header()[prefix+name] = values
	}
}

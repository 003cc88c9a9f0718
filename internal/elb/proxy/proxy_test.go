package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// seen keeps what an observer hears.
type seen struct {
	mu       sync.Mutex
	requests []Request
	flows    []Flow
}

func (s *seen) Request(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, *r)
}

func (s *seen) Flow(f *Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows = append(s.flows, *f)
}

func (s *seen) last(t *testing.T) Request {
	t.Helper()
	var r Request
	eventually(t, "a request is seen", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.requests) > 0 {
			r = s.requests[len(s.requests)-1]
		}
		return len(s.requests) > 0
	})
	return r
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal("never: " + what)
}

// start runs a proxy until the test ends.
func start(t testing.TB, c Config) (*Proxy, *seen) {
	t.Helper()
	s := &seen{}
	c.Observer = s
	if testing.Verbose() {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	if c.DrainTime == 0 {
		c.DrainTime = time.Second
	}
	p := New(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx) //nolint:errcheck // it has none
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return p, s
}

// freePort returns a port from below those that the kernel gives to whoever asks for any.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 21000 + mathrand.IntN(11000)
		if isFree(port) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// isFree reports whether nobody has a port, for connections or for datagrams.
func isFree(port int) bool {
	address := "127.0.0.1:" + strconv.Itoa(port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// targetOf is the target at an address.
func targetOf(id, address string) routing.Target {
	a := netip.MustParseAddrPort(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"))
	return routing.Target{ID: id, Address: a.Addr().String(), Port: int(a.Port())}
}

// named is a server that answers its name, and healthily.
func named(t *testing.T, name string) routing.Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			text, _ := io.ReadAll(r.Body)
			w.Write(text) //nolint:errcheck // a test
			return
		}
		io.WriteString(w, name) //nolint:errcheck // a test
	}))
	t.Cleanup(s.Close)
	return targetOf(name, s.URL)
}

func forward(groups ...routing.WeightedGroup) routing.Rule {
	return routing.Rule{ARN: "default", Actions: []routing.Action{{Type: routing.ForwardAction, Forward: &routing.Forward{Groups: groups}}}}
}

// one is a balancer with a listener and a group.
func one(port int, protocol string, g routing.Group) routing.Balancers {
	kind := routing.Application
	if routing.IsNetwork(protocol) {
		kind = routing.Network
	}
	g.ARN = "group"
	return routing.Balancers{
		Balancers: []routing.Balancer{{ARN: "balancer", Type: kind, Listeners: []routing.Listener{
			{ARN: "listener", Protocol: protocol, Port: port, Rules: []routing.Rule{forward(routing.WeightedGroup{ARN: "group", Weight: 1})}},
		}}},
		Groups: []routing.Group{g},
	}
}

func set(t testing.TB, p *Proxy, b routing.Balancers) {
	t.Helper()
	if err := p.Set(b); err != nil {
		t.Fatal(err)
	}
}

// settle waits until targets are healthy.
func settle(t testing.TB, p *Proxy, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d healthy targets", count), func() bool {
		n := 0
		for _, h := range p.Health() {
			if h.Health.State == routing.Healthy {
				n++
			}
		}
		return n == count
	})
}

// get returns an answer's code and body.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func base(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// client is a client with connections of its own.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func TestHeadersForTargets(t *testing.T) {
	heads := make(chan *http.Request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.UserAgent(), "ELB-HealthChecker") {
			heads <- r
		}
	}))
	defer s.Close()
	p, saw := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}}))
	settle(t, p, 1)
	r, _ := http.NewRequest("GET", base(port)+"/a%2Fb?x=1;y=%zz", nil)
	r.Host = "example.com"
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	r.Header.Set("X-Amzn-Trace-Id", "Root=1-67891233-abcdef012345678912345678")
	r.Header.Set("Connection", "x-private")
	r.Header.Set("X-Private", "1")
	resp, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := <-heads
	for name, want := range map[string]string{
		"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Port": strconv.Itoa(port), "X-Private": "",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
	if got.Host != "example.com" || got.RequestURI != "/a%2Fb?x=1;y=%zz" {
		t.Error(got.Host, got.RequestURI)
	}
	if trace := got.Header.Get("X-Amzn-Trace-Id"); !regexp.MustCompile(
		`^Self=1-[0-9a-f]{8}-[0-9a-f]{24};Root=1-67891233-abcdef012345678912345678$`).MatchString(trace) {
		t.Error(trace)
	}
	o := saw.last(t)
	if o.Status != 200 || o.TargetStatus != 200 || o.Target.ID != "a" || o.Group != "group" || o.TargetTime < 0 || o.Type != "http" {
		t.Errorf("%+v", o)
	}
}

// TestInvalidHeaderNames: headers whose names AWS calls invalid reach the target, unless the load balancer is to drop them.
func TestInvalidHeaderNames(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["Snake_case"], r.Header["A.b"], r.Header["Kebab-Case-1"])
	}))
	defer s.Close()
	p, _ := start(t, Config{})
	port := freePort(t)
	c := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}})
	set(t, p, c)
	settle(t, p, 1)
	seen := func() string {
		t.Helper()
		r, _ := http.NewRequest("GET", base(port), nil)
		for _, name := range []string{"Snake_case", "A.b", "Kebab-Case-1"} {
			r.Header[name] = []string{"x"}
		}
		resp, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	if got := seen(); got != "[x] [x] [x]" {
		t.Error("by default:", got)
	}
	c.Balancers[0].Attributes.DropInvalidHeaders = true
	set(t, p, c)
	if got := seen(); got != "[] [] [x]" {
		t.Error("dropped:", got)
	}
}

// TestNoHost: a target is told the balancer's own address by a client that names no host.
func TestNoHost(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })) //nolint:errcheck // a test
	defer s.Close()
	p, _ := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}}))
	settle(t, p, 1)
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n") //nolint:errcheck // the answer tells
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != conn.RemoteAddr().String() {
		t.Errorf("the target gets %q", got)
	}
}

func TestRules(t *testing.T) {
	p, _ := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	l := &b.Balancers[0].Listeners[0]
	path := func(p string) []routing.Condition {
		return []routing.Condition{{Field: routing.PathPattern, Values: []string{p}}}
	}
	l.Rules = append([]routing.Rule{
		{ARN: "r1", Priority: 1, Conditions: path("/fixed"), Actions: []routing.Action{{
			Type: routing.FixedResponse, Fixed: &routing.Fixed{StatusCode: 418, ContentType: "text/html", MessageBody: "tea"},
		}}},
		{ARN: "r2", Priority: 2, Conditions: path("/old/*"), Actions: []routing.Action{{
			Type: routing.RedirectTo, Redirect: &routing.Redirect{StatusCode: "HTTP_302", Path: "/new/#{path}"},
		}}},
		{ARN: "r3", Priority: 3, Conditions: path("/none"), Actions: forward(routing.WeightedGroup{ARN: "empty", Weight: 1}).Actions},
		{ARN: "r4", Priority: 4, Conditions: path("/refused"), Actions: forward(routing.WeightedGroup{ARN: "refuses", Weight: 1}).Actions},
	}, l.Rules...)
	b.Groups = append(b.Groups, routing.Group{ARN: "empty", Protocol: routing.HTTP},
		routing.Group{ARN: "refuses", Protocol: routing.HTTP, Targets: []routing.Target{{ID: "x", Address: "127.0.0.1", Port: freePort(t)}}})
	set(t, p, b)
	settle(t, p, 1)
	c := client(t)
	for _, want := range []struct {
		path string
		code int
		body string
	}{
		{"/fixed", 418, "tea"}, {"/", 200, "a"}, {"/old/x", 302, "302 Found\n"},
		{"/none", 503, "503 Service Unavailable\n"}, {"/refused", 502, "502 Bad Gateway\n"},
	} {
		if code, body := get(t, c, base(port)+want.path); code != want.code || body != want.body {
			t.Errorf("%s: %d %q", want.path, code, body)
		}
	}
	resp, err := c.Get(base(port) + "/old/x?q=1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); to != base(port)+"/new/old/x?q=1" {
		t.Error(to)
	}
}

// TestRefusedGoesElsewhere: a target that refuses connections costs no request: it has seen nothing of those, nor of their bodies.
func TestRefusedGoesElsewhere(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	gone := routing.Target{ID: "gone", Address: "127.0.0.1", Port: freePort(t)}
	targets := []routing.Target{named(t, "b")}
	for range 5 { // as when a machine is gone with all that ran there
		gone.ID += "!"
		gone.Port = freePort(t)
		targets = append(targets, gone)
	}
	set(t, p, one(port, routing.HTTP, routing.Group{
		Protocol: routing.HTTP, HealthCheck: routing.HealthCheck{Path: "/health", Port: strconv.Itoa(freePort(t))},
		Targets: targets, // all are unhealthy, so all are asked
	}))
	c := client(t)
	for range 10 {
		if code, body := get(t, c, base(port)); code != 200 || body != "b" {
			t.Fatal(code, body)
		}
	}
	text := strings.Repeat("x", 1<<20)
	for range 10 {
		resp, err := c.Post(base(port)+"/echo", "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || string(got) != text {
			t.Fatal(resp.Status, len(got), err)
		}
	}
	unreached := 0
	eventually(t, "what is told of the requests", func() bool {
		saw.mu.Lock()
		defer saw.mu.Unlock()
		unreached = 0
		for _, r := range saw.requests {
			unreached += r.Unreached
		}
		return len(saw.requests) == 20
	})
	if unreached == 0 || unreached > 20*5 {
		t.Errorf("%d connections to five targets are told as refused", unreached)
	}
}

func TestTargetTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	}))
	defer s.Close()
	defer close(release)
	p, _ := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}})
	b.Balancers[0].Attributes.IdleTimeoutSeconds = 1
	set(t, p, b)
	settle(t, p, 1)
	if code, _ := get(t, client(t), base(port)+"/slow"); code != 504 {
		t.Error(code)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 408 {
		t.Error(resp, err)
	}
}

// TestDeregistration: a request at a target that leaves ends well within the delay, new ones go elsewhere, and after the delay it's cut.
func TestDeregistration(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			begun <- struct{}{}
			<-release
		}
		io.WriteString(w, "a") //nolint:errcheck // a test
	}))
	defer s.Close()
	p, _ := start(t, Config{})
	port := freePort(t)
	group := func(delay int, targets ...routing.Target) routing.Balancers {
		return one(port, routing.HTTP, routing.Group{
			Protocol: routing.HTTP, Attributes: routing.GroupAttributes{DeregistrationDelaySeconds: &delay}, Targets: targets,
		})
	}
	a, b := targetOf("a", s.URL), named(t, "b")
	set(t, p, group(60, a))
	settle(t, p, 1)
	c := client(t)
	code := make(chan int, 1)
	slow := func() {
		resp, err := c.Get(base(port) + "/slow")
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}
	go slow()
	<-begun
	set(t, p, group(60, b))
	for range 20 {
		if _, body := get(t, c, base(port)); body != "b" {
			t.Fatal(body)
		}
	}
	states := map[string]routing.State{}
	for _, h := range p.Health() {
		states[h.Target.ID] = h.Health.State
	}
	if states["a"] != routing.Draining {
		t.Error(states)
	}
	release <- struct{}{}
	if n := <-code; n != 200 {
		t.Error("the request that was under way:", n)
	}
	eventually(t, "the target is gone", func() bool { return len(p.Health()) == 1 })
	set(t, p, group(1, a))
	go slow()
	<-begun
	set(t, p, group(1, b))
	if n := <-code; n != 502 {
		t.Error("the request that took too long:", n)
	}
	close(release)
}

// TestSetDropsNothing: requests go on while configurations change.
func TestSetDropsNothing(t *testing.T) {
	p, _ := start(t, Config{})
	port, other := freePort(t), freePort(t)
	targets := []routing.Target{named(t, "a"), named(t, "b"), named(t, "c")}
	with := func(i int) routing.Balancers {
		b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targets[i%3], targets[(i+1)%3]}})
		if i%2 == 0 {
			l := b.Balancers[0].Listeners[0]
			l.ARN, l.Port, l.Rules = "other", other, []routing.Rule{l.Rules[0]}
			l.Rules[0].ARN = "default of other"
			b.Balancers[0].Listeners = append(b.Balancers[0].Listeners, l)
		}
		return b
	}
	set(t, p, with(0))
	settle(t, p, 2)
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 4 {
		c := client(t)
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := c.Post(base(port), "text/plain", strings.NewReader("body"))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body) //nolint:errcheck // a test
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			}
		})
	}
	for i := range 30 {
		set(t, p, with(i))
		settle(t, p, 2)
	}
	close(stop)
	work.Wait()
	bad := with(0)
	bad.Groups[0].Targets[0].Port = 0
	if err := p.Set(bad); err == nil || !strings.HasPrefix(err.Error(), "Groups[0].Targets[0].Port") {
		t.Error(err)
	}
}

func TestStickiness(t *testing.T) {
	p, _ := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTP, routing.Group{
		Protocol: routing.HTTP, Attributes: routing.GroupAttributes{Stickiness: routing.Stickiness{Type: routing.LBCookie}},
		Targets: []routing.Target{named(t, "a"), named(t, "b"), named(t, "c")},
	})
	second := b.Groups[0]
	second.ARN, second.Targets = "second", []routing.Target{named(t, "d")}
	b.Groups = append(b.Groups, second)
	f := b.Balancers[0].Listeners[0].Rules[0].Actions[0].Forward
	f.StickinessSeconds = 60
	f.Groups = append(f.Groups, routing.WeightedGroup{ARN: "second", Weight: 1})
	set(t, p, b)
	settle(t, p, 4)
	met := map[string]bool{}
	for range 40 {
		c := client(t)
		c.Jar, _ = cookiejar.New(nil)
		_, stays := get(t, c, base(port))
		met[stays] = true
		for range 5 {
			if _, body := get(t, c, base(port)); body != stays {
				t.Fatal(stays, body)
			}
		}
		u, _ := url.Parse(base(port))
		for _, cookie := range c.Jar.Cookies(u) {
			if strings.Contains(cookie.Value, "group") || !strings.HasPrefix(cookie.Name, "AWSALB") {
				t.Error(cookie)
			}
		}
	}
	if len(met) != 4 {
		t.Error(met)
	}
}

func TestForgedCookiesAreNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	ours, theirs := newCookies(nil, nil), newCookies(nil, nil)
	sealed := ours.seal("AWSALB", "g", "a", now.Add(time.Minute))
	if v, ok := ours.open("AWSALB", "g", sealed, now); v != "a" || !ok {
		t.Error(v, ok)
	}
	for name, ok := range map[string]func() (string, bool){
		"another key":   func() (string, bool) { return theirs.open("AWSALB", "g", sealed, now) },
		"another group": func() (string, bool) { return ours.open("AWSALB", "h", sealed, now) },
		"another name":  func() (string, bool) { return ours.open("AWSALBTG", "g", sealed, now) },
		"too late":      func() (string, bool) { return ours.open("AWSALB", "g", sealed, now.Add(time.Minute)) },
		"cut":           func() (string, bool) { return ours.open("AWSALB", "g", sealed[:20], now) },
		"nothing":       func() (string, bool) { return ours.open("AWSALB", "g", "", now) },
	} {
		if v, ok := ok(); ok {
			t.Errorf("%s: %q", name, v)
		}
	}
}

// certificate makes one for a name.
func certificate(t *testing.T, name string) (routing.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	return routing.Certificate{
		ARN:         name,
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		PrivateKey:  string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	}, parsed
}

// TestTLS: a listener with two certificates, HTTP/2 in front, and gRPC's trailers and streams behind.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		if r.URL.Path == "/AWS.ALB/healthcheck" {
			w.Header().Set("Grpc-Status", "12")
			return
		}
		http.NewResponseController(w).Flush() //nolint:errcheck // a test
		line := bufio.NewReader(r.Body)
		for {
			text, err := line.ReadString('\n')
			if err != nil {
				break
			}
			io.WriteString(w, "echo "+text)       //nolint:errcheck // a test
			http.NewResponseController(w).Flush() //nolint:errcheck // a test
		}
		w.Header().Set("Grpc-Status", "0")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	p, saw := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, ProtocolVersion: routing.GRPC, Targets: []routing.Target{targetOf("a", s.URL)}})
	first, _ := certificate(t, "one.example.com")
	second, parsed := certificate(t, "two.example.com")
	l := &b.Balancers[0].Listeners[0]
	l.Protocol, l.Certificates = routing.HTTPS, []routing.Certificate{first, second}
	set(t, p, b)
	settle(t, p, 1)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "two.example.com"}}
	defer tr.CloseIdleConnections()
	body, to := io.Pipe()
	r, _ := http.NewRequest("POST", "https://127.0.0.1:"+strconv.Itoa(port)+"/service/Method", body)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(resp.Body)
	for range 3 { // each is answered before the next is sent
		io.WriteString(to, "x\n") //nolint:errcheck // a test
		if text, err := answers.ReadString('\n'); text != "echo x\n" {
			t.Fatal(text, err)
		}
	}
	to.Close()
	if _, err := io.ReadAll(answers); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Error(resp.Proto, resp.Trailer)
	}
	if o := saw.last(t); o.Type != "grpcs" || o.TLSVersion != tls.VersionTLS13 || o.ServerName != "two.example.com" {
		t.Errorf("%+v", o)
	}
}

func TestUpgrade(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		text, _ := rw.ReadString('\n')
		io.WriteString(c, "echo "+text) //nolint:errcheck // a test
	}))
	defer s.Close()
	p, saw := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}}))
	settle(t, p, 1)
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	fmt.Fprint(c, "hello\n")
	if text, err := in.ReadString('\n'); text != "echo hello\n" {
		t.Error(text, err)
	}
	c.Close()
	if o := saw.last(t); o.Type != "ws" || o.Status != 101 || o.Received != int64(len("hello\n")) || o.Sent != int64(len("echo hello\n")) {
		t.Errorf("%+v", o)
	}
}

// TestOnlyWebSockets: whoever had a target speak another protocol, such as h2c, would send it requests that no rule has seen.
func TestOnlyWebSockets(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("Connection")+r.Header.Get("Upgrade")) //nolint:errcheck // a test
	}))
	defer s.Close()
	p, _ := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", s.URL)}}))
	settle(t, p, 1)
	for _, protocol := range []string{"h2c", "TLS/1.0", "websocket, h2c"} {
		r, _ := http.NewRequest("GET", base(port), nil)
		r.Header.Set("Connection", "Upgrade, HTTP2-Settings")
		r.Header.Set("Upgrade", protocol)
		r.Header.Set("HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")
		resp, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || len(got) > 0 {
			t.Errorf("%s: %s, the target gets %q", protocol, resp.Status, got)
		}
	}
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serveAll(l, func(c net.Conn) {
		text, _ := io.ReadAll(c)   // until the client has ended its direction
		c.Write(append(text, '!')) //nolint:errcheck // a test
	})
	p, saw := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.TCP, routing.Group{
		Protocol: routing.TCP, Attributes: routing.GroupAttributes{Stickiness: routing.Stickiness{Type: routing.BySource}},
		Targets: []routing.Target{targetOf("a", l.Addr().String())},
	}))
	settle(t, p, 1)
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := strings.Repeat("x", 1<<20)
	go func() {
		io.WriteString(c, big)        //nolint:errcheck // a test
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // a test
	}()
	if text, err := io.ReadAll(c); string(text) != big+"!" {
		t.Error(len(text), err)
	}
	eventually(t, "the flow is seen", func() bool {
		saw.mu.Lock()
		defer saw.mu.Unlock()
		return len(saw.flows) == 1 && saw.flows[0].Received == 1<<20 && saw.flows[0].Sent == 1<<20+1 && saw.flows[0].Target.ID == "a"
	})
}

// TestHostile: what an attacker may send is refused, and never reaches a target twice.
func TestHostile(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	for name, c := range map[string]struct {
		request string
		code    int
	}{
		"two lengths":          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"a strange encoding":   {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
		"a space before colon": {"GET / HTTP/1.1\r\nHost: a\r\nX-A : b\r\n\r\n", 400},
		"no host":              {"GET / HTTP/1.1\r\n\r\n", 400},
		"TRACE":                {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
		"CONNECT":              {"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 405},
		"a long URL":           {"GET /" + strings.Repeat("a", 17<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
		"a huge header":        {"GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", 431},
		"a path without root":  {"GET http:admin HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"HTTP/2 without TLS":   {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		"a long way":           {"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + strings.Repeat("10.0.0.1,", 31) + "\r\n\r\n", 463},
	} {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, c.request) //nolint:errcheck // the answer tells
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != c.code {
			t.Errorf("%s: %v %v", name, resp, err)
		}
		conn.Close()
	}
	saw.mu.Lock()
	defer saw.mu.Unlock()
	for _, r := range saw.requests {
		if r.TargetStatus != 0 {
			t.Errorf("%+v reached a target", r)
		}
	}
}

// TestStrangeHosts: a host that HTTP/1.1 doesn't carry reaches no target: it would get none in its place, while rules had seen it.
func TestStrangeHosts(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTPS, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	certified, _ := certificate(t, "one.example.com")
	b.Balancers[0].Listeners[0].Certificates = []routing.Certificate{certified}
	set(t, p, b)
	settle(t, p, 1)
	for host, code := range map[string]int{
		"a-b.example.com:80": 200, "[::1]:80": 200, "a b": 400, "a/b": 400, "a?b": 400, "a#b": 400, `a"b`: 400, "\u00fc.de": 400, "a\tb": 400,
	} {
		dialHTTP2(t, port, "", "\x82\x87\x84\x41"+string(rune(len(host)))+host)
		eventually(t, "it's seen", func() bool { return saw.last(t).Host == host })
		if o := saw.last(t); o.Status != code || code == 400 && o.TargetStatus != 0 {
			t.Errorf("%q: %d, and its target %d", host, o.Status, o.TargetStatus)
		}
	}
	dialHTTP2(t, port, "", "\x82\x87\x44\x01*\x41\x01*")
	eventually(t, "it's seen", func() bool { return saw.last(t).Host == "*" })
	if o := saw.last(t); o.Status != 400 {
		t.Errorf("GET *: %d", o.Status)
	}
}

// TestShortBody: a body over HTTP/2 that is shorter than was said is its client's fault, too.
func TestShortBody(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTPS, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	certified, _ := certificate(t, "one.example.com")
	b.Balancers[0].Listeners[0].Certificates = []routing.Certificate{certified}
	set(t, p, b)
	settle(t, p, 1)
	c, err := tls.Dial("tcp", fmt.Sprint("127.0.0.1:", port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+
		"\x00\x00\x0a\x01\x04\x00\x00\x00\x01"+"\x83\x87\x84\x41\x01a\x5c\x02"+"99"+ // HEADERS: POST https://a/, content-length: 99
		"\x00\x00\x02\x00\x01\x00\x00\x00\x01"+"hi") //nolint:errcheck // what is seen tells
	eventually(t, "it's seen", func() bool { return saw.last(t).Method == "POST" })
	if o := saw.last(t); o.Status != 400 {
		t.Errorf("%+v", o)
	}
}

// TestMalformedBodies: a body that is no chunks is its client's fault, and not the target's, by whatever way it goes there.
func TestMalformedBodies(t *testing.T) {
	p, _ := start(t, Config{})
	plain, tls := freePort(t), freePort(t)
	set(t, p, one(plain, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	q, _ := start(t, Config{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // it breaks off
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	set(t, q, one(tls, routing.HTTP, routing.Group{
		Protocol: routing.HTTPS, HealthCheck: routing.HealthCheck{Protocol: routing.HTTPS}, Targets: []routing.Target{targetOf("a", s.URL)},
	}))
	settle(t, q, 1)
	for _, port := range []int{plain, tls} {
		for _, body := range []string{"no chunk\r\n", "2;a=b\nhi\r\n0\r\n\r\n", "fffffffffffffffff\r\nhi", "2\r\nhi!\r\n", "-1\r\n"} {
			conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%s", body) //nolint:errcheck // the answer tells
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%q at %d: %v, %v", body, port, resp, err)
			}
		}
	}
}

// TestLengthAndEncoding: what comes after a chunked body is no request, since somebody before the load balancer may have gone by a length.
func TestLengthAndEncoding(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(hidden), hidden)
	conn.SetReadDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a test
	answers, err := io.ReadAll(conn)
	if err != nil || strings.Count(string(answers), "HTTP/1.1 200") != 1 || strings.Contains(saw.last(t).URL, "hidden") {
		t.Errorf("%v, and %s", err, answers)
	}
}

// TestSpacesInURLs: HTTP/2 carries a URL with a space, which would be the end of it on a target's request line.
func TestSpacesInURLs(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	own, parsed := certificate(t, "example.com")
	l := &b.Balancers[0].Listeners[0]
	l.Protocol, l.Certificates = routing.HTTPS, []routing.Certificate{own}
	set(t, p, b)
	settle(t, p, 1)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
	defer tr.CloseIdleConnections()
	for query, code := range map[string]int{"a%20b": 200, "a HTTP/1.0": 400, "a b HTTP/1.1": 400} {
		r := &http.Request{Method: "GET", Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/", RawQuery: query}}
		resp, err := tr.RoundTrip(r.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if o := saw.last(t); resp.ProtoMajor != 2 || resp.StatusCode != code || code == 400 && o.TargetStatus != 0 {
			t.Errorf("%q: %s %s, and its target %d", query, resp.Proto, resp.Status, o.TargetStatus)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	p, _ := start(t, Config{Connections: 2})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	a, b := client(t), client(t)
	get(t, a, base(port))
	get(t, b, base(port))
	if resp, err := client(t).Get(base(port)); err == nil {
		t.Error(resp.Status)
	}
	a.CloseIdleConnections()
	eventually(t, "there is room again", func() bool { return p.clients.count() == 1 })
	get(t, client(t), base(port))
}

// TestWeightsMove: a listener's traffic goes to another group once its weight moves there, also of clients that a cookie kept with the first one.
func TestWeightsMove(t *testing.T) {
	for _, protocol := range []string{routing.HTTP, routing.TCP} {
		p, _ := start(t, Config{})
		port := freePort(t)
		a, b := named(t, "a"), named(t, "b")
		weigh := func(first, second int) {
			c := one(port, protocol, routing.Group{Protocol: protocol, Targets: []routing.Target{a}})
			c.Groups = append(c.Groups, routing.Group{ARN: "second", Protocol: protocol, Targets: []routing.Target{b}})
			f := c.Balancers[0].Listeners[0].Rules[0].Actions[0].Forward
			f.Groups = []routing.WeightedGroup{{ARN: "group", Weight: first}, {ARN: "second", Weight: second}}
			if protocol == routing.HTTP {
				f.StickinessSeconds = 60
			}
			set(t, p, c)
			settle(t, p, 2)
		}
		c := client(t)
		c.Jar, _ = cookiejar.New(nil)
		for _, want := range []struct {
			first, second int
			body          string
		}{{100, 0, "a"}, {0, 100, "b"}} {
			weigh(want.first, want.second)
			for range 5 {
				if _, body := get(t, c, base(port)); body != want.body {
					t.Errorf("%s: with weights %d and %d %q answers", protocol, want.first, want.second, body)
				}
				c.CloseIdleConnections()
			}
		}
	}
}

// TestCrowds: an address that holds all connections makes room for another's, one between two requests first.
func TestCrowds(t *testing.T) {
	p, _ := start(t, Config{Connections: 3})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(2 * time.Minute))
		return c
	}
	ask := func(c net.Conn) error {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return err
	}
	silent := dial("127.0.0.2")
	idle := dial("127.0.0.2")
	last := dial("127.0.0.2")
	for _, c := range []net.Conn{idle, last} {
		if err := ask(c); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two wait for their next request", func() bool {
		p.clients.mu.Lock()
		defer p.clients.mu.Unlock()
		n := 0
		for e := p.clients.from[netip.MustParsePrefix("127.0.0.2/32")].Front(); e != nil; e = e.Next() {
			if e.Value.(*caller).idle.Load() {
				n++
			}
		}
		return n == 2 && p.clients.size == 3
	})
	if err := ask(dial("127.0.0.2")); err == nil {
		t.Error("the crowd gets one more")
	}
	other := dial("127.0.0.3")
	if err := ask(other); err != nil {
		t.Error("another address: ", err)
	}
	if err := ask(idle); err == nil {
		t.Error("the crowd keeps all")
	}
	for name, c := range map[string]net.Conn{"one that hasn't asked yet": silent, "the last": last, "the other": other} {
		if err := ask(c); err != nil {
			t.Error(name, ": ", err)
		}
	}
	if err := ask(dial("127.0.0.3")); err == nil {
		t.Error("two of two places are no crowd")
	}
}

// TestServersStayFew: a door has a server for each idle time-out that it had, however often that changes, and uses the one for the time-out that it has.
func TestServersStayFew(t *testing.T) {
	p := New(Config{Observer: &seen{}})
	d := &door{entry: entry{proxy: p}, listener: noListener{}}
	for i := range 10 {
		b := routing.Balancer{Type: routing.Application}
		b.Attributes.IdleTimeoutSeconds = 1 + i%2
		d.set(newRoute(&b, &routing.Listener{Protocol: routing.HTTP}, nil, nil))
		if last := d.servers[len(d.servers)-1]; last.IdleTimeout != d.current().idle() {
			t.Errorf("the idle time-out is %v", last.IdleTimeout)
		}
	}
	if len(d.servers) != 2 {
		t.Errorf("there are %d servers", len(d.servers))
	}
	for _, s := range d.servers {
		s.inbox.Close()
	}
}

// noListener has an address, and nothing else.
type noListener struct{ net.Listener }

func (noListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestNoWindow: a client of HTTP/2 that takes nothing of its answer, however short that is, has its stream for the idle time-out and no longer.
func TestNoWindow(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{})
	b := one(port, routing.HTTPS, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	b.Balancers[0].Attributes.IdleTimeoutSeconds = 1
	l := &b.Balancers[0].Listeners[0]
	certified, _ := certificate(t, "one.example.com")
	l.Certificates = []routing.Certificate{certified}
	set(t, p, b)
	settle(t, p, 1)
	for name, action := range map[string]routing.Action{
		"fixed":     {Type: routing.FixedResponse, Fixed: &routing.Fixed{StatusCode: 200, MessageBody: "word"}},
		"forwarded": l.Rules[0].Actions[0],
	} {
		l.Rules[0].Actions[0] = action
		set(t, p, b)
		c := dialHTTP2(t, port, "\x00\x04\x00\x00\x00\x00", "\x82\x87\x84\x41\x01a") // a window of 0; GET https://a/
		for kind := byte(0); kind != 3; {                                            // RST_STREAM
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			kind = head[3]
			io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:])>>8)) //nolint:errcheck // the next read tells
		}
	}
}

// dialHTTP2 sends settings and a request's headers over HTTP/2, as they are.
func dialHTTP2(t *testing.T, port int, settings, headers string) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", fmt.Sprint("127.0.0.1:", port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // the reads tell
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
		"\x00\x00"+string(rune(len(settings)))+"\x04\x00\x00\x00\x00\x00"+settings+
		"\x00\x00"+string(rune(len(headers)))+"\x01\x05\x00\x00\x00\x01"+headers) //nolint:errcheck // as above
	return c
}

// TestStrangeMethods: what HTTP/2 carries as a method and HTTP/1.1 doesn't is no part of a target's request line.
func TestStrangeMethods(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	b := one(port, routing.HTTPS, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	certified, _ := certificate(t, "one.example.com")
	b.Balancers[0].Listeners[0].Certificates = []routing.Certificate{certified}
	set(t, p, b)
	settle(t, p, 1)
	for method, code := range map[string]int{"PURGE": 200, "GET /admin HTTP/1.1": 400, "GET:": 400, "G\u00c9T": 400} {
		dialHTTP2(t, port, "", "\x42"+string(rune(len(method)))+method+"\x87\x84\x41\x01a")
		eventually(t, "it's seen", func() bool { return saw.last(t).Method == method })
		if o := saw.last(t); o.Status != code || code == 400 && o.TargetStatus != 0 {
			t.Errorf("%q: %d, and its target %d", method, o.Status, o.TargetStatus)
		}
	}
}

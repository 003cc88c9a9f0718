package transparent

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// world is a control plane that says what it was asked, and a stand-in in front of it.
type world struct {
	*StandIn
	plane *httptest.Server
}

func newWorld(t *testing.T, secure bool) *world {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s %s %s %v", r.Method, r.Host, r.RequestURI, r.Header.Get("Authorization"), body, err) //nolint:errcheck // the test sees it
	})
	w := &world{plane: httptest.NewUnstartedServer(handler)}
	var trusts *tls.Config
	if secure {
		w.plane.StartTLS()
		pool := x509.NewCertPool()
		pool.AddCert(w.plane.Certificate())
		trusts = &tls.Config{RootCAs: pool}
	} else {
		w.plane.Start()
	}
	t.Cleanup(w.plane.Close)
	var err error
	w.StandIn, err = Open(Options{Dir: t.TempDir(), Endpoint: w.plane.URL, TLS: trusts, Trusted: "no certificate"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// trusting returns how a client connects that has read the bundle.
func (w *world) trusting(t *testing.T) *tls.Config {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.Public(), BundleFile))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: pool}
}

// proxy serves a proxy until the test ends, and returns its address.
func (w *world) proxy(t *testing.T, passes func(string) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	p := &Proxy{StandIn: w.StandIn, Passes: passes, Log: slog.New(slog.DiscardHandler)}
	serving.Go(func() { p.Serve(ctx, l) }) //nolint:errcheck // it ends with ctx
	t.Cleanup(func() { cancel(); serving.Wait() })
	return l.Addr().String()
}

// ask posts a body through a proxy.
func ask(t *testing.T, proxy string, trusts *tls.Config, to string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), TLSClientConfig: trusts, DisableKeepAlives: true,
	}}
	r, err := http.NewRequestWithContext(t.Context(), "POST", to, strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "signed")
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

func nothing(string) bool    { return false }
func everything(string) bool { return true }

// TestProxy: what a client sends to a name of AWS's comes to the control plane as it was sent.
func TestProxy(t *testing.T) {
	for _, secure := range []bool{false, true} {
		w := newWorld(t, secure)
		proxy := w.proxy(t, nothing)
		for _, host := range []string{"sqs.us-east-1.amazonaws.com", "a.b.s3.amazonaws.com", "queue.amazonaws.com"} {
			got, err := ask(t, proxy, w.trusting(t), "https://"+host+"/a%2Fb?c=%20d")
			if want := "POST " + host + "/a%2Fb?c=%20d signed a body <nil>"; err != nil || got != want {
				t.Errorf("TLS %v: got %q, %v, want %q", secure, got, err, want)
			}
		}
	}
}

// TestRefused: names that lead nowhere are refused, with a reason, unless they may go on.
func TestRefused(t *testing.T) {
	w := newWorld(t, false)
	_, port, _ := net.SplitHostPort(w.plane.Listener.Addr().String())
	closed, open := w.proxy(t, nothing), w.proxy(t, everything)
	for _, to := range []string{"https://dynamodb.us-east-1.amazonaws.com/", "https://sqs.us-east-1.amazonaws.com:" + port + "/", "https://localhost:" + port + "/"} {
		if _, err := ask(t, closed, w.trusting(t), to); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"https://169.254.169.254:80/", "https://[::ffff:169.254.169.254]:80/", "https://[fd00:ec2::254]:80/", "https://0.0.0.0:" + port + "/"} {
		if _, err := ask(t, open, w.trusting(t), to); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
			t.Errorf("%s: %v", to, err)
		}
	}
	c, err := net.Dial("tcp", open)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT localhost:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET /real HTTP/1.0\r\nHost: real\r\n\r\n")
	if b, err := io.ReadAll(r); err != nil || !strings.Contains(string(b), "GET real/real") {
		t.Errorf("%q, %v", b, err)
	}
}

// TestNoProxyForHTTP: what isn't CONNECT is refused, and says why.
func TestNoProxyForHTTP(t *testing.T) {
	w := newWorld(t, false)
	answer, err := http.Get("http://" + w.proxy(t, everything) + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if b, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(string(b), "HTTPS_PROXY") {
		t.Errorf("%s %s", answer.Status, b)
	}
}

// TestOldClients: who sends no name in its TLS greeting gets a certificate for the host that it has asked the proxy for.
func TestOldClients(t *testing.T) {
	w := newWorld(t, false)
	c, err := net.Dial("tcp", w.proxy(t, nothing))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONNECT sts.amazonaws.com:443 HTTP/1.1\r\nHost: sts.amazonaws.com:443\r\n\r\n")
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	trusts := w.trusting(t)
	inner := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // verified below, under the name that it didn't send
	if err := inner.Handshake(); err != nil {
		t.Fatal(err)
	}
	_, err = inner.ConnectionState().PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusts.RootCAs, DNSName: "sts.amazonaws.com"})
	if err != nil {
		t.Error(err)
	}
}

// TestFiles: others may read what they are to trust, and nothing else.
func TestFiles(t *testing.T) {
	w := newWorld(t, false)
	all := map[string]os.FileMode{}
	err := filepath.Walk(w.opts.Dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			name, _ := filepath.Rel(w.opts.Dir, path)
			all[name] = info.Mode().Perm()
		}
		return err
	})
	if want := "map[ca-key.pem:-rw------- ca.pem:-rw------- public/bundle.pem:-rw-r--r-- public/ca.pem:-rw-r--r--]"; err != nil || fmt.Sprint(all) != want {
		t.Errorf("the files are %v, %v", all, err)
	}
	if b, err := os.ReadFile(filepath.Join(w.Public(), BundleFile)); err != nil || !strings.Contains(string(b), "no certificate\n") {
		t.Errorf("the bundle lacks what else is to be trusted: %v", err)
	}
	if public := machineAuthorities(); public != "" && !strings.Contains(public, "BEGIN CERTIFICATE") {
		t.Error("the machine's authorities aren't in PEM")
	}
}

// TestEndpoints: without a control plane whose address is known nothing is led there.
func TestEndpoints(t *testing.T) {
	for _, endpoint := range []string{"", "localhost:4566", "ftp://localhost", "http://localhost/path", "http://"} {
		if _, err := Open(Options{Dir: t.TempDir(), Endpoint: endpoint}); err == nil {
			t.Errorf("%q was taken", endpoint)
		}
	}
}

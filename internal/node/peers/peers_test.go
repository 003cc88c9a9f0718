package peers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// registry is one that has a layer, and sends nodes where it's told to.
type registry struct {
	*httptest.Server
	layer []byte

	mu      sync.Mutex
	sendTo  func() (url, certificate string) // nil sends the layer itself
	asked   []string                         // what was asked for: "sent", "range" or "failed"
	trickle chan struct{}                    // if there is one, half of the layer waits for it
}

func newRegistry(t *testing.T) *registry {
	r := &registry{layer: make([]byte, 3<<20)}
	source := rand.NewChaCha8([32]byte{})
	source.Read(r.layer) //nolint:errcheck // it never fails
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	what, sendTo := "sent", g.sendTo
	switch {
	case r.Header.Get("Range") != "":
		what = "range"
	case r.Header.Get(acs.PeerFailed) != "":
		what = "failed"
	}
	g.asked = append(g.asked, what)
	g.mu.Unlock()
	if sendTo != nil && r.Header.Get(acs.PeerToken) != "" && r.Header.Get(acs.PeerFailed) == "" {
		url, certificate := sendTo()
		w.Header().Set(acs.PeerCertificate, certificate)
		w.Header().Set("Location", url)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if g.trickle != nil {
		w.Header().Set("Content-Length", fmt.Sprint(len(g.layer)))
		w.Write(g.layer[:len(g.layer)/2]) //nolint:errcheck // the test sees it
		w.(http.Flusher).Flush()
		<-g.trickle
		w.Write(g.layer[len(g.layer)/2:]) //nolint:errcheck // as above
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(g.layer))
}

func (g *registry) was(t *testing.T, want string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if got := strings.Join(g.asked, " "); got != want {
		t.Errorf("the registry was asked %q, not %q", got, want)
	}
	g.asked = nil
}

// node opens a node's part and runs it until the test ends.
func node(t *testing.T, budget int64) *Peers {
	t.Helper()
	p, _ := ending(t, budget)
	return p
}

// ending is node, with what ends it earlier.
func ending(t *testing.T, budget int64) (p *Peers, end func()) {
	t.Helper()
	p, err := Open(Options{
		Dir: t.TempDir(), Address: "127.0.0.1:0", Budget: budget, Instance: func() string { return "i" }, Log: slog.New(slog.DiscardHandler),
		Announce: func(context.Context, acs.PeerAnnouncement) (acs.PeerWelcome, error) {
			return acs.PeerWelcome{Token: "token"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) }) //nolint:errcheck // it ends with its context
	end = func() { cancel(); running.Wait() }
	t.Cleanup(end)
	<-p.announced
	return p, end
}

// url returns what opens a layer at a node.
func (p *Peers) url(digest string) (url, certificate string) {
	expires := time.Now().Add(time.Minute).Unix()
	return fmt.Sprintf("https://%s/layers/%s?expires=%d&ticket=%s", p.listener.Addr(), digest, expires, acs.PeerTicket(p.key[:], digest, expires)), p.fingerprint
}

// pull pulls a layer.
func (p *Peers) pull(t *testing.T, g *registry) ([]byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/v2/team/app/blobs/"+digestOf(g.layer), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Through(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	return b, err
}

func (p *Peers) mustPull(t *testing.T, g *registry) {
	t.Helper()
	if b, err := p.pull(t, g); err != nil || !bytes.Equal(b, g.layer) {
		t.Errorf("pulled %d of %d bytes: %v", len(b), len(g.layer), err)
	}
}

// TestFromPeer: a layer comes from a peer that has it, and from one that it's still coming to; the registry sends it once.
func TestFromPeer(t *testing.T) {
	g := newRegistry(t)
	g.trickle = make(chan struct{})
	first, second, third := node(t, 0), node(t, 0), node(t, 0)
	var pulls sync.WaitGroup
	pulls.Go(func() { first.mustPull(t, g) })
	half := func(p *Peers) {
		for {
			p.mu.Lock()
			l := p.coming[digestOf(g.layer)]
			p.mu.Unlock()
			if l != nil {
				if size, _, _, _ := l.state(); size == int64(len(g.layer)/2) {
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
	half(first)
	g.mu.Lock()
	g.sendTo = func() (string, string) { return first.url(digestOf(g.layer)) }
	g.mu.Unlock()
	pulls.Go(func() { second.mustPull(t, g) })
	pulls.Go(func() { second.mustPull(t, g) }) // another image with this layer
	half(second)
	g.mu.Lock()
	g.sendTo = func() (string, string) { return second.url(digestOf(g.layer)) }
	g.mu.Unlock()
	pulls.Go(func() { third.mustPull(t, g) })
	half(third)
	close(g.trickle)
	pulls.Wait()
	g.was(t, "sent sent sent")
	third.mustPull(t, g)
	g.was(t, "")
}

// TestPeersThatFail: whatever a peer does, the layer comes, from the registry if it must.
func TestPeersThatFail(t *testing.T) {
	old := patience
	patience = 300 * time.Millisecond
	defer func() { patience = old }()
	g := newRegistry(t)
	good := node(t, 0)
	good.mustPull(t, g)
	g.was(t, "sent")
	evil := httptest.NewUnstartedServer(nil)
	evil.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	evil.TLS = &tls.Config{Certificates: []tls.Certificate{good.certificate}, MinVersion: tls.VersionTLS13}
	evil.StartTLS()
	defer evil.Close()
	length := func(w http.ResponseWriter, n int) { w.Header().Set("Content-Length", fmt.Sprint(n)) }
	for _, c := range []struct {
		name string
		do   http.HandlerFunc
		want string
	}{
		{"refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "sent failed"},
		{"sends a part", func(w http.ResponseWriter, _ *http.Request) {
			length(w, len(g.layer))
			w.Write(g.layer[:1<<20]) //nolint:errcheck // it's cut off then
		}, "sent range"},
		{"sends a part and nothing more", func(w http.ResponseWriter, r *http.Request) {
			length(w, len(g.layer))
			w.Write(g.layer[:1<<20]) //nolint:errcheck // the node hangs up
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "sent range"},
		{"never answers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "sent failed"},
		{"tells no length", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "sent failed"},
	} {
		evil.Config.Handler = c.do
		g.sendTo = func() (string, string) { return evil.URL + "/layers/" + digestOf(g.layer), good.fingerprint }
		t.Log(c.name)
		node(t, 0).mustPull(t, g)
		g.was(t, c.want)
	}
	for name, to := range map[string]func() (string, string){
		"another certificate": func() (string, string) { url, _ := good.url(digestOf(g.layer)); return url, strings.Repeat("0", 64) },
		"nobody there":        func() (string, string) { return "https://127.0.0.1:1/layers/x", good.fingerprint },
		"a bad ticket":        func() (string, string) { url, c := good.url(digestOf(g.layer)); return url + "0", c },
	} {
		g.sendTo = to
		t.Log(name)
		node(t, 0).mustPull(t, g)
		g.was(t, "sent failed")
	}
}

// TestOtherBytes: what a peer sends is checked. The pull fails, and the next one asks the registry.
func TestOtherBytes(t *testing.T) {
	g := newRegistry(t)
	liar := node(t, 0)
	b := bytes.Clone(g.layer)
	b[1<<20]++
	if err := os.WriteFile(liar.path(digestOf(g.layer)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	g.sendTo = func() (string, string) { return liar.url(digestOf(g.layer)) }
	p := node(t, 0)
	if _, err := p.pull(t, g); err == nil {
		t.Error("other bytes were pulled")
	}
	g.was(t, "sent")
	if _, _, err := p.openStored(digestOf(g.layer)); err == nil {
		t.Error("other bytes were kept")
	}
	p.mustPull(t, g)
	g.was(t, "failed")
}

// TestWhoGetsLayers: nothing is sent without a ticket that holds, for this layer, of this node.
func TestWhoGetsLayers(t *testing.T) {
	g := newRegistry(t)
	p := node(t, 0)
	p.mustPull(t, g)
	digest, now := digestOf(g.layer), time.Now().Unix()
	valid := acs.PeerTicket(p.key[:], digest, now+60)
	for _, c := range []struct {
		name, method, path string
		want               int
	}{
		{"a ticket", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digest, now+60, valid), 200},
		{"none", "GET", "/layers/" + digest, 403},
		{"another time", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digest, now+61, valid), 403},
		{"one that is over", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digest, now-120, acs.PeerTicket(p.key[:], digest, now-120)), 403},
		{"another layer's", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digestOf(nil), now+60, valid), 403},
		{"a layer that isn't here", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digestOf(nil), now+60, acs.PeerTicket(p.key[:], digestOf(nil), now+60)), 404},
		{"another's key", "GET", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digest, now+60, acs.PeerTicket([]byte("k"), digest, now+60)), 403},
		{"a path", "GET", fmt.Sprintf("/layers/..%%2f..%%2fetc%%2fpasswd?expires=%d&ticket=%s", now+60, acs.PeerTicket(p.key[:], "passwd", now+60)), 404},
		{"another path", "GET", "/" + digest, 404},
		{"to change it", "PUT", fmt.Sprintf("/layers/%s?expires=%d&ticket=%s", digest, now+60, valid), 404},
	} {
		w := httptest.NewRecorder()
		p.serve(w, httptest.NewRequest(c.method, "https://node"+c.path, nil))
		if w.Code != c.want || c.want == 200 && !bytes.Equal(w.Body.Bytes(), g.layer) {
			t.Errorf("%s: %d %.80q", c.name, w.Code, w.Body)
		}
	}
}

// TestBudget: layers go that weren't used for longest, once there are too many.
func TestBudget(t *testing.T) {
	g := newRegistry(t)
	p := node(t, int64(len(g.layer))+100)
	old := digestOf([]byte("old"))
	if err := os.WriteFile(p.path(old), make([]byte, 200), 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(p.path(old), past, past); err != nil {
		t.Fatal(err)
	}
	p.mustPull(t, g)
	if all, err := p.stored(); err != nil || len(all) != 1 || all[0] != digestOf(g.layer) {
		t.Errorf("there are %v (%v)", all, err)
	}
}

// TestEnd: a node's part gives up the layers that are on their way when it ends, and has none of them brought afterwards.
func TestEnd(t *testing.T) {
	g := newRegistry(t)
	g.trickle = make(chan struct{})
	p, end := ending(t, 0)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/v2/team/app/blobs/"+digestOf(g.layer), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Through(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	end()
	if left, err := os.ReadDir(p.opts.Dir); err != nil || len(left) > 0 || len(p.coming) > 0 {
		t.Errorf("%d layers are still on their way, into %v, %v", len(p.coming), left, err)
	}
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%d bytes of %d were all", len(b), len(g.layer))
	}
	close(g.trickle)
	p.mustPull(t, g)
	g.was(t, "sent sent")
	if left, err := os.ReadDir(p.opts.Dir); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

package accesslog

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/routing"
)

const (
	web  = "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/app/web/0123456789abcdef"
	api  = "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/app/api/0123456789abcdef"
	cert = "arn:aws:acm:us-east-1:000000000000:certificate/1"
)

// TestLine compares lines with AWS's own format.
func TestLine(t *testing.T) {
	start := time.Date(2026, 7, 2, 22, 22, 48, 364_000_000, time.UTC)
	full := proxy.Request{
		Type: "h2", Balancer: web, Listener: "l", Group: "arn:group", Priority: 7, Action: "forward",
		Target: routing.Target{ID: "i-1", Address: "10.0.0.1", Port: 80}, Status: 200, TargetStatus: 201, Start: start,
		Waited: time.Millisecond, TargetTime: 48 * time.Millisecond, Duration: 86 * time.Millisecond, Received: 10, Sent: 57,
		Client: netip.MustParseAddrPort("192.168.131.39:2817"), Method: "GET", URL: `https://www.example.com:443/a"b`, Proto: "HTTP/2.0",
		UserAgent: "curl/7\n", TraceID: "Root=1-58", TLSVersion: tls.VersionTLS12, TLSCipher: tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		ServerName: "www.example.com",
	}
	redirect := proxy.Request{
		Type: "http", Balancer: web, Action: "redirect", Status: 301, Start: start, TargetTime: -1, Client: full.Client, Method: "GET",
		URL: "http://a:80/", Proto: "HTTP/1.1", RedirectURL: "https://a:443/",
	}
	for want, r := range map[string]*proxy.Request{
		`h2 2026-07-02T22:22:48.450000Z app/web/0123456789abcdef 192.168.131.39:2817 10.0.0.1:80 0.001 0.048 0.000 200 201 10 57 ` +
			`"GET https://www.example.com:443/a\x22b HTTP/2.0" "curl/7\x0A" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:group "Root=1-58" ` +
			`"www.example.com" "` + cert + `" 7 2026-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "201" "-" "-" -`: &full,
		`http 2026-07-02T22:22:48.364000Z app/web/0123456789abcdef 192.168.131.39:2817 - -1 -1 -1 301 - 0 0 "GET http://a:80/ HTTP/1.1" "-" ` +
			`- - - "-" "-" "-" 0 2026-07-02T22:22:48.364000Z "redirect" "https://a:443/" "-" "-" "-" "-" "-" -`: &redirect,
	} {
		certificate := ""
		if r.TLSVersion != 0 {
			certificate = cert
		}
		if got := string(Line(r, certificate)); got != want+"\n" {
			t.Errorf("got  %swant %s", got, want)
		}
	}
	for id, want := range map[uint16]string{
		tls.TLS_AES_128_GCM_SHA256:                        "TLS_AES_128_GCM_SHA256",
		tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:            "ECDHE-RSA-AES256-SHA",
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
	} {
		if got := cipherName(tls.CipherSuiteName(id)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// bucket takes files, unless it's away.
type bucket struct {
	mu    sync.Mutex
	away  bool
	files []File
}

func (b *bucket) send(_ context.Context, f File) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errors.New("away")
	}
	b.files = append(b.files, f)
	return nil
}

// texts returns the files' balancers and URLs, in the order in which they came.
func (b *bucket) texts(t *testing.T) (out []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		z, err := gzip.NewReader(bytes.NewReader(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		said := Resource(f.LoadBalancer)[len("app/"):][:3]
		for line := range strings.Lines(string(text)) {
			said += " " + strings.Fields(line)[13]
		}
		out = append(out, said)
	}
	return out
}

// run starts a spool, and returns what ends it.
func run(t *testing.T, dir string, b *bucket, room int64) (s *Spool, stop func()) {
	t.Helper()
	s = New(Options{Dir: dir, Room: room, Now: time.Now, Send: b.send, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func want(balancers ...string) map[string]Certificates {
	all := map[string]Certificates{}
	for _, b := range balancers {
		all[b] = nil
	}
	return all
}

func request(balancer, url string) *proxy.Request {
	return &proxy.Request{Balancer: balancer, Method: "GET", URL: url, Proto: "HTTP/1.1", Start: time.Now()}
}

func same(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// TestSpool: a file each five minutes and load balancer, at once when one logs no more and at the end. Others' requests are in none.
func TestSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{}
		s, stop := run(t, t.TempDir(), b, 0)
		defer stop()
		s.Request(request(web, "/too-early"))
		s.Set(want(web, api))
		s.Request(request(web, "/1"))
		s.Request(request(web, "/2"))
		s.Request(request("another", "/"))
		synctest.Wait()
		same(t, "at first", b.texts(t))
		time.Sleep(5*time.Minute + time.Second)
		same(t, "after five minutes", b.texts(t), "web /1 /2")
		if end := b.files[0].End; !end.Equal(end.Truncate(5*time.Minute)) || end.After(time.Now()) || time.Since(end) > 5*time.Minute {
			t.Error("its time is", end)
		}
		s.Request(request(api, "/3"))
		synctest.Wait()
		s.Set(want(web))
		synctest.Wait()
		same(t, "one logs no more", b.texts(t), "web /1 /2", "api /3")
		s.Request(request(web, "/4"))
		stop()
		same(t, "the end", b.texts(t), "web /1 /2", "api /3", "web /4")
	})
}

// TestNothingIsLost: what nobody takes waits, also for the next process, and after a process was killed.
func TestNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := &bucket{away: true}, t.TempDir()
		s, stop := run(t, dir, b, 0)
		s.Set(want(web))
		s.Request(request(web, "/1"))
		time.Sleep(6 * time.Minute)
		s.Request(request(web, "/2"))
		stop()
		same(t, "nobody takes it", b.texts(t))
		killed := filepath.Join(dir, "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer%2Fapp%2Fapi%2F0123456789abcdef.abcdefgh.log")
		if err := os.WriteFile(killed, append(Line(request(api, "/3"), ""), "half a li"...), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(killed, time.Now(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		s, stop = run(t, dir, b, 0)
		time.Sleep(time.Minute)
		b.mu.Lock()
		b.away = false
		b.mu.Unlock()
		time.Sleep(time.Minute)
		same(t, "it's back", b.texts(t), "web /1", "web /2", "api /3")
		if b.files[2].ID != "abcdefgh" || b.files[0].ID == b.files[1].ID {
			t.Errorf("%s %s %s", b.files[0].ID, b.files[1].ID, b.files[2].ID)
		}
		stop()
		if left, _ := os.ReadDir(dir); len(left) != 0 || s.kept.Load() != 0 {
			t.Errorf("%v are left, %d bytes", left, s.kept.Load())
		}
	})
}

// TestRoom: lines without room are dropped, and told of. There's room again when files have been taken.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{}
		s, stop := run(t, t.TempDir(), b, int64(len(Line(request(web, "/1"), "")))*2)
		defer stop()
		s.Set(want(web))
		for _, url := range []string{"/1", "/2", "/3", "/4", "/5"} {
			s.Request(request(web, url))
		}
		time.Sleep(6 * time.Minute)
		s.Request(request(web, "/6"))
		time.Sleep(6 * time.Minute)
		same(t, "two have room", b.texts(t), "web /1 /2", "web /6")
		if b.files[0].Dropped != 3 || b.files[1].Dropped != 0 {
			t.Error(b.files[0].Dropped, b.files[1].Dropped)
		}
	})
}

// TestNeverHoldsUp: a spool that isn't written drops lines once too many wait.
func TestNeverHoldsUp(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Now: time.Now})
	s.Set(want(web))
	for range maxWaiting + 5 {
		s.Request(request(web, "/"))
	}
	if n := s.dropped.Load(); n != 5 {
		t.Errorf("%d are dropped", n)
	}
}

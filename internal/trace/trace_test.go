package trace

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// collector takes spans as OpenTelemetry's protocol has them. Its decoder knows each field's name and kind, and refuses others.
type collector struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	spans  map[string]*pb.Span // by name
	header http.Header
	codes  []int // to answer the next requests with
	asked  int
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, spans: map[string]*pb.Span{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if len(c.codes) > 0 {
		w.WriteHeader(c.codes[0])
		c.codes = c.codes[1:]
		return
	}
	body, err := io.ReadAll(r.Body)
	var data pb.TracesData
	if err == nil {
		err = protojson.Unmarshal(body, &data)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%v: %s %s", err, r.URL, body)
	}
	c.header = r.Header
	for _, of := range data.ResourceSpans {
		if a := of.Resource.Attributes; len(a) != 2 || a[0].Key != "service.name" || a[0].Value.GetStringValue() != "pintle" {
			c.t.Errorf("the resource has %v", a)
		}
		for _, s := range of.ScopeSpans[0].Spans {
			c.spans[s.Name] = s
		}
	}
}

// id is an id as OTLP's JSON has it: in hex, which protojson took for base64.
func id(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func (c *collector) tracer(change ...func(*Options)) *Tracer {
	o := Options{Endpoint: c.URL, Service: "pintle", Version: "1", Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	t, err := New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return t
}

// ended runs a tracer to its end, at which it sends what it has.
func ended(t *testing.T, tracer *Tracer) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

const (
	caller = "4bf92f3577b34da6a3ce929d0e0e4736"
	above  = "00f067aa0ba902b7"
)

// TestSpans: a collector gets each span with its trace, what it is under, its times and why it failed.
func TestSpans(t *testing.T) {
	c := newCollector(t)
	tracer := c.tracer(func(o *Options) { o.Header = http.Header{"Api-Key": {"secret"}} })
	r := tracer.Begin("RunTask", "00-"+caller+"-"+above+"-01", Attribute{"rpc.method", "RunTask"}, Attribute{"empty", ""})
	at := time.Unix(100, 7)
	r.Add("placement", at, at.Add(time.Microsecond))
	under := Join(r.Context(), IDOf("task"))
	tracer.Add(Span{Name: "pull", Under: under, Start: at, End: at.Add(-time.Second)}) // by another clock
	r.End(errors.New("no room"))
	ended(t, tracer)
	for name, want := range map[string]struct{ parent, kind string }{
		"RunTask": {above, "SPAN_KIND_SERVER"}, "placement": {id(c.spans["RunTask"].GetSpanId()), "SPAN_KIND_INTERNAL"},
		"pull": {hexOf(IDOf("task")), "SPAN_KIND_INTERNAL"},
	} {
		s := c.spans[name]
		if id(s.GetTraceId()) != caller || id(s.GetParentSpanId()) != want.parent || s.GetKind().String() != want.kind || len(id(s.GetSpanId())) != 16 {
			t.Errorf("%s is %v", name, s)
		}
	}
	if s := c.spans["placement"]; s.StartTimeUnixNano != 100_000_000_007 || s.EndTimeUnixNano != 100_000_001_007 || s.Status.GetMessage() != "" {
		t.Errorf("placement is %v", s)
	}
	if s := c.spans["pull"]; s.EndTimeUnixNano != s.StartTimeUnixNano {
		t.Errorf("a pull ended before it began: %v", s)
	}
	s := c.spans["RunTask"]
	if s.Status.Message != "no room" || s.Status.Code != pb.Status_STATUS_CODE_ERROR || len(s.Attributes) != 1 || s.Attributes[0].Value.GetStringValue() != "RunTask" {
		t.Errorf("RunTask is %v", s)
	}
	if sent, dropped := tracer.Counts(); sent != 3 || dropped != 0 || c.header.Get("Api-Key") != "secret" {
		t.Errorf("%d sent, %d dropped, with %v", sent, dropped, c.header)
	}
}

func hexOf(id ID) string { return hex.EncodeToString(id[:]) }

// TestBegin: a caller's trace goes on, unless it isn't sampled; without one, or with something else in that header, another begins.
func TestBegin(t *testing.T) {
	c := newCollector(t)
	tracer := c.tracer()
	for traceparent, want := range map[string]string{
		"00-" + caller + "-" + above + "-01":     caller,
		"00-" + caller + "-" + above + "-03":     caller,
		"cc-" + caller + "-" + above + "-01-new": caller,
		"00-" + caller + "-" + above + "-00":     "none",
		"":                                       "new", "00-" + caller + "-" + above: "new", "ff-" + caller + "-" + above + "-01": "new", "00-" + caller + "-" + above + "-01-x": "new",
		"00-" + strings.ToUpper(caller) + "-" + above + "-01": "new", "00-" + strings.Repeat("0", 32) + "-" + above + "-01": "new",
		"00-" + caller + "-0000000000000000-01": "new", "00-" + caller + "-00f067aa0ba902b--01": "new",
	} {
		got := tracer.Begin("x", traceparent).Context()
		switch want {
		case "none":
			if got != "" {
				t.Errorf("%q: %q, though its caller didn't want it", traceparent, got)
			}
		case "new":
			if len(got) != traceparentLength || strings.Contains(got, caller) || !strings.HasSuffix(got, "-01") {
				t.Errorf("%q: %q, want a trace of its own", traceparent, got)
			}
		default:
			if !strings.HasPrefix(got, "00-"+want+"-") || strings.Contains(got, above) || !strings.HasSuffix(got, "-01") {
				t.Errorf("%q: %q, want %s", traceparent, got, want)
			}
		}
	}
	var off *Tracer
	off.Add(Span{Under: "00-" + caller + "-" + above + "-01"})
	if r := off.Begin("x", ""); r.Context() != "" || off.Run(t.Context()) != nil {
		t.Error("no tracer traces")
	}
	tracer.Add(Span{Name: "of no trace"})
	tracer.Begin("root", "").End(nil)
	ended(t, tracer)
	if s := c.spans["root"]; len(c.spans) != 1 || len(s.ParentSpanId) != 0 || s.Status.GetCode() != 0 {
		t.Errorf("sent are %v", c.spans)
	}
}

// TestCollectorThatFails: what may pass is tried again, other refusals aren't, and nothing waits for it.
func TestCollectorThatFails(t *testing.T) {
	for name, codes := range map[string][]int{"busy": {503, 429}, "refusing": {400}, "gone": {502, 502, 502, 502}} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			tracer, err := New(Options{Endpoint: "http://collector", Log: slog.New(slog.DiscardHandler), Client: &http.Client{
				Transport: answers(func(*http.Request) (*http.Response, error) {
					code := 200
					if asked < len(codes) {
						code = codes[asked]
					}
					asked++
					return &http.Response{StatusCode: code, Body: http.NoBody}, nil
				}),
			}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- tracer.Run(ctx) }()
			tracer.Begin("x", "").End(nil)
			time.Sleep(time.Minute)
			sent, dropped := tracer.Counts()
			want := map[string][3]int{"busy": {1, 0, 3}, "refusing": {0, 1, 1}, "gone": {0, 1, 4}}[name]
			if [3]int{int(sent), int(dropped), asked} != want {
				t.Errorf("%s: %d sent, %d dropped, asked %d times, want %v", name, sent, dropped, asked, want)
			}
			cancel()
			<-done
		})
	}
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// TestNoRedirect: the headers, which may have a key, go to no other host.
func TestNoRedirect(t *testing.T) {
	other := newCollector(t)
	here := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/traces", http.StatusTemporaryRedirect))
	defer here.Close()
	tracer, err := New(Options{Endpoint: here.URL, Header: http.Header{"X-Key": {"secret"}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tracer.Begin("x", "").End(nil)
	cancel()
	tracer.Run(ctx) //nolint:errcheck // it sends what is left
	other.mu.Lock()
	defer other.mu.Unlock()
	if sent, dropped := tracer.Counts(); other.asked != 0 || sent != 0 || dropped != 1 {
		t.Errorf("%d sent, %d dropped, and the other host was asked %d times with %v", sent, dropped, other.asked, other.header)
	}
}

// TestNothingWaits: what a collector doesn't take in time is dropped and counted.
func TestNothingWaits(t *testing.T) {
	tracer := newCollector(t).tracer()
	for range maxWaiting + 5 {
		tracer.Begin("x", "").End(nil)
	}
	if _, dropped := tracer.Counts(); dropped != 5 {
		t.Errorf("%d are dropped, want 5", dropped)
	}
}

// TestOptions: only URLs and pairs will do, and no message shows a secret.
func TestOptions(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:4318", "ftp://x", "http://", "://"} {
		if _, err := New(Options{Endpoint: endpoint}); err == nil {
			t.Errorf("%q is taken for a collector's URL", endpoint)
		}
	}
	if tracer, err := New(Options{}); tracer != nil || err != nil {
		t.Error("without a collector there is a tracer: ", tracer, err)
	}
	h, err := ParseHeaders("api-key=a%20b, x = y ,")
	if err != nil || h.Get("Api-Key") != "a b" || h.Get("X") != "y" || len(h) != 2 {
		t.Errorf("%v %v", h, err)
	}
	for _, text := range []string{"topsecret", "=topsecret", "k=%topsecret"} {
		if _, err := ParseHeaders(text); err == nil || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSpansAreSmall: what a caller sends makes no span large, for thousands of them may wait.
func TestSpansAreSmall(t *testing.T) {
	tracer := newCollector(t).tracer()
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	caller := "01" + traceparent[2:] + "-" + strings.Repeat("a", 1<<20)
	tracer.Begin("RunTask", caller).End(errors.New(strings.Repeat("ä", 1<<20)))
	s := <-tracer.spans
	if s.Under != traceparent {
		t.Errorf("it's under %.99q, of %d bytes", s.Under, len(s.Under))
	}
	if s.Error != strings.Repeat("ä", maxError/2) {
		t.Errorf("its error has %d bytes", len(s.Error))
	}
}

package test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// collector is an OpenTelemetry collector that keeps spans by their trace.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	traces map[string][]*pb.Span
	failed error
}

func newCollector(t *testing.T) *collector {
	c := &collector{traces: map[string][]*pb.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data pb.TracesData
		if err == nil {
			err = protojson.Unmarshal(body, &data)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.failed = err
			return
		}
		for _, of := range data.ResourceSpans {
			for _, s := range of.ScopeSpans[0].Spans {
				c.traces[hexID(s.TraceId)] = append(c.traces[hexID(s.TraceId)], s)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// hexID is an id in hex, as OTLP's JSON has it, which protojson took for base64.
func hexID(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// tree returns a trace as PARENT/NAME of each span, once it has as many as are wanted.
func (c *collector) tree(t *testing.T, trace, caller string, want int) map[string]*pb.Span {
	t.Helper()
	var spans []*pb.Span
	Eventually(t, "a trace's spans", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failed != nil {
			t.Fatal(c.failed)
		}
		spans = c.traces[trace]
		return len(spans) >= want
	})
	names := map[string]string{caller: "caller"}
	for _, s := range spans {
		names[hexID(s.SpanId)] = s.Name
	}
	out := map[string]*pb.Span{}
	for _, s := range spans {
		out[names[hexID(s.ParentSpanId)]+"/"+s.Name] = s
	}
	return out
}

// TestTraces: a collector gets the way of a request that brings a traceparent: placement, the journal, and its task's way to RUNNING on the
// node. So it does for a service's deployment, and a task that fails says why.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := Up(t, "p3.8xlarge", "--otlp-endpoint", c.URL)
	register := func(family, command string) {
		p.post("AmazonEC2ContainerServiceV20141113.RegisterTaskDefinition",
			`{"family":"`+family+`","containerDefinitions":[{"name":"a","image":"i","memory":64,"command":["`+command+`","60"]}]}`)
	}
	register("good", "sleep")
	register("bad", "no-such-program")
	const caller = "00f067aa0ba902b7"
	call := func(operation, body, trace string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, p.Endpoint, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(operation, resp, err)
		}
		resp.Body.Close() //nolint:errcheck // a test
	}
	id := func(digit string) string { return strings.Repeat(digit, 32) }
	call("RunTask", `{"taskDefinition":"good"}`, id("1"))
	call("RunTask", `{"taskDefinition":"bad"}`, id("2"))
	call("CreateService", `{"serviceName":"s","taskDefinition":"good","desiredCount":1}`, id("3"))

	task := []string{"task/node accepts", "task/image pull", "task/container start"}
	for trace, want := range map[string][]string{
		id("1"): append([]string{"caller/RunTask", "RunTask/placement", "RunTask/journal commit", "RunTask/task"}, task...),
		id("2"): {"caller/RunTask", "RunTask/placement", "RunTask/journal commit", "RunTask/task", "task/node accepts", "task/image pull"},
		id("3"): append([]string{"caller/CreateService", "CreateService/service", "CreateService/journal commit", "CreateService/task"}, task...),
	} {
		got := c.tree(t, trace, caller, len(want))
		for _, name := range want {
			s := got[name]
			if s == nil || s.EndTimeUnixNano < s.StartTimeUnixNano || time.Since(time.Unix(0, int64(s.StartTimeUnixNano))) > patience {
				t.Errorf("trace %s: %s is %v", trace, name, s)
			}
		}
		if len(got) != len(want) {
			t.Errorf("trace %s has %d spans, want %v: %v", trace, len(got), want, got)
		}
		failed := got["RunTask/task"].GetStatus().GetCode() == pb.Status_STATUS_CODE_ERROR
		if failed != (trace == id("2")) {
			t.Errorf("trace %s: its task's status is %v", trace, got["RunTask/task"].GetStatus())
		}
	}
}

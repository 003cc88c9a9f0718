package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Options are those of OpenTelemetry's exporters, with the names of their variables.
type Options struct {
	Endpoint string      // OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is below it
	Header   http.Header // OTEL_EXPORTER_OTLP_HEADERS
	Service  string      // OTEL_SERVICE_NAME
	Version  string      // the program's
	Client   *http.Client
	Log      *slog.Logger
}

const (
	maxWaiting = 4096 // spans; beyond that they are dropped
	maxBatch   = 512
	batchEvery = time.Second
	timeout    = 10 * time.Second // for a batch, as OTEL_EXPORTER_OTLP_TIMEOUT has it by default
	tries      = 4
	firstPause = time.Second
	lastFlush  = 2 * time.Second // for what is left when the program ends
)

// New returns a tracer that tells a collector, once Run runs. Without an endpoint it's nil.
func New(o Options) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a collector, such as http://127.0.0.1:4318", o.Endpoint)
	}
	o.Endpoint = u.JoinPath("v1/traces").String()
	if o.Client == nil {
		o.Client = &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // headers with keys are for this host alone
		}}
	}
	return &Tracer{opts: o, spans: make(chan Span, maxWaiting)}, nil
}

// ParseHeaders reads OTEL_EXPORTER_OTLP_HEADERS: names and values, separated by commas, the values as in URLs.
func ParseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("its headers must be name=value, separated by commas") // which may be a secret, so it isn't shown
		}
		h.Set(strings.TrimSpace(name), plain)
	}
	return h, nil
}

// Run sends what is added until ctx ends, and then what is left, if the collector takes it at once.
func (t *Tracer) Run(ctx context.Context) error {
	if t == nil {
		return nil
	}
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	var batch []Span
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
			defer cancel()
			t.flush(last, t.rest(batch))
			return ctx.Err()
		case s := <-t.spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-tick.C:
		}
		t.flush(ctx, batch)
		batch = batch[:0]
	}
}

// rest adds what waits to a batch.
func (t *Tracer) rest(batch []Span) []Span {
	for {
		select {
		case s := <-t.spans:
			batch = append(batch, s)
		default:
			return batch
		}
	}
}

// flush sends a batch, and tries again for a while if the collector says that it may.
func (t *Tracer) flush(ctx context.Context, batch []Span) {
	if len(batch) == 0 {
		return
	}
	body, err := json.Marshal(t.export(batch))
	if err == nil {
		err = t.sendPatiently(ctx, body)
	}
	if err != nil {
		t.dropped.Add(uint64(len(batch)))
		t.opts.Log.Warn("the collector took no spans", "spans", len(batch), "error", err)
		return
	}
	t.sent.Add(uint64(len(batch)))
}

func (t *Tracer) sendPatiently(ctx context.Context, body []byte) error {
	pause := firstPause
	for try := 1; ; try++ {
		again, err := t.send(ctx, body)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send sends a request. again is whether it may be sent once more: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
func (t *Tracer) send(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.opts.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, values := range t.opts.Header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := t.opts.Client.Do(r)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) //nolint:errcheck // it's only for the log
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("%s: %s", resp.Status, said)
}

// The JSON of an ExportTraceServiceRequest: opentelemetry/proto/collector/trace/v1, by the rules for OTLP, which has ids in hex.
type (
	exportRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID           string     `json:"traceId"`
		SpanID            string     `json:"spanId"`
		ParentSpanID      string     `json:"parentSpanId,omitempty"`
		Name              string     `json:"name"`
		Kind              int        `json:"kind"`
		StartTimeUnixNano string     `json:"startTimeUnixNano"`
		EndTimeUnixNano   string     `json:"endTimeUnixNano"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		Status            *status    `json:"status,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		StringValue string `json:"stringValue"`
	}
)

// The values of the enumerations Span.SpanKind and Status.StatusCode that are used.
const (
	kindInternal = 1
	kindServer   = 2
	statusError  = 2
)

func (t *Tracer) export(batch []Span) exportRequest {
	spans := make([]span, 0, len(batch))
	for _, s := range batch {
		spans = append(spans, exported(s))
	}
	about := keyValues([]Attribute{{"service.name", t.opts.Service}, {"service.version", t.opts.Version}})
	return exportRequest{[]resourceSpans{{resource{about}, []scopeSpans{{scope{"github.com/pintle/pintle"}, spans}}}}}
}

func exported(s Span) span {
	of, under, _, _ := parse(s.Under)
	if s.ID == (ID{}) {
		s.ID = newID()
	}
	out := span{
		TraceID: hex.EncodeToString(of[:]), SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: kindInternal, Attributes: keyValues(s.Attributes),
		StartTimeUnixNano: strconv.FormatInt(s.Start.UnixNano(), 10), EndTimeUnixNano: strconv.FormatInt(max(s.End.UnixNano(), s.Start.UnixNano()), 10),
	}
	if under != (ID{}) {
		out.ParentSpanID = hex.EncodeToString(under[:])
	}
	if s.Server {
		out.Kind = kindServer
	}
	if s.Error != "" {
		out.Status = &status{statusError, s.Error}
	}
	return out
}

func keyValues(attributes []Attribute) (out []keyValue) {
	for _, a := range attributes {
		if a.Value != "" {
			out = append(out, keyValue{a.Name, value{a.Value}})
		}
	}
	return out
}

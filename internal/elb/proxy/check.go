package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// checkUntil checks a target again and again.
func (t *target) checkUntil(ctx context.Context) {
	for ctx.Err() == nil {
		g, used := t.current()
		check := g.Check()
		if used {
			t.note(t.check(ctx, g, check), check)
		}
		t.lane.prune(time.Now())
		wait := time.NewTimer(time.Duration(check.IntervalSeconds) * time.Second)
		select {
		case <-ctx.Done():
		case <-t.changed:
		case <-wait.C:
		}
		wait.Stop()
	}
}

// current returns what the next check follows. A change up to now needs no further one.
func (t *target) current() (*routing.Group, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.changed:
	default:
	}
	return t.config, t.used
}

// note takes up what a check has found.
func (t *target) note(r routing.Result, c routing.HealthCheck) {
	t.mu.Lock()
	before := t.health
	t.health = before.After(r, c)
	if t.draining.Load() {
		t.health = before
	}
	after := t.health
	if after.State == routing.Healthy && before.State != routing.Healthy {
		t.healthySince = time.Now()
	}
	t.mu.Unlock()
	if before.State != after.State {
		t.proxy.Log.Info("health", "group", t.group, "target", t.ID, "port", t.Port, "state", after.State, "reason", after.Reason)
	}
}

// check makes one check.
func (t *target) check(ctx context.Context, g *routing.Group, c routing.HealthCheck) routing.Result {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.TimeoutSeconds)*time.Second)
	defer cancel()
	port := c.Port
	if port == routing.TrafficPort {
		port = strconv.Itoa(t.Port)
	}
	address := net.JoinHostPort(t.Address, port)
	if c.Protocol == routing.TCP {
		conn, err := t.dialCheck(ctx, g, address)
		if err != nil {
			return failure(err)
		}
		conn.Close() //nolint:errcheck // it was only to see that there is one
		return routing.Passed()
	}
	return t.ask(ctx, g, c, address)
}

// dialCheck connects for a check.
func (t *target) dialCheck(ctx context.Context, g *routing.Group, address string) (net.Conn, error) {
	c, err := t.proxy.Dial(ctx, "tcp", address)
	if err != nil || !g.Attributes.ProxyProtocol {
		return c, err
	}
	if _, err := c.Write(ownHeader); err != nil {
		c.Close() //nolint:errcheck // it's of no use
		return nil, err
	}
	return c, nil
}

// failure is the result of a check that has no answer.
func failure(err error) routing.Result {
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return routing.TimedOut()
	}
	return routing.Failed()
}

// ask checks by a request, over a connection of its own. It follows no redirect.
func (t *target) ask(ctx context.Context, g *routing.Group, c routing.HealthCheck, address string) routing.Result {
	transport := t.newTransport(&routing.Group{Protocol: c.Protocol, ProtocolVersion: g.ProtocolVersion})
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dialCheck(ctx, g, address) }
	defer transport.CloseIdleConnections()
	scheme, method := "http://", http.MethodGet
	if c.Protocol == routing.HTTPS {
		scheme = "https://"
	}
	var body io.Reader
	if g.ProtocolVersion == routing.GRPC {
		method, body = http.MethodPost, bytes.NewReader(make([]byte, 5)) // a message without fields, not compressed
	}
	r, err := http.NewRequestWithContext(ctx, method, scheme+address+c.Path, body)
	if err != nil {
		return routing.Failed()
	}
	r.Header.Set("User-Agent", "ELB-HealthChecker/2.0")
	if g.ProtocolVersion == routing.GRPC {
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("Te", "trailers")
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return failure(err)
	}
	defer resp.Body.Close()
	m, err := routing.ParseMatcher(c.Matcher)
	if err != nil {
		return routing.Failed()
	}
	if g.ProtocolVersion != routing.GRPC {
		return m.Answered(resp.StatusCode)
	}
	return grpcResult(m, resp)
}

// grpcResult reads gRPC's status, which stands behind the answer or, if there is none, in its head.
func grpcResult(m routing.Matcher, resp *http.Response) routing.Result {
	const most = 1 << 20
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, most)); err != nil {
		return failure(err)
	}
	status := resp.Trailer.Get("Grpc-Status")
	if status == "" {
		status = resp.Header.Get("Grpc-Status")
	}
	code, err := strconv.Atoi(status)
	if err != nil || resp.StatusCode != http.StatusOK {
		return routing.Failed()
	}
	return m.Answered(code)
}

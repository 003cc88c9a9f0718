package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"
	"github.com/coder/websocket"
)

// TestReturnOfTheNetwork cuts the network under a node's connections, as a link that is down does: nothing arrives, and nothing fails.
// The node must be back within 5 s of the network's return.
func TestReturnOfTheNetwork(t *testing.T) {
	for _, outage := range []time.Duration{21 * time.Second, 30 * time.Second, 47 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var up atomic.Bool
			up.Store(true)
			opened, over := make(chan time.Time, 10), make(chan bool)
			server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				opened <- time.Now()
				beat := []byte(`{"type":"HeartbeatMessage","message":{"messageId":"m","healthy":true,"intervalMs":8000}}`)
				for {
					if up.Load() {
						conn.Write(r.Context(), websocket.MessageText, beat) //nolint:errcheck // the node may have gone
					}
					select {
					case <-over:
						return
					case <-time.After(8 * time.Second):
					}
				}
			})}
			pipes := make(listener)
			go server.Serve(pipes) //nolint:errcheck // it ends with the test
			ctx, cancel := context.WithCancel(t.Context())
			a := New(Config{Log: slog.New(slog.DiscardHandler), ECS: &silentECS{up: &up}, Runtime: newFakeRuntime()})
			a.web = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if !up.Load() {
					time.Sleep(connectDeadline)
					return nil, context.DeadlineExceeded
				}
				here, there := net.Pipe()
				pipes <- there
				return here, nil
			}}}
			a.identity.Store(&identity{})
			a.config.DataDir = t.TempDir()
			done := make(chan error)
			go func() {
				done <- a.reconnect(ctx, "ACS", func(ctx context.Context) error {
					e, err := a.endpoints(ctx)
					if err != nil {
						return err
					}
					s, err := a.dial(ctx, *e.Endpoint, url.Values{})
					if err != nil {
						return err
					}
					defer s.conn.CloseNow() //nolint:errcheck // a test
					for err == nil {
						_, err = s.read(ctx)
					}
					return err
				})
			}()
			<-opened
			time.Sleep(time.Minute)
			up.Store(false)
			time.Sleep(outage)
			up.Store(true)
			back := time.Now()
			if at := <-opened; at.Sub(back) > 5*time.Second {
				t.Errorf("after %v away, the node came back %v later", outage, at.Sub(back))
			}
			cancel()
			<-done
			close(over)
			server.Close() //nolint:errcheck // over
		})
	}
}

// TestWrongClock: a machine whose clock is hours off signs with the control plane's time, once that has refused its own.
func TestWrongClock(t *testing.T) {
	for _, off := range []time.Duration{5 * time.Hour, -5 * time.Hour, 0} {
		tries := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tries++
			theirs := time.Now().Add(off)
			w.Header().Set("Date", theirs.UTC().Format(http.TimeFormat))
			at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || theirs.Sub(at).Abs() > 5*time.Minute {
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `{"AccessDeniedException": "Signature not yet current"}`) //nolint:errcheck // a test
				return
			}
			if conn, err := websocket.Accept(w, r, nil); err == nil {
				conn.CloseNow() //nolint:errcheck // a test
			}
		}))
		a := New(Config{Log: slog.New(slog.DiscardHandler), Runtime: newFakeRuntime(), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
		for range 2 {
			s, err := a.dial(t.Context(), server.URL, url.Values{})
			if err != nil {
				t.Fatalf("off by %s: %v", off, err)
			}
			s.conn.CloseNow() //nolint:errcheck // a test
		}
		if want := map[bool]int{true: 2, false: 3}[off == 0]; tries != want {
			t.Errorf("off by %s: %d tries", off, tries)
		}
		server.Close()
	}
}

// silentECS answers while the network is up, and says nothing while it's down.
type silentECS struct {
	ECS
	up *atomic.Bool
}

func (s *silentECS) DiscoverPollEndpoint(
	ctx context.Context, _ *ecs.DiscoverPollEndpointInput, _ ...func(*ecs.Options),
) (*ecs.DiscoverPollEndpointOutput, error) {
	if !s.up.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &ecs.DiscoverPollEndpointOutput{Endpoint: aws.String("http://pintle/acs")}, nil
}

// listener accepts the ends of pipes.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l listener) Close() error   { close(l); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

func TestReconnect(t *testing.T) {
	hungUp := websocket.CloseError{Code: websocket.StatusNormalClosure}
	for _, c := range []struct {
		name     string
		lasts    time.Duration // of each connection
		err      error
		min, max time.Duration // from the fifth connection's end to the sixth connection
	}{
		{"the control plane hangs up", time.Hour, hungUp, 0, 0},
		{"the control plane hangs up at once", 0, hungUp, time.Second, 2 * time.Second},
		{"it fails", 0, errors.New("refused"), time.Second, 2 * time.Second},
		{"it fails after a good while", time.Hour, errors.New("reset"), 250 * time.Millisecond, 320 * time.Millisecond},
		{"another agent has its data", 0, &refusal{"InstanceInUseException", ""}, 160 * time.Second, 160 * time.Second},
		{"a wrong key", 0, &smithy.GenericAPIError{Code: "UnrecognizedClientException"}, 160 * time.Second, 160 * time.Second},
		{"deregistered", 0, &refusal{"InactiveInstanceException", ""}, time.Hour, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
				ctx, cancel := context.WithCancel(t.Context())
				n, ended := 0, time.Time{}
				err := a.reconnect(ctx, "ACS", func(context.Context) error {
					if n++; n == 6 {
						if wait := time.Since(ended); wait < c.min || wait > c.max {
							t.Errorf("waited %v", wait)
						}
						cancel()
					}
					time.Sleep(c.lasts)
					ended = time.Now()
					return c.err
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

package proxy

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// TestFirstChecks: a new target is checked once, and then as often as its group says: one that doesn't listen yet isn't unhealthy for that.
func TestFirstChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks []time.Time
		p := New(Config{
			Listen: func(string, string) (net.Listener, error) { return newInbox(&net.TCPAddr{}), nil },
			Dial: func(context.Context, string, string) (net.Conn, error) {
				checks = append(checks, time.Now())
				return nil, errors.New("nobody listens")
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		set(t, p, one(80, routing.TCP, routing.Group{Protocol: routing.TCP, Targets: []routing.Target{{ID: "a", Address: "10.0.0.1", Port: 80}}}))
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if len(checks) != 2 || checks[1].Sub(checks[0]) != 30*time.Second {
			t.Errorf("checks at %v", checks)
		}
		stop()
		<-ended
	})
}

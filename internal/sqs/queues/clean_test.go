package queues

import (
	"fmt"
	"testing"
	"time"
)

// TestReceiveWhileCleaning: a message is received whole, and counts as received once, while the log is cleaned of what lies around
// it.
func TestReceiveWhileCleaning(t *testing.T) {
	const messages = 400
	s := open(t, t.TempDir(), Options{MaxSegment: 20_000, Slack: 1 << 40})
	create(t, s, Queue{Name: "q"})
	for i := range messages {
		send(t, s, "q", fmt.Sprintf("%0200d", i))
	}
	cleaned := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				cleaned <- nil
				return
			default:
			}
			if err := s.cleanOldest(); err != nil {
				cleaned <- err
				return
			}
		}
	}()
	for i := range messages {
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
		if err != nil || len(got) != 1 || string(got[0].Body) != fmt.Sprintf("%0200d", i) || got[0].Receives != 1 {
			t.Errorf("message %d is %v, %v", i, got, err)
			break
		}
	}
	close(stop)
	if err := <-cleaned; err != nil {
		t.Error(err)
	}
}

package queues

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkSend sends messages of 1 KB from some clients, each durable when it returns.
func BenchmarkSend(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			create(b, s, Queue{Name: "q"})
			share(b, clients, func() error {
				_, err := s.Send("q", []Message{{Body: make([]byte, 1024)}})
				return err
			})
		})
	}
}

// BenchmarkSendReceiveDelete takes a message through its whole life, with many others in the queue.
func BenchmarkSendReceiveDelete(b *testing.B) {
	for _, backlog := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("backlog=%d/clients=64", backlog), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			create(b, s, Queue{Name: "q"})
			for range backlog / 1000 {
				if _, err := s.Send("q", make([]Message, 1000)); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			share(b, 64, func() error {
				if _, err := s.Send("q", []Message{{Body: make([]byte, 1024)}}); err != nil {
					return err
				}
				got, err := s.Receive(b.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
				if err != nil || len(got) == 0 {
					return err
				}
				_, err = s.Delete("q", []Receipt{got[0].Receipt})
				return err
			})
		})
	}
}

// share does something b.N times, from several goroutines.
func share(b *testing.B, clients int, do func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ReportAllocs()
	for range clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

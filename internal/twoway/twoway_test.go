package twoway

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdle: connections go on while one direction is busy, and both are closed once neither is.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := net.Pipe()
		b, server := net.Pipe()
		type sums struct{ fromA, fromB int64 }
		over := make(chan sums)
		go func() {
			fromA, fromB := Carry(a, b, time.Minute)
			over <- sums{fromA, fromB}
		}()
		text := make([]byte, 5)
		for range 3 {
			time.Sleep(50 * time.Second)
			go client.Write([]byte("hello")) //nolint:errcheck // the other end tells
			if _, err := io.ReadFull(server, text); err != nil || string(text) != "hello" {
				t.Fatalf("%q, %v", text, err)
			}
		}
		last := time.Now()
		if got := <-over; got != (sums{15, 0}) || time.Since(last) != time.Minute {
			t.Errorf("%v after %v", got, time.Since(last))
		}
		for _, c := range []net.Conn{client, server} {
			if _, err := c.Read(text); err != io.EOF {
				t.Errorf("it is still open: %v", err)
			}
		}
	})
}

// TestNoLimit: without one, idle connections stay until one ends.
func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := net.Pipe()
		b, server := net.Pipe()
		over := make(chan bool)
		go func() {
			Carry(a, b, 0)
			over <- true
		}()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("they were closed")
		default:
		}
		client.Close() //nolint:errcheck // a test
		server.Close() //nolint:errcheck // a test
		<-over
	})
}

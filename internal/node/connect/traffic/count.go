package traffic

import (
	"sync"
	"time"
)

// Count is what has passed at a listener for some time.
type Count struct {
	Connections  int64 // that were opened
	Active       int64 // that are open at its end
	Bytes        int64 // that went through, in both directions
	Requests     int64
	GRPC         int64    // how many of them were gRPC's
	Classes      [6]int64 // answers of targets by the first digit of their codes
	ResponseTime Time
	Targets      int // how many there are at its end
}

// Time sums up how long targets took to answer, in seconds.
type Time struct {
	Count         int64
	Min, Max, Sum float64
}

// counter counts at one listener.
type counter struct {
	mu    sync.Mutex
	count Count
}

func (c *counter) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Connections++
	c.count.Active++
}

func (c *counter) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Active--
}

func (c *counter) passed(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Bytes += bytes
}

// requested counts a request that has ended.
func (c *counter) requested(x *exchange, grpc bool, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Requests++
	c.count.Bytes += bytes
	if grpc {
		c.count.GRPC++
	}
	if class := x.status / 100; class > 0 && class < len(c.count.Classes) {
		c.count.Classes[class]++
		c.count.ResponseTime.add(x.took)
	}
}

func (t *Time) add(d time.Duration) {
	s := d.Seconds()
	if t.Count == 0 || s < t.Min {
		t.Min = s
	}
	t.Max = max(t.Max, s)
	t.Sum += s
	t.Count++
}

// take returns the count, and begins anew.
func (c *counter) take() Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.count
	c.count = Count{Active: out.Active}
	return out
}

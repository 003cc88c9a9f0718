package carrier

import (
	"fmt"
	"sync"

	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
)

// Counter counts a proxy's traffic, as its Observer. How much it keeps is bounded by how many load balancers and groups there are.
type Counter struct {
	mu     sync.Mutex
	counts map[[2]string]*report.Count
}

// NewCounter returns a counter at zero.
func NewCounter() *Counter { return &Counter{counts: map[[2]string]*report.Count{}} }

// Take returns what was counted since it was called last.
func (c *Counter) Take() (all []report.Count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.counts {
		all = append(all, *n)
	}
	clear(c.counts)
	return all
}

func (c *Counter) at(balancer, group string) *report.Count {
	key := [2]string{balancer, group}
	n := c.counts[key]
	if n == nil {
		n = &report.Count{LoadBalancer: balancer, TargetGroup: group, Codes: map[string]int64{}}
		c.counts[key] = n
	}
	return n
}

// Request implements proxy.Observer.
func (c *Counter) Request(r *proxy.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.at(r.Balancer, r.Group)
	n.Requests++
	n.Bytes += r.Received + r.Sent
	switch {
	case r.TargetStatus > 0:
		n.Codes[fmt.Sprintf("HTTPCode_Target_%dXX_Count", r.TargetStatus/100)]++
	case r.Status >= 300:
		n.Codes[fmt.Sprintf("HTTPCode_ELB_%dXX_Count", r.Status/100)]++
		switch r.Status {
		case 500, 502, 503, 504:
			n.Codes[fmt.Sprintf("HTTPCode_ELB_%d_Count", r.Status)]++
		}
	}
	switch r.Action {
	case routing.RedirectTo:
		n.Codes["HTTP_Redirect_Count"]++
	case routing.FixedResponse:
		n.Codes["HTTP_Fixed_Response_Count"]++
	}
	if r.TargetTime >= 0 && r.TargetStatus > 0 {
		n.Time(r.TargetTime)
	}
	n.NotConnected += int64(r.Unreached)
}

// Flow implements proxy.Observer.
func (c *Counter) Flow(f *proxy.Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.at(f.Balancer, f.Group)
	n.Flows++
	n.Bytes += f.Received + f.Sent
}

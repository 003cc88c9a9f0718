// Package report is what a balancer process and the control plane tell each other, as JSON: the process asks for its configuration, and
// reports where its listeners are, how the targets are, and what it has counted. It is pure.
package report

import (
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// The paths of a control plane that balancer processes post to.
const (
	ConfigurationPath = "/pintle/balancer/configuration"
	ReportPath        = "/pintle/balancer/report"
	ListPath          = "/pintle/balancer/list"
	AccessLogPath     = "/pintle/balancer/accesslog"
)

// MaxBody is how large a report may be.
const MaxBody = 16 << 20

// Ask asks for a configuration other than the one that the process has. The answer waits until there is one, or for Wait.
type Ask struct {
	Balancer string
	Version  string // empty if it has none
	Wait     time.Duration
}

// Configuration is what a process is to carry out.
type Configuration struct {
	Version   string // that of the Ask, if nothing has changed; then there is nothing else
	Balancers routing.Balancers
	// AccessLogs are the ARNs of the load balancers whose requests are to be logged.
	AccessLogs []string `json:",omitempty"`
}

// AccessLog is a part of a load balancer's access log. If its answer is lost it comes once more, with the same ID.
type AccessLog struct {
	Balancer     string // the process
	LoadBalancer string // its ARN
	Address      string // the process's IP address
	End          time.Time
	ID           string
	Dropped      int64  // lines that the process had no room for, since the part before
	Data         []byte // compressed
}

// Report is what a process tells of itself.
type Report struct {
	Balancer  string
	Started   time.Time
	Version   string            // of the configuration that it carries out
	Addresses map[string]string // where the listeners are, by ARN
	Problems  map[string]string // why they are not, by ARN
	Targets   []Target
	Number    int64 // the counts' number: reports of one process that have the same one have the same counts
	Counts    []Count
}

// Listener is where a listener is, at one process.
type Listener struct {
	LoadBalancer string // its name
	Protocol     string
	Port         int
	Address      string
	URL          string // by the load balancer's name, if the address is this machine's
	Process      string
	Problem      string // why it isn't there
}

// Target is a target's health at a process.
type Target struct {
	Group   string // its ARN
	ID      string
	Port    int
	Health  routing.Health
	Drained bool // it drains, and nothing is under way there
}

// Key tells a process's targets apart.
func (t *Target) Key() Key { return Key{t.Group, routing.TargetKey{ID: t.ID, Port: t.Port}} }

// Key is a target's identity.
type Key struct {
	Group string
	routing.TargetKey
}

// Verdict is what several processes together say of a target that is registered: healthy or unhealthy only if all that have checked it do.
// If they disagree, ok is false, and it stays what it was.
func Verdict(opinions []routing.Health) (h routing.Health, ok bool) {
	for _, o := range opinions {
		switch {
		case o.State == routing.Draining || o.State == routing.Unused:
			continue // it's from before the target was registered, or used
		case o.State == routing.Initial && h.State != "" || h.State == routing.Initial:
			h = routing.Registered()
			ok = true
		case h.State == "" || h.State == o.State:
			h = o
			ok = true
		default:
			return routing.Health{}, false
		}
	}
	return h, ok
}

// Count is what a process has counted of a load balancer's requests to a target group, since the report before. Without a group it's what
// the load balancer has answered itself.
type Count struct {
	LoadBalancer string // ARNs
	TargetGroup  string
	Requests     int64
	Codes        map[string]int64 // by metric, such as HTTPCode_Target_2XX_Count
	NotConnected int64            // targets that took no connection
	Bytes        int64
	Flows        int64         // new connections that a network load balancer has passed through
	Times        map[int64]int // how many answers took so many microseconds, to two digits
}

// Time counts an answer that took so long. There are 90 different times for each power of ten.
func (c *Count) Time(d time.Duration) {
	if c.Times == nil {
		c.Times = map[int64]int{}
	}
	c.Times[rounded(d.Microseconds())]++
}

// rounded keeps a number's first two digits.
func rounded(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

package proxy

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// Observer hears of all traffic. It is called by many at once, and must not keep what it gets.
type Observer interface {
	Request(*Request)
	Flow(*Flow)
}

// Request is what is to be said of a request: for metrics, and for a line of the access log.
type Request struct {
	Type         string // http, https, h2, grpcs, ws or wss
	Balancer     string // ARNs
	Listener     string
	Rule         string
	Group        string
	Priority     int    // of the rule; 0 is the default one
	Action       string // none if no rule was asked
	Target       routing.Target
	Status       int // the balancer's code
	TargetStatus int // 0 without an answer of a target
	Unreached    int // targets that took no connection for it
	Start        time.Time
	Waited       time.Duration // until it was sent to the target that answered
	TargetTime   time.Duration // from then until the head of the target's answer; negative without one
	Duration     time.Duration
	Received     int64 // bytes of bodies
	Sent         int64
	Client       netip.AddrPort
	Method       string
	URL          string
	Host         string
	Proto        string
	UserAgent    string
	TraceID      string
	RedirectURL  string
	ErrorReason  string
	TLSVersion   uint16 // 0 without TLS
	TLSCipher    uint16
	ServerName   string
}

func (r *Request) describeTLS(in *http.Request) {
	if in.TLS == nil {
		return
	}
	r.TLSVersion = in.TLS.Version
	r.TLSCipher = in.TLS.CipherSuite
	r.ServerName = in.TLS.ServerName
	if in.ProtoMajor == 2 {
		r.Type = "h2"
	}
	if strings.HasPrefix(in.Header.Get("Content-Type"), "application/grpc") {
		r.Type = "grpcs"
	}
}

// Flow is what is to be said of a connection that a network load balancer passed through.
type Flow struct {
	Balancer string
	Listener string
	Group    string
	Target   routing.Target // none if there was no target
	Client   netip.AddrPort
	Start    time.Time
	Duration time.Duration
	Received int64 // bytes from the client
	Sent     int64
}

// Observers are several that hear of the same.
type Observers []Observer

// Request implements Observer.
func (all Observers) Request(r *Request) {
	for _, o := range all {
		o.Request(r)
	}
}

// Flow implements Observer.
func (all Observers) Flow(f *Flow) {
	for _, o := range all {
		o.Flow(f)
	}
}

// nobody is an Observer who doesn't care.
type nobody struct{}

func (nobody) Request(*Request) {}
func (nobody) Flow(*Flow)       {}

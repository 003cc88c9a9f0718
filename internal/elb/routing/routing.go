// Package routing is what a load balancer decides: which rule of a listener a request meets, which target of a group gets it, and what a
// health check says of a target. It is pure: what is known of the request and of the targets is handed in, and so is chance. Its types
// are also the configuration that package proxy runs, as JSON; Validate checks it.
package routing

import (
	"net/netip"
	"slices"
)

// Balancers is all that a proxy carries out.
type Balancers struct {
	Balancers []Balancer
	Groups    []Group
	// CookieKey seals stickiness cookies. Proxies that serve one balancer need the same key; without one, a proxy makes its own.
	CookieKey []byte
}

// The types of balancers.
const (
	Application = "application"
	Network     = "network"
)

// The protocols of listeners and groups.
const (
	HTTP   = "HTTP"
	HTTPS  = "HTTPS"
	TCP    = "TCP"
	TLS    = "TLS"
	UDP    = "UDP"
	TCPUDP = "TCP_UDP"
)

// forwards says which groups listeners can forward to, by protocol: "Target groups for your Network Load Balancers", "Routing configuration".
var forwards = map[string][]string{
	HTTP:   {HTTP, HTTPS},
	HTTPS:  {HTTP, HTTPS},
	TCP:    {TCP, TCPUDP},
	TLS:    {TCP, TLS},
	UDP:    {UDP, TCPUDP},
	TCPUDP: {TCPUDP},
}

// Fits reports whether a listener's protocol can forward to a group's.
func Fits(listener, group string) bool { return slices.Contains(forwards[listener], group) }

// Networks returns what a protocol travels on, as package net calls it.
func Networks(protocol string) []string {
	switch protocol {
	case UDP:
		return []string{"udp"}
	case TCPUDP:
		return []string{"tcp", "udp"}
	}
	return []string{"tcp"}
}

// IsNetwork reports whether a protocol is one of network load balancers.
func IsNetwork(protocol string) bool {
	return slices.Contains([]string{TCP, TLS, UDP, TCPUDP}, protocol)
}

// IsEncrypted reports whether listeners of a protocol have certificates.
func IsEncrypted(protocol string) bool { return protocol == HTTPS || protocol == TLS }

// The ALPN policies of listeners for TLS.
const (
	HTTP1Only      = "HTTP1Only"
	HTTP2Only      = "HTTP2Only"
	HTTP2Optional  = "HTTP2Optional"
	HTTP2Preferred = "HTTP2Preferred"
)

// alpn are the protocols that policies negotiate, the preferred one first: "ALPN policies".
var alpn = map[string][]string{
	HTTP1Only:      {"http/1.1", "http/1.0"},
	HTTP2Only:      {"h2"},
	HTTP2Optional:  {"http/1.1", "http/1.0", "h2"},
	HTTP2Preferred: {"h2", "http/1.1", "http/1.0"},
}

// ALPN returns the protocols that the listener's policy negotiates; none without one.
func (l *Listener) ALPN() []string { return alpn[l.ALPNPolicy] }

// The protocol versions of groups.
const (
	HTTP1 = "HTTP1"
	HTTP2 = "HTTP2"
	GRPC  = "GRPC"
)

// Balancer is a load balancer.
type Balancer struct {
	ARN        string
	Name       string
	Type       string
	Attributes BalancerAttributes
	Listeners  []Listener
}

// BalancerAttributes are the attributes of a balancer that the proxy carries out; AWS's name of each stands behind it.
type BalancerAttributes struct {
	IdleTimeoutSeconds int    // idle_timeout.timeout_seconds; 0 is 60, and for TCP 350
	DisableHTTP2       bool   // not routing.http2.enabled
	DropInvalidHeaders bool   // routing.http.drop_invalid_header_fields.enabled
	XFFMode            string // routing.http.xff_header_processing.mode: append, which is the default, preserve or remove
}

// IdleSeconds returns how long a connection may be idle.
func (b *Balancer) IdleSeconds() int {
	switch {
	case b.Attributes.IdleTimeoutSeconds > 0:
		return b.Attributes.IdleTimeoutSeconds
	case b.Type == Network:
		return 350
	}
	return 60
}

// Listener is a port of a balancer.
type Listener struct {
	ARN      string
	Protocol string
	Port     int
	// Served is the port that it really has, where Port isn't free; 0 if it's Port.
	Served             int           `json:",omitempty"`
	IdleTimeoutSeconds int           `json:",omitempty"` // for TCP and TLS, before the balancer's, and for UDP; tcp.idle_timeout.seconds
	MinTLS             string        `json:",omitempty"` // 1.2, which is the default, or 1.3
	ALPNPolicy         string        `json:",omitempty"` // for TLS
	Certificates       []Certificate // the first is the default; the others are chosen by the name that a client asks for
	Rules              []Rule        // in order of priority; the last is the default
}

// ServedPort returns the port that clients find the listener at.
func (l *Listener) ServedPort() int {
	if l.Served != 0 {
		return l.Served
	}
	return l.Port
}

// served returns the port that clients find at a port of the balancer's.
func (b *Balancer) served(port int) int {
	for i := range b.Listeners {
		if b.Listeners[i].Port == port {
			return b.Listeners[i].ServedPort()
		}
	}
	return port
}

// Used returns the groups that listeners forward to, by their ARNs.
func Used(b *Balancers) map[string]bool {
	used := map[string]bool{}
	for _, balancer := range b.Balancers {
		for _, l := range balancer.Listeners {
			for _, r := range l.Rules {
				for _, a := range r.Actions {
					if a.Forward == nil {
						continue
					}
					for _, g := range a.Forward.Groups {
						used[g.ARN] = true
					}
				}
			}
		}
	}
	return used
}

// Certificate is a certificate with its key, as PEM.
type Certificate struct {
	ARN         string
	Certificate string // and its chain behind it
	PrivateKey  string
}

// Rule says what is done with the requests that meet its conditions.
type Rule struct {
	ARN        string
	Priority   int // 0 for the default rule
	Conditions []Condition
	Actions    []Action
}

// The fields of conditions.
const (
	PathPattern   = "path-pattern"
	HostHeader    = "host-header"
	HTTPHeader    = "http-header"
	RequestMethod = "http-request-method"
	QueryString   = "query-string"
	SourceIP      = "source-ip"
)

// Condition is met if one of its values is.
type Condition struct {
	Field      string
	HeaderName string `json:",omitempty"` // for http-header
	Values     []string
	Query      []KeyValue `json:",omitempty"` // for query-string, instead of Values
}

// KeyValue is a parameter of a query. An empty key stands for any.
type KeyValue struct {
	Key   string
	Value string
}

// The types of actions.
const (
	ForwardAction = "forward"
	RedirectTo    = "redirect"
	FixedResponse = "fixed-response"
)

// Action is what a rule does. It has what its type says.
type Action struct {
	Type     string
	Forward  *Forward  `json:",omitempty"`
	Redirect *Redirect `json:",omitempty"`
	Fixed    *Fixed    `json:",omitempty"`
}

// Forward sends requests to groups, by their weights.
type Forward struct {
	Groups            []WeightedGroup
	StickinessSeconds int // how long a client stays with a group; 0 not at all
}

// WeightedGroup is a group and its weight, 0 to 999.
type WeightedGroup struct {
	ARN    string
	Weight int
}

// Fixed is an answer of the balancer's own.
type Fixed struct {
	StatusCode  int
	ContentType string
	MessageBody string
}

// Group is a target group.
type Group struct {
	ARN             string
	Name            string
	Protocol        string
	ProtocolVersion string // for HTTP and HTTPS; HTTP1 if empty
	HealthCheck     HealthCheck
	Attributes      GroupAttributes
	Targets         []Target
}

// The algorithms of groups.
const (
	RoundRobin       = "round_robin"
	LeastOutstanding = "least_outstanding_requests"
)

// GroupAttributes are the attributes of a group that the proxy carries out. Zones are all one, as with cross-zone load balancing.
type GroupAttributes struct {
	Algorithm                  string // load_balancing.algorithm.type; round_robin if empty
	Stickiness                 Stickiness
	DeregistrationDelaySeconds *int // deregistration_delay.timeout_seconds; 300 if nil
	SlowStartSeconds           int  // slow_start.duration_seconds; 0 for none
	ProxyProtocol              bool // proxy_protocol_v2.enabled
	ConnectionTermination      bool // deregistration_delay.connection_termination.enabled, of network load balancers
}

// Terminates reports whether connections to a target that leaves are cut when its time is over. Application load balancers always do that.
func (g *Group) Terminates() bool { return !g.IsNetwork() || g.Attributes.ConnectionTermination }

// DeregistrationSeconds returns how long requests may take to end at a target that leaves.
func (g *Group) DeregistrationSeconds() int {
	if d := g.Attributes.DeregistrationDelaySeconds; d != nil {
		return *d
	}
	return 300
}

// The types of stickiness.
const (
	LBCookie  = "lb_cookie"
	AppCookie = "app_cookie"
	BySource  = "source_ip"
)

// Stickiness keeps a client with its target. It is off if the type is empty.
type Stickiness struct {
	Type            string
	CookieName      string // for app_cookie
	DurationSeconds int    // for the cookies; 0 is a day
}

// Seconds returns how long a cookie counts.
func (s Stickiness) Seconds() int {
	if s.DurationSeconds == 0 {
		return 86400
	}
	return s.DurationSeconds
}

// Target is a member of a group.
type Target struct {
	ID       string
	Address  string // an IP address
	Port     int
	Draining bool // it is being deregistered
}

// Key tells a group's targets apart: an instance may be there with several ports.
func (t Target) Key() TargetKey { return TargetKey{t.ID, t.Port} }

// TargetKey is a target's identity in its group.
type TargetKey struct {
	ID   string
	Port int
}

// Request is what is known of a request.
type Request struct {
	Method   string
	Protocol string // of the listener
	Host     string // as the client sent it, perhaps with a port
	Port     int    // of the listener
	Path     string // undecoded
	Query    string // undecoded
	Header   map[string][]string
	Source   netip.Addr
}

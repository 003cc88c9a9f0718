package routing

import (
	"fmt"
	"strconv"
	"strings"
)

// State is a target's state, as DescribeTargetHealth has it.
type State string

// The states of targets.
const (
	Initial   State = "initial"
	Healthy   State = "healthy"
	Unhealthy State = "unhealthy"
	Draining  State = "draining"
	Unused    State = "unused"
)

// The reasons of states: API_TargetHealth.
const (
	InitialHealthChecking    = "Elb.InitialHealthChecking"
	ResponseCodeMismatch     = "Target.ResponseCodeMismatch"
	Timeout                  = "Target.Timeout"
	FailedHealthChecks       = "Target.FailedHealthChecks"
	DeregistrationInProgress = "Target.DeregistrationInProgress"
	NotInUse                 = "Target.NotInUse"
)

// HealthCheck says how a group's targets are checked. Fields that are zero have AWS's defaults, which Group.Check fills in.
type HealthCheck struct {
	Protocol           string // HTTP, HTTPS or TCP
	Port               string // a number, or traffic-port
	Path               string
	Matcher            string // codes of HTTP, or of gRPC
	IntervalSeconds    int
	TimeoutSeconds     int
	HealthyThreshold   int
	UnhealthyThreshold int
}

// TrafficPort stands for the port that a target gets requests at.
const TrafficPort = "traffic-port"

// IsNetwork reports whether the group belongs to a network load balancer.
func (g *Group) IsNetwork() bool { return IsNetwork(g.Protocol) }

// Check returns the group's health check with AWS's defaults: API_CreateTargetGroup.
func (g *Group) Check() HealthCheck {
	c := g.HealthCheck
	if c.Protocol == "" {
		c.Protocol = HTTP
		if g.IsNetwork() {
			c.Protocol = TCP
		}
	}
	setDefault(&c.Port, TrafficPort)
	setDefault(&c.IntervalSeconds, 30)
	setDefault(&c.HealthyThreshold, 5)
	setDefault(&c.UnhealthyThreshold, 2)
	switch {
	case g.ProtocolVersion == GRPC:
		setDefault(&c.Path, "/AWS.ALB/healthcheck")
		setDefault(&c.Matcher, "12")
	case g.IsNetwork():
		setDefault(&c.Path, "/")
		setDefault(&c.Matcher, "200-399")
	default:
		setDefault(&c.Path, "/")
		setDefault(&c.Matcher, "200")
	}
	timeout := 5
	if g.IsNetwork() {
		timeout = 10
		if c.Protocol == HTTP {
			timeout = 6
		}
	}
	setDefault(&c.TimeoutSeconds, min(timeout, c.IntervalSeconds))
	return c
}

func setDefault[V comparable](to *V, otherwise V) {
	var zero V
	if *to == zero {
		*to = otherwise
	}
}

// Health is a target's health.
type Health struct {
	State       State
	Reason      string `json:",omitempty"` // none if it's healthy
	Description string `json:",omitempty"`
	passed      int    // health checks in a row
	failed      int
}

// Registered is the health of a target that was never checked.
func Registered() Health {
	return Health{State: Initial, Reason: InitialHealthChecking, Description: "Initial health checks in progress"}
}

// Deregistering is the health of a target that finishes its requests.
func Deregistering() Health {
	return Health{State: Draining, Reason: DeregistrationInProgress, Description: "Target deregistration is in progress"}
}

// OutOfUse is the health of a target whose group no listener forwards to.
func OutOfUse() Health {
	return Health{State: Unused, Reason: NotInUse, Description: "Target group is not configured to receive traffic from the load balancer"}
}

// Result is what a health check found. It has passed if there is no reason.
type Result struct {
	Reason      string
	Description string
}

// Passed is the result of a check that a target has passed.
func Passed() Result { return Result{} }

// TimedOut is the result of a check without an answer.
func TimedOut() Result { return Result{Timeout, "Request timed out"} }

// Failed is the result of a check that could not be made, or whose answer made no sense.
func Failed() Result { return Result{FailedHealthChecks, "Health checks failed"} }

// Answered is the result of a check whose answer has a code.
func (m Matcher) Answered(code int) Result {
	if m.Matches(code) {
		return Passed()
	}
	return Result{ResponseCodeMismatch, fmt.Sprintf("Health checks failed with these codes: [%d]", code)}
}

// After returns a target's health after one more check. One pass is enough for a target that was never healthy or unhealthy; from then on
// the thresholds count. A target that drains, or isn't used, stays that.
func (h Health) After(r Result, c HealthCheck) Health {
	switch {
	case h.State == Draining || h.State == Unused:
		return h
	case r.Reason == "":
		return h.afterPass(c)
	}
	return h.afterFailure(r, c)
}

func (h Health) afterPass(c HealthCheck) Health {
	h.passed++
	h.failed = 0
	if h.State == Initial || h.passed >= c.HealthyThreshold {
		return Health{State: Healthy, passed: min(h.passed, c.HealthyThreshold)}
	}
	return h
}

func (h Health) afterFailure(r Result, c HealthCheck) Health {
	h.failed++
	h.passed = 0
	if h.State == Unhealthy || h.failed >= c.UnhealthyThreshold {
		return Health{State: Unhealthy, Reason: r.Reason, Description: r.Description, failed: min(h.failed, c.UnhealthyThreshold)}
	}
	return h
}

// Matcher is the codes that a healthy target answers, such as "200", "200-299" or "200,202".
type Matcher []codes

type codes struct{ from, to int }

// ParseMatcher reads a matcher.
func ParseMatcher(text string) (Matcher, error) {
	var m Matcher
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err := code(from)
		if err != nil {
			return nil, err
		}
		high, err := code(to)
		if err != nil {
			return nil, err
		}
		if low > high {
			return nil, fmt.Errorf("%s begins behind its end", part)
		}
		m = append(m, codes{low, high})
	}
	return m, nil
}

func code(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 10)
	if err != nil || len(text) > 3 {
		return 0, fmt.Errorf("%q is no code", text)
	}
	return int(n), nil
}

// Matches reports whether a code is one of the matcher's.
func (m Matcher) Matches(code int) bool {
	for _, c := range m {
		if c.from <= code && code <= c.to {
			return true
		}
	}
	return false
}

// within reports whether all codes lie in a range.
func (m Matcher) within(low, high int) bool {
	for _, c := range m {
		if c.from < low || c.to > high {
			return false
		}
	}
	return true
}

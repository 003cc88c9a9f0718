package routing

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Error is what is wrong with a configuration, and where.
type Error struct {
	Field   string // such as Balancers[0].Listeners[1].Port
	Problem string
}

func (e *Error) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// check is a field and what is wrong with it if it's not ok.
type check struct {
	ok      bool
	field   string
	problem string
}

// first returns the first thing that is wrong.
func first(checks ...check) error {
	for _, c := range checks {
		if !c.ok {
			return &Error{Field: c.field, Problem: c.problem}
		}
	}
	return nil
}

func oneOf(field, value string, words ...string) check {
	return check{slices.Contains(words, value), field, fmt.Sprintf("%q is none of %s", value, strings.Join(words, ", "))}
}

func between(field string, n, low, high int) check {
	return check{low <= n && n <= high, field, fmt.Sprintf("%d is not from %d to %d", n, low, high)}
}

// notYet are AWS's protocols of network load balancers that the proxy can't carry.
var notYet = []string{"QUIC", "TCP_QUIC", "GENEVE"}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// Unchecked is a part of a configuration that isn't checked.
type Unchecked int

// Certificates are those of listeners, which are known only where their private keys are.
const Certificates Unchecked = 1

// validator remembers what must be there once only.
type validator struct {
	but    Unchecked
	groups map[string]*Group
	arns   map[string]string // the field that has one
	ports  map[int]string    // the listener's field
}

// Validate says what is wrong with a configuration, as an *Error. What the proxy can't carry out is wrong, too.
func Validate(b *Balancers) error { return ValidateBut(0, b) }

// ValidateBut is Validate, but leaves a part out.
func ValidateBut(but Unchecked, b *Balancers) error {
	v := &validator{but: but, groups: map[string]*Group{}, arns: map[string]string{}, ports: map[int]string{}}
	for i := range b.Groups {
		field := index("Groups", i)
		if err := v.group(field, &b.Groups[i]); err != nil {
			return err
		}
		v.groups[b.Groups[i].ARN] = &b.Groups[i]
	}
	for i := range b.Balancers {
		if err := v.balancer(index("Balancers", i), &b.Balancers[i]); err != nil {
			return err
		}
	}
	if n := len(b.CookieKey); n > 0 && n < 16 {
		return wrong("CookieKey", "it has %d bytes, and must have 16 or more", n)
	}
	return nil
}

func (v *validator) arn(field, arn string) error {
	if arn == "" {
		return wrong(field+".ARN", "it is missing")
	}
	if other := v.arns[arn]; other != "" {
		return wrong(field+".ARN", "%s is that of %s", arn, other)
	}
	v.arns[arn] = field
	return nil
}

func (v *validator) balancer(field string, b *Balancer) error {
	if err := v.arn(field, b.ARN); err != nil {
		return err
	}
	a := b.Attributes
	if err := first(
		oneOf(field+".Type", b.Type, Application, Network),
		between(field+".Attributes.IdleTimeoutSeconds", a.IdleTimeoutSeconds, 0, 6000),
		oneOf(field+".Attributes.XFFMode", a.XFFMode, "", "append", "preserve", "remove"),
	); err != nil {
		return err
	}
	for i := range b.Listeners {
		if err := v.listener(field+index(".Listeners", i), b, &b.Listeners[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) listener(field string, b *Balancer, l *Listener) error {
	if err := v.arn(field, l.ARN); err != nil {
		return err
	}
	protocols := []string{HTTP, HTTPS}
	if b.Type == Network {
		protocols = []string{TCP, TLS, UDP, TCPUDP}
	}
	if slices.Contains(notYet, l.Protocol) && b.Type == Network {
		return wrong(field+".Protocol", "listeners for %s are not supported yet", l.Protocol)
	}
	if err := first(
		oneOf(field+".Protocol", l.Protocol, protocols...),
		between(field+".Port", l.Port, 1, 65535),
		between(field+".Served", l.Served, 0, 65535),
		between(field+".IdleTimeoutSeconds", l.IdleTimeoutSeconds, 0, 6000),
		oneOf(field+".MinTLS", l.MinTLS, "", "1.2", "1.3"),
		oneOf(field+".ALPNPolicy", l.ALPNPolicy, "", "None", HTTP1Only, HTTP2Only, HTTP2Optional, HTTP2Preferred),
		check{l.ALPNPolicy == "" || l.Protocol == TLS, field + ".ALPNPolicy", "only a listener for TLS has one"},
	); err != nil {
		return err
	}
	if other := v.ports[l.ServedPort()]; other != "" {
		return wrong(field+".Port", "%d is that of %s", l.ServedPort(), other)
	}
	v.ports[l.ServedPort()] = field
	if v.but != Certificates {
		if err := certificates(field, l); err != nil {
			return err
		}
	}
	return v.rules(field, b, l)
}

func certificates(field string, l *Listener) error {
	if !IsEncrypted(l.Protocol) {
		return first(check{len(l.Certificates) == 0, field + ".Certificates", "only a listener for HTTPS or TLS has any"})
	}
	if len(l.Certificates) == 0 {
		return wrong(field+".Certificates", "a listener for %s needs one", l.Protocol)
	}
	for i, c := range l.Certificates {
		if _, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey)); err != nil {
			return wrong(field+index(".Certificates", i), "%v", err)
		}
	}
	return nil
}

func (v *validator) rules(field string, b *Balancer, l *Listener) error {
	last := len(l.Rules) - 1
	if last < 0 {
		return wrong(field+".Rules", "the default rule is missing")
	}
	if b.Type == Network && last > 0 {
		return wrong(field+".Rules", "a network load balancer's listener has its default rule alone")
	}
	before := 0
	for i := range l.Rules {
		at, rule := field+index(".Rules", i), &l.Rules[i]
		if err := v.arn(at, rule.ARN); err != nil {
			return err
		}
		if i == last {
			if rule.Priority != 0 || len(rule.Conditions) > 0 {
				return wrong(at, "the last rule is the default one, with priority 0 and without conditions")
			}
		} else if rule.Priority <= before || rule.Priority > 50000 {
			return wrong(at+".Priority", "%d is not from %d to 50000; rules stand in order of priority", rule.Priority, before+1)
		}
		before = rule.Priority
		if err := conditions(at, rule, i == last); err != nil {
			return err
		}
		if err := v.actions(at, b, l, rule); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) actions(field string, b *Balancer, l *Listener, rule *Rule) error {
	if len(rule.Actions) != 1 {
		return wrong(field+".Actions", "there are %d, and must be one", len(rule.Actions))
	}
	a, at := rule.Actions[0], field+".Actions[0]"
	if strings.HasPrefix(a.Type, "authenticate-") || a.Type == "jwt-validation" {
		return wrong(at+".Type", "%s is not supported", a.Type)
	}
	types := []string{ForwardAction}
	if b.Type == Application {
		types = append(types, RedirectTo, FixedResponse)
	}
	if err := first(
		oneOf(at+".Type", a.Type, types...),
		check{(a.Type == ForwardAction) == (a.Forward != nil), at + ".Forward", "an action of type forward has this, and no other"},
		check{(a.Type == RedirectTo) == (a.Redirect != nil), at + ".Redirect", "an action of type redirect has this, and no other"},
		check{(a.Type == FixedResponse) == (a.Fixed != nil), at + ".Fixed", "an action of type fixed-response has this, and no other"},
	); err != nil {
		return err
	}
	switch a.Type {
	case RedirectTo:
		return redirect(at+".Redirect", l, a.Redirect)
	case FixedResponse:
		return fixed(at+".Fixed", a.Fixed)
	}
	return v.forward(at+".Forward", l, a.Forward)
}

func (v *validator) forward(field string, l *Listener, f *Forward) error {
	const most = 5
	if err := first(
		check{1 <= len(f.Groups) && len(f.Groups) <= most, field + ".Groups", fmt.Sprintf("there are %d, and may be 1 to %d", len(f.Groups), most)},
		between(field+".StickinessSeconds", f.StickinessSeconds, 0, 604800),
	); err != nil {
		return err
	}
	for i, w := range f.Groups {
		at := field + index(".Groups", i)
		g := v.groups[w.ARN]
		if g == nil {
			return wrong(at+".ARN", "there is no group %s", w.ARN)
		}
		if err := first(
			between(at+".Weight", w.Weight, 0, 999),
			check{Fits(l.Protocol, g.Protocol), at + ".ARN", fmt.Sprintf("a listener for %s can't forward to a group for %s", l.Protocol, g.Protocol)},
			check{l.Protocol == HTTPS || g.ProtocolVersion != GRPC, at + ".ARN", "a group for GRPC needs a listener for HTTPS"},
		); err != nil {
			return err
		}
	}
	return nil
}

func redirect(field string, l *Listener, d *Redirect) error {
	full := d.withDefaults()
	port, _ := strconv.Atoi(full.Port)
	same := full == Redirect{StatusCode: full.StatusCode}.withDefaults() ||
		full.Protocol == l.Protocol && full.Port == strconv.Itoa(l.Port) && full.Host == "#{host}" && full.Path == "/#{path}"
	return first(
		oneOf(field+".StatusCode", d.StatusCode, "HTTP_301", "HTTP_302"),
		oneOf(field+".Protocol", full.Protocol, HTTP, HTTPS, "#{protocol}"),
		check{l.Protocol == HTTP || full.Protocol != HTTP, field + ".Protocol", "HTTPS is not redirected to HTTP"},
		check{full.Port == "#{port}" || 1 <= port && port <= 65535, field + ".Port", "it is neither from 1 to 65535 nor #{port}"},
		check{full.Path[0] == '/' && len(full.Path) <= 128, field + ".Path", "it must begin with / and have at most 128 characters"},
		check{isHost(full.Host), field + ".Host", "it is not the name of a host"},
		check{len(full.Query) <= 128 && full.Query[0] != '?', field + ".Query", "it must have at most 128 characters, and no leading ?"},
		check{!strings.ContainsAny(full.Path+full.Query, " \r\n"), field + ".Path", "neither it nor the query may have spaces"},
		check{!same, field, "it must change the protocol, host, port or path, or clients would be sent in circles"},
	)
}

// isHost reports whether a text is a host's name, in which #{host} may stand.
func isHost(host string) bool {
	return len(host) <= 128 && !strings.ContainsAny(strings.ReplaceAll(host, "#{host}", ""), "/?# \r\n")
}

func fixed(field string, f *Fixed) error {
	class := f.StatusCode / 100
	return first(
		check{class == 2 || class == 4 || class == 5, field + ".StatusCode", fmt.Sprintf("%d is not 2XX, 4XX or 5XX", f.StatusCode)},
		oneOf(field+".ContentType", f.ContentType, "", "text/plain", "text/css", "text/html", "application/javascript", "application/json"),
		check{len(f.MessageBody) <= 1024, field + ".MessageBody", "it has more than 1024 characters"},
	)
}

func (v *validator) group(field string, g *Group) error {
	if err := v.arn(field, g.ARN); err != nil {
		return err
	}
	versions := []string{""}
	if !g.IsNetwork() {
		versions = []string{"", HTTP1, HTTP2, GRPC}
	}
	if slices.Contains(notYet, g.Protocol) {
		return wrong(field+".Protocol", "groups for %s are not supported yet", g.Protocol)
	}
	a := g.Attributes
	if err := first(
		oneOf(field+".Protocol", g.Protocol, HTTP, HTTPS, TCP, TLS, UDP, TCPUDP),
		oneOf(field+".ProtocolVersion", g.ProtocolVersion, versions...),
		oneOf(field+".Attributes.Algorithm", a.Algorithm, "", RoundRobin, LeastOutstanding),
		between(field+".Attributes.DeregistrationDelaySeconds", g.DeregistrationSeconds(), 0, 3600),
		check{a.SlowStartSeconds == 0 || 30 <= a.SlowStartSeconds && a.SlowStartSeconds <= 900, field + ".Attributes.SlowStartSeconds",
			fmt.Sprintf("%d is neither 0 nor from 30 to 900", a.SlowStartSeconds)},
		check{a.SlowStartSeconds == 0 || a.Algorithm != LeastOutstanding, field + ".Attributes.SlowStartSeconds",
			"slow start is for round_robin alone"},
		check{!a.ProxyProtocol || g.Protocol == TCP || g.Protocol == TLS, field + ".Attributes.ProxyProtocol", "it is for groups for TCP or TLS"},
	); err != nil {
		return err
	}
	if err := stickiness(field+".Attributes.Stickiness", g); err != nil {
		return err
	}
	if err := healthCheck(field+".HealthCheck", g); err != nil {
		return err
	}
	return targets(field, g)
}

func stickiness(field string, g *Group) error {
	s, types := g.Attributes.Stickiness, []string{"", LBCookie, AppCookie}
	switch {
	case g.Protocol == TLS:
		types = []string{""}
	case g.IsNetwork():
		types = []string{"", BySource}
	}
	// The names that AWS keeps for itself.
	reserved := s.CookieName == "" || strings.HasPrefix(s.CookieName, "AWSALB")
	return first(
		oneOf(field+".Type", s.Type, types...),
		between(field+".DurationSeconds", s.DurationSeconds, 0, 604800),
		check{s.Type == AppCookie || s.CookieName == "", field + ".CookieName", "only app_cookie has it"},
		check{s.Type != AppCookie || !reserved, field + ".CookieName", fmt.Sprintf("%q can't be an application's", s.CookieName)},
	)
}

func healthCheck(field string, g *Group) error {
	c := g.Check()
	m, err := ParseMatcher(c.Matcher)
	if err != nil {
		return wrong(field+".Matcher", "%v", err)
	}
	low, high := 200, 499
	protocols := []string{HTTP, HTTPS}
	switch {
	case g.ProtocolVersion == GRPC:
		low, high = 0, 99
	case g.IsNetwork():
		high = 599
		protocols = append(protocols, TCP)
	}
	port, _ := strconv.Atoi(c.Port)
	// AWS's API asks for longer intervals; here they may be as short as an operator wants to know of a lost target.
	return first(
		oneOf(field+".Protocol", c.Protocol, protocols...),
		check{c.Port == TrafficPort || 1 <= port && port <= 65535, field + ".Port", "it is neither from 1 to 65535 nor traffic-port"},
		check{c.Path[0] == '/' && len(c.Path) <= 1024 && !strings.ContainsAny(c.Path, " \r\n"), field + ".Path",
			"it must begin with /, without spaces, and have at most 1024 characters"},
		check{m.within(low, high), field + ".Matcher", fmt.Sprintf("codes must be from %d to %d", low, high)},
		between(field+".IntervalSeconds", c.IntervalSeconds, 1, 300),
		between(field+".TimeoutSeconds", c.TimeoutSeconds, 1, c.IntervalSeconds),
		between(field+".HealthyThreshold", c.HealthyThreshold, 1, 10),
		between(field+".UnhealthyThreshold", c.UnhealthyThreshold, 1, 10),
	)
}

func targets(field string, g *Group) error {
	seen := map[TargetKey]bool{}
	for i, t := range g.Targets {
		at := field + index(".Targets", i)
		_, err := netip.ParseAddr(t.Address)
		if err := first(
			check{t.ID != "", at + ".ID", "it is missing"},
			check{err == nil, at + ".Address", fmt.Sprintf("%q is no IP address", t.Address)},
			between(at+".Port", t.Port, 1, 65535),
			check{!seen[t.Key()], at, fmt.Sprintf("target %s with port %d is there twice", t.ID, t.Port)},
		); err != nil {
			return err
		}
		seen[t.Key()] = true
	}
	return nil
}

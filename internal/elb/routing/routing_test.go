package routing

import (
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	base := Request{
		Method: "GET", Protocol: HTTP, Host: "Api.Example.com:8080", Port: 8080, Path: "/img/cat%20a.png", Query: "v=1&Name=Bob",
		Header: map[string][]string{"X-Env": {"staging", "Blue"}}, Source: netip.MustParseAddr("10.1.2.3"),
	}
	six := base
	six.Source = netip.MustParseAddr("fd00::5")
	mapped := base
	mapped.Source = netip.MustParseAddr("::ffff:10.1.2.3")
	values := func(field string, v ...string) Condition { return Condition{Field: field, Values: v} }
	query := func(kv ...KeyValue) Condition { return Condition{Field: QueryString, Query: kv} }
	for _, c := range []struct {
		name       string
		conditions []Condition
		request    Request
		want       bool
	}{
		{"path", []Condition{values(PathPattern, "/img/*")}, base, true},
		{"path keeps case", []Condition{values(PathPattern, "/IMG/*")}, base, false},
		{"path is whole", []Condition{values(PathPattern, "/img")}, base, false},
		{"path undecoded", []Condition{values(PathPattern, "/img/cat???a.png")}, base, true},
		{"host without case or port", []Condition{values(HostHeader, "*.EXAMPLE.com")}, base, true},
		{"other host", []Condition{values(HostHeader, "example.com")}, base, false},
		{"second value of a header", []Condition{{Field: HTTPHeader, HeaderName: "x-env", Values: []string{"blue"}}}, base, true},
		{"header missing", []Condition{{Field: HTTPHeader, HeaderName: "x-none", Values: []string{"*"}}}, base, false},
		{"method", []Condition{values(RequestMethod, "POST", "GET")}, base, true},
		{"method keeps case", []Condition{values(RequestMethod, "get")}, base, false},
		{"query", []Condition{query(KeyValue{"name", "b?b"})}, base, true},
		{"query of any key", []Condition{query(KeyValue{"", "1"})}, base, true},
		{"query of another key", []Condition{query(KeyValue{"w", "1"})}, base, false},
		{"query with escape", []Condition{query(KeyValue{"v", `\*`})}, base, false},
		{"source", []Condition{values(SourceIP, "192.168.0.0/16", "10.0.0.0/8")}, base, true},
		{"source in IPv6", []Condition{values(SourceIP, "fd00::/8")}, six, true},
		{"source mapped", []Condition{values(SourceIP, "10.0.0.0/8")}, mapped, true},
		{"all conditions", []Condition{values(PathPattern, "/img/*"), values(RequestMethod, "POST")}, base, false},
	} {
		l := &Listener{Rules: []Rule{{ARN: "r", Priority: 1, Conditions: c.conditions}, {ARN: "default"}}}
		if got := Match(l, &c.request).ARN == "r"; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// reference is a pattern as a regular expression.
func reference(pattern string, w wildcard) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("(?s")
	if w.foldCase {
		b.WriteString("i")
	}
	b.WriteString(")^")
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case w.escapes && c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

func TestWildcardsAreRegexps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := wildcard{rapid.Bool().Draw(t, "fold"), rapid.Bool().Draw(t, "escapes")}
		pattern := rapid.StringMatching(`[abA*?\\]{0,12}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[abA*?\\]{0,12}`).Draw(t, "text")
		if got, want := w.match(pattern, text), reference(pattern, w).MatchString(text); got != want {
			t.Fatalf("%q on %q: %v", pattern, text, got)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("/a*b?c", "/axxbyc", true)
	f.Add(`\**\?`, "*x?", true)
	f.Fuzz(func(t *testing.T, pattern, text string, escapes bool) {
		if len(pattern) > 128 || len(text) > 1000 || strings.ContainsFunc(pattern+text, func(r rune) bool { return r > 126 }) {
			return
		}
		w := wildcard{escapes: escapes}
		if got, want := w.match(pattern, text), reference(pattern, w).MatchString(text); got != want {
			t.Errorf("%q on %q: %v", pattern, text, got)
		}
	})
}

func standings(t *rapid.T) []Standing {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Standing {
		return Standing{
			State:       rapid.SampledFrom([]State{Initial, Healthy, Unhealthy, Draining, Unused}).Draw(t, "state"),
			Outstanding: rapid.IntRange(0, 3).Draw(t, "outstanding"),
			HealthyFor:  rapid.Float64Range(0, 100).Draw(t, "healthy for"),
			Tried:       rapid.IntRange(0, 4).Draw(t, "tried") == 0,
		}
	}), 0, 6).Draw(t, "standings")
}

// TestWhoGetsRequests: never a target that drains or was tried; one that isn't healthy only if none is; and somebody if anybody may.
func TestWhoGetsRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := standings(t)
		g := &Group{Attributes: GroupAttributes{
			Algorithm:        rapid.SampledFrom([]string{"", RoundRobin, LeastOutstanding}).Draw(t, "algorithm"),
			SlowStartSeconds: rapid.SampledFrom([]int{0, 30}).Draw(t, "slow start"),
		}, Targets: make([]Target, len(all))}
		healthy, able := 0, 0
		for i, s := range all {
			g.Targets[i].ID = strconv.Itoa(i)
			if !s.Tried && s.State != Draining && s.State != Unused {
				able++
				if s.State == Healthy {
					healthy++
				}
			}
		}
		source := netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "source")})
		for _, i := range []int{Choose(g, all, rapid.Uint64().Draw(t, "turn")), ChooseBySource(g, all, source)} {
			switch {
			case i < 0 && able > 0:
				t.Fatal("nobody, though there is somebody")
			case i < 0:
			case all[i].Tried || all[i].State == Draining || all[i].State == Unused:
				t.Fatalf("%+v", all[i])
			case healthy > 0 && all[i].State != Healthy:
				t.Fatalf("%+v, though others are healthy", all[i])
			}
		}
	})
}

func TestRoundRobinIsEven(t *testing.T) {
	all := []Standing{{State: Healthy}, {State: Draining}, {State: Healthy}, {State: Unhealthy}, {State: Healthy}}
	counts := make([]int, len(all))
	for turn := range uint64(300) {
		counts[Choose(&Group{}, all, turn)]++
	}
	if counts[0] != 100 || counts[2] != 100 || counts[4] != 100 {
		t.Error(counts)
	}
}

func TestLeastOutstanding(t *testing.T) {
	all := []Standing{{State: Healthy, Outstanding: 2}, {State: Healthy, Outstanding: 1}, {State: Healthy, Outstanding: 1}}
	g := &Group{Attributes: GroupAttributes{Algorithm: LeastOutstanding}}
	if a, b := Choose(g, all, 0), Choose(g, all, 1); a != 1 || b != 2 {
		t.Error(a, b)
	}
}

func TestSlowStartGrows(t *testing.T) {
	g := &Group{Attributes: GroupAttributes{SlowStartSeconds: 100}}
	for _, seconds := range []float64{0, 10, 50, 90, 100} {
		all := []Standing{{State: Healthy, HealthyFor: 1000}, {State: Healthy, HealthyFor: seconds}}
		n := 0
		for turn := range uint64(10000) {
			n += Choose(g, all, turn)
		}
		warm := max(coldest, seconds/100)
		if want := 10000 * warm / (1 + warm); math.Abs(float64(n)-want) > 20 {
			t.Errorf("after %v s: %d of 10000, want %v", seconds, n, want)
		}
	}
}

func TestWeightsAreHonoured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 999), 1, 5).Draw(t, "weights")
		f := &Forward{}
		total := 0
		for _, w := range weights {
			f.Groups = append(f.Groups, WeightedGroup{Weight: w})
			total += w
		}
		start := rapid.Uint64().Draw(t, "start")
		counts := make([]int, len(weights))
		for turn := range uint64(2000) {
			i := ChooseGroup(f, start+turn)
			if i < 0 {
				if total > 0 {
					t.Fatal("no group")
				}
				return
			}
			counts[i]++
		}
		for i, w := range weights {
			if want := 2000 * float64(w) / float64(total); math.Abs(float64(counts[i])-want) > 20 || w == 0 && counts[i] > 0 {
				t.Fatalf("weights %v, counts %v", weights, counts)
			}
		}
	})
}

// TestSourcesStay: when a target goes, only its own sources move.
func TestSourcesStay(t *testing.T) {
	g := &Group{Targets: []Target{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
	before := []Standing{{State: Healthy}, {State: Healthy}, {State: Healthy}}
	after := []Standing{{State: Healthy}, {State: Draining}, {State: Healthy}}
	counts := make([]int, 3)
	for i := range 3000 {
		source := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		was, is := ChooseBySource(g, before, source), ChooseBySource(g, after, source)
		counts[was]++
		if was != 1 && was != is {
			t.Fatal(source, was, is)
		}
	}
	for _, n := range counts {
		if n < 900 {
			t.Error(counts)
		}
	}
}

func TestHealth(t *testing.T) {
	c := HealthCheck{HealthyThreshold: 3, UnhealthyThreshold: 2}
	for _, s := range []struct{ name, checks, want string }{
		{"nothing yet", "", "initial Elb.InitialHealthChecking"},
		{"one pass is enough at first", "p", "healthy "},
		{"a failure is not enough at first", "t", "initial Elb.InitialHealthChecking"},
		{"failures at first", "tt", "unhealthy Target.Timeout"},
		{"the last reason counts", "tc", "unhealthy Target.ResponseCodeMismatch"},
		{"a reason that changes", "ttf", "unhealthy Target.FailedHealthChecks"},
		{"one failure", "pf", "healthy "},
		{"failures apart", "pfpf", "healthy "},
		{"failures in a row", "pff", "unhealthy Target.FailedHealthChecks"},
		{"passes that are too few", "pffpp", "unhealthy Target.FailedHealthChecks"},
		{"passes in a row", "pffppp", "healthy "},
		{"passes apart", "pffppfp", "unhealthy Target.FailedHealthChecks"},
	} {
		h := Registered()
		for _, r := range s.checks {
			h = h.After(map[rune]Result{'p': Passed(), 't': TimedOut(), 'f': Failed(), 'c': Matcher{{200, 200}}.Answered(500)}[r], c)
		}
		if got := string(h.State) + " " + h.Reason; got != s.want {
			t.Errorf("%s: %s", s.name, got)
		}
	}
	if h := Deregistering().After(Passed(), c); h.State != Draining {
		t.Error(h)
	}
	if r := (Matcher{{200, 200}}).Answered(500); r.Description != "Health checks failed with these codes: [500]" {
		t.Error(r)
	}
}

func TestMatcher(t *testing.T) {
	for _, c := range []struct {
		text string
		yes  []int
		no   []int
	}{
		{"200", []int{200}, []int{199, 201}},
		{"200,202", []int{200, 202}, []int{201}},
		{"200-299,404", []int{200, 250, 299, 404}, []int{300, 405}},
		{"0-99", []int{0, 12, 99}, []int{100}},
	} {
		m, err := ParseMatcher(c.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range c.yes {
			if !m.Matches(code) {
				t.Errorf("%s does not match %d", c.text, code)
			}
		}
		for _, code := range c.no {
			if m.Matches(code) {
				t.Errorf("%s matches %d", c.text, code)
			}
		}
	}
	for _, text := range []string{"", "200-", "-200", "a", "200,", "300-200", "200 ", "+200", "1000"} {
		if m, err := ParseMatcher(text); err == nil {
			t.Errorf("%q is %v", text, m)
		}
	}
}

func TestLocation(t *testing.T) {
	b := &Balancer{Listeners: []Listener{{Port: 8443, Served: 30443}}}
	r := &Request{Protocol: HTTP, Host: "example.com:8080", Port: 8080, Path: "/a/b", Query: "x=1"}
	for _, c := range []struct {
		redirect Redirect
		want     string
	}{
		{Redirect{Protocol: HTTPS, Port: "443"}, "https://example.com:443/a/b?x=1"},
		{Redirect{Host: "www.#{host}", Path: "/new/#{path}", Query: "from=#{host}&#{query}"}, "http://www.example.com:8080/new/a/b?from=example.com&x=1"},
		{Redirect{Path: "/#{port}"}, "http://example.com:8080/8080?x=1"},
		{Redirect{Protocol: HTTPS, Port: "8443"}, "https://example.com:30443/a/b?x=1"},
		{Redirect{Host: "other", Port: "8443"}, "http://other:8443/a/b?x=1"},
	} {
		if got := c.redirect.Location(r, b); got != c.want {
			t.Errorf("%+v: %s", c.redirect, got)
		}
	}
}

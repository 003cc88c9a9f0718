package nameserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pintle/pintle/internal/acs"
)

// told is what the tests' control plane says.
func told() *acs.PintleNames {
	many := acs.NamedService{ID: "many", Name: "many.corp.local", Records: map[string]uint32{"A": 5}}
	for i := range 20 {
		many.Instances = append(many.Instances, acs.NamedInstance{ID: fmt.Sprint("m", i), IPv4: fmt.Sprint("10.0.1.", i), Unhealthy: i >= 10})
	}
	long := acs.NamedService{ID: "long", Name: "long.corp.local", Records: map[string]uint32{"SRV": 5}}
	for i := range 8 {
		id := fmt.Sprint(strings.Repeat("x", 60), i)
		long.Instances = append(long.Instances, acs.NamedInstance{ID: id, IPv4: "10.0.2.1", Port: 80})
	}
	return &acs.PintleNames{
		Zones: []acs.Zone{{Name: "Corp.local", TTL: 15}, {Name: "sub.corp.local", TTL: 30}},
		Services: []acs.NamedService{
			many, long,
			{ID: "web", Name: "Web.corp.local", Records: map[string]uint32{"A": 10, "SRV": 20}, Instances: []acs.NamedInstance{{ID: "i1", IPv4: "10.0.0.1", Port: 8080}}},
			{ID: "six", Name: "six.corp.local", Records: map[string]uint32{"AAAA": 10}, Instances: []acs.NamedInstance{{ID: "i1", IPv6: "2001:db8::1"}}},
			{ID: "sick", Name: "sick.corp.local", Records: map[string]uint32{"A": 10}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "10.0.3.1", Unhealthy: true}}},
			{ID: "one", Name: "one.corp.local", Weighted: true, Records: map[string]uint32{"A": 10}, Instances: many.Instances},
			{ID: "deep", Name: "_http._tcp.corp.local", Records: map[string]uint32{"A": 10}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "10.0.4.1"}}},
			{ID: "alias", Name: "alias.corp.local", Weighted: true, Records: map[string]uint32{"CNAME": 10}, Instances: []acs.NamedInstance{{ID: "i", CNAME: "web.corp.local"}}},
			{ID: "out", Name: "out.corp.local", Weighted: true, Records: map[string]uint32{"CNAME": 10}, Instances: []acs.NamedInstance{{ID: "i", CNAME: "example.com."}}},
			{ID: "loop", Name: "loop.corp.local", Weighted: true, Records: map[string]uint32{"CNAME": 10}, Instances: []acs.NamedInstance{{ID: "i", CNAME: "loop.corp.local"}}},
			{ID: "empty", Name: "empty.corp.local", Records: map[string]uint32{"A": 10}},
			{ID: "apex", Name: "sub.corp.local", Records: map[string]uint32{"A": 10}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "10.0.5.1"}}},
		},
		Complete: true,
	}
}

func names(t testing.TB) *Names {
	t.Helper()
	n, err := Load(filepath.Join(t.TempDir(), "names.json"))
	if err == nil {
		err = n.Learn(told())
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func options(resolvConf string) Options {
	return Options{
		ResolvConf: resolvConf,
		Machine:    func() netip.Addr { return netip.MustParseAddr("192.0.2.100") },
		Plane:      func() netip.Addr { return netip.MustParseAddr("192.0.2.200") },
	}
}

// TestLoopback: what is on the machine's loopback, a task finds at another address of the machine.
func TestLoopback(t *testing.T) {
	n := names(t)
	local := acs.NamedService{ID: "local", Name: "l.corp.local", Records: map[string]uint32{"A": 9}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "127.0.0.1"}}}
	if err := n.Learn(&acs.PintleNames{Zones: told().Zones, Services: []acs.NamedService{local}}); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[Clients]string{Tasks: "192.0.2.100", Strangers: "127.0.0.1"} {
		out, _ := NewServer(n, options("")).own(ask(t, "l.corp.local.", dnsmessage.TypeA), true, who)
		if got := text(t, out); !strings.HasSuffix(got, "="+want) {
			t.Errorf("%d: %s", who, got)
		}
	}
}

// TestUnspecified: what listens at all addresses of the control plane's machine is found at one of them, also by strangers.
func TestUnspecified(t *testing.T) {
	n := names(t)
	all := acs.NamedService{ID: "lb", Name: "web-1.elb.localhost", Records: map[string]uint32{"A": 60}, Instances: []acs.NamedInstance{{ID: "0.0.0.0", IPv4: "0.0.0.0"}}}
	if err := n.Learn(&acs.PintleNames{Zones: []acs.Zone{{Name: "elb.localhost", TTL: 5}}, Services: []acs.NamedService{all}}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []Clients{Tasks, Strangers} {
		out, _ := NewServer(n, options("")).own(ask(t, "web-1.elb.localhost.", dnsmessage.TypeA), true, who)
		if got := text(t, out); !strings.HasSuffix(got, "=192.0.2.200") {
			t.Errorf("%d: %s", who, got)
		}
	}
}

// ask packs a question.
func ask(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text writes an answer down: its code, and the records of each section.
func text(t testing.TB, b []byte) string {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	out := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for section, all := range map[string][]dnsmessage.Resource{"": m.Answers, "authority:": m.Authorities, "more:": m.Additionals} {
		for _, r := range all {
			body := ""
			switch b := r.Body.(type) {
			case *dnsmessage.AResource:
				body = net.IP(b.A[:]).String()
			case *dnsmessage.AAAAResource:
				body = net.IP(b.AAAA[:]).String()
			case *dnsmessage.SRVResource:
				body = fmt.Sprint(b.Port, "@", b.Target)
			case *dnsmessage.CNAMEResource:
				body = b.CNAME.String()
			}
			out = append(out, fmt.Sprint(section, r.Header.Name, "/", strings.TrimPrefix(r.Header.Type.String(), "Type"), "/", r.Header.TTL, "=", body))
		}
	}
	slices.Sort(out[1:])
	return strings.Join(out, " ")
}

// TestAnswers: names are answered as the service's records say, and what isn't there with the zone's SOA.
func TestAnswers(t *testing.T) {
	s := NewServer(names(t), options(""))
	const soa, subSOA = " authority:corp.local./SOA/15=", " authority:sub.corp.local./SOA/30="
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"web.corp.local.", dnsmessage.TypeA, "Success web.corp.local./A/10=10.0.0.1"},
		{"WEB.Corp.Local.", dnsmessage.TypeA, "Success WEB.Corp.Local./A/10=10.0.0.1"},
		{"web.corp.local.", dnsmessage.TypeAAAA, "Success" + soa},
		{"web.corp.local.", dnsmessage.TypeSRV, "Success more:i1.Web.corp.local./A/20=10.0.0.1 web.corp.local./SRV/20=8080@i1.Web.corp.local."},
		{"i1.web.corp.local.", dnsmessage.TypeA, "Success i1.web.corp.local./A/20=10.0.0.1"},
		{"i2.web.corp.local.", dnsmessage.TypeA, "NameError" + soa},
		{"six.corp.local.", dnsmessage.TypeAAAA, "Success six.corp.local./AAAA/10=2001:db8::1"},
		{"sick.corp.local.", dnsmessage.TypeA, "Success sick.corp.local./A/10=10.0.3.1"},
		{"_tcp.corp.local.", dnsmessage.TypeA, "Success" + soa},
		{"_http._tcp.corp.local.", dnsmessage.TypeA, "Success _http._tcp.corp.local./A/10=10.0.4.1"},
		{"alias.corp.local.", dnsmessage.TypeA, "Success alias.corp.local./CNAME/10=web.corp.local. web.corp.local./A/10=10.0.0.1"},
		{"alias.corp.local.", dnsmessage.TypeCNAME, "Success alias.corp.local./CNAME/10=web.corp.local."},
		{"empty.corp.local.", dnsmessage.TypeA, "NameError" + soa},
		{"none.corp.local.", dnsmessage.TypeMX, "NameError" + soa},
		{"corp.local.", dnsmessage.TypeSOA, "Success corp.local./SOA/15="},
		{"corp.local.", dnsmessage.TypeA, "Success" + soa},
		{"sub.corp.local.", dnsmessage.TypeA, "Success sub.corp.local./A/10=10.0.5.1"},
		{"x.sub.corp.local.", dnsmessage.TypeA, "NameError" + subSOA},
	} {
		out, forward := s.own(ask(t, c.name, c.kind), true, Tasks)
		if got := text(t, out); got != c.want || forward != nil {
			t.Errorf("%s %s: %s\nwant %s", c.name, c.kind, got, c.want)
		}
	}
	if out, _ := s.own(ask(t, "loop.corp.local.", dnsmessage.TypeA), true, Tasks); !strings.HasPrefix(text(t, out), "ServerFailure") {
		t.Error(text(t, out))
	}
}

// TestChosen: up to eight healthy instances are told, in another order each time, or one.
func TestChosen(t *testing.T) {
	s := NewServer(names(t), options(""))
	seen := map[string]bool{}
	for range 50 {
		out, _ := s.own(ask(t, "many.corp.local.", dnsmessage.TypeA), true, Tasks)
		records := strings.Fields(text(t, out))[1:]
		if len(records) != maxAnswers {
			t.Fatal(records)
		}
		for _, r := range records {
			seen[r] = true
		}
		out, _ = s.own(ask(t, "one.corp.local.", dnsmessage.TypeA), true, Tasks)
		if records := strings.Fields(text(t, out))[1:]; len(records) != 1 {
			t.Fatal(records)
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d of the 10 healthy ones were told", len(seen))
	}
}

// TestTruncated: an answer that is too long for UDP is cut off; over TCP, or to who takes more, it's whole.
func TestTruncated(t *testing.T) {
	s := NewServer(names(t), options(""))
	query := ask(t, "long.corp.local.", dnsmessage.TypeSRV)
	var m dnsmessage.Message
	out, _ := s.own(query, true, Tasks)
	if err := m.Unpack(out); err != nil || !m.Truncated || len(out) > plainSize {
		t.Errorf("%d bytes: %v", len(out), err)
	}
	if out, _ := s.own(query, false, Tasks); m.Unpack(out) != nil || m.Truncated || len(m.Answers) != 8 || len(m.Additionals) != 8 {
		t.Errorf("over TCP: %v", m)
	}
	if m.Unpack(query) != nil {
		t.Fatal("the query")
	}
	var h dnsmessage.ResourceHeader
	if err := h.SetEDNS0(4096, dnsmessage.RCodeSuccess, false); err != nil {
		t.Fatal(err)
	}
	m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	query, _ = m.Pack()
	if out, _ := s.own(query, true, Tasks); m.Unpack(out) != nil || m.Truncated || len(m.Answers) != 8 || len(out) > maxUDPSize {
		t.Errorf("with EDNS: %v", m)
	}
}

// TestLearned: what the control plane tells replaces what an earlier connection told, once it's complete, and outlives the agent.
func TestLearned(t *testing.T) {
	n := names(t)
	answers := func(n *Names, name string) bool {
		out, _ := NewServer(n, options("")).own(ask(t, name, dnsmessage.TypeA), true, Tasks)
		return strings.Contains(text(t, out), "/A/")
	}
	n.Connected()
	web := acs.NamedService{ID: "web", Name: "web.corp.local", Records: map[string]uint32{"A": 1}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "10.9.9.9"}}}
	zones := told().Zones
	if err := n.Learn(&acs.PintleNames{Zones: zones, Services: []acs.NamedService{web}}); err != nil {
		t.Fatal(err)
	}
	if !answers(n, "sick.corp.local.") {
		t.Error("a name is gone before all was told")
	}
	if err := n.Learn(&acs.PintleNames{Zones: zones, Complete: true}); err != nil {
		t.Fatal(err)
	}
	again, err := Load(n.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Names{n, again} {
		if answers(n, "sick.corp.local.") || !answers(n, "web.corp.local.") {
			t.Error("the names aren't those that were told")
		}
	}
	if err := n.Learn(&acs.PintleNames{Zones: zones, Gone: []string{"web"}}); err != nil || answers(n, "web.corp.local.") {
		t.Error("a name that is gone is answered", err)
	}
}

// serve serves over UDP and TCP until the test ends, and returns the addresses.
func serve(t *testing.T, s *Server, who Clients) (udp, tcp string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { s.ServeUDP(ctx, socket, who); done <- struct{}{} }()
	go func() { s.ServeTCP(ctx, l, who); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	return socket.LocalAddr().String(), l.Addr().String()
}

// exchange asks an address one question.
func exchange(t *testing.T, network, address string, query []byte) []byte {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // reading fails, too, then
	if network == "tcp" {
		err = writeFrame(c, query)
	} else {
		_, err = c.Write(query)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := receive(c, network == "udp")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForwarded: other names are asked of the machine's name servers, of which the first may be away, and only for those who may.
func TestForwarded(t *testing.T) {
	others, err := Load(filepath.Join(t.TempDir(), "names.json"))
	if err != nil {
		t.Fatal(err)
	}
	err = others.Learn(&acs.PintleNames{Zones: []acs.Zone{{Name: "com"}}, Services: []acs.NamedService{
		{ID: "e", Name: "example.com", Records: map[string]uint32{"A": 9}, Instances: []acs.NamedInstance{{ID: "i", IPv4: "192.0.2.7"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away.Close()
	for _, network := range []string{"udp", "tcp"} {
		udp, tcp := serve(t, NewServer(others, options("")), Strangers)
		at := map[string]string{"udp": udp, "tcp": tcp}
		conf := filepath.Join(t.TempDir(), "resolv.conf")
		text0 := "search x\nnameserver " + away.Addr().String() + "\nnameserver " + at[network] + "\n"
		if err := os.WriteFile(conf, []byte(text0), 0o600); err != nil {
			t.Fatal(err)
		}
		s := NewServer(names(t), options(conf))
		udp, tcp = serve(t, s, Tasks)
		at = map[string]string{"udp": udp, "tcp": tcp}
		out := exchange(t, network, at[network], ask(t, "example.com.", dnsmessage.TypeA))
		if got := text(t, out); got != "Success example.com./A/9=192.0.2.7" {
			t.Errorf("%s: %s", network, got)
		}
		if network == "udp" {
			out = exchange(t, network, at[network], ask(t, "out.corp.local.", dnsmessage.TypeA))
			if got := text(t, out); got != "Success example.com./A/9=192.0.2.7 out.corp.local./CNAME/10=example.com." {
				t.Errorf("an alias: %s", got)
			}
		}
		udp, tcp = serve(t, s, Strangers)
		at = map[string]string{"udp": udp, "tcp": tcp}
		if got := text(t, exchange(t, network, at[network], ask(t, "example.com.", dnsmessage.TypeA))); got != "Refused" {
			t.Errorf("a stranger over %s: %s", network, got)
		}
		if got := text(t, exchange(t, network, at[network], ask(t, "web.corp.local.", dnsmessage.TypeA))); !strings.HasPrefix(got, "Success web") {
			t.Errorf("a stranger over %s: %s", network, got)
		}
	}
}

// TestNoServers: without a name server, who asks hears that at once.
func TestNoServers(t *testing.T) {
	udp, _ := serve(t, NewServer(names(t), options(filepath.Join(t.TempDir(), "none"))), Tasks)
	if got := text(t, exchange(t, "udp", udp, ask(t, "example.com.", dnsmessage.TypeA))); got != "ServerFailure" {
		t.Error(got)
	}
}

// FuzzOwn: whatever comes, the answer is a message to the one who asked, no longer than it may be, and never an answer to an answer.
func FuzzOwn(f *testing.F) {
	for _, name := range []string{"web.corp.local.", "many.corp.local.", "long.corp.local.", "out.corp.local.", "example.com.", "."} {
		f.Add(ask(f, name, dnsmessage.TypeALL))
		f.Add(ask(f, name, dnsmessage.TypeSRV))
	}
	f.Add([]byte{0, 7, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1})
	s := NewServer(names(f), options(""))
	f.Fuzz(func(t *testing.T, message []byte) {
		out, _ := s.own(message, true, Tasks)
		if out == nil {
			return
		}
		var p dnsmessage.Parser
		h, err := p.Start(out)
		if err != nil || !h.Response || h.ID != uint16(message[0])<<8|uint16(message[1]) || len(out) > maxUDPSize {
			t.Errorf("%d bytes: %+v, %v", len(out), h, err)
		}
		if message[2]&0x80 != 0 {
			t.Error("an answer was answered")
		}
	})
}

// FuzzAnswers: whatever a name server of the machine says, nothing breaks, and only an answer to the question counts.
func FuzzAnswers(f *testing.F) {
	q := dnsmessage.Question{Name: dnsmessage.MustNewName("web.corp.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	out, _ := NewServer(names(f), options("")).own(ask(f, "web.corp.local.", dnsmessage.TypeA), true, Tasks)
	f.Add(out)
	f.Fuzz(func(t *testing.T, message []byte) {
		if isAnswer(message, []byte{0, 7}, q) && (len(message) < 12 || message[1] != 7) {
			t.Error("an answer to something else")
		}
	})
}

// TestAWS: tasks find the services that Pintle has at the node, and no other of AWS's unless these may be asked for.
func TestAWS(t *testing.T) {
	n := names(t)
	o := options("")
	o.AWS = &AWS{Address: netip.MustParseAddr("169.254.170.2")}
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		who     Clients
		others  bool
		want    string
		forward bool
	}{
		{"sqs.us-east-1.amazonaws.com.", dnsmessage.TypeA, Tasks, false, "Success sqs.us-east-1.amazonaws.com./A/5=169.254.170.2", false},
		{"A.b.S3.amazonaws.com.", dnsmessage.TypeA, Tasks, true, "Success A.b.S3.amazonaws.com./A/5=169.254.170.2", false},
		{"sqs.us-east-1.amazonaws.com.", dnsmessage.TypeAAAA, Tasks, false, "Success authority:", false},
		{"dynamodb.us-east-1.amazonaws.com.", dnsmessage.TypeA, Tasks, false, "NameError authority:", false},
		{"dynamodb.us-east-1.amazonaws.com.", dnsmessage.TypeA, Tasks, true, "", true},
		{"example.com.", dnsmessage.TypeA, Tasks, false, "", true},
		{"web.corp.local.", dnsmessage.TypeA, Tasks, false, "Success web.corp.local./A/10=10.0.0.1", false},
		{"sqs.us-east-1.amazonaws.com.", dnsmessage.TypeA, Strangers, false, "Refused", false},
	} {
		o.AWS.Others = c.others
		out, forward := NewServer(n, o).own(ask(t, c.name, c.kind), true, c.who)
		if got := text(t, out); c.forward != (forward != nil) || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %v for %d: %s, forwarded: %v", c.name, c.kind, c.who, got, forward != nil)
		}
	}
}

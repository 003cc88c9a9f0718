package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
)

const (
	icmp = 1
	tcp  = 6
	udp  = 17
)

func blocks(all ...string) (out []netip.Prefix) {
	for _, text := range all {
		if !strings.Contains(text, "/") {
			text += "/32"
		}
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// anything lets everything pass.
var anything = []Passage{{Protocol: -1, From: -1, To: -1, Peers: blocks("0.0.0.0/0", "::/0")}}

func restrict(t *testing.T, a Address, f Firewall) {
	t.Helper()
	if err := Restrict(a.NetNS, f); err != nil {
		t.Fatal(err)
	}
}

// reaches reports whether a TCP connection opens from a namespace. What a firewall drops is never answered.
func reaches(t *testing.T, from Address, to string) bool {
	t.Helper()
	err := onThreadInside(from, func() error {
		c, err := net.DialTimeout("tcp", to, 700*time.Millisecond)
		if err == nil {
			c.Close()
		}
		return err
	})
	if err != nil && !strings.Contains(err.Error(), "timeout") {
		t.Fatalf("%s: %v", to, err)
	}
	return err == nil
}

func wantReach(t *testing.T, what string, from Address, to string, want bool) {
	t.Helper()
	if got := reaches(t, from, to); got != want {
		t.Errorf("%s: %s is reached: %t, want %t", what, to, got, want)
	}
}

func TestFirewallIngress(t *testing.T) {
	n := open(t, t.TempDir())
	server, friend, stranger := attach(t, n, "server"), attach(t, n, "friend"), attach(t, n, "stranger")
	for _, port := range []int{80, 81, 82, 83} {
		greet(t, server, port, "hello")
	}
	at := func(port int) string { return fmt.Sprintf("%s:%d", server.IP, port) }
	restrict(t, server, Firewall{In: []Passage{
		{Protocol: tcp, From: 80, To: 80, Peers: blocks("10.213.0.0/16")},
		{Protocol: tcp, From: 81, To: 82, Peers: blocks(friend.IP, "fd00::/8")},
		{Protocol: udp, From: 83, To: 83, Peers: blocks("0.0.0.0/0")},
	}, Out: anything})
	wantReach(t, "a block", stranger, at(80), true)
	wantReach(t, "a range's end", friend, at(82), true)
	wantReach(t, "another address", stranger, at(82), false)
	wantReach(t, "another protocol", friend, at(83), false)
	wantReach(t, "itself", server, at(83), true)
	restrict(t, server, Firewall{In: []Passage{{Protocol: -1, From: -1, To: -1, Peers: blocks(stranger.IP)}}, Out: anything})
	wantReach(t, "revoked", friend, at(82), false)
	wantReach(t, "all protocols", stranger, at(83), true)
	if err := Unrestrict(server.NetNS); err != nil {
		t.Fatal(err)
	}
	wantReach(t, "without a firewall", friend, at(83), true)
	if err := Unrestrict(server.NetNS); err != nil {
		t.Error("a second time: ", err)
	}
}

func TestFirewallEgress(t *testing.T) {
	n := open(t, t.TempDir())
	client, server, other := attach(t, n, "client"), attach(t, n, "server"), attach(t, n, "other")
	for _, a := range []Address{client, server, other} {
		greet(t, a, 80, "hello")
	}
	restrict(t, client, Firewall{
		In:  []Passage{{Protocol: tcp, From: 80, To: 80, Peers: blocks(other.IP)}},
		Out: []Passage{{Protocol: tcp, From: 80, To: 80, Peers: blocks(server.IP)}},
	})
	wantReach(t, "let out", client, server.IP+":80", true)
	wantReach(t, "not let out", client, other.IP+":80", false)
	wantReach(t, "replies to whom nothing may be sent", other, client.IP+":80", true)
}

// TestFirewallKeepsConnections: what is connected when rules change goes on.
func TestFirewallKeepsConnections(t *testing.T) {
	n := open(t, t.TempDir())
	server, client := attach(t, n, "server"), attach(t, n, "client")
	restrict(t, server, Firewall{In: anything, Out: anything})
	var l net.Listener
	inside(t, server, func() (err error) { l, err = net.Listen("tcp", ":80"); return err })
	defer l.Close()
	var c net.Conn
	inside(t, client, func() (err error) { c, err = net.DialTimeout("tcp", server.IP+":80", patience); return err })
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	restrict(t, server, Firewall{})
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		pair[1].SetDeadline(time.Now().Add(patience))
		b := make([]byte, 4)
		if _, err := pair[0].Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := pair[1].Read(b); err != nil || string(b) != "ping" {
			t.Errorf("read %q, %v", b, err)
		}
	}
	wantReach(t, "a new connection", client, server.IP+":80", false)
}

// TestFirewallICMP lets an echo pass by its type and code.
func TestFirewallICMP(t *testing.T) {
	n := open(t, t.TempDir())
	a, b := attach(t, n, "a"), attach(t, n, "b")
	id := byte(0) // of another flow each time: what was let pass once stays known
	pings := func() (out string) {
		id++
		inside(t, a, func() error {
			c, err := net.Dial("ip4:icmp", b.IP)
			if err != nil {
				return err
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(700 * time.Millisecond))
			c.Write([]byte{8, 0, 0xf7, 0xff - id, 0, id, 0, 0}) //nolint:errcheck // reading tells
			answer := make([]byte, 64)
			if _, err := c.Read(answer); err != nil {
				return nil
			}
			out = "answered"
			return nil
		})
		return out
	}
	for _, c := range []struct {
		kind, code int
		want       string
	}{{8, 0, "answered"}, {8, -1, "answered"}, {-1, -1, "answered"}, {8, 1, ""}, {13, -1, ""}} {
		restrict(t, b, Firewall{In: []Passage{{Protocol: icmp, From: c.kind, To: c.code, Peers: blocks(a.IP)}}})
		if got := pings(); got != c.want {
			t.Errorf("type %d code %d: %q, want %q", c.kind, c.code, got, c.want)
		}
	}
}

// TestFirewallWithManyPeers: a group with thousands of members.
func TestFirewallWithManyPeers(t *testing.T) {
	n := open(t, t.TempDir())
	server, client := attach(t, n, "server"), attach(t, n, "client")
	greet(t, server, 80, "hello")
	var many []netip.Prefix
	for i := range 5000 {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(i / 100), byte(2 * (i % 100))}), 32))
	}
	f := Firewall{Out: anything}
	for port := range 20 {
		f.In = append(f.In, Passage{Protocol: tcp, From: 80 + port, To: 80 + port, Peers: many})
	}
	restrict(t, server, f)
	wantReach(t, "no member", client, server.IP+":80", false)
	f.In[0].Peers = append(f.In[0].Peers, blocks(client.IP)...)
	began := time.Now()
	restrict(t, server, f)
	t.Log("20 rules of 5,000 peers took", time.Since(began))
	wantReach(t, "one of 5,001 members", client, server.IP+":80", true)
}

func TestFirewallIsNotTheMachines(t *testing.T) {
	if err := Restrict("/proc/self/ns/net", Firewall{}); err == nil {
		t.Error("the machine's own network was cut off")
	}
}

// TestFirewallEndsWithItsNamespace: a task's rules leave nothing on the machine.
func TestFirewallEndsWithItsNamespace(t *testing.T) {
	rules := func() string {
		tables, err := new(nftables.Conn).ListTables()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, table := range tables {
			names = append(names, table.Name)
		}
		return strings.Join(names, " ")
	}
	n := open(t, t.TempDir())
	before := rules()
	restrict(t, attach(t, n, "one"), Firewall{})
	if after := rules(); after != before || strings.Contains(after, firewallTable) {
		t.Errorf("the machine's tables are %q, and were %q", after, before)
	}
}

func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		give []netip.Prefix
		want string
	}{
		{blocks("10.0.0.1"), "10.0.0.1 to 10.0.0.2"},
		{blocks("10.0.0.2", "10.0.0.1"), "10.0.0.1 to 10.0.0.3"},
		{blocks("10.0.0.0/8", "12.0.0.0/8"), "10.0.0.0 to 11.0.0.0 12.0.0.0 to 13.0.0.0"},
		{blocks("255.255.255.0/24"), "255.255.255.0"},
		{blocks("fd00::/8"), "fd00:: to fe00::"},
	} {
		var got []string
		for _, e := range intervals(slices.Clone(c.give)) {
			if e.IntervalEnd {
				got = append(got, "to")
			}
			a, _ := netip.AddrFromSlice(e.Key)
			got = append(got, a.String())
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v: got %s, want %s", c.give, s, c.want)
		}
	}
}

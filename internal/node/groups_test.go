package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/network"
)

// shownPassages writes passages as "6 80..81 BLOCKS".
func shownPassages(all []network.Passage) (out []string) {
	for _, p := range all {
		out = append(out, fmt.Sprintf("%d %d..%d %s", p.Protocol, p.From, p.To, strings.Trim(fmt.Sprint(p.Peers), "[]")))
	}
	return out
}

func TestFirewallOfRules(t *testing.T) {
	rules := &acs.NetworkRules{
		In: []acs.NetworkRule{
			{Protocol: 6, From: 8000, To: 8010, Peers: []string{"192.0.2.0/24"}},
			{Protocol: 17, From: 53, To: 53, Peers: []string{"0.0.0.0/0"}},
			{Protocol: 1, From: -1, To: -1, Peers: []string{"0.0.0.0/0"}},
		},
		Out: []acs.NetworkRule{{Protocol: -1, From: -1, To: -1, Peers: []string{"0.0.0.0/0"}}},
	}
	machine := []netip.Addr{netip.MustParseAddr("10.213.0.1"), netip.MustParseAddr("198.51.100.7")}
	for _, c := range []struct {
		name    string
		s       surroundings
		ports   []engine.Port
		in, out []string
	}{
		{
			"an interface of its own", surroundings{machine: machine}, nil,
			[]string{"6 8000..8010 192.0.2.0/24", "17 53..53 0.0.0.0/0", "1 -1..-1 0.0.0.0/0", "-1 -1..-1 10.213.0.1/32 198.51.100.7/32"},
			[]string{"-1 -1..-1 0.0.0.0/0"},
		},
		{
			"a bridge's published ports",
			surroundings{machine: machine, bridge: []netip.Prefix{netip.MustParsePrefix("10.213.0.0/16")}},
			[]engine.Port{{Container: 80, Host: 8001, Protocol: "tcp"}, {Container: 81, Host: 9000, Protocol: "tcp"}, {Container: 5353, Host: 53, Protocol: "udp"}},
			[]string{"6 80..80 192.0.2.0/24", "17 5353..5353 0.0.0.0/0", "1 -1..-1 0.0.0.0/0", "-1 -1..-1 10.213.0.0/16 198.51.100.7/32"},
			[]string{"-1 -1..-1 0.0.0.0/0", "-1 -1..-1 10.213.0.0/16"},
		},
		{
			"names and the control plane",
			surroundings{resolvers: []netip.Addr{netip.MustParseAddr("192.0.2.53")}, plane: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:4566")}}, nil,
			[]string{"6 8000..8010 192.0.2.0/24", "17 53..53 0.0.0.0/0", "1 -1..-1 0.0.0.0/0"},
			[]string{"-1 -1..-1 0.0.0.0/0", "6 53..53 192.0.2.53/32", "17 53..53 192.0.2.53/32", "6 4566..4566 192.0.2.1/32"},
		},
	} {
		f, err := firewall(rules, c.s, c.ports)
		if in := shownPassages(f.In); err != nil || !slices.Equal(in, c.in) {
			t.Errorf("%s, in: %v\n got %q\nwant %q", c.name, err, in, c.in)
		}
		if out := shownPassages(f.Out); !slices.Equal(out, c.out) {
			t.Errorf("%s, out:\n got %q\nwant %q", c.name, out, c.out)
		}
	}
	if _, err := firewall(&acs.NetworkRules{In: []acs.NetworkRule{{Peers: []string{"nonsense"}}}}, surroundings{}, nil); err == nil {
		t.Error("a rule that nobody understands is left out in silence")
	}
}

func TestPlaneAddresses(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://192.0.2.1:4566": "[192.0.2.1:4566]", "https://192.0.2.1": "[192.0.2.1:443]", "http://127.0.0.1:4566": "[]", "": "[]", "http://192.0.2.1:x": "[]",
	} {
		if got := fmt.Sprint(planeAddresses(endpoint)); got != want {
			t.Errorf("%s: got %s, want %s", endpoint, got, want)
		}
	}
}

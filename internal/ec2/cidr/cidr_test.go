package cidr

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"10.0.0.0/16":        "10.0.0.0/16",
		"10.0.0.9/16":        "10.0.0.0/16",
		"0.0.0.0/0":          "0.0.0.0/0",
		"::/0":               "::/0",
		"2600:1f18::9/56":    "2600:1f18::/56",
		"10.0.0.0":           "",
		"10.0.0.0/33":        "",
		"10.0.0/8":           "",
		"::ffff:10.0.0.0/96": "",
		"fe80::%eth0/64":     "",
		"":                   "",
	} {
		p, ok := Parse(s)
		if got := p.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %s, %v", s, got, ok)
		}
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int{"10.0.0.0/15": 0, "10.0.0.0/16": 65531, "10.0.0.0/24": 251, "10.0.0.0/28": 11, "10.0.0.0/29": 0, "fd00::/64": 0} {
		p := netip.MustParsePrefix(s)
		if IsAllowed(p) != (want > 0) || want > 0 && Usable(p) != want {
			t.Errorf("%s has %d", s, Usable(p))
		}
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		want         bool
	}{
		{"10.0.0.0/16", "10.0.1.0/24", true},
		{"10.0.0.0/16", "10.0.0.0/16", true},
		{"10.0.0.0/16", "10.0.0.0/15", false},
		{"10.0.0.0/16", "10.1.0.0/24", false},
		{"10.0.0.0/16", "fd00::/64", false},
	} {
		if got := Contains(netip.MustParsePrefix(c.outer), netip.MustParsePrefix(c.inner)); got != c.want {
			t.Errorf("%s contains %s: %v", c.outer, c.inner, got)
		}
	}
}

// TestAllAddressesAreGivenOutOnce fills a subnet: each address is given once, all can be had, and none of EC2's own is among them.
func TestAllAddressesAreGivenOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnet := netip.PrefixFrom(address(rapid.Uint32().Draw(t, "address")), rapid.IntRange(22, 28).Draw(t, "bits")).Masked()
		taken := map[netip.Addr]bool{}
		isTaken := func(a netip.Addr) bool { return taken[a] }
		for range Usable(subnet) {
			a, ok := Free(subnet, rapid.String().Draw(t, "id"), isTaken)
			if !ok || taken[a] || !CanHave(subnet, a) {
				t.Fatalf("got %s, %v after %d", a, ok, len(taken))
			}
			taken[a] = true
		}
		if a, ok := Free(subnet, "", isTaken); ok {
			t.Errorf("%s has %s left", subnet, a)
		}
		for _, n := range []uint32{0, 1, 2, 3, 1<<(32-subnet.Bits()) - 1, 1 << (32 - subnet.Bits())} {
			if CanHave(subnet, Nth(subnet, n)) {
				t.Errorf("the %d. address of %s can be had", n, subnet)
			}
		}
	})
}

package awsname

import (
	"net/netip"
	"testing"
)

func TestIsMachineLocal(t *testing.T) {
	for text, want := range map[string]bool{
		"169.254.169.254": true, "169.254.170.2": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "fd00:ec2::254": true,
		"fd00:ec2::23": true, "fe80::1%eth0": true, "10.0.0.1": false, "fd00:ec3::254": false, "64:ff9b::a00:1": false, "::1": false, "2001:db8::1": false,
	} {
		if got := IsMachineLocal(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

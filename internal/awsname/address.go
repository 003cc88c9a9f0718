package awsname

import "net/netip"

// machineLocal are the networks, besides link-local ones, in which each machine of EC2 finds what is for it alone. Over IPv6 its metadata is at
// fd00:ec2::254. nat64 leads to addresses of IPv4.
var (
	machineLocal = netip.MustParsePrefix("fd00:ec2::/32")
	nat64        = netip.MustParsePrefix("64:ff9b::/96")
)

// IsMachineLocal reports whether an address leads to a machine's own link, or to what only that machine may ask, such as its metadata.
func IsMachineLocal(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.IsLinkLocalUnicast() || machineLocal.Contains(ip)
}

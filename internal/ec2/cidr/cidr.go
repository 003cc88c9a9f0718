// Package cidr has the arithmetic of a VPC's address blocks: which sizes are allowed, what overlaps, which addresses of a subnet
// instances can have, and which of them is free. It is pure. Package ec2 calls it.
package cidr

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
)

// A VPC and its subnets have between 16 and 65,536 addresses: "VPC CIDR blocks" in the VPC user guide.
const (
	minBits = 16
	maxBits = 28
)

// kept is how many addresses of a subnet EC2 keeps: the first four, and the last.
const kept = 5

// Parse reads a block as EC2 does: bits behind the prefix are ignored, so 10.0.0.9/16 is 10.0.0.0/16.
func Parse(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() || p.Addr().Zone() != "" {
		return netip.Prefix{}, false
	}
	return p.Masked(), true
}

// Parse4 is Parse for IPv4 only.
func Parse4(s string) (netip.Prefix, bool) {
	p, ok := Parse(s)
	return p, ok && p.Addr().Is4()
}

// IsAllowed reports whether a block of IPv4 addresses has a size that a VPC or a subnet can have.
func IsAllowed(p netip.Prefix) bool {
	return p.Addr().Is4() && p.Bits() >= minBits && p.Bits() <= maxBits
}

// Contains reports whether a block lies wholly inside another one.
func Contains(outer, inner netip.Prefix) bool {
	return inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())
}

// Usable returns how many addresses of a subnet interfaces can have.
func Usable(subnet netip.Prefix) int { return 1<<(32-subnet.Bits()) - kept }

// CanHave reports whether an interface can have an address in a subnet.
func CanHave(subnet netip.Prefix, a netip.Addr) bool {
	if !a.Is4() || !subnet.Contains(a) {
		return false
	}
	n := number(a) - number(subnet.Addr())
	return n >= kept-1 && int(n) < kept-1+Usable(subnet)
}

// Free returns a free address of a subnet for an interface: the first one at or behind a place that follows from the interface's id. So
// addresses are spread as AWS's are, and in a subnet that isn't full few have to be looked at. It returns false if all are taken.
func Free(subnet netip.Prefix, id string, isTaken func(netip.Addr) bool) (netip.Addr, bool) {
	h := fnv.New32a()
	h.Write([]byte(id))
	usable := uint32(Usable(subnet))
	start := h.Sum32() % usable
	first := number(subnet.Addr()) + kept - 1
	for i := range usable {
		if a := address(first + (start+i)%usable); !isTaken(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Nth returns the n-th address of a block.
func Nth(block netip.Prefix, n uint32) netip.Addr { return address(number(block.Addr()) + n) }

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

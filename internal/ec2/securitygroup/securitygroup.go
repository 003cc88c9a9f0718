// Package securitygroup says what the security groups of an interface let pass: their rules become protocols, ports and blocks of addresses,
// with the members of source groups and the blocks of prefix lists in place of their ids. It is pure: who is a member at the moment is handed
// in. Package nodelink sends the result to the node that has the interface.
package securitygroup

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// All is the protocol, the port, and the ICMP type and code that stand for any.
const All = -1

// protocols are those that rules have by name; the others have IANA's numbers.
var protocols = map[string]int{"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}

// Rule lets traffic pass.
type Rule struct {
	Protocol int // IANA's number, or All
	// From and To are the first and the last port, or an ICMP type and code; All for any, and for protocols without them.
	From int
	To   int
	// Peers are whom it comes from or goes to: disjoint blocks in order, at least one.
	Peers []netip.Prefix
}

// Rules are what may come in and go out.
type Rules struct{ In, Out []Rule }

// Directory knows who is behind the ids in rules.
type Directory struct {
	// Members returns the addresses of a group's members.
	Members func(group string) []netip.Addr
	// Within returns the addresses that who has one of a block really has, besides those in the block.
	Within func(block netip.Prefix) []netip.Addr
	// Blocks returns the blocks of a prefix list.
	Blocks func(prefixList string) []netip.Prefix
}

// Resolve resolves the rules of all groups of an interface. Rules for the same traffic become one, and rules that let nobody pass, such as
// those for a group without members, are left out. Equal rules give equal results in whatever order they come.
func Resolve(rules []types.SecurityGroupRule, d Directory) Rules {
	in, out := peers{}, peers{}
	for i := range rules {
		r := &rules[i]
		to := in
		if aws.ToBool(r.IsEgress) {
			to = out
		}
		t := trafficOf(r)
		to[t] = append(to[t], d.peersOf(r)...)
	}
	return Rules{In: in.rules(), Out: out.rules()}
}

// traffic is what a rule is about.
type traffic struct{ protocol, from, to int }

// peers are the blocks that traffic may come from or go to.
type peers map[traffic][]netip.Prefix

func trafficOf(r *types.SecurityGroupRule) traffic {
	name := aws.ToString(r.IpProtocol)
	protocol, ok := protocols[name]
	if !ok {
		protocol, _ = strconv.Atoi(name) //nolint:errcheck // EC2 has checked it
	}
	switch protocol {
	case protocols["tcp"], protocols["udp"]:
		return traffic{protocol, int(aws.ToInt32(r.FromPort)), int(aws.ToInt32(r.ToPort))}
	case protocols["icmp"], protocols["icmpv6"]:
		return traffic{protocol, orAll(r.FromPort), orAll(r.ToPort)}
	}
	return traffic{protocol, All, All}
}

func orAll(n *int32) int {
	if n == nil {
		return All
	}
	return int(*n)
}

// peersOf returns the blocks of a rule's peer.
func (d Directory) peersOf(r *types.SecurityGroupRule) (all []netip.Prefix) {
	add := func(addresses []netip.Addr) {
		for _, a := range addresses {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for _, text := range []*string{r.CidrIpv4, r.CidrIpv6} {
		p, err := netip.ParsePrefix(aws.ToString(text))
		if err != nil {
			continue
		}
		all = append(all, p.Masked())
		if p.Bits() > 0 { // else it's everybody
			add(d.Within(p.Masked()))
		}
	}
	if r.PrefixListId != nil {
		all = append(all, d.Blocks(*r.PrefixListId)...)
	}
	if g := r.ReferencedGroupInfo; g != nil {
		add(d.Members(aws.ToString(g.GroupId)))
	}
	return all
}

func (p peers) rules() []Rule {
	out := []Rule{}
	for t, blocks := range p {
		if blocks = disjoint(blocks); len(blocks) > 0 {
			out = append(out, Rule{Protocol: t.protocol, From: t.from, To: t.to, Peers: blocks})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) < 0
	})
	return out
}

// disjoint leaves out the blocks that lie in others. Of two blocks that overlap, one lies in the other.
func disjoint(blocks []netip.Prefix) (out []netip.Prefix) {
	slices.SortFunc(blocks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	for _, b := range blocks {
		if n := len(out); n == 0 || !out[n-1].Overlaps(b) {
			out = append(out, b)
		}
	}
	return out
}

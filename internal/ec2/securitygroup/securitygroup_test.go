package securitygroup

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// directory has two groups and a prefix list.
var directory = Directory{
	Members: func(group string) []netip.Addr {
		return map[string][]netip.Addr{
			"sg-web": {netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.9")},
			"sg-six": {netip.MustParseAddr("fd00::1")},
		}[group]
	},
	Within: func(block netip.Prefix) []netip.Addr {
		if block.String() == "172.31.0.0/16" {
			return []netip.Addr{netip.MustParseAddr("10.213.0.5")}
		}
		return nil
	},
	Blocks: func(id string) []netip.Prefix {
		return map[string][]netip.Prefix{"pl-1": {netip.MustParsePrefix("198.19.1.0/24")}}[id]
	},
}

// rule reads "in tcp 80-81 PEER", where a peer is a block, a group or a prefix list.
func rule(t *testing.T, text string) types.SecurityGroupRule {
	t.Helper()
	f := strings.Fields(text)
	r := types.SecurityGroupRule{IsEgress: aws.Bool(f[0] == "out"), IpProtocol: &f[1], FromPort: aws.Int32(-1), ToPort: aws.Int32(-1)}
	if f[2] != "*" {
		if _, err := fmt.Sscanf(f[2], "%d-%d", r.FromPort, r.ToPort); err != nil {
			t.Fatal(text, err)
		}
	}
	switch peer := f[3]; {
	case strings.HasPrefix(peer, "sg-"):
		r.ReferencedGroupInfo = &types.ReferencedSecurityGroup{GroupId: &peer}
	case strings.HasPrefix(peer, "pl-"):
		r.PrefixListId = &peer
	case strings.Contains(peer, ":"):
		r.CidrIpv6 = &peer
	default:
		r.CidrIpv4 = &peer
	}
	return r
}

// shown writes rules as "in 6 80-81 PEERS".
func shown(r Rules) (out []string) {
	for _, side := range []struct {
		name  string
		rules []Rule
	}{{"in", r.In}, {"out", r.Out}} {
		for _, rule := range side.rules {
			out = append(out, fmt.Sprintf("%s %d %d..%d %s", side.name, rule.Protocol, rule.From, rule.To, strings.Trim(fmt.Sprint(rule.Peers), "[]")))
		}
	}
	return out
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name string
		give []string
		want []string
	}{
		{"nothing", nil, nil},
		{"ports", []string{"in tcp 80-81 10.0.0.0/8"}, []string{"in 6 80..81 10.0.0.0/8"}},
		{"everything out", []string{"out -1 * 0.0.0.0/0"}, []string{"out -1 -1..-1 0.0.0.0/0"}},
		{"a protocol by number", []string{"in 50 * 10.0.0.0/8"}, []string{"in 50 -1..-1 10.0.0.0/8"}},
		{"ICMP by type and code", []string{"in icmp 3-4 0.0.0.0/0", "in icmp * 10.0.0.0/8"}, []string{"in 1 -1..-1 10.0.0.0/8", "in 1 3..4 0.0.0.0/0"}},
		{"ICMPv6", []string{"in icmpv6 128-0 ::/0"}, []string{"in 58 128..0 ::/0"}},
		{"the block of a VPC", []string{"in tcp 80-80 172.31.0.0/16"}, []string{"in 6 80..80 10.213.0.5/32 172.31.0.0/16"}},
		{"a group's members", []string{"in tcp 80-80 sg-web"}, []string{"in 6 80..80 10.0.0.7/32 10.0.0.9/32"}},
		{"members with IPv6", []string{"in udp 53-53 sg-six"}, []string{"in 17 53..53 fd00::1/128"}},
		{"a group without members", []string{"in tcp 80-80 sg-none", "in tcp 81-81 10.0.0.1/32"}, []string{"in 6 81..81 10.0.0.1/32"}},
		{"a prefix list", []string{"out tcp 443-443 pl-1"}, []string{"out 6 443..443 198.19.1.0/24"}},
		{"an unknown prefix list", []string{"out tcp 443-443 pl-2"}, nil},
		{
			"one traffic is one rule", []string{"in tcp 80-80 sg-web", "in tcp 80-80 192.168.0.0/16", "in tcp 80-80 fd00::/8"},
			[]string{"in 6 80..80 10.0.0.7/32 10.0.0.9/32 192.168.0.0/16 fd00::/8"},
		},
		{
			"blocks in others are left out", []string{"in tcp 80-80 10.1.0.0/16", "in tcp 80-80 10.0.0.0/8", "in tcp 80-80 sg-web", "in tcp 80-80 11.0.0.0/8"},
			[]string{"in 6 80..80 10.0.0.0/8 11.0.0.0/8"},
		},
		{"in and out stay apart", []string{"in tcp 80-80 10.0.0.0/8", "out tcp 80-80 11.0.0.0/8"}, []string{"in 6 80..80 10.0.0.0/8", "out 6 80..80 11.0.0.0/8"}},
		{"sorted", []string{"in udp 1-1 10.0.0.0/8", "in tcp 90-90 10.0.0.0/8", "in tcp 9-99 10.0.0.0/8"},
			[]string{"in 6 9..99 10.0.0.0/8", "in 6 90..90 10.0.0.0/8", "in 17 1..1 10.0.0.0/8"}},
	} {
		var rules []types.SecurityGroupRule
		for _, text := range c.give {
			rules = append(rules, rule(t, text))
		}
		if got := shown(Resolve(rules, directory)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestOrderDoesNotMatter: a node is told of rules only when they differ.
func TestOrderDoesNotMatter(t *testing.T) {
	var rules []types.SecurityGroupRule
	for _, text := range []string{"in tcp 80-80 sg-web", "in tcp 80-80 10.0.0.0/30", "in icmp * sg-six", "in -1 * sg-web", "out -1 * 0.0.0.0/0", "out -1 * ::/0"} {
		rules = append(rules, rule(t, text))
	}
	want := Resolve(rules, directory)
	for range 50 {
		rand.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		if got := Resolve(rules, directory); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

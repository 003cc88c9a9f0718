package resources

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// dhcpOptions has the properties of AWS::EC2::DHCPOptions.
type dhcpOptions struct {
	DomainName                    *string  `cfn:"create"`
	DomainNameServers             []string `cfn:"create"`
	Ipv6AddressPreferredLeaseTime *int32   `cfn:"create"`
	NetbiosNameServers            []string `cfn:"create"`
	NetbiosNodeType               *int32   `cfn:"create"`
	NtpServers                    []string `cfn:"create"`
	Tags                          []Tag
}

// The names of the options in EC2's API that are no lists.
const (
	dhcpDomainName  = "domain-name"
	dhcpIPv6Lease   = "ipv6-address-preferred-lease-time"
	dhcpNetbiosNode = "netbios-node-type"
)

// lists returns the options that are lists, by their names in EC2's API.
func (o *dhcpOptions) lists() map[string]*[]string {
	return map[string]*[]string{
		"domain-name-servers":  &o.DomainNameServers,
		"netbios-name-servers": &o.NetbiosNameServers,
		"ntp-servers":          &o.NtpServers,
	}
}

// configurations returns the options as EC2's API has them.
func (o *dhcpOptions) configurations() (all []types.NewDhcpConfiguration) {
	option := func(key string, values ...string) {
		all = append(all, types.NewDhcpConfiguration{Key: &key, Values: values})
	}
	if o.DomainName != nil {
		option(dhcpDomainName, *o.DomainName)
	}
	for _, key := range []string{"domain-name-servers", "ntp-servers", "netbios-name-servers"} {
		if values := *o.lists()[key]; len(values) > 0 {
			option(key, values...)
		}
	}
	if o.NetbiosNodeType != nil {
		option(dhcpNetbiosNode, strconv.Itoa(int(*o.NetbiosNodeType)))
	}
	if o.Ipv6AddressPreferredLeaseTime != nil {
		option(dhcpIPv6Lease, strconv.Itoa(int(*o.Ipv6AddressPreferredLeaseTime)))
	}
	return all
}

var _ = add(&kind[*dhcpOptions]{
	name:       "AWS::EC2::DHCPOptions",
	live:       liveDHCPOptions,
	list:       listDHCPOptions,
	identifier: []string{"DhcpOptionsId"},
	attributes: []string{"DhcpOptionsId"},
	find:       findEC2[*dhcpOptions],
	create: func(ctx context.Context, s Step, o *dhcpOptions) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeDhcpOptions, o.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateDhcpOptionsInput{DhcpConfigurations: o.configurations(), TagSpecifications: tags}
		out, err := call.Do[ec2.CreateDhcpOptionsOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.DhcpOptions.DhcpOptionsId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *dhcpOptions) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *dhcpOptions) error {
		return did[ec2.DeleteDhcpOptionsOutput](ctx, s, &ec2.DeleteDhcpOptionsInput{DhcpOptionsId: &id})
	},
	read: func(ctx context.Context, s Step, id string, o *dhcpOptions) (Made, error) {
		_, err := liveDHCPOptions(ctx, s, id, o)
		return Made{Attributes: map[string]any{"DhcpOptionsId": id}}, err
	},
})

func liveDHCPOptions(ctx context.Context, s Step, id string, _ *dhcpOptions) (*dhcpOptions, error) {
	in := &ec2.DescribeDhcpOptionsInput{DhcpOptionsIds: []string{id}}
	out, err := call.Do[ec2.DescribeDhcpOptionsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	live := &dhcpOptions{Tags: ownTags(out.DhcpOptions[0].Tags, ec2TagPair)}
	lists := live.lists()
	for _, c := range out.DhcpOptions[0].DhcpConfigurations {
		first := aws.ToString(c.Values[0].Value)
		switch *c.Key {
		case dhcpDomainName:
			live.DomainName = &first
		case dhcpNetbiosNode:
			live.NetbiosNodeType = number(first)
		case dhcpIPv6Lease:
			live.Ipv6AddressPreferredLeaseTime = number(first)
		default:
			for _, v := range c.Values {
				*lists[*c.Key] = append(*lists[*c.Key], *v.Value)
			}
		}
	}
	return live, nil
}

// number returns a number that a service has as text, or nil if it's none.
func number(text string) *int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	return aws.Int32(int32(n))
}

func listDHCPOptions(ctx context.Context, s Step, _ *dhcpOptions) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeDhcpOptionsOutput](ctx, s.Services, &ec2.DescribeDhcpOptionsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.DhcpOptions {
			ids = append(ids, *x.DhcpOptionsId)
		}
		return ids, out.NextToken, nil
	})
}

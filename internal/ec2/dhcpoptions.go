package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxDHCPOptions = 1000
	maxDHCPValues  = 4 // name servers: API_CreateDhcpOptions
)

var dhcpOptions = kind[state.DHCPOptions]{
	name:   types.ResourceTypeDhcpOptions,
	prefix: "dopt",
	code:   "InvalidDhcpOptionID.NotFound",
	text:   "The dhcpOption ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.DHCPOptions] { return v.DHCPOptions },
	of:     func(r *state.DHCPOptions) (*string, *[]types.Tag) { return r.DhcpOptionsId, &r.Tags },
	fields: fields[state.DHCPOptions]{
		"dhcp-options-id": func(r *state.DHCPOptions) []string { return optional(r.DhcpOptionsId) },
		"owner-id":        func(r *state.DHCPOptions) []string { return optional(r.OwnerId) },
		"key": func(r *state.DHCPOptions) (out []string) {
			for _, c := range r.DhcpConfigurations {
				out = append(out, *c.Key)
			}
			return out
		},
		"value": func(r *state.DHCPOptions) (out []string) {
			for _, c := range r.DhcpConfigurations {
				for _, v := range c.Values {
					out = append(out, *v.Value)
				}
			}
			return out
		},
	},
}

// dhcpKeys are the options of API_CreateDhcpOptions.
var dhcpKeys = map[string]bool{
	"domain-name-servers": true, "domain-name": true, "ntp-servers": true, "netbios-name-servers": true, "netbios-node-type": true,
	"ipv6-address-preferred-lease-time": true,
}

func (s *Service) newDHCPOptions(configurations []types.DhcpConfiguration, tags []types.Tag) *state.DHCPOptions {
	return &state.DHCPOptions{DhcpOptions: types.DhcpOptions{
		DhcpOptionsId:      new(state.NewEC2ID("dopt")),
		DhcpConfigurations: configurations,
		OwnerId:            &s.opts.ID,
		Tags:               tags,
	}}
}

// defaultDHCPOptions returns the id of the options that a VPC has unless it's given others: those of the default VPC, or the first that
// are as AWS's own.
func (s *Service) defaultDHCPOptions(tx *state.Tx) *string {
	domain := dns.Domain(s.opts.Region)
	for o := range tx.DHCPOptions.All() {
		c := o.DhcpConfigurations
		if len(c) == 2 && *c[0].Key == "domain-name" && *c[0].Values[0].Value == domain && *c[1].Values[0].Value == "AmazonProvidedDNS" {
			return o.DhcpOptionsId
		}
	}
	one := func(key, value string) types.DhcpConfiguration {
		return types.DhcpConfiguration{Key: &key, Values: []types.AttributeValue{{Value: &value}}}
	}
	row := s.newDHCPOptions([]types.DhcpConfiguration{one("domain-name", domain), one("domain-name-servers", "AmazonProvidedDNS")}, []types.Tag{})
	tx.DHCPOptions.Put(row)
	return row.DhcpOptionsId
}

// CreateDhcpOptions creates a set of options.
func (s *Service) CreateDhcpOptions(ctx context.Context, in *ec2.CreateDhcpOptionsInput) (*ec2.CreateDhcpOptionsOutput, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeDhcpOptions)
	if err != nil {
		return nil, err
	}
	if len(in.DhcpConfigurations) == 0 {
		return nil, missing("DhcpConfiguration")
	}
	var all []types.DhcpConfiguration
	for _, c := range in.DhcpConfigurations {
		if key := aws.ToString(c.Key); !dhcpKeys[key] || len(c.Values) == 0 || len(c.Values) > maxDHCPValues {
			return nil, refuse("InvalidParameterValue", "Value (%s) for parameter dhcpConfiguration is invalid: an option has a known name "+
				"and 1 to %d values", key, maxDHCPValues)
		}
		one := types.DhcpConfiguration{Key: c.Key}
		for _, v := range c.Values {
			one.Values = append(one.Values, types.AttributeValue{Value: &v})
		}
		all = append(all, one)
	}
	row := s.newDHCPOptions(all, tags)
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		tx.DHCPOptions.Put(row)
		return checkRoom(count(tx.DHCPOptions.All())-1, maxDHCPOptions, "DhcpOptionsLimitExceeded", "sets of DHCP options")
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateDhcpOptionsOutput{DhcpOptions: &row.DhcpOptions}, nil
}

// DescribeDhcpOptions describes sets of options.
func (s *Service) DescribeDhcpOptions(_ context.Context, in *ec2.DescribeDhcpOptionsInput) (*ec2.DescribeDhcpOptionsOutput, error) {
	rows, next, err := dhcpOptions.describe(s.store.View(),
		query{"DescribeDhcpOptions", in.DhcpOptionsIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.DHCPOptions) types.DhcpOptions { return r.DhcpOptions })
	return &ec2.DescribeDhcpOptionsOutput{DhcpOptions: all, NextToken: next}, nil
}

// AssociateDhcpOptions gives a VPC a set of options. "default" is none at all.
func (s *Service) AssociateDhcpOptions(
	ctx context.Context, in *ec2.AssociateDhcpOptionsInput,
) (*ec2.AssociateDhcpOptionsOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if aws.ToString(in.DhcpOptionsId) != "default" {
			if _, err := dhcpOptions.get(tx.View, in.DhcpOptionsId, "DhcpOptionsId"); err != nil {
				return err
			}
		}
		return vpcs.change(tx, in.VpcId, "VpcId", func(r *state.VPC) error {
			r.DhcpOptionsId = in.DhcpOptionsId
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AssociateDhcpOptionsOutput{}, nil
}

// DeleteDhcpOptions deletes a set of options that no VPC has.
func (s *Service) DeleteDhcpOptions(ctx context.Context, in *ec2.DeleteDhcpOptionsInput) (*ec2.DeleteDhcpOptionsOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := dhcpOptions.get(tx.View, in.DhcpOptionsId, "DhcpOptionsId")
		if err != nil {
			return err
		}
		for vpc := range tx.VPCs.All() {
			if aws.ToString(vpc.DhcpOptionsId) == *row.DhcpOptionsId {
				return refuse("DependencyViolation", "The dhcpOptions '%s' has dependencies and cannot be deleted.", *row.DhcpOptionsId)
			}
		}
		tx.DHCPOptions.Delete(*row.DhcpOptionsId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteDhcpOptionsOutput{}, nil
}

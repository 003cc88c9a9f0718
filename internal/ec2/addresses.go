package ec2

import (
	"context"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// maxAddresses is how many Elastic IP addresses there are. AWS has 5 unless it's asked for more.
const maxAddresses = 500

// publicBlock has the addresses that are given out. Nobody has them on the Internet (RFC 2544), and they lead to nothing.
var publicBlock = netip.MustParsePrefix("198.18.0.0/16")

var addresses = kind[state.Address]{
	name:   types.ResourceTypeElasticIp,
	prefix: "eipalloc",
	code:   "InvalidAllocationID.NotFound",
	text:   "The allocation ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.Address] { return v.Addresses },
	of:     func(r *state.Address) (*string, *[]types.Tag) { return r.AllocationId, &r.Tags },
	fields: fields[state.Address]{
		"allocation-id":              func(r *state.Address) []string { return optional(r.AllocationId) },
		"association-id":             func(r *state.Address) []string { return optional(r.AssociationId) },
		"domain":                     func(r *state.Address) []string { return []string{string(r.Domain)} },
		"instance-id":                func(r *state.Address) []string { return optional(r.InstanceId) },
		"network-border-group":       func(r *state.Address) []string { return optional(r.NetworkBorderGroup) },
		"network-interface-id":       func(r *state.Address) []string { return optional(r.NetworkInterfaceId) },
		"network-interface-owner-id": func(r *state.Address) []string { return optional(r.NetworkInterfaceOwnerId) },
		"private-ip-address":         func(r *state.Address) []string { return optional(r.PrivateIpAddress) },
		"public-ip":                  func(r *state.Address) []string { return optional(r.PublicIp) },
	},
}

// unassociated returns an address without what it was associated with.
func unassociated(r *state.Address) *state.Address {
	row := new(*r)
	row.AssociationId = nil
	row.InstanceId = nil
	row.NetworkInterfaceId = nil
	row.NetworkInterfaceOwnerId = nil
	row.PrivateIpAddress = nil
	return row
}

// isAssociated reports whether an address is associated with an interface that there still is.
func isAssociated(v *state.View, r *state.Address) bool {
	id := aws.ToString(r.NetworkInterfaceId)
	return id != "" && (v.NetworkInterfaces.Get(id) != nil || launchedWith(v, id) != nil)
}

// showAddress returns an address with what it's associated with now: an instance that has ended has none.
func showAddress(v *state.View, r *state.Address) types.Address {
	if !isAssociated(v, r) {
		return unassociated(r).Address
	}
	return r.Address
}

// hasPublicAddress reports whether anything in a VPC has an Elastic IP address.
func hasPublicAddress(v *state.View, vpc string) bool {
	for a := range v.Addresses.All() {
		if !isAssociated(v, a) {
			continue
		}
		if i := v.NetworkInterfaces.Get(*a.NetworkInterfaceId); i != nil && *i.VpcId == vpc {
			return true
		}
		if i := launchedWith(v, *a.NetworkInterfaceId); i != nil && aws.ToString(i.VpcId) == vpc {
			return true
		}
	}
	return false
}

// AllocateAddress allocates an Elastic IP address.
func (s *Service) AllocateAddress(ctx context.Context, in *ec2.AllocateAddressInput) (*ec2.AllocateAddressOutput, error) {
	if err := checkMembers(in, "Domain", "TagSpecifications", "NetworkBorderGroup"); err != nil {
		return nil, err
	}
	if in.Domain == types.DomainTypeStandard {
		return nil, refuse("UnsupportedOperation", "Domain: there are only addresses for VPCs.")
	}
	if err := checkValue("domain", in.Domain, in.Domain.Values()); err != nil {
		return nil, err
	}
	if g := in.NetworkBorderGroup; g != nil && *g != s.opts.Region {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter networkBorderGroup is invalid.", *g)
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeElasticIp)
	if err != nil {
		return nil, err
	}
	var row *state.Address
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		taken := map[string]bool{}
		for a := range tx.Addresses.All() {
			taken[*a.PublicIp] = true
		}
		if err := checkRoom(len(taken), maxAddresses, "AddressLimitExceeded", "addresses"); err != nil {
			return err
		}
		id := state.NewEC2ID("eipalloc")
		ip, _ := cidr.Free(publicBlock, id, func(a netip.Addr) bool { return taken[a.String()] })
		row = &state.Address{Address: types.Address{
			AllocationId:       &id,
			PublicIp:           new(ip.String()),
			PublicIpv4Pool:     aws.String("amazon"),
			Domain:             types.DomainTypeVpc,
			NetworkBorderGroup: &s.opts.Region,
			Tags:               tags,
		}}
		tx.Addresses.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AllocateAddressOutput{
		AllocationId:       row.AllocationId,
		PublicIp:           row.PublicIp,
		PublicIpv4Pool:     row.PublicIpv4Pool,
		Domain:             row.Domain,
		NetworkBorderGroup: row.NetworkBorderGroup,
	}, nil
}

// pickPublic returns the address that a call gives by its allocation's id or by itself.
func pickPublic(v *state.View, allocation, ip *string) (*state.Address, error) {
	if aws.ToString(allocation) != "" || aws.ToString(ip) == "" {
		return addresses.get(v, allocation, "AllocationId")
	}
	for a := range v.Addresses.All() {
		if *a.PublicIp == *ip {
			return a, nil
		}
	}
	return nil, refuse("InvalidAddress.NotFound", "Address '%s' not found.", *ip)
}

// DescribeAddresses describes Elastic IP addresses.
func (s *Service) DescribeAddresses(_ context.Context, in *ec2.DescribeAddressesInput) (*ec2.DescribeAddressesOutput, error) {
	v := s.store.View()
	ids := slices.Clone(in.AllocationIds)
	for _, ip := range in.PublicIps {
		a, err := pickPublic(v, nil, &ip)
		if err != nil {
			return nil, err
		}
		ids = append(ids, *a.AllocationId)
	}
	rows, _, err := addresses.describe(v, query{"DescribeAddresses", ids, in.Filters, nil, nil, in.DryRun})
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeAddressesOutput{Addresses: show(rows, func(r *state.Address) types.Address { return showAddress(v, r) })}, nil
}

// DescribeAddressesAttribute describes addresses' reverse names. They have none.
func (s *Service) DescribeAddressesAttribute(
	_ context.Context, in *ec2.DescribeAddressesAttributeInput,
) (*ec2.DescribeAddressesAttributeOutput, error) {
	if err := checkValue("attribute", in.Attribute, in.Attribute.Values()); err != nil {
		return nil, err
	}
	v := s.store.View()
	for _, id := range in.AllocationIds {
		if _, err := addresses.get(v, &id, "AllocationId"); err != nil {
			return nil, err
		}
	}
	_, next, err := account.Sorted(listing("DescribeAddressesAttribute", maxNetworkPage), []string{}, in.MaxResults, in.NextToken,
		func(s string) string { return s })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeAddressesAttributeOutput{Addresses: []types.AddressAttribute{}, NextToken: next}, checkDryRun(in.DryRun)
}

// AssociateAddress gives an instance, or an interface, an Elastic IP address.
func (s *Service) AssociateAddress(ctx context.Context, in *ec2.AssociateAddressInput) (*ec2.AssociateAddressOutput, error) {
	if (in.InstanceId == nil) == (in.NetworkInterfaceId == nil) {
		return nil, refuse("MissingParameter", "The request must contain exactly one of the parameters instanceId and networkInterfaceId")
	}
	if in.PrivateIpAddress != nil {
		return nil, refuse("UnsupportedOperation", "PrivateIpAddress: Pintle's interfaces have one address each.")
	}
	var id *string
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		old, err := pickPublic(tx.View, in.AllocationId, in.PublicIp)
		if err != nil {
			return err
		}
		if isAssociated(tx.View, old) && in.AllowReassociation != nil && !*in.AllowReassociation {
			return alreadyAssociated(old)
		}
		at := aws.ToString(in.NetworkInterfaceId)
		if in.InstanceId != nil {
			if _, err := findLaunched(tx.View, *in.InstanceId); err != nil {
				return err
			}
			at = interfaceOf(*in.InstanceId)
		}
		to, err := s.findInterface(tx.View, at)
		if err != nil {
			return err
		}
		for other := range tx.Addresses.By(state.AddressesByInterface, at) {
			tx.Addresses.Put(unassociated(other))
		}
		id = s.associateAddress(tx, old, &to)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AssociateAddressOutput{AssociationId: id}, nil
}

func alreadyAssociated(a *state.Address) error {
	return refuse("Resource.AlreadyAssociated", "resource %s is already associated with associate-id %s", *a.AllocationId, *a.AssociationId)
}

// associateAddress gives an interface an address, and returns the association's id.
func (s *Service) associateAddress(tx *state.Tx, a *state.Address, to *types.NetworkInterface) *string {
	row := unassociated(a)
	row.AssociationId = new(state.NewEC2ID("eipassoc"))
	row.NetworkInterfaceId = to.NetworkInterfaceId
	row.NetworkInterfaceOwnerId = &s.opts.ID
	row.PrivateIpAddress = to.PrivateIpAddress
	if to.Attachment != nil {
		row.InstanceId = to.Attachment.InstanceId
	}
	tx.Addresses.Put(row)
	return row.AssociationId
}

// DisassociateAddress takes an Elastic IP address from what has it.
func (s *Service) DisassociateAddress(ctx context.Context, in *ec2.DisassociateAddressInput) (*ec2.DisassociateAddressOutput, error) {
	if aws.ToString(in.AssociationId) == "" && aws.ToString(in.PublicIp) == "" {
		return nil, missing("AssociationId")
	}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		for a := range tx.Addresses.All() {
			if !isAssociated(tx.View, a) || *a.AssociationId != aws.ToString(in.AssociationId) && *a.PublicIp != aws.ToString(in.PublicIp) {
				continue
			}
			if isManaged(tx.View, a) {
				return refuse("AuthFailure", "You do not have permission to access the specified resource.")
			}
			tx.Addresses.Put(unassociated(a))
			return nil
		}
		return refuse("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", aws.ToString(in.AssociationId))
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DisassociateAddressOutput{}, nil
}

// isManaged reports whether an address is that of something like a NAT gateway.
func isManaged(v *state.View, a *state.Address) bool {
	i := v.NetworkInterfaces.Get(aws.ToString(a.NetworkInterfaceId))
	return i != nil && aws.ToBool(i.RequesterManaged)
}

// ReleaseAddress gives an Elastic IP address back.
func (s *Service) ReleaseAddress(ctx context.Context, in *ec2.ReleaseAddressInput) (*ec2.ReleaseAddressOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		a, err := pickPublic(tx.View, in.AllocationId, in.PublicIp)
		if err != nil {
			return err
		}
		if group := aws.ToString(in.NetworkBorderGroup); group != "" && group != s.opts.Region {
			return refuse("InvalidAddress.NotFound", "Address '%s' not found.", *a.PublicIp)
		}
		if isAssociated(tx.View, a) {
			return refuse("InvalidIPAddress.InUse", "Address %s is in use.", *a.PublicIp)
		}
		tx.Addresses.Delete(*a.AllocationId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ReleaseAddressOutput{}, nil
}

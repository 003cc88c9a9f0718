package efs

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Mount targets are rows alone: no interface stands behind one, nothing listens at its address, and nodes mount file systems without.

// maxSecurityGroups is how many a mount target may have: API_CreateMountTarget.
const maxSecurityGroups = 5

// CreateMountTarget creates a mount target in a subnet.
func (s *Service) CreateMountTarget(ctx context.Context, in *api.CreateMountTargetInput) (*api.CreateMountTargetOutput, error) {
	if in.Ipv6Address != nil || in.IpAddressType != "" && in.IpAddressType != types.IpAddressTypeIpv4Only {
		return nil, invalid("IpAddressType and Ipv6Address are not supported: mount targets have IPv4 addresses.")
	}
	row := &state.MountTarget{}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		f, err := s.fileSystem(tx.View, in.FileSystemId)
		if err != nil {
			return err
		}
		subnet := tx.Subnets.Get(*in.SubnetId)
		if subnet == nil {
			return account.Refuse("SubnetNotFound", "The subnet ID '%s' does not exist", *in.SubnetId)
		}
		if row.SecurityGroups, err = securityGroups(tx.View, *subnet.SubnetId, in.SecurityGroups); err != nil {
			return err
		}
		for m := range tx.MountTargetsOf(*f.FileSystemId) {
			if aws.ToString(m.AvailabilityZoneName) == aws.ToString(subnet.AvailabilityZone) {
				return account.RefuseWith(http.StatusConflict, "MountTargetConflict", "mount target already exists in this AZ")
			}
			if aws.ToString(m.VpcId) != aws.ToString(subnet.VpcId) {
				return account.RefuseWith(http.StatusConflict, "MountTargetConflict",
					"requested subnet for new mount target is not in the same VPC as existing mount targets")
			}
		}
		address, err := pickAddress(tx.View, subnet, in.IpAddress)
		if err != nil {
			return err
		}
		row.MountTargetDescription = types.MountTargetDescription{
			FileSystemId:         f.FileSystemId,
			LifeCycleState:       types.LifeCycleStateAvailable,
			MountTargetId:        aws.String(newID("fsmt-")),
			SubnetId:             subnet.SubnetId,
			AvailabilityZoneId:   subnet.AvailabilityZoneId,
			AvailabilityZoneName: subnet.AvailabilityZone,
			IpAddress:            &address,
			NetworkInterfaceId:   aws.String(newID("eni-")),
			OwnerId:              &s.opts.ID,
			VpcId:                subnet.VpcId,
		}
		tx.MountTargets.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateMountTargetOutput{
		FileSystemId: row.FileSystemId, LifeCycleState: row.LifeCycleState, MountTargetId: row.MountTargetId, SubnetId: row.SubnetId,
		AvailabilityZoneId: row.AvailabilityZoneId, AvailabilityZoneName: row.AvailabilityZoneName, IpAddress: row.IpAddress,
		NetworkInterfaceId: row.NetworkInterfaceId, OwnerId: row.OwnerId, VpcId: row.VpcId,
	}, nil
}

// securityGroups checks the groups of a mount target, and returns the VPC's default one if there are none.
func securityGroups(v *state.View, subnet string, given []string) ([]string, error) {
	if len(given) > maxSecurityGroups {
		return nil, account.Refuse("SecurityGroupLimitExceeded", "A mount target can have %d security groups.", maxSecurityGroups)
	}
	for _, id := range given {
		if v.SecurityGroups.Get(id) == nil {
			return nil, account.Refuse("SecurityGroupNotFound", "The security group '%s' does not exist", id)
		}
	}
	return v.InterfaceGroups(subnet, given), nil
}

// pickAddress returns a mount target's address: the given one, or the last of the subnet that no other mount target has.
func pickAddress(v *state.View, subnet *state.Subnet, given *string) (string, error) {
	taken := map[string]bool{}
	for m := range v.MountTargets.All() {
		if *m.SubnetId == *subnet.SubnetId {
			taken[*m.IpAddress] = true
		}
	}
	block, err := netip.ParsePrefix(aws.ToString(subnet.CidrBlock))
	if err != nil {
		return "", invalid("The subnet %s has no IPv4 addresses.", *subnet.SubnetId)
	}
	if given != nil {
		a, err := netip.ParseAddr(*given)
		switch {
		case err != nil || !block.Contains(a):
			return "", invalid("IpAddress %q is not an address of the subnet %s.", *given, *subnet.SubnetId)
		case taken[*given]:
			return "", account.RefuseWith(http.StatusConflict, "IpAddressInUse", "The address %s is in use.", *given)
		}
		return *given, nil
	}
	b := block.Masked().Addr().As4()
	size := uint32(1) << (32 - block.Bits())
	first := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	for n := first + size - 2; n > first+3; n-- { // AWS keeps the first four and the last
		if a := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String(); !taken[a] {
			return a, nil
		}
	}
	return "", account.RefuseWith(http.StatusConflict, "NoFreeAddressesInSubnet", "The subnet %s has no free address.", *subnet.SubnetId)
}

// DescribeMountTargets lists the mount targets of a file system or an access point, or one.
func (s *Service) DescribeMountTargets(_ context.Context, in *api.DescribeMountTargetsInput) (*api.DescribeMountTargetsOutput, error) {
	v := s.store.View()
	given := 0
	for _, id := range []*string{in.FileSystemId, in.MountTargetId, in.AccessPointId} {
		if id != nil {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("Exactly one of FileSystemId, MountTargetId and AccessPointId must be given.")
	}
	rows := []types.MountTargetDescription{}
	if in.MountTargetId != nil {
		m := v.MountTargets.Get(*in.MountTargetId)
		if m == nil {
			return nil, noMountTarget(*in.MountTargetId)
		}
		rows = append(rows, m.MountTargetDescription)
	} else {
		system := in.FileSystemId
		if in.AccessPointId != nil {
			a, err := s.accessPoint(v, in.AccessPointId)
			if err != nil {
				return nil, err
			}
			system = a.FileSystemId
		}
		f, err := s.fileSystem(v, system)
		if err != nil {
			return nil, err
		}
		for m := range v.MountTargetsOf(*f.FileSystemId) {
			rows = append(rows, m.MountTargetDescription)
		}
	}
	rows, next, err := page("mount targets", rows, in.MaxItems, in.Marker, func(d types.MountTargetDescription) string { return *d.MountTargetId })
	if err != nil {
		return nil, err
	}
	return &api.DescribeMountTargetsOutput{MountTargets: rows, Marker: in.Marker, NextMarker: next}, nil
}

// DeleteMountTarget deletes a mount target.
func (s *Service) DeleteMountTarget(ctx context.Context, in *api.DeleteMountTargetInput) (*api.DeleteMountTargetOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.MountTargets.Get(*in.MountTargetId) == nil {
			return noMountTarget(*in.MountTargetId)
		}
		tx.MountTargets.Delete(*in.MountTargetId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteMountTargetOutput{}, nil
}

// DescribeMountTargetSecurityGroups returns a mount target's security groups.
func (s *Service) DescribeMountTargetSecurityGroups(
	_ context.Context, in *api.DescribeMountTargetSecurityGroupsInput,
) (*api.DescribeMountTargetSecurityGroupsOutput, error) {
	m := s.store.View().MountTargets.Get(*in.MountTargetId)
	if m == nil {
		return nil, noMountTarget(*in.MountTargetId)
	}
	return &api.DescribeMountTargetSecurityGroupsOutput{SecurityGroups: append([]string{}, m.SecurityGroups...)}, nil
}

// ModifyMountTargetSecurityGroups replaces a mount target's security groups.
func (s *Service) ModifyMountTargetSecurityGroups(
	ctx context.Context, in *api.ModifyMountTargetSecurityGroupsInput,
) (*api.ModifyMountTargetSecurityGroupsOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		m := tx.MountTargets.Get(*in.MountTargetId)
		if m == nil {
			return noMountTarget(*in.MountTargetId)
		}
		row := *m
		var err error
		if row.SecurityGroups, err = securityGroups(tx.View, *m.SubnetId, in.SecurityGroups); err != nil {
			return err
		}
		tx.MountTargets.Put(&row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyMountTargetSecurityGroupsOutput{}, nil
}

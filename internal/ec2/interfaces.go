package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// The VPC user guide's "Amazon VPC quotas".
const (
	maxInterfaces = 5000 // of a region
	maxMember     = 16   // groups that an interface is a member of
)

var networkInterfaces = kind[state.NetworkInterface]{
	name:   types.ResourceTypeNetworkInterface,
	prefix: "eni",
	code:   "InvalidNetworkInterfaceID.NotFound",
	text:   "The networkInterface ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.NetworkInterface] { return v.NetworkInterfaces },
	of:     func(r *state.NetworkInterface) (*string, *[]types.Tag) { return r.NetworkInterfaceId, &r.TagSet },
}

var interfaceFields = fields[types.NetworkInterface]{
	"association.allocation-id":  ofAssociation(func(a *types.NetworkInterfaceAssociation) *string { return a.AllocationId }),
	"association.association-id": ofAssociation(func(a *types.NetworkInterfaceAssociation) *string { return a.AssociationId }),
	"association.ip-owner-id":    ofAssociation(func(a *types.NetworkInterfaceAssociation) *string { return a.IpOwnerId }),
	"association.public-ip":      ofAssociation(func(a *types.NetworkInterfaceAssociation) *string { return a.PublicIp }),
	"attachment.attachment-id":   ofAttachment(func(a *types.NetworkInterfaceAttachment) *string { return a.AttachmentId }),
	"attachment.delete-on-termination": ofAttachment(func(a *types.NetworkInterfaceAttachment) *string {
		return new(strconv.FormatBool(aws.ToBool(a.DeleteOnTermination)))
	}),
	"attachment.device-index": ofAttachment(func(a *types.NetworkInterfaceAttachment) *string {
		return new(strconv.Itoa(int(aws.ToInt32(a.DeviceIndex))))
	}),
	"attachment.instance-id":       ofAttachment(func(a *types.NetworkInterfaceAttachment) *string { return a.InstanceId }),
	"attachment.instance-owner-id": ofAttachment(func(a *types.NetworkInterfaceAttachment) *string { return a.InstanceOwnerId }),
	"attachment.status":            ofAttachment(func(a *types.NetworkInterfaceAttachment) *string { return (*string)(&a.Status) }),
	"availability-zone":            func(i *types.NetworkInterface) []string { return optional(i.AvailabilityZone) },
	"description":                  func(i *types.NetworkInterface) []string { return optional(i.Description) },
	"group-id": func(i *types.NetworkInterface) []string {
		return values(i.Groups, func(g *types.GroupIdentifier) *string { return g.GroupId })
	},
	"group-name": func(i *types.NetworkInterface) []string {
		return values(i.Groups, func(g *types.GroupIdentifier) *string { return g.GroupName })
	},
	"interface-type":                  func(i *types.NetworkInterface) []string { return []string{string(i.InterfaceType)} },
	"mac-address":                     func(i *types.NetworkInterface) []string { return optional(i.MacAddress) },
	"network-interface-id":            func(i *types.NetworkInterface) []string { return optional(i.NetworkInterfaceId) },
	"owner-id":                        func(i *types.NetworkInterface) []string { return optional(i.OwnerId) },
	"private-dns-name":                func(i *types.NetworkInterface) []string { return optional(i.PrivateDnsName) },
	"private-ip-address":              func(i *types.NetworkInterface) []string { return optional(i.PrivateIpAddress) },
	"addresses.private-ip-address":    func(i *types.NetworkInterface) []string { return optional(i.PrivateIpAddress) },
	"requester-id":                    func(i *types.NetworkInterface) []string { return optional(i.RequesterId) },
	"requester-managed":               func(i *types.NetworkInterface) []string { return yes(i.RequesterManaged) },
	"source-dest-check":               func(i *types.NetworkInterface) []string { return yes(i.SourceDestCheck) },
	"status":                          func(i *types.NetworkInterface) []string { return []string{string(i.Status)} },
	"subnet-id":                       func(i *types.NetworkInterface) []string { return optional(i.SubnetId) },
	"vpc-id":                          func(i *types.NetworkInterface) []string { return optional(i.VpcId) },
	"ipv6-addresses.ipv6-address":     func(*types.NetworkInterface) []string { return nil },
	"attachment.nat-gateway-id":       func(*types.NetworkInterface) []string { return nil },
	"addresses.association.public-ip": ofAssociation(func(a *types.NetworkInterfaceAssociation) *string { return a.PublicIp }),
}

func ofAssociation(of func(*types.NetworkInterfaceAssociation) *string) func(*types.NetworkInterface) []string {
	return func(i *types.NetworkInterface) []string {
		if i.Association == nil {
			return nil
		}
		return optional(of(i.Association))
	}
}

func ofAttachment(of func(*types.NetworkInterfaceAttachment) *string) func(*types.NetworkInterface) []string {
	return func(i *types.NetworkInterface) []string {
		if i.Attachment == nil {
			return nil
		}
		return optional(of(i.Attachment))
	}
}

// interfaceOf returns the id of the interface that an instance is launched with. It follows from the instance's.
func interfaceOf(instance string) string { return "eni" + strings.TrimPrefix(instance, "i") }

// launchedWith returns the instance that was launched with an interface, or nil.
func launchedWith(v *state.View, id string) *state.Instance {
	rest, ok := strings.CutPrefix(id, "eni")
	i := v.Instances.Get("i" + rest)
	if !ok || i == nil || i.IsOver() || i.SubnetId == nil {
		return nil
	}
	return i
}

// comesWithAMachine reports whether an interface is that of an instance, or of a machine that others have started. It looks them up by what
// interfaceOf makes the id from, since describing them all would take too long in a transaction.
func (s *Service) comesWithAMachine(v *state.View, id string) bool {
	if launchedWith(v, id) != nil {
		return true
	}
	rest := strings.TrimPrefix(id, "eni")
	for _, machine := range []string{"i" + rest, rest} { // the ids of some machines begin differently, as with mi-
		if interfaceOf(machine) == id && v.Instances.Get(machine) == nil && s.machineHasInterface(v, machine) {
			return true
		}
	}
	return false
}

// machineHasInterface reports whether a machine that others have started is shown with an interface.
func (s *Service) machineHasInterface(v *state.View, machine string) bool {
	for row := range v.ContainerInstances.By(state.InstancesByMachine, machine) {
		if row.Ec2InstanceId != nil && aws.ToString(row.Status) != "INACTIVE" && len(s.instance(v, row).NetworkInterfaces) > 0 {
			return true
		}
	}
	return false
}

// findLaunched returns the instance with an id that is in a subnet.
func findLaunched(v *state.View, id string) (*state.Instance, error) {
	if i := launchedWith(v, interfaceOf(id)); i != nil {
		return i, nil
	}
	return nil, refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
}

// macAddress returns an interface's MAC address, which follows from its id: from its digits, or from a hash of what has too few, since machines
// that others have started may have any id.
func macAddress(id string) *string {
	digits := strings.TrimPrefix(id, "eni-")
	last, err := hex.DecodeString(digits[:min(len(digits), 10)])
	if err != nil || len(last) < 5 {
		sum := sha256.Sum256([]byte(id))
		last = sum[:5]
	}
	return aws.String(net.HardwareAddr(append([]byte{0x0e}, last...)).String())
}

// findInterface returns the interface with an id, an instance's too.
func (s *Service) findInterface(v *state.View, id string) (types.NetworkInterface, error) {
	if i := launchedWith(v, id); i != nil {
		return s.showLaunched(v, i), nil
	}
	row, err := networkInterfaces.get(v, &id, "NetworkInterfaceId")
	if err != nil {
		return types.NetworkInterface{}, err
	}
	return s.showInterface(v, row), nil
}

// showInterface returns an interface with its Elastic IP address.
func (s *Service) showInterface(v *state.View, r *state.NetworkInterface) types.NetworkInterface {
	shown := r.NetworkInterface
	for a := range v.Addresses.By(state.AddressesByInterface, *r.NetworkInterfaceId) {
		shown.Association = &types.NetworkInterfaceAssociation{
			AllocationId:  a.AllocationId,
			AssociationId: a.AssociationId,
			IpOwnerId:     &s.opts.ID,
			PublicIp:      a.PublicIp,
			PublicDnsName: aws.String(""),
		}
	}
	shown.PrivateIpAddresses = []types.NetworkInterfacePrivateIpAddress{{
		Primary:          aws.Bool(true),
		PrivateIpAddress: shown.PrivateIpAddress,
		PrivateDnsName:   shown.PrivateDnsName,
		Association:      shown.Association,
	}}
	return shown
}

// showLaunched returns the interface that an instance was launched with.
func (s *Service) showLaunched(v *state.View, i *state.Instance) types.NetworkInterface {
	id := interfaceOf(*i.InstanceId)
	row := s.interfaceWith(id, i.PrivateIpAddress)
	row.AvailabilityZone = i.Placement.AvailabilityZone
	row.Groups = i.SecurityGroups
	row.SubnetId = i.SubnetId
	row.VpcId = i.VpcId
	s.attach(row, i.LaunchTime, 0)
	row.Attachment.InstanceId = i.InstanceId
	return s.showInterface(v, row)
}

// interfaceWith returns what all interfaces have, in no subnet yet, for one with an id and an address, or without an address.
func (s *Service) interfaceWith(id string, address *string) *state.NetworkInterface {
	row := &state.NetworkInterface{NetworkInterface: types.NetworkInterface{
		NetworkInterfaceId: &id,
		Description:        aws.String(""),
		InterfaceType:      types.NetworkInterfaceTypeInterface,
		Ipv6Addresses:      []types.NetworkInterfaceIpv6Address{},
		MacAddress:         macAddress(id),
		OwnerId:            &s.opts.ID,
		PrivateIpAddress:   address,
		RequesterManaged:   aws.Bool(false),
		SourceDestCheck:    aws.Bool(true),
		TagSet:             []types.Tag{},
	}}
	if address != nil {
		row.PrivateDnsName = new(dns.Name(*address, s.opts.Region))
	}
	return row
}

// attach shows an interface as one of a machine's, which goes with what has it.
func (s *Service) attach(row *state.NetworkInterface, since *time.Time, device int32) {
	row.Status = types.NetworkInterfaceStatusInUse
	row.Attachment = &types.NetworkInterfaceAttachment{
		AttachmentId:        new("eni-attach" + strings.TrimPrefix(*row.NetworkInterfaceId, "eni")),
		AttachTime:          since,
		DeleteOnTermination: aws.Bool(true),
		DeviceIndex:         &device,
		InstanceOwnerId:     &s.opts.ID,
		NetworkCardIndex:    aws.Int32(0),
		Status:              types.AttachmentStatusAttached,
	}
}

// newInterface makes an interface in a subnet, with an address of its own choice or with a free one.
func (s *Service) newInterface(
	v *state.View, subnet *state.Subnet, address *string, groups []types.GroupIdentifier,
) (*state.NetworkInterface, error) {
	id := state.NewEC2ID("eni")
	a, err := pickAddress(v, subnet, id, address)
	if err != nil {
		return nil, err
	}
	row := s.interfaceWith(id, &a)
	row.AvailabilityZone = subnet.AvailabilityZone
	row.Groups = groups
	row.RequesterId = &s.opts.ID
	row.Status = types.NetworkInterfaceStatusAvailable
	row.SubnetId = subnet.SubnetId
	row.VpcId = subnet.VpcId
	return row, nil
}

// pickAddress returns the address that a call asks for, or a free one, for the resource with an id.
func pickAddress(v *state.View, subnet *state.Subnet, id string, asked *string) (string, error) {
	block := netip.MustParsePrefix(*subnet.CidrBlock)
	if aws.ToString(asked) == "" {
		a, ok := cidr.Free(block, id, func(a netip.Addr) bool { return v.IsTaken(*subnet.SubnetId, a.String()) })
		if !ok {
			return "", refuse("InsufficientFreeAddressesInSubnet",
				"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", *subnet.SubnetId)
		}
		return a.String(), nil
	}
	a, err := netip.ParseAddr(*asked)
	switch {
	case err != nil || !a.Is4():
		return "", refuse("InvalidParameterValue", "Value (%s) for parameter address is invalid. Address is malformed", *asked)
	case !cidr.CanHave(block, a):
		return "", refuse("InvalidParameterValue", "Address does not fall within the subnet's address range")
	case v.IsTaken(*subnet.SubnetId, a.String()):
		return "", refuse("InvalidIPAddress.InUse", "Address %s is in use.", a)
	}
	return a.String(), nil
}

// members returns the groups with ids, or a VPC's default group without any.
func members(v *state.View, vpc string, ids []string) ([]types.GroupIdentifier, error) {
	if len(ids) == 0 {
		g := v.DefaultSecurityGroup(vpc)
		return []types.GroupIdentifier{{GroupId: g.GroupId, GroupName: g.GroupName}}, nil
	}
	if len(ids) > maxMember {
		return nil, refuse("SecurityGroupsPerInterfaceLimitExceeded", "The maximum number of security groups per interface has been reached.")
	}
	var out []types.GroupIdentifier
	for _, id := range ids {
		g, err := securityGroups.get(v, &id, "SecurityGroupId")
		if err != nil {
			return nil, err
		}
		if *g.VpcId != vpc {
			return nil, refuse("InvalidParameter", "Security group %s and subnet belong to different networks.", id)
		}
		out = append(out, types.GroupIdentifier{GroupId: g.GroupId, GroupName: g.GroupName})
	}
	return out, nil
}

// CreateNetworkInterface creates an interface.
func (s *Service) CreateNetworkInterface(
	ctx context.Context, in *ec2.CreateNetworkInterfaceInput,
) (*ec2.CreateNetworkInterfaceOutput, error) {
	err := checkMembers(in, "SubnetId", "ClientToken", "Description", "Groups", "PrivateIpAddress", "TagSpecifications")
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeNetworkInterface)
	if err != nil {
		return nil, err
	}
	if !isGroupText(aws.ToString(in.Description)) {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter description is invalid.", *in.Description)
	}
	var row *state.NetworkInterface
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		subnet, err := subnets.get(tx.View, in.SubnetId, "SubnetId")
		if err != nil {
			return err
		}
		groups, err := members(tx.View, *subnet.VpcId, in.Groups)
		if err != nil {
			return err
		}
		made, err := s.newInterface(tx.View, subnet, in.PrivateIpAddress, groups)
		if err != nil {
			return err
		}
		made.Description = aws.String(aws.ToString(in.Description))
		made.TagSet = tags
		row, err = putOnce(s, tx, networkInterfaces, in.ClientToken, in, made, func() error {
			return checkRoom(count(tx.NetworkInterfaces.All()), maxInterfaces, "NetworkInterfaceLimitExceeded", "network interfaces")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	shown := s.showInterface(s.store.View(), row)
	return &ec2.CreateNetworkInterfaceOutput{NetworkInterface: &shown, ClientToken: in.ClientToken}, nil
}

// DescribeNetworkInterfaces describes interfaces, those of instances too.
func (s *Service) DescribeNetworkInterfaces(
	_ context.Context, in *ec2.DescribeNetworkInterfacesInput,
) (*ec2.DescribeNetworkInterfacesOutput, error) {
	match, err := matcher(in.Filters, interfaceFields, func(i *types.NetworkInterface) []types.Tag { return i.TagSet })
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	all := s.interfaces(v)
	for _, id := range in.NetworkInterfaceIds {
		if !slices.ContainsFunc(all, func(i types.NetworkInterface) bool { return *i.NetworkInterfaceId == id }) {
			return nil, networkInterfaces.absent(id)
		}
	}
	all = slices.DeleteFunc(all, func(i types.NetworkInterface) bool {
		return len(in.NetworkInterfaceIds) > 0 && !slices.Contains(in.NetworkInterfaceIds, *i.NetworkInterfaceId) || !match(&i)
	})
	key := func(i types.NetworkInterface) string { return *i.NetworkInterfaceId }
	account.SortBy(all, key)
	all, next, err := account.Sorted(listing("DescribeNetworkInterfaces", maxNetworkPage), all, in.MaxResults, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeNetworkInterfacesOutput{NetworkInterfaces: all, NextToken: next}, nil
}

// interfaces returns all interfaces.
func (s *Service) interfaces(v *state.View) (all []types.NetworkInterface) {
	all = []types.NetworkInterface{}
	for row := range v.NetworkInterfaces.All() {
		all = append(all, s.showInterface(v, row))
	}
	for _, i := range s.instances(v) {
		if len(i.NetworkInterfaces) > 0 {
			all = append(all, s.showLaunched(v, &state.Instance{Instance: i}))
		}
	}
	for t := range v.Tasks.All() {
		if state.TasksByInterface.Value(t) != "" {
			all = append(all, s.showOfTask(v, t))
		}
	}
	return all
}

// ModifyNetworkInterfaceAttribute changes one attribute of an interface that somebody made.
func (s *Service) ModifyNetworkInterfaceAttribute(
	ctx context.Context, in *ec2.ModifyNetworkInterfaceAttributeInput,
) (*ec2.ModifyNetworkInterfaceAttributeOutput, error) {
	if err := checkMembers(in, "NetworkInterfaceId", "Description", "Groups", "SourceDestCheck"); err != nil {
		return nil, err
	}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return networkInterfaces.change(tx, in.NetworkInterfaceId, "NetworkInterfaceId", func(r *state.NetworkInterface) (err error) {
			if in.Description != nil {
				r.Description = aws.String(aws.ToString(in.Description.Value))
			}
			if in.SourceDestCheck != nil {
				r.SourceDestCheck = new(aws.ToBool(in.SourceDestCheck.Value))
			}
			if len(in.Groups) > 0 {
				r.Groups, err = members(tx.View, *r.VpcId, in.Groups)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifyNetworkInterfaceAttributeOutput{}, nil
}

// DeleteNetworkInterface deletes an interface that nothing uses.
func (s *Service) DeleteNetworkInterface(
	ctx context.Context, in *ec2.DeleteNetworkInterfaceInput,
) (*ec2.DeleteNetworkInterfaceOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		id := aws.ToString(in.NetworkInterfaceId)
		row, err := networkInterfaces.get(tx.View, in.NetworkInterfaceId, "NetworkInterfaceId")
		if isOfTask(tx.View, id) || s.comesWithAMachine(tx.View, id) || row != nil && row.Status == types.NetworkInterfaceStatusInUse {
			return refuse("InvalidParameterValue", "Network interface '%s' is currently in use.", id)
		}
		if err != nil {
			return err
		}
		tx.NetworkInterfaces.Delete(id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteNetworkInterfaceOutput{}, nil
}

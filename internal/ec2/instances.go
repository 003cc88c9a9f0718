package ec2

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// DescribeInstances describes the instances that Pintle has started, and the machines of other container instances.
func (s *Service) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
	if err := checkInstanceIDs(in.InstanceIds); err != nil {
		return nil, err
	}
	if len(in.InstanceIds) > 0 && in.MaxResults != nil {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	match, err := matcher(in.Filters, instanceFields, func(i *types.Instance) []types.Tag { return i.Tags })
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	all := s.instances(v)
	if all, err = pickByID(all, in.InstanceIds); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i types.Instance) bool { return !match(&i) })
	all, next, err := account.Sorted(listing("DescribeInstances", maxInstances), all, in.MaxResults, in.NextToken, instanceID)
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeInstancesOutput{NextToken: next, Reservations: s.reservations(v, all)}, nil
}

// reservations groups instances by the launches that they came with, in the order of the first ones.
func (s *Service) reservations(v *state.View, all []types.Instance) []types.Reservation {
	out := []types.Reservation{}
	at := map[string]int{}
	for _, i := range all {
		id := state.ReservationOf(*i.InstanceId)
		if row := v.Instances.Get(*i.InstanceId); row != nil {
			id = row.ReservationID()
		}
		if _, known := at[id]; !known {
			at[id] = len(out)
			out = append(out, types.Reservation{ReservationId: &id, OwnerId: &s.opts.ID, Groups: []types.GroupIdentifier{}})
		}
		r := &out[at[id]]
		r.Instances = append(r.Instances, i)
	}
	for _, r := range out {
		account.SortBy(r.Instances, func(i types.Instance) int32 { return *i.AmiLaunchIndex })
	}
	return out
}

// maxInstances is the most instances of one page: API_DescribeInstances.
const maxInstances = 1000

// instanceIDs matches the ids that EC2 accepts: old ones with eight digits, and today's with seventeen.
var instanceIDs = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

func checkInstanceIDs(ids []string) error {
	for _, id := range ids {
		if !instanceIDs.MatchString(id) {
			return refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
	}
	return nil
}

// pickByID picks instances by their ids, or all of them if no ids are given.
func pickByID(all []types.Instance, ids []string) ([]types.Instance, error) {
	if len(ids) == 0 {
		return all, nil
	}
	missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.ContainsFunc(all, func(i types.Instance) bool { return *i.InstanceId == id })
	})
	switch len(missing) {
	case 0:
		return slices.DeleteFunc(all, func(i types.Instance) bool { return !slices.Contains(ids, *i.InstanceId) }), nil
	case 1:
		return nil, refuse("InvalidInstanceID.NotFound", "The instance ID %s does not exist", quoted(missing))
	}
	return nil, refuse("InvalidInstanceID.NotFound", "The instance IDs %s do not exist", quoted(missing))
}

// instances returns all instances, in the order of their ids. A deregistered machine is no longer one of them: it may
// be used for anything now.
func (s *Service) instances(v *state.View) []types.Instance {
	var out []types.Instance
	machines := map[string]types.Instance{}
	for row := range v.ContainerInstances.All() {
		if row.Ec2InstanceId != nil && aws.ToString(row.Status) != "INACTIVE" {
			machines[*row.Ec2InstanceId] = s.instance(v, row)
		}
	}
	for row := range v.Instances.All() {
		if machine, ok := machines[*row.InstanceId]; ok {
			out = append(out, s.launchedInstance(v, &machine, row))
			delete(machines, *row.InstanceId)
			continue
		}
		out = append(out, s.launchedInstance(v, nil, row))
	}
	out = slices.AppendSeq(out, maps.Values(machines))
	account.SortBy(out, func(i types.Instance) string { return *i.InstanceId })
	return out
}

func instanceID(i types.Instance) string { return *i.InstanceId }

// noImage is the image of machines that others have started. EC2's instances always have one, and some clients end without.
const noImage = "ami-00000000000000000"

// instance describes the machine of a container instance. What it doesn't report of itself, EC2's clients still expect.
func (s *Service) instance(v *state.View, row *state.ContainerInstance) types.Instance {
	i := types.Instance{
		InstanceId:          row.Ec2InstanceId,
		AmiLaunchIndex:      aws.Int32(0),
		LaunchTime:          row.RegisteredAt,
		State:               running(),
		ImageId:             aws.String(noImage),
		InstanceType:        types.InstanceTypeM1Small,
		Placement:           &types.Placement{Tenancy: types.TenancyDefault, AvailabilityZone: new(s.opts.Region + "a")},
		PublicDnsName:       aws.String(""),
		BlockDeviceMappings: []types.InstanceBlockDeviceMapping{},
		NetworkInterfaces:   []types.InstanceNetworkInterface{},
		SecurityGroups:      []types.GroupIdentifier{},
		Tags:                []types.Tag{},
	}
	if row.PrivateIPAddress != "" {
		i.PrivateIpAddress = &row.PrivateIPAddress
		i.PrivateDnsName = new(dns.Name(row.PrivateIPAddress, s.opts.Region))
	}
	for _, t := range row.Tags {
		i.Tags = append(i.Tags, types.Tag{Key: t.Key, Value: t.Value})
	}
	for _, a := range row.Attributes {
		switch aws.ToString(a.Name) {
		case state.InstanceTypeAttribute:
			i.InstanceType = cmp.Or(types.InstanceType(aws.ToString(a.Value)), i.InstanceType)
		case "ecs.ami-id":
			i.ImageId = a.Value
		case "ecs.availability-zone":
			i.Placement.AvailabilityZone = cmp.Or(a.Value, i.Placement.AvailabilityZone)
		case "ecs.cpu-architecture":
			i.Architecture = types.ArchitectureValues(aws.ToString(a.Value))
		case "pintle.node":
			i.Tags = addTag(i.Tags, "Name", a.Value)
		case "pintle.gpu":
			i.Tags = addTag(i.Tags, "pintle.gpu", a.Value)
		}
	}
	s.showMachineNetwork(v, &i)
	return i
}

// running returns the state of every machine that others have started.
func running() *types.InstanceState {
	return &types.InstanceState{Code: aws.Int32(16), Name: types.InstanceStateNameRunning}
}

// addTag adds a tag, unless the user has one with that key.
func addTag(tags []types.Tag, key string, value *string) []types.Tag {
	if slices.ContainsFunc(tags, func(t types.Tag) bool { return aws.ToString(t.Key) == key }) {
		return tags
	}
	return append(tags, types.Tag{Key: &key, Value: value})
}

// instanceFields holds those filters of API_DescribeInstances that apply to what we store.
var instanceFields = fields[types.Instance]{
	"architecture":        func(i *types.Instance) []string { return []string{string(i.Architecture)} },
	"availability-zone":   func(i *types.Instance) []string { return optional(i.Placement.AvailabilityZone) },
	"instance-id":         func(i *types.Instance) []string { return optional(i.InstanceId) },
	"instance-state-code": func(i *types.Instance) []string { return []string{strconv.Itoa(int(*i.State.Code))} },
	"instance-state-name": func(i *types.Instance) []string { return []string{string(i.State.Name)} },
	"instance-type":       func(i *types.Instance) []string { return []string{string(i.InstanceType)} },
	"image-id":            func(i *types.Instance) []string { return optional(i.ImageId) },
	"client-token":        func(i *types.Instance) []string { return optional(i.ClientToken) },
	"launch-time": func(i *types.Instance) []string {
		if i.LaunchTime == nil {
			return nil
		}
		return []string{i.LaunchTime.UTC().Format(time.RFC3339)}
	},
	"instance.group-id": func(i *types.Instance) []string {
		return values(i.SecurityGroups, func(g *types.GroupIdentifier) *string { return g.GroupId })
	},
	"instance.group-name": func(i *types.Instance) []string {
		return values(i.SecurityGroups, func(g *types.GroupIdentifier) *string { return g.GroupName })
	},
	"ip-address": func(i *types.Instance) []string { return optional(i.PublicIpAddress) },
	"key-name":   func(i *types.Instance) []string { return optional(i.KeyName) },
	"network-interface.network-interface-id": func(i *types.Instance) []string {
		return values(i.NetworkInterfaces, func(n *types.InstanceNetworkInterface) *string { return n.NetworkInterfaceId })
	},
	"subnet-id":          func(i *types.Instance) []string { return optional(i.SubnetId) },
	"vpc-id":             func(i *types.Instance) []string { return optional(i.VpcId) },
	"private-dns-name":   func(i *types.Instance) []string { return optional(i.PrivateDnsName) },
	"private-ip-address": func(i *types.Instance) []string { return optional(i.PrivateIpAddress) },
	"tenancy":            func(i *types.Instance) []string { return []string{string(i.Placement.Tenancy)} },
}

func optional(s *string) []string {
	if s == nil {
		return nil
	}
	return []string{*s}
}

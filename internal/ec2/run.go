package ec2

import (
	"cmp"
	"context"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxRun       = 1000     // instances of one call
	maxUserData  = 16 << 10 // bytes, before they are encoded: the user guide's "User data"
	clientTokens = 64       // characters: "Ensuring idempotency"
)

// RunInstances records pending instances. The fleet starts their machines.
func (s *Service) RunInstances(ctx context.Context, in *ec2.RunInstancesInput) (*ec2.RunInstancesOutput, error) {
	count, err := s.checkRun(in)
	if err != nil {
		return nil, err
	}
	var rows []*state.Instance
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		data, template, err := s.runData(ctx, tx.View, in)
		if err != nil {
			return err
		}
		if err := checkDryRun(in.DryRun); err != nil {
			return err
		}
		if rows = launchedBefore(tx.View, in.ClientToken); len(rows) > 0 {
			return nil
		}
		if s.opts.NoFleet {
			return refuse("InsufficientInstanceCapacity",
				"Pintle has no machines to start instances on: say where they come from with --fleet.")
		}
		for i := range count {
			row := state.NewInstance(data, s.opts.Region+"a", s.now())
			row.AmiLaunchIndex = aws.Int32(int32(i))
			row.ClientToken = in.ClientToken
			row.Placement.AvailabilityZone = cmp.Or(placedIn(in), row.Placement.AvailabilityZone)
			if err := join(tx.View, row, data, placedIn(in)); err != nil {
				return err
			}
			rows = append(rows, row)
			row.Reservation = state.ReservationOf(*rows[0].InstanceId)
			row.LaunchTemplate = template
			tx.Instances.Put(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &ec2.RunInstancesOutput{
		OwnerId:       &s.opts.ID,
		ReservationId: new(rows[0].ReservationID()),
		Groups:        []types.GroupIdentifier{},
		Instances:     []types.Instance{},
	}
	for _, row := range rows {
		out.Instances = append(out.Instances, s.launchedInstance(s.store.View(), nil, row))
	}
	return out, nil
}

// placedIn returns the zone that a call names, or nil.
func placedIn(in *ec2.RunInstancesInput) *string {
	if in.Placement == nil {
		return nil
	}
	return in.Placement.AvailabilityZone
}

// launchedBefore returns the instances that an earlier call with the client token created.
func launchedBefore(v *state.View, token *string) (rows []*state.Instance) {
	if aws.ToString(token) == "" {
		return nil
	}
	for row := range v.Instances.All() {
		if aws.ToString(row.ClientToken) == *token {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b *state.Instance) int { return cmp.Compare(*a.AmiLaunchIndex, *b.AmiLaunchIndex) })
	return rows
}

func (s *Service) checkRun(in *ec2.RunInstancesInput) (int, error) {
	switch {
	case in.MinCount == nil:
		return 0, refuse("MissingParameter", "The request must contain the parameter MinCount")
	case in.MaxCount == nil:
		return 0, refuse("MissingParameter", "The request must contain the parameter MaxCount")
	case *in.MinCount < 1 || *in.MaxCount < *in.MinCount || *in.MaxCount > maxRun:
		return 0, refuse("InvalidParameterValue",
			"MinCount %d and MaxCount %d must be between 1 and %d, and MinCount not above MaxCount", *in.MinCount, *in.MaxCount, maxRun)
	case len(aws.ToString(in.ClientToken)) > clientTokens:
		return 0, refuse("InvalidParameterValue",
			"ClientToken has %d characters, at most %d are allowed", len(*in.ClientToken), clientTokens)
	case in.Placement != nil && s.opts.IsForeignZone(aws.ToString(in.Placement.AvailabilityZone)):
		return 0, refuse("InvalidParameterValue", "Invalid availability zone: [%s]", *in.Placement.AvailabilityZone)
	}
	return int(*in.MaxCount), checkAsked(in)
}

// runData merges a RunInstances call: its launch template, overridden by what the call itself gives. It also returns the template's id and
// version, if there is one.
func (s *Service) runData(
	ctx context.Context, v *state.View, in *ec2.RunInstancesInput,
) (*types.ResponseLaunchTemplateData, *types.LaunchTemplateSpecification, error) {
	if in.LaunchTemplate == nil {
		data, err := s.overridden(ctx, types.ResponseLaunchTemplateData{}, in)
		return data, nil, err
	}
	l := in.LaunchTemplate
	template, version, err := findVersion(v, l.LaunchTemplateId, l.LaunchTemplateName, aws.ToString(l.Version))
	if err != nil {
		return nil, nil, err
	}
	data, err := s.overridden(ctx, *version.LaunchTemplateData, in)
	return data, &types.LaunchTemplateSpecification{
		LaunchTemplateId: template.LaunchTemplateId,
		Version:          new(strconv.FormatInt(*version.VersionNumber, 10)),
	}, err
}

// overridden returns launch template data, overridden by what a call itself gives, and checked.
func (s *Service) overridden(
	ctx context.Context, data types.ResponseLaunchTemplateData, in *ec2.RunInstancesInput,
) (*types.ResponseLaunchTemplateData, error) {
	data.ImageId = cmp.Or(in.ImageId, data.ImageId)
	data.InstanceType = cmp.Or(in.InstanceType, data.InstanceType, types.InstanceTypeM1Small)
	data.KeyName = cmp.Or(in.KeyName, data.KeyName)
	data.UserData = cmp.Or(in.UserData, data.UserData)
	asTemplate(&data, in)
	if err := mapDevices(&data, in); err != nil {
		return nil, err
	}
	for _, t := range in.TagSpecifications {
		if err := checkNewTags(ctx, t.Tags); err != nil {
			return nil, err
		}
		data.TagSpecifications = append(data.TagSpecifications, types.LaunchTemplateTagSpecification{
			ResourceType: t.ResourceType,
			Tags:         t.Tags,
		})
	}
	if data.ImageId == nil {
		return nil, refuse("MissingParameter", "The request must contain the parameter ImageId")
	}
	if err := checkData(&data); err != nil {
		return nil, err
	}
	if _, err := instancetype.Lookup(string(data.InstanceType)); err != nil {
		return nil, refuse("InvalidParameterValue", "Invalid value '%s' for InstanceType.", data.InstanceType)
	}
	image, err := s.ResolveImage(ctx, *data.ImageId)
	data.ImageId = &image
	return &data, err
}

// imageIDs matches the ids that EC2 accepts, and names of parameters that stand for an id.
var imageIDs = pattern.New(`^(ami-[0-9a-f]{1,17}|resolve:ssm:[a-zA-Z0-9_./:-]+)$`, 1012)

// checkData checks what launch templates and RunInstances have in common, besides tags. A launch template may lack anything.
func checkData(d *types.ResponseLaunchTemplateData) error {
	if id := d.ImageId; id != nil && !imageIDs.MatchString(*id) {
		return refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", *id)
	}
	if d.InstanceRequirements != nil {
		return refuse("UnsupportedOperation",
			"InstanceRequirements: Pintle picks among the instance types that are named, not by attributes.")
	}
	if m := d.InstanceMarketOptions; m != nil && m.MarketType != "" {
		return refuse("UnsupportedOperation", "InstanceMarketOptions.MarketType: Pintle's instances are on demand, it has no %q.", m.MarketType)
	}
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(d.UserData))
	if err != nil {
		return refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > maxUserData {
		return refuse("InvalidUserData.Malformed", "User data is limited to %d bytes", maxUserData)
	}
	for _, t := range d.TagSpecifications {
		if !slices.Contains(t.ResourceType.Values(), t.ResourceType) {
			return refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", t.ResourceType)
		}
	}
	return checkEnums("", reflect.ValueOf(d))
}

// TerminateInstances requests the end of instances. The fleet ends their machines. Terminated instances stay
// terminated.
func (s *Service) TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput) (*ec2.TerminateInstancesOutput, error) {
	if len(in.InstanceIds) == 0 {
		return nil, refuse("MissingParameter", "The request must contain the parameter InstanceId")
	}
	if err := checkInstanceIDs(in.InstanceIds); err != nil {
		return nil, err
	}
	var out *ec2.TerminateInstancesOutput
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		out = &ec2.TerminateInstancesOutput{TerminatingInstances: []types.InstanceStateChange{}}
		all, err := pickByID(s.instances(tx.View), in.InstanceIds)
		if err != nil {
			return err
		}
		if err := checkDryRun(in.DryRun); err != nil {
			return err
		}
		for _, i := range all {
			row := tx.Instances.Get(*i.InstanceId)
			if row == nil {
				return refuse("UnsupportedOperation",
					"The instance '%s' is a machine that Pintle did not start, and cannot end.", *i.InstanceId)
			}
			after := row.Terminating("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
			tx.Instances.Put(after)
			out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{
				InstanceId:    i.InstanceId,
				PreviousState: row.State,
				CurrentState:  after.State,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// launchedInstance describes an instance that Pintle has started, with what its container instance reports of the
// machine.
func (s *Service) launchedInstance(v *state.View, machine *types.Instance, row *state.Instance) types.Instance {
	i := row.Instance
	i.BlockDeviceMappings = mappings(v, row)
	i.RootDeviceName, i.RootDeviceType = aws.String(rootDevice), types.DeviceTypeEbs
	i.NetworkInterfaces = []types.InstanceNetworkInterface{}
	if i.SecurityGroups == nil {
		i.SecurityGroups = []types.GroupIdentifier{}
	}
	if p := row.Profile; p != "" {
		if !arn.IsARN(p) {
			p = s.opts.GlobalARN("iam", "instance-profile/"+p)
		}
		i.IamInstanceProfile = &types.IamInstanceProfile{Arn: &p}
	}
	if machine != nil && !row.IsOver() {
		i.PrivateIpAddress = cmp.Or(machine.PrivateIpAddress, i.PrivateIpAddress)
		i.PrivateDnsName = cmp.Or(machine.PrivateDnsName, i.PrivateDnsName)
		i.Architecture = machine.Architecture
		for _, t := range machine.Tags {
			if strings.HasPrefix(*t.Key, "pintle.") {
				i.Tags = addTag(slices.Clone(i.Tags), *t.Key, t.Value)
			}
		}
	}
	s.showNetwork(v, &i, row)
	i.Tags = slices.Clone(i.Tags)
	if l := row.LaunchTemplate; l != nil {
		i.Tags = addTag(i.Tags, "aws:ec2launchtemplate:id", l.LaunchTemplateId)
		i.Tags = addTag(i.Tags, "aws:ec2launchtemplate:version", l.Version)
	}
	if row.Member != nil {
		i.Tags = addTag(i.Tags, "aws:autoscaling:groupName", &row.Member.Group)
		if l := row.Member.LaunchTemplate; l != nil {
			i.Tags = addTag(i.Tags, "aws:ec2launchtemplate:id", l.LaunchTemplateId)
			i.Tags = addTag(i.Tags, "aws:ec2launchtemplate:version", l.Version)
		}
	}
	return i
}

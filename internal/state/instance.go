package state

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of EC2. Like ECS's rows they embed the SDK's structs.

// Instance is an EC2 instance that Pintle starts a machine for. Package machines brings the machine to what State says:
// pending asks for a machine, stopping and shutting-down for its end. Machines that others start have no row.
type Instance struct {
	types.Instance
	UserData string `json:",omitzero"` // base64, as EC2 keeps it
	// Reservation is the id that the instances of one launch share, or "" for one of its own.
	Reservation string `json:",omitzero"`
	// LaunchTemplate is the launch template's id and version, outside of a group.
	LaunchTemplate *types.LaunchTemplateSpecification `json:",omitzero"`
	// Profile is the name or the ARN of the instance profile that it was launched with.
	Profile string `json:",omitzero"`
	// Devices are the volumes that its launch mapped.
	Devices []types.LaunchTemplateBlockDeviceMapping `json:",omitempty"`
	// TerminatedAt is when the machine was gone.
	TerminatedAt *time.Time `json:",omitzero"`
	// Member is the instance's role in its Auto Scaling group, or nil outside of one.
	Member *Member `json:",omitzero"`
}

// Member is an instance's role in its Auto Scaling group.
type Member struct {
	Group          string
	LifecycleState autoscaling.LifecycleState
	Unhealthy      bool `json:",omitzero"`
	Protected      bool `json:",omitzero"` // protected from scale-in
	LaunchTemplate *autoscaling.LaunchTemplateSpecification
	// LaunchConfiguration is the name of the one that it was started from, without a template.
	LaunchConfiguration string `json:",omitzero"`
	// Activity is the id of the instance's scaling activity in progress.
	Activity    string     `json:",omitzero"`
	InServiceAt *time.Time `json:",omitzero"`
	// Waits is the lifecycle action that the instance waits for.
	Waits *LifecycleAction `json:",omitzero"`
	// FromPool means that the instance came into service from the group's warm pool.
	FromPool bool `json:",omitzero"`
	// TargetGroups are the group's target groups that the instance is registered with, drains in, or was to be kept out of. Nobody changes the
	// list that a row has.
	TargetGroups []string `json:",omitempty"`
	// Draining means that its container instance was set to DRAINING before the machine goes.
	Draining bool `json:",omitzero"`
}

// LifecycleAction is a lifecycle hook's wait.
type LifecycleAction struct {
	Hook    string
	Token   string
	Until   time.Time
	Since   time.Time
	Done    []string // finished hooks of the same transition
	Abandon bool     // Abandon and Proceed say how it was completed
	Proceed bool
}

// ReservationID returns the id of the launch that the instance came with.
func (i *Instance) ReservationID() string {
	return cmp.Or(i.Reservation, ReservationOf(*i.InstanceId))
}

// ReservationOf returns the reservation of an instance that was launched alone.
func ReservationOf(instanceID string) string { return "r" + strings.TrimPrefix(instanceID, "i") }

// Name returns the state's name.
func (i *Instance) Name() types.InstanceStateName { return i.State.Name }

// IsOver reports whether the machine is gone or should go.
func (i *Instance) IsOver() bool {
	return i.State.Name == types.InstanceStateNameShuttingDown || i.State.Name == types.InstanceStateNameTerminated
}

// In returns the instance in another state:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html
func (i *Instance) In(name types.InstanceStateName) *Instance {
	c := i.Clone()
	c.State = &types.InstanceState{Name: name, Code: aws.Int32(instanceStates[name])}
	return c
}

var instanceStates = map[types.InstanceStateName]int32{
	types.InstanceStateNamePending: 0, types.InstanceStateNameRunning: 16, types.InstanceStateNameShuttingDown: 32,
	types.InstanceStateNameTerminated: 48, types.InstanceStateNameStopping: 64, types.InstanceStateNameStopped: 80,
}

// Clone returns a copy that can be changed.
func (i *Instance) Clone() *Instance {
	c := *i
	c.Tags = slices.Clone(i.Tags)
	if i.Member != nil {
		c.Member = new(*i.Member)
		if i.Member.Waits != nil {
			c.Member.Waits = new(*i.Member.Waits)
		}
	}
	return &c
}

// Terminating returns the instance with its termination requested, for one of StateReason's reasons.
func (i *Instance) Terminating(code, reason string) *Instance {
	if i.IsOver() {
		return i
	}
	c := i.In(types.InstanceStateNameShuttingDown)
	c.StateReason = &types.StateReason{Code: &code, Message: &reason}
	c.StateTransitionReason = &reason
	return c
}

// LaunchTemplate is a launch template with its versions, oldest first.
type LaunchTemplate struct {
	types.LaunchTemplate
	Versions []types.LaunchTemplateVersion
	// Numbered is the highest number that a deleted version had. Numbers aren't reused.
	Numbered int64 `json:",omitzero"`
}

// Version returns a version by its number, or by $Default or $Latest, or nil. "" means the default.
func (t *LaunchTemplate) Version(name string) *types.LaunchTemplateVersion {
	number := *t.DefaultVersionNumber
	switch name {
	case "", "$Default":
	case "$Latest":
		number = *t.LatestVersionNumber
	default:
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			return nil
		}
		number = n
	}
	for i := range t.Versions {
		if *t.Versions[i].VersionNumber == number {
			return &t.Versions[i]
		}
	}
	return nil
}

// FindLaunchTemplate returns the template with an id or a name, or nil.
func (v *View) FindLaunchTemplate(id, name string) *LaunchTemplate {
	if id != "" {
		return v.LaunchTemplates.Get(id)
	}
	for t := range v.LaunchTemplates.By(launchTemplatesByName, name) {
		return t
	}
	return nil
}

// NewEC2ID returns an id in EC2's form: NewEC2ID("i") is i- and 17 hexadecimal digits.
func NewEC2ID(prefix string) string {
	var b [9]byte
	rand.Read(b[:]) // never fails
	return prefix + "-" + hex.EncodeToString(b[:])[:17]
}

// NewInstance returns a pending instance with what a launch template or a call specifies.
func NewInstance(data *types.ResponseLaunchTemplateData, zone string, now time.Time) *Instance {
	i := &Instance{UserData: aws.ToString(data.UserData), Instance: types.Instance{
		InstanceId:            aws.String(NewEC2ID("i")),
		ImageId:               data.ImageId,
		InstanceType:          data.InstanceType,
		KeyName:               data.KeyName,
		LaunchTime:            &now,
		AmiLaunchIndex:        aws.Int32(0),
		Placement:             &types.Placement{AvailabilityZone: &zone, Tenancy: types.TenancyDefault},
		State:                 &types.InstanceState{Name: types.InstanceStateNamePending, Code: aws.Int32(0)},
		StateTransitionReason: aws.String(""),
		PublicDnsName:         aws.String(""),
		PrivateDnsName:        aws.String(""),
		Tags:                  []types.Tag{},
	}}
	for _, s := range data.TagSpecifications {
		if s.ResourceType == types.ResourceTypeInstance {
			i.Tags = append(i.Tags, s.Tags...)
		}
	}
	i.keep(data)
	return i
}

// keep notes the network, the role and the volumes that an instance was launched with. They change nothing about its machine, but clients read them.
func (i *Instance) keep(data *types.ResponseLaunchTemplateData) {
	if p := data.IamInstanceProfile; p != nil {
		i.Profile = cmp.Or(aws.ToString(p.Arn), aws.ToString(p.Name))
	}
	i.MetadataOptions = metadataOptions(data.MetadataOptions)
	for _, d := range data.BlockDeviceMappings {
		if d.DeviceName != nil && d.Ebs != nil && d.NoDevice == nil {
			i.Devices = append(i.Devices, types.LaunchTemplateBlockDeviceMapping{DeviceName: d.DeviceName, Ebs: d.Ebs})
		}
	}
	ids := data.SecurityGroupIds
	if len(data.NetworkInterfaces) > 0 {
		i.SubnetId = data.NetworkInterfaces[0].SubnetId
		ids = append(slices.Clone(ids), data.NetworkInterfaces[0].Groups...)
	}
	for _, id := range ids {
		i.SecurityGroups = append(i.SecurityGroups, types.GroupIdentifier{GroupId: &id})
	}
	for _, name := range data.SecurityGroups {
		i.SecurityGroups = append(i.SecurityGroups, types.GroupIdentifier{GroupName: &name})
	}
}

// defaultHopLimit is as many hops as tokens of the instance metadata service may go on instances of ECS-optimized images: containers on a bridge
// are one hop further away than their instance.
const defaultHopLimit = 2

// metadataOptions returns the options of an instance's metadata service, with what isn't given.
func metadataOptions(given *types.LaunchTemplateInstanceMetadataOptions) *types.InstanceMetadataOptionsResponse {
	if given == nil {
		given = &types.LaunchTemplateInstanceMetadataOptions{}
	}
	return &types.InstanceMetadataOptionsResponse{
		State:                   types.InstanceMetadataOptionsStateApplied,
		HttpEndpoint:            cmp.Or(types.InstanceMetadataEndpointState(given.HttpEndpoint), types.InstanceMetadataEndpointStateEnabled),
		HttpProtocolIpv6:        cmp.Or(types.InstanceMetadataProtocolState(given.HttpProtocolIpv6), types.InstanceMetadataProtocolStateDisabled),
		HttpPutResponseHopLimit: cmp.Or(given.HttpPutResponseHopLimit, aws.Int32(defaultHopLimit)),
		HttpTokens:              cmp.Or(types.HttpTokensState(given.HttpTokens), types.HttpTokensStateOptional),
		InstanceMetadataTags:    cmp.Or(types.InstanceMetadataTagsState(given.InstanceMetadataTags), types.InstanceMetadataTagsStateDisabled),
	}
}

// Join puts the instance into a subnet, with one of its addresses, as a member of security groups.
func (i *Instance) Join(subnet *Subnet, address string, groups []types.GroupIdentifier) {
	i.SubnetId = subnet.SubnetId
	i.VpcId = subnet.VpcId
	i.PrivateIpAddress = &address
	i.SecurityGroups = groups
}

// keepTerminated is how long EC2 shows a terminated instance.
const keepTerminated = time.Hour

// Indexes of the tables of EC2.
var (
	// InstancesByGroup finds the instances of an Auto Scaling group, except those that left it for good.
	InstancesByGroup = Index[*Instance]{Name: "group", Value: func(i *Instance) string {
		if i.Member == nil {
			return ""
		}
		return i.Member.Group
	}}
	// InstancesByState finds instances by the name of their state.
	InstancesByState = Index[*Instance]{Name: "state", Value: func(i *Instance) string { return string(i.State.Name) }}
	// InstancesBySubnet finds the instances that have an address of a subnet.
	InstancesBySubnet = Index[*Instance]{Name: "subnet", Value: func(i *Instance) string {
		if i.IsOver() {
			return ""
		}
		return aws.ToString(i.SubnetId)
	}}
	instancesByAddress = Index[*Instance]{Name: "address", Value: func(i *Instance) string {
		if i.IsOver() || i.PrivateIpAddress == nil {
			return ""
		}
		return aws.ToString(i.SubnetId) + " " + *i.PrivateIpAddress
	}}
	launchTemplatesByName = Index[*LaunchTemplate]{
		Name:  "name",
		Value: func(t *LaunchTemplate) string { return aws.ToString(t.LaunchTemplateName) },
	}
)

var (
	instances = &store.Definition[*Instance]{
		Name:    "instances",
		Key:     func(i *Instance) string { return aws.ToString(i.InstanceId) },
		Indexes: []Index[*Instance]{InstancesByGroup, InstancesByState, InstancesBySubnet, instancesByAddress},
		Lifetime: store.KeepForBy(InstancesByState, string(types.InstanceStateNameTerminated), keepTerminated,
			func(i *Instance) *time.Time { return i.TerminatedAt }),
	}

	launchTemplates = &store.Definition[*LaunchTemplate]{
		Name:    "launch_templates",
		Key:     func(t *LaunchTemplate) string { return aws.ToString(t.LaunchTemplateId) },
		Indexes: []Index[*LaunchTemplate]{launchTemplatesByName},
	}
)

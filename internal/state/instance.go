package state

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of EC2. They embed the SDK's structs, as those of ECS do.

// Instance is an EC2 instance that Pintle has a machine started for. Package machines brings the machine to what State
// says: pending asks for one, shutting-down for its end. Machines that others start have no row.
type Instance struct {
	types.Instance
	UserData string `json:",omitzero"` // base64, as EC2 keeps it
	// TerminatedAt is when the machine was gone.
	TerminatedAt *time.Time `json:",omitzero"`
	// Member is what the instance is in its Auto Scaling group; nil outside of one.
	Member *Member `json:",omitzero"`
}

// Member is an instance's part in its Auto Scaling group.
type Member struct {
	Group          string
	LifecycleState autoscaling.LifecycleState
	Unhealthy      bool `json:",omitzero"`
	Protected      bool `json:",omitzero"` // from scale-in
	LaunchTemplate *autoscaling.LaunchTemplateSpecification
	// Activity is the id of the scaling activity that is under way for the instance.
	Activity    string     `json:",omitzero"`
	InServiceAt *time.Time `json:",omitzero"`
	// Waits is the lifecycle action that the instance waits for.
	Waits *LifecycleAction `json:",omitzero"`
	// Draining says that its container instance was set to DRAINING before the machine goes.
	Draining bool `json:",omitzero"`
}

// LifecycleAction is a lifecycle hook's wait.
type LifecycleAction struct {
	Hook, Token      string
	Until, Since     time.Time
	Done             []string // hooks of the same transition that are over
	Abandon, Proceed bool     // how it was completed
}

// Name is the state's name.
func (i *Instance) Name() types.InstanceStateName { return i.State.Name }

// Over says whether the machine is to go, or has gone.
func (i *Instance) Over() bool {
	return i.State.Name == types.InstanceStateNameShuttingDown || i.State.Name == types.InstanceStateNameTerminated
}

// In is the instance in another state: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html
func (i *Instance) In(name types.InstanceStateName) *Instance {
	c := i.Clone()
	c.State = &types.InstanceState{Name: name, Code: aws.Int32(instanceStates[name])}
	return c
}

var instanceStates = map[types.InstanceStateName]int32{
	types.InstanceStateNamePending: 0, types.InstanceStateNameRunning: 16, types.InstanceStateNameShuttingDown: 32, types.InstanceStateNameTerminated: 48,
}

// Clone is a copy that can be changed.
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

// Terminating is the instance with its end asked for, for a reason of StateReason's.
func (i *Instance) Terminating(code, reason string) *Instance {
	if i.Over() {
		return i
	}
	c := i.In(types.InstanceStateNameShuttingDown)
	c.StateReason, c.StateTransitionReason = &types.StateReason{Code: &code, Message: &reason}, &reason
	return c
}

// LaunchTemplate is a launch template with its versions, the oldest first.
type LaunchTemplate struct {
	types.LaunchTemplate
	Versions []types.LaunchTemplateVersion
	// Numbered is the highest number that a deleted version had: numbers do not come back.
	Numbered int64 `json:",omitzero"`
}

// Version is a version by its number, or by $Default or $Latest; nil where there is none. "" is the default.
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

// FindLaunchTemplate is the template of an id or a name; nil where there is none.
func (v *View) FindLaunchTemplate(id, name string) *LaunchTemplate {
	if id != "" {
		return v.LaunchTemplates.Get(id)
	}
	for t := range v.LaunchTemplates.By(launchTemplatesByName, name) {
		return t
	}
	return nil
}

// NewEC2ID makes an id in EC2's form: NewEC2ID("i") is i- and 17 hexadecimal digits.
func NewEC2ID(prefix string) string {
	var b [9]byte
	rand.Read(b[:]) // never fails
	return prefix + "-" + hex.EncodeToString(b[:])[:17]
}

// NewInstance is an instance, pending, of what a launch template or a call gives.
func NewInstance(data *types.ResponseLaunchTemplateData, zone string, now time.Time) *Instance {
	i := &Instance{UserData: aws.ToString(data.UserData), Instance: types.Instance{
		InstanceId: aws.String(NewEC2ID("i")), ImageId: data.ImageId, InstanceType: data.InstanceType, KeyName: data.KeyName, LaunchTime: &now,
		AmiLaunchIndex: aws.Int32(0), Placement: &types.Placement{AvailabilityZone: &zone, Tenancy: types.TenancyDefault},
		State: &types.InstanceState{Name: types.InstanceStateNamePending, Code: aws.Int32(0)}, StateTransitionReason: aws.String(""),
		PublicDnsName: aws.String(""), PrivateDnsName: aws.String(""), Tags: []types.Tag{},
	}}
	for _, s := range data.TagSpecifications {
		if s.ResourceType == types.ResourceTypeInstance {
			i.Tags = append(i.Tags, s.Tags...)
		}
	}
	return i
}

// keepTerminated is how long EC2 shows an instance that was terminated.
const keepTerminated = time.Hour

// Indexes of the tables of EC2.
var (
	// InstancesByGroup finds the instances of an Auto Scaling group, those that have gone for good excepted.
	InstancesByGroup = Index[Instance]{Name: "group", Value: func(i *Instance) string {
		if i.Member == nil {
			return ""
		}
		return i.Member.Group
	}}
	// InstancesByState finds instances by the name of their state.
	InstancesByState      = Index[Instance]{Name: "state", Value: func(i *Instance) string { return string(i.State.Name) }}
	launchTemplatesByName = Index[LaunchTemplate]{Name: "name", Value: func(t *LaunchTemplate) string { return aws.ToString(t.LaunchTemplateName) }}
)

var (
	instances = &store.Definition[Instance]{
		Name:     "instances",
		Key:      func(i *Instance) string { return aws.ToString(i.InstanceId) },
		Indexes:  []Index[Instance]{InstancesByGroup, InstancesByState},
		Lifetime: store.KeepForBy(InstancesByState, string(types.InstanceStateNameTerminated), keepTerminated, func(i *Instance) *time.Time { return i.TerminatedAt }),
	}

	launchTemplates = &store.Definition[LaunchTemplate]{
		Name: "launch_templates", Key: func(t *LaunchTemplate) string { return aws.ToString(t.LaunchTemplateId) }, Indexes: []Index[LaunchTemplate]{launchTemplatesByName},
	}
)

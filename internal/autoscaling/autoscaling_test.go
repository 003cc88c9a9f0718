package autoscaling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints check inputs, as package wire does before a call.
var constraints = validation.New(API(nil).Constraints)

const (
	queue = "arn:aws:sqs:us-east-1:000000000000:hooks"
	topic = "arn:aws:sns:us-east-1:000000000000:news"
)

// world is a service with fakes of its dependencies, and the group g of 0 to 5 instances, with one instance in each state.
type world struct {
	*Service
	t      *testing.T
	now    time.Time
	alarms map[string]*cloudwatch.PutMetricAlarmInput
	full   bool                // CloudWatch takes no more alarms
	sent   []map[string]string // messages sent to queues and topics
}

func (w *world) PutMetricAlarm(
	_ context.Context, in *cloudwatch.PutMetricAlarmInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricAlarmOutput, error) {
	if w.full {
		return nil, &smithy.GenericAPIError{Code: "LimitExceeded", Message: "no more alarms"}
	}
	w.alarms[*in.AlarmName] = in
	return &cloudwatch.PutMetricAlarmOutput{}, nil
}

func (w *world) DeleteAlarms(
	_ context.Context, in *cloudwatch.DeleteAlarmsInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.DeleteAlarmsOutput, error) {
	if w.alarms[in.AlarmNames[0]] == nil {
		return nil, &smithy.GenericAPIError{Code: "ResourceNotFound"}
	}
	delete(w.alarms, in.AlarmNames[0])
	return &cloudwatch.DeleteAlarmsOutput{}, nil
}

func (w *world) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if *in.QueueUrl != "url of "+queue {
		return nil, &smithy.GenericAPIError{Code: "QueueDoesNotExist"}
	}
	var m map[string]string
	if err := json.Unmarshal([]byte(*in.MessageBody), &m); err != nil {
		w.t.Error(err)
	}
	w.sent = append(w.sent, m)
	return &sqs.SendMessageOutput{}, nil
}

func (w *world) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	if *in.TopicArn != topic {
		return nil, &smithy.GenericAPIError{Code: "NotFound"}
	}
	m := map[string]string{}
	if err := json.Unmarshal([]byte(*in.Message), &m); err != nil {
		w.t.Error(err)
	}
	m["Subject"] = *in.Subject
	w.sent = append(w.sent, m)
	return &sns.PublishOutput{}, nil
}

func id(n int) string { return fmt.Sprintf("i-%017x", n) }

// The instances of the world.
var (
	serves = id(1) // InService, in g
	stands = id(2) // on standby, in g
	waits  = id(3) // at a launch hook, in g
	goes   = id(4) // Terminating, in g
	free   = id(5) // running, in no group
	gone   = id(6) // terminated, in no group
	other  = id(7) // InService, in the group h
	far    = id(8) // running in a zone that isn't g's, in no group
)

func newWorld(t *testing.T) *world {
	t.Helper()
	store := statetest.Open(t)
	w := &world{t: t, alarms: map[string]*cloudwatch.PutMetricAlarmInput{}, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	w.Service = New(store, Options{
		Account:  accounttest.New(func() time.Time { return w.now }),
		Alarms:   w,
		Queues:   w,
		Topics:   w,
		QueueURL: func(arn string) string { return "url of " + arn },
	})
	w.update(func(tx *state.Tx) {
		data := &ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-00000000"), InstanceType: "c5.large"}
		for name, d := range map[string]*ec2types.ResponseLaunchTemplateData{
			"lt":       data,
			"no-image": {InstanceType: "c5.large"},
			"no-type":  {ImageId: data.ImageId},
		} {
			tx.LaunchTemplates.Put(&state.LaunchTemplate{
				LaunchTemplate: ec2types.LaunchTemplate{
					LaunchTemplateId:     aws.String("lt-" + name),
					LaunchTemplateName:   &name,
					DefaultVersionNumber: aws.Int64(1),
					LatestVersionNumber:  aws.Int64(1),
				},
				Versions: []ec2types.LaunchTemplateVersion{{VersionNumber: aws.Int64(1), LaunchTemplateData: d}},
			})
		}
	})
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), groupInput("g"))))
	w.must(errOf(w.SetDesiredCapacity(t.Context(), &api.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String("g"),
		DesiredCapacity:      aws.Int32(2),
	})))
	w.must(errOf(w.PutLifecycleHook(t.Context(), hook("up"))))
	w.must(errOf(w.PutScalingPolicy(t.Context(), &api.PutScalingPolicyInput{
		AutoScalingGroupName: aws.String("g"),
		PolicyName:           aws.String("one"),
		AdjustmentType:       aws.String("ChangeInCapacity"),
		ScalingAdjustment:    aws.Int32(1),
	})))
	w.must(errOf(w.PutScalingPolicy(t.Context(), steps("steps", [3]float64{0, 10, 1}, [3]float64{10, -1, 3}))))
	w.must(errOf(w.PutScalingPolicy(t.Context(), tracking("load"))))
	w.update(func(tx *state.Tx) {
		in := func(zone, id string, name ec2types.InstanceStateName, m *state.Member) {
			i := state.NewInstance(tx.LaunchTemplates.Get("lt-lt").Versions[0].LaunchTemplateData, zone, w.now).In(name)
			i.InstanceId = &id
			i.Member = m
			tx.Instances.Put(i)
		}
		put := func(id string, name ec2types.InstanceStateName, m *state.Member) { in("us-east-1a", id, name, m) }
		put(serves, "running", &state.Member{Group: "g", LifecycleState: types.LifecycleStateInService, InServiceAt: new(w.now)})
		put(stands, "running", &state.Member{Group: "g", LifecycleState: types.LifecycleStateStandby})
		put(waits, "running",
			&state.Member{
				Group:          "g",
				LifecycleState: types.LifecycleStatePendingWait,
				Waits:          &state.LifecycleAction{Hook: "up", Token: "token", Since: w.now, Until: w.now.Add(time.Minute)},
			})
		put(goes, "running", &state.Member{Group: "g", LifecycleState: types.LifecycleStateTerminating})
		put(free, "running", nil)
		put(gone, "terminated", nil)
		in("us-east-1f", far, "running", nil)
		put(other, "running", &state.Member{Group: "h", LifecycleState: types.LifecycleStateInService})
	})
	return w
}

// errOf returns a call's error.
func errOf[T any](_ T, err error) error { return err }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) update(change func(*state.Tx)) {
	w.t.Helper()
	w.must(w.store.Update(w.t.Context(), func(tx *state.Tx) error { change(tx); return nil }))
}

// snapshot returns all that calls could have changed, as JSON.
func (w *world) snapshot() string {
	w.t.Helper()
	v := w.store.View()
	b, err := json.Marshal([]any{
		all(v.AutoScalingGroups.All()),
		all(v.GroupPolicies.All()),
		all(v.GroupActions.All()),
		all(v.GroupRefreshes.All()),
		all(v.GroupActivities.All()),
		all(v.Instances.All()),
		all(v.LaunchTemplates.All()),
		w.alarms,
		w.sent,
	})
	w.must(err)
	return string(b)
}

func all[T any](rows iter.Seq[*T]) []*T { return slices.Collect(rows) }

func groupInput(name string) *api.CreateAutoScalingGroupInput {
	return &api.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name,
		MinSize:              aws.Int32(0),
		MaxSize:              aws.Int32(5),
		AvailabilityZones:    []string{"us-east-1a"},
		LaunchTemplate:       &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
	}
}

func hook(name string) *api.PutLifecycleHookInput {
	return &api.PutLifecycleHookInput{
		AutoScalingGroupName: aws.String("g"),
		LifecycleHookName:    &name,
		LifecycleTransition:  aws.String(launching),
		HeartbeatTimeout:     aws.Int32(60),
	}
}

// steps returns a step scaling policy. Each step has a lower bound, an upper bound and an adjustment. A bound below 0 is left out.
func steps(name string, all ...[3]float64) *api.PutScalingPolicyInput {
	in := &api.PutScalingPolicyInput{
		AutoScalingGroupName: aws.String("g"),
		PolicyName:           &name,
		PolicyType:           aws.String(step),
		AdjustmentType:       aws.String("ChangeInCapacity"),
	}
	for _, a := range all {
		s := types.StepAdjustment{ScalingAdjustment: aws.Int32(int32(a[2]))}
		if a[0] >= 0 {
			s.MetricIntervalLowerBound = &a[0]
		}
		if a[1] >= 0 {
			s.MetricIntervalUpperBound = &a[1]
		}
		in.StepAdjustments = append(in.StepAdjustments, s)
	}
	return in
}

func tracking(name string) *api.PutScalingPolicyInput {
	return &api.PutScalingPolicyInput{
		AutoScalingGroupName: aws.String("g"),
		PolicyName:           &name,
		PolicyType:           aws.String(targetTracking),
		TargetTrackingConfiguration: &types.TargetTrackingConfiguration{
			TargetValue: aws.Float64(50),
			CustomizedMetricSpecification: &types.CustomizedMetricSpecification{
				Namespace:  aws.String("N"),
				MetricName: aws.String("M"),
				Statistic:  types.MetricStatisticAverage,
			},
		},
	}
}

// predefined returns a target tracking policy p on a predefined metric.
func predefined(metric types.MetricType) *api.PutScalingPolicyInput {
	in := tracking("p")
	in.TargetTrackingConfiguration.CustomizedMetricSpecification = nil
	in.TargetTrackingConfiguration.PredefinedMetricSpecification = &types.PredefinedMetricSpecification{PredefinedMetricType: metric}
	return in
}

// refusedCall is a call that must be refused with an error code and a message.
type refusedCall struct {
	name       string
	call       func(*world, context.Context) error
	code, says string
}

// refuseAll makes the calls. Each must be refused and change nothing.
func refuseAll(t *testing.T, cases []refusedCall) {
	t.Helper()
	w := newWorld(t)
	before := w.snapshot()
	for _, c := range cases {
		err := c.call(w, t.Context())
		var e smithy.APIError
		if !errors.As(err, &e) || e.ErrorCode() != c.code || !strings.Contains(e.ErrorMessage(), c.says) {
			t.Errorf("%s: got %v, want %s naming %q", c.name, err, c.code, c.says)
		}
		if after := w.snapshot(); after != before {
			t.Fatalf("%s has changed something: it was\n%s\nand is\n%s", c.name, before, after)
		}
	}
}

// badGroup is a call that tries to create an invalid group.
func badGroup(name, code, says string, change func(*api.CreateAutoScalingGroupInput)) refusedCall {
	return refusedCall{"create: " + name, func(w *world, ctx context.Context) error {
		in := groupInput("new")
		change(in)
		return errOf(w.CreateAutoScalingGroup(ctx, in))
	}, code, says}
}

const invalidCode = "ValidationError"

func TestCreateRefuses(t *testing.T) {
	type in = *api.CreateAutoScalingGroupInput
	mixed := func(o types.LaunchTemplateOverrides) *types.MixedInstancesPolicy {
		return &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
			LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
			Overrides:                   []types.LaunchTemplateOverrides{o},
		}}
	}
	spec := func(in in, m *types.MixedInstancesPolicy) { in.LaunchTemplate, in.MixedInstancesPolicy = nil, m }
	hooks := func(n int, change func(*types.LifecycleHookSpecification)) (out []types.LifecycleHookSpecification) {
		for i := range n {
			h := types.LifecycleHookSpecification{
				LifecycleHookName:   aws.String(fmt.Sprint("h", i)),
				LifecycleTransition: aws.String(launching),
			}
			change(&h)
			out = append(out, h)
		}
		return out
	}
	refuseAll(t, []refusedCall{
		badGroup("no name", invalidCode, "AutoScalingGroupName", func(in in) { in.AutoScalingGroupName = nil }),
		badGroup("a long name", invalidCode, "1 to 255 characters",
			func(in in) { in.AutoScalingGroupName = aws.String(strings.Repeat("x", 256)) }),
		badGroup("a name with a colon", invalidCode, "AutoScalingGroupName", func(in in) { in.AutoScalingGroupName = aws.String("a:b") }),
		badGroup("a name that's taken", "AlreadyExists", "A group with the name g already exists",
			func(in in) { in.AutoScalingGroupName = aws.String("g") }),
		badInput("no min", "'minSize' failed to satisfy constraint: Member must not be null", func(in in) { in.MinSize = nil }),
		badInput("no max", "'maxSize' failed to satisfy constraint: Member must not be null", func(in in) { in.MaxSize = nil }),
		badGroup("min above max", invalidCode, "Max bound, 5, must be greater than or equal to min bound, 6",
			func(in in) { in.MinSize = aws.Int32(6) }),
		badGroup("a negative min", invalidCode, "Min size -1", func(in in) { in.MinSize = aws.Int32(-1) }),
		badGroup("a large max", invalidCode, "10000", func(in in) { in.MaxSize = aws.Int32(10_001) }),
		badGroup("desired above max", invalidCode, "Desired capacity:6 must be between the specified min size:0 and max size:5",
			func(in in) { in.DesiredCapacity = aws.Int32(6) }),
		badGroup("desired below min", invalidCode, "Desired capacity:1 must be between the specified min size:2 and max size:5",
			func(in in) { in.MinSize, in.DesiredCapacity = aws.Int32(2), aws.Int32(1) }),
		badGroup("a negative cool-down", invalidCode, "DefaultCooldown", func(in in) { in.DefaultCooldown = aws.Int32(-1) }),
		badGroup("neither zones nor subnets", invalidCode, "At least one Availability Zone or VPC Subnet is required.",
			func(in in) { in.AvailabilityZones = nil }),
		badGroup("a subnet that there isn't", invalidCode, "The subnet ID 'subnet-1' does not exist",
			func(in in) { in.VPCZoneIdentifier = aws.String("subnet-1") }),
		badGroup("subnets without any", invalidCode, "At least one Availability Zone or VPC Subnet is required.",
			func(in in) { in.AvailabilityZones, in.VPCZoneIdentifier = nil, aws.String(" , ") }),
		badGroup("no template", invalidCode,
			"Valid requests must contain either launchTemplate, launchConfigurationName or mixedInstancesPolicy parameter.",
			func(in in) { in.LaunchTemplate = nil }),
		badGroup("two templates", invalidCode, "Valid requests must contain either launchTemplate", func(in in) {
			in.MixedInstancesPolicy = mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("c5.large")})
		}),
		badGroup("a template without a name", invalidCode, "either launchTemplateId or LaunchTemplateName",
			func(in in) { in.LaunchTemplate = &types.LaunchTemplateSpecification{} }),
		badGroup("an unknown template", invalidCode, "The specified launch template does not exist.",
			func(in in) { in.LaunchTemplate.LaunchTemplateName = aws.String("none") }),
		badGroup("an unknown version", invalidCode, "specified version 7", func(in in) { in.LaunchTemplate.Version = aws.String("7") }),
		badGroup("a template without an image", invalidCode, "ImageId",
			func(in in) { in.LaunchTemplate.LaunchTemplateName = aws.String("no-image") }),
		badGroup("a template without a type", invalidCode, "instance type",
			func(in in) { in.LaunchTemplate.LaunchTemplateName = aws.String("no-type") }),
		badGroup("an unknown type", invalidCode, "z9.huge", func(in in) {
			spec(in, mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("z9.huge")}))
		}),
		badGroup("weights", invalidCode, "only the InstanceType", func(in in) {
			spec(in, mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("c5.large"), WeightedCapacity: aws.String("2")}))
		}),
		badGroup("a policy without a template", invalidCode, "launchTemplateSpecification",
			func(in in) { spec(in, &types.MixedInstancesPolicy{}) }),
		badGroup("many overrides", invalidCode, "at most 40", func(in in) {
			m := mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("c5.large")})
			m.LaunchTemplate.Overrides = slices.Repeat(m.LaunchTemplate.Overrides, 41)
			spec(in, m)
		}),
		badGroup("an unknown strategy", invalidCode, "OnDemandAllocationStrategy", func(in in) {
			m := mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("c5.large")})
			m.InstancesDistribution = &types.InstancesDistribution{OnDemandAllocationStrategy: aws.String("dearest")}
			spec(in, m)
		}),
		badGroup("Spot", invalidCode, "OnDemandPercentageAboveBaseCapacity", func(in in) {
			m := mixed(types.LaunchTemplateOverrides{InstanceType: aws.String("c5.large")})
			m.InstancesDistribution = &types.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(0)}
			spec(in, m)
		}),
		badGroup("health checks of VPC Lattice", invalidCode, "HealthCheckType", func(in in) { in.HealthCheckType = aws.String("VPC_LATTICE") }),
		badGroup("an unknown termination policy", invalidCode, "Random", func(in in) { in.TerminationPolicies = []string{"Random"} }),
		badGroup("a launch configuration and a template", invalidCode, "Valid requests must contain either launchTemplate",
			func(in in) { in.LaunchConfigurationName = aws.String("old") }),
		badGroup("a launch configuration that there is not", invalidCode, "Launch configuration name not found",
			func(in in) { in.LaunchTemplate, in.LaunchConfigurationName = nil, aws.String("old") }),
		badGroup("a zone of another region", invalidCode, "eu-west-1a",
			func(in in) { in.AvailabilityZones = []string{"us-east-1a", "eu-west-1a"} }),
		badGroup("an instance", invalidCode, "InstanceId", func(in in) { in.InstanceId = aws.String(free) }),
		badGroup("no target group", invalidCode, "TargetGroupARNs", func(in in) { in.TargetGroupARNs = []string{"arn"} }),
		badGroup("a placement group", invalidCode, "PlacementGroup", func(in in) { in.PlacementGroup = aws.String("near") }),
		badGroup("balanced zones alone", invalidCode, "AvailabilityZoneDistribution", func(in in) {
			in.AvailabilityZoneDistribution = &types.AvailabilityZoneDistribution{
				CapacityDistributionStrategy: types.CapacityDistributionStrategyBalancedOnly,
			}
		}),
		badGroup("zonal shifts", invalidCode, "AvailabilityZoneImpairmentPolicy", func(in in) {
			in.AvailabilityZoneImpairmentPolicy = &types.AvailabilityZoneImpairmentPolicy{ZonalShiftEnabled: aws.Bool(true)}
		}),
		badGroup("a lifetime", invalidCode, "MaxInstanceLifetime", func(in in) { in.MaxInstanceLifetime = aws.Int32(86400) }),
		badGroup("capacity in vCPUs", invalidCode, "DesiredCapacityType", func(in in) { in.DesiredCapacityType = aws.String("vcpu") }),
		badGroup("protection", invalidCode, "DeletionProtection",
			func(in in) { in.DeletionProtection = types.DeletionProtectionPreventAllDeletion }),
		badGroup("a tag without a key", invalidCode, "Tags", func(in in) { in.Tags = []types.Tag{{}} }),
		badGroup("a reserved tag", invalidCode, "aws:", func(in in) { in.Tags = []types.Tag{{Key: aws.String("aws:x")}} }),
		badGroup("a long value", invalidCode, "256", func(in in) {
			in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String(strings.Repeat("x", 257))}}
		}),
		badGroup("another resource's tag", invalidCode, "ResourceId", func(in in) {
			in.Tags = []types.Tag{{Key: aws.String("k"), ResourceId: aws.String("g")}}
		}),
		badGroup("many tags", invalidCode, "at most 50", func(in in) {
			for i := range 51 {
				in.Tags = append(in.Tags, types.Tag{Key: aws.String(fmt.Sprint("k", i))})
			}
		}),
		badGroup("many hooks", "LimitExceeded", "lifecycle hooks",
			func(in in) { in.LifecycleHookSpecificationList = hooks(51, func(*types.LifecycleHookSpecification) {}) }),
		badGroup("a bad hook", invalidCode, "HeartbeatTimeout", func(in in) {
			in.LifecycleHookSpecificationList = hooks(1, func(h *types.LifecycleHookSpecification) { h.HeartbeatTimeout = aws.Int32(29) })
		}),
		badGroup("a hook with an unknown queue",
			invalidCode, "Unable to publish test message to notification target "+queue+"2 using IAM role role.",
			func(in in) {
				in.LifecycleHookSpecificationList = hooks(1, func(h *types.LifecycleHookSpecification) {
					h.NotificationTargetARN = aws.String(queue + "2")
					h.RoleARN = aws.String("role")
				})
			}),
	})
}

// badInput is a call to create a group that the service's model refuses.
func badInput(name, says string, change func(*api.CreateAutoScalingGroupInput)) refusedCall {
	in := groupInput("new")
	change(in)
	return refusesInput("create: "+name, (*Service).CreateAutoScalingGroup, in, invalidCode, says)
}

// refusesInput is a call that the service's model refuses.
func refusesInput[In, Out any](
	name string, call func(*Service, context.Context, *In) (*Out, error), in *In, code, says string,
) refusedCall {
	return refusedCall{name, func(w *world, ctx context.Context) error {
		return errOf(validation.Checked(constraints,
			func(ctx context.Context, in *In) (*Out, error) { return call(w.Service, ctx, in) })(ctx, in))
	}, code, says}
}

// refuses is a call that the service refuses.
func refuses[In, Out any](name string, call func(*Service, context.Context, *In) (*Out, error), in *In, code, says string) refusedCall {
	return refusedCall{name, func(w *world, ctx context.Context) error {
		return errOf(call(w.Service, ctx, in))
	}, code, says}
}

func TestGroupRefuses(t *testing.T) {
	g, none := aws.String("g"), aws.String("none")
	update := func(name, says string, in api.UpdateAutoScalingGroupInput) refusedCall {
		in.AutoScalingGroupName = cmp.Or(in.AutoScalingGroupName, g)
		return refuses("update: "+name, (*Service).UpdateAutoScalingGroup, &in, invalidCode, says)
	}
	twentyOne := slices.Repeat([]string{serves}, 21)
	refuseAll(t, []refusedCall{
		update("no such group", "AutoScalingGroup name not found", api.UpdateAutoScalingGroupInput{AutoScalingGroupName: none}),
		update("min above max", "Max bound, 5, must be greater than or equal to min bound, 6",
			api.UpdateAutoScalingGroupInput{MinSize: aws.Int32(6)}),
		update("desired above max", "Desired capacity:6", api.UpdateAutoScalingGroupInput{DesiredCapacity: aws.Int32(6)}),
		update("an unknown version", "specified version 7",
			api.UpdateAutoScalingGroupInput{LaunchTemplate: &types.LaunchTemplateSpecification{
				LaunchTemplateId: aws.String("lt-lt"),
				Version:          aws.String("7"),
			}}),
		update("a termination policy", "Random", api.UpdateAutoScalingGroupInput{TerminationPolicies: []string{"Random"}}),
		update("a placement group", "PlacementGroup", api.UpdateAutoScalingGroupInput{PlacementGroup: aws.String("near")}),
		update("a lifetime", "MaxInstanceLifetime", api.UpdateAutoScalingGroupInput{MaxInstanceLifetime: aws.Int32(86400)}),
		refusesInput("desired: none", (*Service).SetDesiredCapacity,
			&api.SetDesiredCapacityInput{AutoScalingGroupName: g},
			invalidCode, "'desiredCapacity'"),
		refuses("desired: above max", (*Service).SetDesiredCapacity,
			&api.SetDesiredCapacityInput{AutoScalingGroupName: g, DesiredCapacity: aws.Int32(6)},
			invalidCode, "New SetDesiredCapacity value 6 is above max value 5 for the AutoScalingGroup."),
		refuses("desired: below min", (*Service).SetDesiredCapacity,
			&api.SetDesiredCapacityInput{AutoScalingGroupName: g, DesiredCapacity: aws.Int32(-1)},
			invalidCode, "New SetDesiredCapacity value -1 is below min value 0 for the AutoScalingGroup."),
		refuses("delete: instances", (*Service).DeleteAutoScalingGroup,
			&api.DeleteAutoScalingGroupInput{AutoScalingGroupName: g},
			"ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances"),
		refuses("delete: no such group", (*Service).DeleteAutoScalingGroup,
			&api.DeleteAutoScalingGroupInput{AutoScalingGroupName: none},
			invalidCode, "not found"),
		refuses("groups: a filter", (*Service).DescribeAutoScalingGroups,
			&api.DescribeAutoScalingGroupsInput{Filters: []types.Filter{{Name: aws.String("color")}}},
			invalidCode, "color"),
		refuses("groups: a page", (*Service).DescribeAutoScalingGroups,
			&api.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(101)},
			invalidCode, "between 1 and 100"),
		refuses("groups: a token", (*Service).DescribeAutoScalingGroups,
			&api.DescribeAutoScalingGroupsInput{NextToken: aws.String("x")},
			"InvalidNextToken", "NextToken"),
		refuses("instances: a page", (*Service).DescribeAutoScalingInstances,
			&api.DescribeAutoScalingInstancesInput{MaxRecords: aws.Int32(51)},
			invalidCode, "between 1 and 50"),
		refuses("activities: a page", (*Service).DescribeScalingActivities,
			&api.DescribeScalingActivitiesInput{MaxRecords: aws.Int32(0)},
			invalidCode, "between 1 and 100"),
		refuses("terminate: of another group", (*Service).TerminateInstanceInAutoScalingGroup,
			&api.TerminateInstanceInAutoScalingGroupInput{
				AutoScalingGroupName: none, InstanceId: &serves, ShouldDecrementDesiredCapacity: aws.Bool(false),
			},
			invalidCode, "is not part of Auto Scaling group"),
		refuses("suspend: a process", (*Service).SuspendProcesses,
			&api.SuspendProcessesInput{AutoScalingGroupName: g, ScalingProcesses: []string{"Breathe"}},
			invalidCode, "Breathe"),
		refuses("resume: a process", (*Service).ResumeProcesses,
			&api.ResumeProcessesInput{AutoScalingGroupName: g, ScalingProcesses: []string{"Breathe"}},
			invalidCode, "Breathe"),
		refuses("tags: a group", (*Service).CreateOrUpdateTags,
			&api.CreateOrUpdateTagsInput{Tags: []types.Tag{
				{ResourceId: g, ResourceType: aws.String("auto-scaling-group"), Key: aws.String("k")},
				{ResourceId: none, ResourceType: aws.String("auto-scaling-group"), Key: aws.String("k")},
			}},
			invalidCode, "not found"),
		refuses("tags: no resource type", (*Service).CreateOrUpdateTags,
			&api.CreateOrUpdateTagsInput{Tags: []types.Tag{{ResourceId: g, Key: aws.String("k")}}},
			invalidCode, "Incomplete tags information for these tags. Tag - 'Key:k,PropagateAtLaunch:null,ResourceId:g,ResourceType:null' , "),
		refuses("tags: no group's", (*Service).CreateOrUpdateTags,
			&api.CreateOrUpdateTagsInput{Tags: []types.Tag{{ResourceId: g, ResourceType: aws.String("instance"), Key: aws.String("k")}}},
			invalidCode, `ResourceType "instance"`),
		refuses("tags: none of a group's", (*Service).DeleteTags,
			&api.DeleteTagsInput{Tags: []types.Tag{{ResourceId: g, ResourceType: aws.String("instance"), Key: aws.String("k")}}},
			invalidCode, `ResourceType "instance"`),
		refuses("create: tags of no group", (*Service).CreateAutoScalingGroup, func() *api.CreateAutoScalingGroupInput {
			in := groupInput("new")
			in.Tags = []types.Tag{{ResourceType: aws.String("instance"), Key: aws.String("k")}}
			return in
		}(), invalidCode, `ResourceType "instance"`),
		refuses("tags: a filter", (*Service).DescribeTags,
			&api.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("color")}}},
			invalidCode, "color"),
		refuses("terminate: in no group", (*Service).TerminateInstanceInAutoScalingGroup,
			&api.TerminateInstanceInAutoScalingGroupInput{InstanceId: aws.String(free), ShouldDecrementDesiredCapacity: aws.Bool(false)},
			invalidCode, "No managed instance found for instance ID: "+free),
		refuses("terminate: twice", (*Service).TerminateInstanceInAutoScalingGroup,
			&api.TerminateInstanceInAutoScalingGroupInput{InstanceId: &goes, ShouldDecrementDesiredCapacity: aws.Bool(false)},
			invalidCode, "Terminating"),
		refusesInput("terminate: decrement not given", (*Service).TerminateInstanceInAutoScalingGroup,
			&api.TerminateInstanceInAutoScalingGroupInput{InstanceId: &serves},
			invalidCode, "'shouldDecrementDesiredCapacity'"),
		refusesInput("protect: no instances", (*Service).SetInstanceProtection,
			&api.SetInstanceProtectionInput{AutoScalingGroupName: g, ProtectedFromScaleIn: aws.Bool(true)},
			invalidCode, "'instanceIds'"),
		refuses("protect: another's", (*Service).SetInstanceProtection,
			&api.SetInstanceProtectionInput{
				AutoScalingGroupName: g,
				ProtectedFromScaleIn: aws.Bool(true),
				InstanceIds:          []string{serves, other},
			},
			invalidCode, "The instance "+other+" is not part of Auto Scaling group g."),
		refuses("protect: many", (*Service).SetInstanceProtection,
			&api.SetInstanceProtectionInput{
				AutoScalingGroupName: g,
				ProtectedFromScaleIn: aws.Bool(true),
				InstanceIds:          slices.Repeat([]string{serves}, 51),
			},
			invalidCode, "at most 50"),
		refuses("health: an unknown status", (*Service).SetInstanceHealth,
			&api.SetInstanceHealthInput{InstanceId: &serves, HealthStatus: aws.String("Ill")},
			invalidCode, "HealthStatus"),
		refuses("health: in no group", (*Service).SetInstanceHealth,
			&api.SetInstanceHealthInput{InstanceId: &free, HealthStatus: aws.String("Unhealthy")},
			invalidCode, free),
		refusesInput("standby: decrement not given", (*Service).EnterStandby,
			&api.EnterStandbyInput{AutoScalingGroupName: g, InstanceIds: []string{serves}},
			invalidCode, "'shouldDecrementDesiredCapacity'"),
		refuses("standby: no instances", (*Service).EnterStandby,
			&api.EnterStandbyInput{AutoScalingGroupName: g, ShouldDecrementDesiredCapacity: aws.Bool(true)},
			invalidCode, "'instanceIds'"),
		refuses("standby: many", (*Service).EnterStandby,
			&api.EnterStandbyInput{AutoScalingGroupName: g, InstanceIds: twentyOne, ShouldDecrementDesiredCapacity: aws.Bool(true)},
			invalidCode, "at most 20"),
		refuses("standby: twice", (*Service).EnterStandby,
			&api.EnterStandbyInput{
				AutoScalingGroupName:           g,
				InstanceIds:                    []string{serves, stands},
				ShouldDecrementDesiredCapacity: aws.Bool(true),
			},
			invalidCode, "The instance "+stands+" is not in InService."),
		refuses("standby: below min", (*Service).EnterStandby,
			&api.EnterStandbyInput{
				AutoScalingGroupName:           g,
				InstanceIds:                    []string{serves, waits, goes},
				ShouldDecrementDesiredCapacity: aws.Bool(true),
			},
			invalidCode,
			"AutoScalingGroup g has min-size=0, max-size=5, and desired-size=2. To place into standby 3 instances, please update "+
				"the AutoScalingGroup sizes appropriately."),
		refuses("standby: out of service", (*Service).ExitStandby,
			&api.ExitStandbyInput{AutoScalingGroupName: g, InstanceIds: []string{serves}},
			invalidCode, "is not in Standby."),
		refuses("detach: still launching", (*Service).DetachInstances,
			&api.DetachInstancesInput{
				AutoScalingGroupName:           g,
				InstanceIds:                    []string{waits},
				ShouldDecrementDesiredCapacity: aws.Bool(false),
			},
			invalidCode, "is not in InService or Standby."),
		refuses("detach: another's", (*Service).DetachInstances,
			&api.DetachInstancesInput{
				AutoScalingGroupName:           g,
				InstanceIds:                    []string{other},
				ShouldDecrementDesiredCapacity: aws.Bool(false),
			},
			invalidCode, "The instance "+other+" is not part of Auto Scaling group g."),
		refuses("attach: another's", (*Service).AttachInstances,
			&api.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: []string{free, other}},
			invalidCode, "is already part of AutoScalingGroup:h"),
		refuses("attach: terminated", (*Service).AttachInstances,
			&api.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: []string{gone}},
			invalidCode, "Instance(s) must be in 'running' state."),
		refuses("attach: in another zone", (*Service).AttachInstances,
			&api.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: []string{far}},
			invalidCode, "us-east-1f"),
		refuses("attach: an unknown instance", (*Service).AttachInstances,
			&api.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: []string{id(99)}},
			invalidCode, id(99)),
		refuses("attach: many", (*Service).AttachInstances,
			&api.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: []string{free, free, free, free}},
			invalidCode, "To attach 4 instances, please update"),
		refuses("refresh: a strategy", (*Service).StartInstanceRefresh,
			&api.StartInstanceRefreshInput{AutoScalingGroupName: g, Strategy: "ReplaceRootVolume"},
			invalidCode, "Strategy"),
		refuses("refresh: a configuration", (*Service).StartInstanceRefresh,
			&api.StartInstanceRefreshInput{AutoScalingGroupName: g, DesiredConfiguration: &types.DesiredConfiguration{}},
			invalidCode, "DesiredConfiguration"),
		refuses("refresh: none to cancel", (*Service).CancelInstanceRefresh,
			&api.CancelInstanceRefreshInput{AutoScalingGroupName: g},
			"ActiveInstanceRefreshNotFound", "g"),
		refuses("refresh: no group", (*Service).DescribeInstanceRefreshes,
			&api.DescribeInstanceRefreshesInput{AutoScalingGroupName: none},
			invalidCode, "not found"),
		preferring("min", "MinHealthyPercentage must be between 0 and 100, not 101",
			types.RefreshPreferences{MinHealthyPercentage: aws.Int32(101)}),
		preferring("max", "MaxHealthyPercentage must be between 100 and 200, not 99",
			types.RefreshPreferences{MinHealthyPercentage: aws.Int32(90), MaxHealthyPercentage: aws.Int32(99)}),
		preferring("max alone", "MinHealthyPercentage must be given", types.RefreshPreferences{MaxHealthyPercentage: aws.Int32(110)}),
		preferring("far apart", "more than 100 above",
			types.RefreshPreferences{MinHealthyPercentage: aws.Int32(90), MaxHealthyPercentage: aws.Int32(191)}),
		preferring("checkpoints", "CheckpointPercentages", types.RefreshPreferences{CheckpointPercentages: []int32{50}}),
		preferring("rollback", "AutoRollback", types.RefreshPreferences{AutoRollback: aws.Bool(true)}),
		preferring("warm-up", "InstanceWarmup", types.RefreshPreferences{InstanceWarmup: aws.Int32(-1)}),
		preferring("standby", "StandbyInstances", types.RefreshPreferences{StandbyInstances: "Ask"}),
		preferring("protected", "ScaleInProtectedInstances", types.RefreshPreferences{ScaleInProtectedInstances: "Ask"}),
	})
}

func preferring(name, says string, p types.RefreshPreferences) refusedCall {
	return refuses("refresh: "+name, (*Service).StartInstanceRefresh,
		&api.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("g"), Preferences: &p},
		invalidCode, says)
}

func TestHookRefuses(t *testing.T) {
	put := func(name, code, says string, change func(*api.PutLifecycleHookInput)) refusedCall {
		in := hook("new")
		change(in)
		return refuses("put: "+name, (*Service).PutLifecycleHook, in, code, says)
	}
	type in = *api.PutLifecycleHookInput
	g, up := aws.String("g"), aws.String("up")
	refuseAll(t, []refusedCall{
		put("no group", invalidCode, "not found", func(in in) { in.AutoScalingGroupName = aws.String("none") }),
		put("a name", invalidCode, "LifecycleHookName", func(in in) { in.LifecycleHookName = aws.String("a b") }),
		put("a long name", invalidCode, "1 to 255", func(in in) { in.LifecycleHookName = aws.String(strings.Repeat("x", 256)) }),
		put("no transition", invalidCode, "LifecycleTransition", func(in in) { in.LifecycleTransition = nil }),
		put("a transition", invalidCode, "autoscaling:SLEEP", func(in in) { in.LifecycleTransition = aws.String("autoscaling:SLEEP") }),
		put("a result", invalidCode, "DefaultResult", func(in in) { in.DefaultResult = aws.String("WAIT") }),
		put("a short heartbeat", invalidCode, "HeartbeatTimeout must be between 30 and 7200 seconds, not 29",
			func(in in) { in.HeartbeatTimeout = aws.Int32(29) }),
		put("a long heartbeat", invalidCode, "HeartbeatTimeout must be between 30 and 7200 seconds, not 7201",
			func(in in) { in.HeartbeatTimeout = aws.Int32(7201) }),
		put("long metadata", invalidCode, "NotificationMetadata",
			func(in in) { in.NotificationMetadata = aws.String(strings.Repeat("x", 4001)) }),
		put("a target without a role", invalidCode, "RoleARN", func(in in) { in.NotificationTargetARN = aws.String(queue) }),
		put("a function", invalidCode, "NotificationTargetARN must be the ARN of an SQS queue or of an SNS topic", func(in in) {
			in.NotificationTargetARN = aws.String("arn:aws:lambda:us-east-1:000000000000:function:f")
			in.RoleARN = aws.String("role")
		}),
		put("no such topic", invalidCode, "Unable to publish test message to notification target "+topic+"2 using IAM role", func(in in) {
			in.NotificationTargetARN = aws.String(topic + "2")
			in.RoleARN = aws.String("role")
		}),
		put("no such queue",
			invalidCode, "Unable to publish test message to notification target "+queue+"2 using IAM role role. Please check",
			func(in in) {
				in.NotificationTargetARN = aws.String(queue + "2")
				in.RoleARN = aws.String("role")
			}),
		refuses("delete", (*Service).DeleteLifecycleHook,
			&api.DeleteLifecycleHookInput{AutoScalingGroupName: g, LifecycleHookName: aws.String("none")},
			invalidCode, "No Lifecycle Hook found"),
		refuses("complete: a result", (*Service).CompleteLifecycleAction,
			&api.CompleteLifecycleActionInput{
				AutoScalingGroupName:  g,
				LifecycleHookName:     up,
				InstanceId:            &waits,
				LifecycleActionResult: aws.String("WAIT"),
			},
			invalidCode, "LifecycleActionResult"),
		refuses("complete: a hook", (*Service).CompleteLifecycleAction,
			&api.CompleteLifecycleActionInput{
				AutoScalingGroupName:  g,
				LifecycleHookName:     aws.String("none"),
				InstanceId:            &waits,
				LifecycleActionResult: aws.String("CONTINUE"),
			},
			invalidCode, "No Lifecycle Hook found"),
		refuses("complete: nobody waits", (*Service).CompleteLifecycleAction,
			&api.CompleteLifecycleActionInput{
				AutoScalingGroupName:  g,
				LifecycleHookName:     up,
				InstanceId:            &serves,
				LifecycleActionResult: aws.String("CONTINUE"),
			},
			invalidCode, "No active Lifecycle Action found with instance ID "+serves),
		refuses("complete: a token", (*Service).CompleteLifecycleAction,
			&api.CompleteLifecycleActionInput{
				AutoScalingGroupName:  g,
				LifecycleHookName:     up,
				LifecycleActionToken:  aws.String("x"),
				LifecycleActionResult: aws.String("CONTINUE"),
			},
			invalidCode, "No active Lifecycle Action found with token x"),
		refuses("heartbeat: nobody", (*Service).RecordLifecycleActionHeartbeat,
			&api.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: g, LifecycleHookName: up},
			invalidCode, "No active Lifecycle Action"),
	})
}

func TestPolicyRefuses(t *testing.T) {
	type in = *api.PutScalingPolicyInput
	put := func(name, says string, in in, change func(in)) refusedCall {
		change(in)
		return refuses("put: "+name, (*Service).PutScalingPolicy, in, invalidCode, says)
	}
	same := func(in) {}
	one := func() in {
		return &api.PutScalingPolicyInput{
			AutoScalingGroupName: aws.String("g"),
			PolicyName:           aws.String("p"),
			AdjustmentType:       aws.String("ChangeInCapacity"),
			ScalingAdjustment:    aws.Int32(1),
		}
	}
	execute := func(name, code, says string, in api.ExecutePolicyInput) refusedCall {
		in.AutoScalingGroupName = aws.String("g")
		return refuses("execute: "+name, (*Service).ExecutePolicy, &in, code, says)
	}
	refuseAll(t, []refusedCall{
		put("no group", "not found", one(), func(in in) { in.AutoScalingGroupName = aws.String("none") }),
		put("a name", "PolicyName", one(), func(in in) { in.PolicyName = aws.String("a:b") }),
		put("a predictive configuration", "PredictiveScalingConfiguration", one(), func(in in) {
			in.PredictiveScalingConfiguration = &types.PredictiveScalingConfiguration{}
		}),
		put("a type", "PolicyType", one(), func(in in) { in.PolicyType = aws.String("PredictiveScaling") }),
		put("no adjustment type", "AdjustmentType", one(), func(in in) { in.AdjustmentType = nil }),
		put("no adjustment", "'scalingAdjustment'", one(), func(in in) { in.ScalingAdjustment = nil }),
		put("a negative exact capacity", "negative", one(),
			func(in in) { in.AdjustmentType, in.ScalingAdjustment = aws.String("ExactCapacity"), aws.Int32(-1) }),
		put("a negative cool-down", "Cooldown", one(), func(in in) { in.Cooldown = aws.Int32(-1) }),
		put("steps with simple scaling", "StepAdjustments", one(),
			func(in in) { in.StepAdjustments = steps("x", [3]float64{0, -1, 1}).StepAdjustments }),
		put("a magnitude", "MinAdjustmentMagnitude", one(), func(in in) { in.MinAdjustmentMagnitude = aws.Int32(2) }),
		put("no steps", "at least one step", steps("p"), same),
		put("overlapping steps", "overlap at 10", steps("p", [3]float64{0, 20, 1}, [3]float64{10, -1, 2}), same),
		put("a gap", "gap between 10 and 20", steps("p", [3]float64{0, 10, 1}, [3]float64{20, -1, 2}), same),
		put("two steps without an end", "MetricIntervalUpperBound", steps("p", [3]float64{0, -1, 1}, [3]float64{10, -1, 2}), same),
		put("no step without an end", "positive MetricIntervalUpperBound", steps("p", [3]float64{0, 10, 1}), same),
		put("a step without bounds", "neither", steps("p", [3]float64{-1, -1, 1}), same),
		put("many steps", "at most 20", steps("p", slices.Repeat([][3]float64{{0, -1, 1}}, 21)...), same),
		put("a cool-down with steps", "Cooldown", steps("p", [3]float64{0, -1, 1}), func(in in) { in.Cooldown = aws.Int32(1) }),
		put("no target", "TargetValue", tracking("p"), func(in in) { in.TargetTrackingConfiguration.TargetValue = nil }),
		put("a target of 0", "TargetValue", tracking("p"),
			func(in in) { in.TargetTrackingConfiguration.TargetValue = aws.Float64(0) }),
		put("no configuration", "'targetTrackingConfiguration'", tracking("p"), func(in in) { in.TargetTrackingConfiguration = nil }),
		put("no metric", "exactly one of", tracking("p"),
			func(in in) { in.TargetTrackingConfiguration.CustomizedMetricSpecification = nil }),
		put("half a metric", "Statistic", tracking("p"),
			func(in in) { in.TargetTrackingConfiguration.CustomizedMetricSpecification.Statistic = "" }),
		put("two metrics", "exactly one of", tracking("p"), func(in in) {
			in.TargetTrackingConfiguration.PredefinedMetricSpecification = &types.PredefinedMetricSpecification{
				PredefinedMetricType: types.MetricTypeASGAverageCPUUtilization,
			}
		}),
		put("a metric that Pintle lacks", "does not measure ASGAverageNetworkIn", predefined(types.MetricTypeASGAverageNetworkIn), same),
		put("requests without a label", "ResourceLabel", predefined(types.MetricTypeALBRequestCountPerTarget), same),
		put("no such metric", `not "CPU"`, predefined("CPU"), same),
		put("a label for the CPU metric", "ResourceLabel", predefined(types.MetricTypeASGAverageCPUUtilization), func(in in) {
			in.TargetTrackingConfiguration.PredefinedMetricSpecification.ResourceLabel = aws.String("app/a/1/targetgroup/b/2")
		}),
		put("an adjustment type with tracking", "AdjustmentType", tracking("p"),
			func(in in) { in.AdjustmentType = aws.String("ChangeInCapacity") }),
		put("another's metric", "Only one TargetTrackingScaling policy for a given metric specification is allowed.", tracking("p"), same),
		{"put: no room for alarms", func(w *world, ctx context.Context) error {
			w.full = true
			return errOf(w.PutScalingPolicy(ctx, tracking("load")))
		}, invalidCode, "no more alarms"},
		refuses("delete", (*Service).DeletePolicy,
			&api.DeletePolicyInput{AutoScalingGroupName: aws.String("g"), PolicyName: aws.String("none")},
			invalidCode, "No policy found"),
		execute("none", invalidCode, "No policy found", api.ExecutePolicyInput{PolicyName: aws.String("none")}),
		execute("tracking", invalidCode, "TargetTrackingScaling", api.ExecutePolicyInput{PolicyName: aws.String("load")}),
		execute("no metric", invalidCode, "MetricValue and BreachThreshold must be given",
			api.ExecutePolicyInput{PolicyName: aws.String("steps")}),
		execute("no step", invalidCode, "no step adjustment",
			api.ExecutePolicyInput{PolicyName: aws.String("steps"), MetricValue: aws.Float64(1), BreachThreshold: aws.Float64(10)}),
		execute("a metric", invalidCode, "SimpleScaling",
			api.ExecutePolicyInput{PolicyName: aws.String("one"), MetricValue: aws.Float64(1), BreachThreshold: aws.Float64(10)}),
	})
}

func TestScheduleRefuses(t *testing.T) {
	type in = *api.PutScheduledUpdateGroupActionInput
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	put := func(name, says string, change func(in)) refusedCall {
		in := &api.PutScheduledUpdateGroupActionInput{
			AutoScalingGroupName: aws.String("g"),
			ScheduledActionName:  aws.String("a"),
			DesiredCapacity:      aws.Int32(1),
			StartTime:            &at,
		}
		change(in)
		return refuses(name, (*Service).PutScheduledUpdateGroupAction, in, invalidCode, says)
	}
	refuseAll(t, []refusedCall{
		put("no group", "not found", func(in in) { in.AutoScalingGroupName = aws.String("none") }),
		put("no name", "ScheduledActionName", func(in in) { in.ScheduledActionName = nil }),
		put("nothing to do", "At least one of", func(in in) { in.DesiredCapacity = nil }),
		put("min above max", "Max bound, 1, must be greater than or equal to min bound, 2",
			func(in in) { in.MinSize, in.MaxSize = aws.Int32(2), aws.Int32(1) }),
		put("a negative min", "negative", func(in in) { in.MinSize = aws.Int32(-1) }),
		put("no time", "StartTime or Recurrence", func(in in) { in.StartTime = nil }),
		put("the past", "in the past", func(in in) { in.StartTime = aws.Time(at.AddDate(0, 0, -2)) }),
		put("an end before the start", "EndTime", func(in in) { in.EndTime = aws.Time(at.Add(-time.Second)) }),
		put("two fields", `Recurrence "x y" has 2 fields, a crontab line has 5`, func(in in) { in.Recurrence = aws.String("x y") }),
		put("six fields", "has 6 fields, a crontab line has 5", func(in in) { in.Recurrence = aws.String("0 20 * * ? *") }),
		put("an invalid hour", `Recurrence "0 25 * * *": the field hours`, func(in in) { in.Recurrence = aws.String("0 25 * * *") }),
		put("an invalid day", `Recurrence "0 1 * * 8": the field day-of-week must have values from 0 to 7, not "8"`,
			func(in in) { in.Recurrence = aws.String("0 1 * * 8") }),
		put("both days", `Recurrence "0 1 1 * 1": one of the fields day-of-month and day-of-week must be *`,
			func(in in) { in.Recurrence = aws.String("0 1 1 * 1") }),
		put("an unknown time zone", "Mars",
			func(in in) { in.Recurrence, in.TimeZone = aws.String("0 20 * * *"), aws.String("Mars/Olympus") }),
		refuses("an empty batch", (*Service).BatchPutScheduledUpdateGroupAction,
			&api.BatchPutScheduledUpdateGroupActionInput{AutoScalingGroupName: aws.String("g")},
			invalidCode, "1 to 50"),
		refuses("a large batch", (*Service).BatchDeleteScheduledAction,
			&api.BatchDeleteScheduledActionInput{AutoScalingGroupName: aws.String("g"), ScheduledActionNames: make([]string, 51)},
			invalidCode, "1 to 50"),
		refuses("a batch for an unknown group", (*Service).BatchDeleteScheduledAction,
			&api.BatchDeleteScheduledActionInput{AutoScalingGroupName: aws.String("none"), ScheduledActionNames: []string{"a"}},
			invalidCode, "not found"),
		refuses("delete", (*Service).DeleteScheduledAction,
			&api.DeleteScheduledActionInput{AutoScalingGroupName: aws.String("g"), ScheduledActionName: aws.String("none")},
			invalidCode, "none"),
	})
}

// TestTimesOfActions: a group's scheduled actions start at times of their own. An action may keep its time.
func TestTimesOfActions(t *testing.T) {
	w := newWorld(t)
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	put := func(group, name string, at *time.Time, recurrence *string) error {
		return errOf(w.PutScheduledUpdateGroupAction(t.Context(), &api.PutScheduledUpdateGroupActionInput{
			AutoScalingGroupName: &group, ScheduledActionName: &name, DesiredCapacity: aws.Int32(1), StartTime: at, Recurrence: recurrence,
		}))
	}
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), groupInput("second"))))
	w.must(put("g", "first", &at, nil))
	w.must(put("g", "first", &at, nil))
	w.must(put("g", "later", aws.Time(at.Add(time.Minute)), nil))
	w.must(put("second", "first", &at, nil))
	w.must(put("g", "daily", nil, aws.String("0 9 * * *")))
	w.must(put("g", "daily too", nil, aws.String("0 9 * * *")))
	w.must(put("g", "daily too", aws.Time(at.Add(time.Hour)), aws.String("0 9 * * *"))) // as Terraform sends what it has read
	before := w.snapshot()
	for name, err := range map[string]error{
		"a new action": put("g", "second", &at, nil),
		"another's":    put("g", "later", &at, nil),
		"recurring":    put("g", "second", &at, aws.String("0 8 * * *")),
	} {
		var e smithy.APIError
		if !errors.As(err, &e) || e.ErrorCode() != "AlreadyExists" ||
			e.ErrorMessage() != "Scheduled action with this scheduled start time already exists" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.snapshot() != before {
		t.Error("a refused call has changed something")
	}
}

// TestLimits: a group has a limit of each kind, and at the limit existing ones can still be changed.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	name := func(i int) *string { return aws.String(fmt.Sprint("n", i)) }
	for _, c := range []struct {
		what string
		has  int
		most int
		put  func(i int) error
	}{
		{"hooks", 1, maxHooks, func(i int) error { return errOf(w.PutLifecycleHook(t.Context(), hook(*name(i)))) }},
		{"policies", 3, maxPolicies, func(i int) error {
			return errOf(w.PutScalingPolicy(t.Context(), steps(*name(i), [3]float64{0, -1, 1})))
		}},
		{"actions", 0, maxActions, func(i int) error {
			return errOf(w.PutScheduledUpdateGroupAction(t.Context(), &api.PutScheduledUpdateGroupActionInput{
				AutoScalingGroupName: aws.String("g"),
				ScheduledActionName:  name(i),
				Recurrence:           aws.String("0 0 * * *"),
				MinSize:              aws.Int32(0),
			}))
		}},
	} {
		for i := range c.most - c.has {
			w.must(c.put(i))
		}
		var e smithy.APIError
		if err := c.put(c.most); !errors.As(err, &e) || e.ErrorCode() != "LimitExceeded" {
			t.Errorf("%s: one too many: %v", c.what, err)
		}
		w.must(c.put(0))
	}
}

// TestRepeated: making a call twice changes no more than making it once.
func TestRepeated(t *testing.T) {
	w, ctx, g := newWorld(t), t.Context(), aws.String("g")
	target := hook("up")
	target.NotificationTargetARN = aws.String(queue)
	target.RoleARN = aws.String("role")
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"update", func() error {
			return errOf(w.UpdateAutoScalingGroup(ctx, &api.UpdateAutoScalingGroupInput{
				AutoScalingGroupName: g,
				MaxSize:              aws.Int32(4),
				DesiredCapacity:      aws.Int32(3),
			}))
		}},
		{"desired", func() error {
			return errOf(w.SetDesiredCapacity(ctx, &api.SetDesiredCapacityInput{AutoScalingGroupName: g, DesiredCapacity: aws.Int32(1)}))
		}},
		{"policy", func() error {
			return errOf(w.PutScalingPolicy(ctx, predefined(types.MetricTypeASGAverageCPUUtilization)))
		}},
		{"action", func() error {
			return errOf(w.PutScheduledUpdateGroupAction(ctx, &api.PutScheduledUpdateGroupActionInput{
				AutoScalingGroupName: g,
				ScheduledActionName:  aws.String("a"),
				Recurrence:           aws.String("0 0 * * *"),
				MinSize:              aws.Int32(0),
			}))
		}},
		{"hook", func() error { defer func() { w.sent = nil }(); return errOf(w.PutLifecycleHook(ctx, target)) }},
		{"protection", func() error {
			return errOf(w.SetInstanceProtection(ctx, &api.SetInstanceProtectionInput{
				AutoScalingGroupName: g,
				InstanceIds:          []string{serves},
				ProtectedFromScaleIn: aws.Bool(true),
			}))
		}},
		{"health", func() error {
			return errOf(w.SetInstanceHealth(ctx, &api.SetInstanceHealthInput{InstanceId: &serves, HealthStatus: aws.String("Unhealthy")}))
		}},
		{"suspend", func() error {
			return errOf(w.SuspendProcesses(ctx, &api.SuspendProcessesInput{AutoScalingGroupName: g}))
		}},
		{"resume", func() error {
			return errOf(w.ResumeProcesses(ctx, &api.ResumeProcessesInput{AutoScalingGroupName: g}))
		}},
		{"tags", func() error {
			return errOf(w.CreateOrUpdateTags(ctx, &api.CreateOrUpdateTagsInput{Tags: []types.Tag{{
				ResourceId:   g,
				ResourceType: aws.String("auto-scaling-group"),
				Key:          aws.String("k"),
				Value:        aws.String("v"),
			}}}))
		}},
		{"complete", func() error {
			return errOf(w.CompleteLifecycleAction(ctx, &api.CompleteLifecycleActionInput{
				AutoScalingGroupName:  g,
				LifecycleHookName:     aws.String("up"),
				LifecycleActionToken:  aws.String("token"),
				LifecycleActionResult: aws.String("CONTINUE"),
			}))
		}},
		{"cancel", func() error {
			if w.store.View().ActiveRefresh("g") == nil {
				w.must(errOf(w.StartInstanceRefresh(ctx, &api.StartInstanceRefreshInput{AutoScalingGroupName: g})))
			}
			return errOf(w.CancelInstanceRefresh(ctx, &api.CancelInstanceRefreshInput{AutoScalingGroupName: g}))
		}},
	} {
		before := w.snapshot()
		w.must(c.call())
		once := w.snapshot()
		if once == before {
			t.Errorf("%s changes nothing", c.name)
		}
		w.must(c.call())
		if twice := w.snapshot(); twice != once {
			t.Errorf("%s, twice, is\n%s\nand not\n%s", c.name, twice, once)
		}
	}
}

// TestHookTarget: a queue gets a test message whenever a call names it as a hook's target. An empty target removes it.
func TestHookTarget(t *testing.T) {
	w := newWorld(t)
	in := hook("up")
	in.NotificationTargetARN = aws.String(queue)
	in.RoleARN = aws.String("role")
	w.must(errOf(w.PutLifecycleHook(t.Context(), in)))
	if len(w.sent) != 1 || w.sent[0]["Event"] != "autoscaling:TEST_NOTIFICATION" || w.sent[0]["AutoScalingGroupName"] != "g" ||
		w.sent[0]["AccountId"] != "000000000000" ||
		w.sent[0]["Time"] != "2026-11-21T12:00:00.000Z" || w.sent[0]["Service"] != "AWS Auto Scaling" ||
		!strings.HasSuffix(w.sent[0]["AutoScalingGroupARN"], ":autoScalingGroupName/g") {
		t.Errorf("the queue was told %v", w.sent)
	}
	of := func() *types.LifecycleHook { return w.store.View().AutoScalingGroups.Get("g").Hook("up") }
	w.must(errOf(w.PutLifecycleHook(t.Context(), hook("up"))))
	if len(w.sent) != 1 || aws.ToString(of().NotificationTargetARN) != queue {
		t.Errorf("a hook that is changed otherwise has the target %v, and told %v", of().NotificationTargetARN, w.sent)
	}
	in.NotificationTargetARN = aws.String("")
	w.must(errOf(w.PutLifecycleHook(t.Context(), in)))
	if of().NotificationTargetARN != nil || of().RoleARN != nil {
		t.Errorf("the target is %v still", *of().NotificationTargetARN)
	}
	for _, foreign := range []string{
		strings.Replace(queue, "000000000000", "000000000001", 1),
		strings.Replace(queue, "arn:aws:", "arn:aws-cn:", 1),
		strings.Replace(queue, "us-east-1", "eu-west-1", 1),
	} {
		in.NotificationTargetARN = &foreign
		if err := errOf(w.PutLifecycleHook(t.Context(), in)); err == nil || len(w.sent) != 1 {
			t.Errorf("a hook on %s: %v, sent is %v", foreign, err, w.sent)
		}
	}
	create := groupInput("hooked")
	create.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{{
		LifecycleHookName:     aws.String("h"),
		LifecycleTransition:   aws.String(terminating),
		NotificationTargetARN: aws.String(queue),
		RoleARN:               aws.String("role"),
	}}
	create.VPCZoneIdentifier = aws.String("subnet-00000000000000000")
	if err := errOf(w.CreateAutoScalingGroup(t.Context(), create)); err == nil || len(w.sent) != 1 {
		t.Errorf("a group in no subnet: %v, sent is %v", err, w.sent)
	}
	create.VPCZoneIdentifier = nil
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), create)))
	if len(w.sent) != 2 || w.sent[1]["AutoScalingGroupName"] != "hooked" {
		t.Errorf("the queue was told %v", w.sent)
	}
}

// TestNotifications: a topic gets a test message when a group is to tell it something, and then what it asked for as activities end.
func TestNotifications(t *testing.T) {
	w := newWorld(t)
	put := func(arn string, kinds ...string) error {
		return errOf(w.PutNotificationConfiguration(t.Context(), &api.PutNotificationConfigurationInput{
			AutoScalingGroupName: aws.String("g"), TopicARN: &arn, NotificationTypes: kinds,
		}))
	}
	for want, err := range map[string]error{
		"Unable to publish test notification message to the provided topic: " + topic + "2.": put(topic+"2", state.NotifyLaunch),
		"is not the ARN of a topic":          put(queue, state.NotifyLaunch),
		"is not a valid notification type":   put(topic, "autoscaling:NAP"),
		"NotificationTypes must have a type": put(topic),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	w.must(put(topic, state.NotifyLaunch))
	w.must(put(topic, state.NotifyTerminate, state.NotifyLaunchError))
	if len(w.sent) != 2 || w.sent[0]["Event"] != state.NotifyTest || w.sent[0]["Subject"] != `Auto Scaling: test notification for group "g"` {
		t.Errorf("the topic was told %v", w.sent)
	}
	w.update(func(tx *state.Tx) {
		g := tx.AutoScalingGroups.Get("g").Clone()
		g.Notifications = make([]state.GroupNotification, maxNotified)
		tx.AutoScalingGroups.Put(g)
	})
	if _, full := errors.AsType[*types.LimitExceededFault](put(topic, state.NotifyLaunch)); !full || len(w.sent) != 2 {
		t.Errorf("with its fill of topics the group sent %v", w.sent)
	}
	w.update(func(tx *state.Tx) {
		g := tx.AutoScalingGroups.Get("g").Clone()
		g.Notifications = nil
		tx.AutoScalingGroups.Put(g)
	})
	w.must(put(topic, state.NotifyTerminate, state.NotifyLaunchError))
	described := func() (all []string) {
		out, err := w.DescribeNotificationConfigurations(t.Context(), &api.DescribeNotificationConfigurationsInput{AutoScalingGroupNames: []string{"g"}})
		w.must(err)
		for _, c := range out.NotificationConfigurations {
			all = append(all, *c.TopicARN+" "+*c.NotificationType)
		}
		return all
	}
	if got := described(); !slices.Equal(got, []string{topic + " " + state.NotifyLaunchError, topic + " " + state.NotifyTerminate}) {
		t.Errorf("described as %q", got)
	}
	w.update(func(tx *state.Tx) {
		g, i := tx.AutoScalingGroups.Get("g"), tx.Instances.Get(serves)
		for description, code := range map[string]types.ScalingActivityStatusCode{
			"Launching a new EC2 instance": types.ScalingActivityStatusCodeSuccessful,
			"Terminating EC2 instance":     types.ScalingActivityStatusCodeSuccessful,
			"Attaching EC2 instance":       types.ScalingActivityStatusCodeSuccessful,
		} {
			a := tx.StartInstanceActivity(g, i, description, "because", types.ScalingActivityStatusCodeInProgress, 0, w.now)
			tx.EndGroupActivity(*a.ActivityId, code, "", w.now)
		}
		a := tx.StartGroupActivity(g, "Launching a new EC2 instance", "because", types.ScalingActivityStatusCodeInProgress, 0, w.now)
		tx.EndGroupActivity(*a.ActivityId, types.ScalingActivityStatusCodeFailed, "No room.", w.now)
	})
	told := map[string]string{}
	for d := range w.store.View().Deliveries.All() {
		var m map[string]any
		w.must(json.Unmarshal([]byte(d.Body), &m))
		told[d.Subject] = fmt.Sprint(m["Event"], " ", m["EC2InstanceId"], " ", m["StatusCode"], " ", m["StatusMessage"], " ", m["AccountId"], " ", d.Destination == topic)
	}
	want := map[string]string{
		`Auto Scaling: termination for group "g"`:   state.NotifyTerminate + " " + serves + " InProgress  000000000000 true",
		`Auto Scaling: failed launch for group "g"`: state.NotifyLaunchError + "  Failed No room. 000000000000 true",
	}
	if !maps.Equal(told, want) {
		t.Errorf("the topics are told %q", told)
	}
	remove := &api.DeleteNotificationConfigurationInput{AutoScalingGroupName: aws.String("g"), TopicARN: aws.String(topic)}
	w.must(errOf(w.DeleteNotificationConfiguration(t.Context(), remove)))
	if got := described(); len(got) != 0 {
		t.Errorf("described as %q", got)
	}
	if err := errOf(w.DeleteNotificationConfiguration(t.Context(), remove)); err == nil {
		t.Error("what isn't there is deleted")
	}
}

// TestExecute: executed policies stay within the group's bounds, and honor the cool-down if asked to.
func TestExecute(t *testing.T) {
	w := newWorld(t)
	execute := func(name string, in api.ExecutePolicyInput) error {
		in.AutoScalingGroupName = aws.String("g")
		in.PolicyName = &name
		return errOf(w.ExecutePolicy(t.Context(), &in))
	}
	w.must(execute("one", api.ExecutePolicyInput{}))
	g := w.store.View().AutoScalingGroups.Get("g")
	if *g.DesiredCapacity != 3 ||
		g.Cause != "At 2026-11-21T12:00:00Z a user request executed policy one changing the desired capacity from 2 to 3." {
		t.Errorf("%d are desired: %s", *g.DesiredCapacity, g.Cause)
	}
	w.must(execute("steps", api.ExecutePolicyInput{MetricValue: aws.Float64(30), BreachThreshold: aws.Float64(10)}))
	if n := *w.store.View().AutoScalingGroups.Get("g").DesiredCapacity; n != 5 {
		t.Errorf("%d are desired", n)
	}
	w.update(func(tx *state.Tx) {
		g := tx.AutoScalingGroups.Get("g").Clone()
		g.CoolsFrom = aws.Time(w.now.Add(-299 * time.Second))
		tx.AutoScalingGroups.Put(g)
	})
	var busy *types.ScalingActivityInProgressFault
	if err := execute("one", api.ExecutePolicyInput{HonorCooldown: aws.Bool(true)}); !errors.As(err, &busy) {
		t.Errorf("within the cool-down: %v", err)
	}
	w.now = w.now.Add(time.Second)
	w.must(execute("one", api.ExecutePolicyInput{HonorCooldown: aws.Bool(true)}))
}

// TestHeartbeat: a heartbeat gives more time, up to the hook's global timeout, and never shortens the wait.
func TestHeartbeat(t *testing.T) {
	w := newWorld(t)
	began := w.now
	until := func() time.Duration {
		w.must(errOf(w.RecordLifecycleActionHeartbeat(t.Context(), &api.RecordLifecycleActionHeartbeatInput{
			AutoScalingGroupName: aws.String("g"),
			LifecycleHookName:    aws.String("up"),
			InstanceId:           &waits,
		})))
		return w.store.View().Instances.Get(waits).Member.Waits.Until.Sub(began)
	}
	h := w.store.View().AutoScalingGroups.Get("g").Hook("up")
	beat, most := time.Duration(*h.HeartbeatTimeout)*time.Second, time.Duration(*h.GlobalTimeout)*time.Second
	w.now = began.Add(time.Second)
	if got := until(); got != time.Second+beat {
		t.Errorf("it waits for %v, want %v", got, time.Second+beat)
	}
	w.now = began.Add(most - time.Second)
	if got := until(); got != most {
		t.Errorf("it waits for %v, want %v", got, most)
	}
	w.now = began.Add(time.Second) // far from its end, as with ECS's own hook, which has two days
	if got := until(); got != most {
		t.Errorf("a heartbeat leaves it %v, of %v", got, most)
	}
}

// TestTerminateLaunching: terminating an instance that is still launching cancels the launch's activity.
func TestTerminateLaunching(t *testing.T) {
	w := newWorld(t)
	var launch string
	w.update(func(tx *state.Tx) {
		row := tx.Instances.Get(waits).Clone()
		launch = *tx.StartInstanceActivity(tx.AutoScalingGroups.Get("g"), row, "Launching a new EC2 instance", "",
			types.ScalingActivityStatusCodeMidLifecycleAction, 40, w.now).ActivityId
		row.Member.Activity = launch
		tx.Instances.Put(row)
	})
	w.must(errOf(w.TerminateInstanceInAutoScalingGroup(t.Context(), &api.TerminateInstanceInAutoScalingGroupInput{
		InstanceId:                     &waits,
		ShouldDecrementDesiredCapacity: aws.Bool(false),
	})))
	if a := w.store.View().GroupActivities.Get(launch); a.StatusCode != types.ScalingActivityStatusCodeCancelled || a.EndTime == nil {
		t.Errorf("the launch is %s until %v", a.StatusCode, a.EndTime)
	}
}

// TestGrace: an instance can't become unhealthy within the grace period, unless the call says to ignore it.
func TestGrace(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
		AutoScalingGroupName:   aws.String("g"),
		HealthCheckGracePeriod: aws.Int32(60),
	})))
	set := func(in api.SetInstanceHealthInput) bool {
		in.InstanceId = &serves
		in.HealthStatus = aws.String("Unhealthy")
		w.must(errOf(w.SetInstanceHealth(t.Context(), &in)))
		return w.store.View().Instances.Get(serves).Member.Unhealthy
	}
	w.now = w.now.Add(59 * time.Second)
	if set(api.SetInstanceHealthInput{}) {
		t.Error("it is unhealthy within its grace period")
	}
	if !set(api.SetInstanceHealthInput{ShouldRespectGracePeriod: aws.Bool(false)}) {
		t.Error("the grace period was respected, against what the call says")
	}
	w.must(errOf(w.SetInstanceHealth(t.Context(), &api.SetInstanceHealthInput{InstanceId: &serves, HealthStatus: aws.String("Healthy")})))
	w.now = w.now.Add(time.Second)
	if !set(api.SetInstanceHealthInput{}) {
		t.Error("the grace period does not end")
	}
}

// TestUpdateKeepsBounds: new bounds move the desired capacity within them.
func TestUpdateKeepsBounds(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ low, high, want int32 }{{3, 5, 3}, {0, 5, 3}, {0, 1, 1}} {
		w.must(errOf(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String("g"),
			MinSize:              &c.low,
			MaxSize:              &c.high,
		})))
		if got := *w.store.View().AutoScalingGroups.Get("g").DesiredCapacity; got != c.want {
			t.Errorf("from %d to %d, %d are desired, not %d", c.low, c.high, got, c.want)
		}
	}
}

// TestPages reads groups and tags page by page.
func TestPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 60 {
		name := fmt.Sprintf("p%02d", i)
		in := groupInput(name)
		in.Tags = []types.Tag{{Key: aws.String("n"), Value: &name}}
		w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
		want = append(want, name)
	}
	read := func(page func(token *string) (names []string, next *string, err error)) (sizes []int, names []string) {
		t.Helper()
		var token *string
		for {
			some, next, err := page(token)
			w.must(err)
			sizes, names = append(sizes, len(some)), append(names, some...)
			if token = next; token == nil {
				return sizes, names
			}
		}
	}
	filter := []types.Filter{{Name: aws.String("tag-key"), Values: []string{"n"}}}
	sizes, names := read(func(token *string) (names []string, _ *string, _ error) {
		out, err := w.DescribeAutoScalingGroups(t.Context(), &api.DescribeAutoScalingGroupsInput{Filters: filter, NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, g := range out.AutoScalingGroups {
			names = append(names, *g.AutoScalingGroupName)
		}
		return names, out.NextToken, nil
	})
	if !slices.Equal(names, want) || !slices.Equal(sizes, []int{50, 10}) {
		t.Errorf("the groups come as %v: %v", sizes, names)
	}
	sizes, names = read(func(token *string) (names []string, _ *string, _ error) {
		out, err := w.DescribeTags(t.Context(), &api.DescribeTagsInput{MaxRecords: aws.Int32(25), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, tag := range out.Tags {
			names = append(names, *tag.Value)
		}
		return names, out.NextToken, nil
	})
	if !slices.Equal(names, want) || !slices.Equal(sizes, []int{25, 25, 10}) {
		t.Errorf("the tags come as %v: %v", sizes, names)
	}
}

// TestTagTwice: of a key that a call gives twice, the last tag stays, as on AWS.
func TestTagTwice(t *testing.T) {
	w := newWorld(t)
	tag := func(value string) types.Tag {
		return types.Tag{ResourceId: aws.String("g"), ResourceType: aws.String("auto-scaling-group"), Key: aws.String("k"), Value: &value}
	}
	_, err := w.CreateOrUpdateTags(t.Context(), &api.CreateOrUpdateTagsInput{Tags: []types.Tag{tag("1"), tag("2")}})
	w.must(err)
	if got := w.described().Tags; len(got) != 1 || *got[0].Value != "2" {
		t.Errorf("got %v", got)
	}
}

// TestSystemTags: only CloudFormation sets tags whose keys begin with aws:, and nobody changes or deletes them.
func TestSystemTags(t *testing.T) {
	w := newWorld(t)
	const key = "aws:cloudformation:stack-id"
	in := groupInput("s")
	in.Tags = []types.Tag{{Key: aws.String(key), Value: aws.String("arn"), PropagateAtLaunch: aws.Bool(true)}}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a user's call", errOf(w.CreateAutoScalingGroup(t.Context(), in)))
	w.must(errOf(w.CreateAutoScalingGroup(call.With(t.Context(), call.Call{Service: "autoscaling", Via: "cloudformation"}), in)))
	tag := func(key string) []types.Tag {
		return []types.Tag{{ResourceId: aws.String("s"), ResourceType: aws.String("auto-scaling-group"), Key: &key, Value: aws.String("x")}}
	}
	refused("a change", errOf(w.CreateOrUpdateTags(t.Context(), &api.CreateOrUpdateTagsInput{Tags: tag(key)})))
	refused("a deletion", errOf(w.DeleteTags(t.Context(), &api.DeleteTagsInput{Tags: tag(key)})))
	w.must(errOf(w.CreateOrUpdateTags(t.Context(), &api.CreateOrUpdateTagsInput{Tags: tag("own")})))
	w.must(errOf(w.DeleteTags(t.Context(), &api.DeleteTagsInput{Tags: tag("own")})))
}

// TestTagFilters: a tag or group must match all filters, each by any of the filter's values.
func TestTagFilters(t *testing.T) {
	w := newWorld(t)
	for group, tags := range map[string][]types.Tag{
		"a": {
			{Key: aws.String("team"), Value: aws.String("ml"), PropagateAtLaunch: aws.Bool(true)},
			{Key: aws.String("stage"), Value: aws.String("test")},
		},
		"b": {{Key: aws.String("team"), Value: aws.String("web")}},
	} {
		in := groupInput(group)
		in.Tags = tags
		w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
	}
	f := func(name string, values ...string) types.Filter { return types.Filter{Name: &name, Values: values} }
	for _, c := range []struct {
		filters []types.Filter
		tags    string // group/key=value of DescribeTags
	}{
		{nil, "a/team=ml a/stage=test b/team=web"},
		{[]types.Filter{f("key", "team")}, "a/team=ml b/team=web"},
		{[]types.Filter{f("key", "team"), f("value", "ml", "test")}, "a/team=ml"},
		{[]types.Filter{f("auto-scaling-group", "b")}, "b/team=web"},
		{[]types.Filter{f("propagate-at-launch", "true")}, "a/team=ml"},
		{[]types.Filter{f("key", "none")}, ""},
	} {
		out, err := w.DescribeTags(t.Context(), &api.DescribeTagsInput{Filters: c.filters})
		w.must(err)
		var got []string
		for _, tag := range out.Tags {
			got = append(got, *tag.ResourceId+"/"+*tag.Key+"="+*tag.Value)
		}
		if strings.Join(got, " ") != c.tags {
			t.Errorf("%v: %v, want %s", c.filters, got, c.tags)
		}
	}
	for _, c := range []struct {
		filters []types.Filter
		groups  string
	}{
		{[]types.Filter{f("tag-key", "team")}, "a b"},
		{[]types.Filter{f("tag:team", "ml", "x")}, "a"},
		{[]types.Filter{f("tag-value", "test", "web")}, "a b"},
		{[]types.Filter{f("tag-key", "team"), f("tag:stage", "test")}, "a"},
		{[]types.Filter{f("tag:team", "none")}, ""},
	} {
		out, err := w.DescribeAutoScalingGroups(t.Context(), &api.DescribeAutoScalingGroupsInput{Filters: c.filters})
		w.must(err)
		var got []string
		for _, g := range out.AutoScalingGroups {
			got = append(got, *g.AutoScalingGroupName)
		}
		if strings.Join(got, " ") != c.groups {
			t.Errorf("%v: %v, want %s", c.filters, got, c.groups)
		}
	}
	w.must(errOf(w.DeleteTags(t.Context(), &api.DeleteTagsInput{Tags: []types.Tag{
		{ResourceId: aws.String("a"), Key: aws.String("team")},
		{ResourceId: aws.String("a"), Key: aws.String("none")},
	}})))
	if tags := w.store.View().AutoScalingGroups.Get("a").Tags; len(tags) != 1 || *tags[0].Key != "stage" {
		t.Errorf("the tags that are left are %v", tags)
	}
}

// TestAlarmsOfPolicies: a target tracking policy's alarms go with the policy, when its type changes, and with its group.
func TestAlarmsOfPolicies(t *testing.T) {
	w := newWorld(t)
	count := func(want int, when string) {
		t.Helper()
		if len(w.alarms) != want {
			t.Errorf("%s there are %d alarms", when, len(w.alarms))
		}
	}
	count(2, "at first")
	in := tracking("load")
	in.TargetTrackingConfiguration.DisableScaleIn = aws.Bool(true)
	w.must(errOf(w.PutScalingPolicy(t.Context(), in)))
	count(1, "without scale-in")
	w.must(errOf(w.PutScalingPolicy(t.Context(), steps("load", [3]float64{0, -1, 1}))))
	count(0, "of steps")
	w.must(errOf(w.PutScalingPolicy(t.Context(), tracking("load"))))
	count(2, "of tracking again")
	w.must(errOf(w.DeleteAutoScalingGroup(t.Context(), &api.DeleteAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("g"),
		ForceDelete:          aws.Bool(true),
	})))
	count(0, "without the group")
	if err := errOf(w.SetDesiredCapacity(t.Context(), &api.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String("g"),
		DesiredCapacity:      aws.Int32(1),
	})); err == nil || !strings.Contains(err.Error(), "pending delete") {
		t.Errorf("a group that is being deleted takes a call: %v", err)
	}
}

// TestPoliciesOfMetrics: policies of a group with other metrics, and that of the same name with the same one, are taken.
func TestPoliciesOfMetrics(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.PutScalingPolicy(t.Context(), tracking("load"))))
	w.must(errOf(w.PutScalingPolicy(t.Context(), predefined(types.MetricTypeASGAverageCPUUtilization))))
	requests := predefined(types.MetricTypeALBRequestCountPerTarget)
	requests.PolicyName = aws.String("requests")
	requests.TargetTrackingConfiguration.PredefinedMetricSpecification.ResourceLabel = aws.String("app/web/1/targetgroup/models/2")
	out, err := w.PutScalingPolicy(t.Context(), requests)
	w.must(err)
	if a := w.alarms[*out.Alarms[0].AlarmName]; *a.Namespace != "AWS/ApplicationELB" || *a.MetricName != "RequestCountPerTarget" ||
		a.Statistic != "Sum" || *a.Dimensions[0].Value != "app/web/1" || *a.Dimensions[1].Value != "targetgroup/models/2" {
		t.Errorf("%+v", a)
	}
	for name, change := range map[string]func(*types.CustomizedMetricSpecification){
		"statistic": func(m *types.CustomizedMetricSpecification) { m.Statistic = types.MetricStatisticMaximum },
		"dimension": func(m *types.CustomizedMetricSpecification) {
			m.Dimensions = []types.MetricDimension{{Name: aws.String("a"), Value: aws.String("1")}}
		},
	} {
		in := tracking(name)
		change(in.TargetTrackingConfiguration.CustomizedMetricSpecification)
		w.must(errOf(w.PutScalingPolicy(t.Context(), in)))
	}
}

// TestUpdateKeepsAll: DescribeAutoScalingGroups returns what UpdateAutoScalingGroup was given.
func TestUpdateKeepsAll(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("g"),
		CapacityRebalance:    aws.Bool(true),
		ServiceLinkedRoleARN: aws.String("arn:aws:iam::1:role/r"),
	})))
	if g := w.described(); !aws.ToBool(g.CapacityRebalance) || *g.ServiceLinkedRoleARN != "arn:aws:iam::1:role/r" {
		t.Errorf("CapacityRebalance %v, ServiceLinkedRoleARN %s", g.CapacityRebalance, *g.ServiceLinkedRoleARN)
	}
}

// TestWeightOfOne: a weight of 1 is accepted, since every instance has it.
func TestWeightOfOne(t *testing.T) {
	w := newWorld(t)
	in := groupInput("weighted")
	in.LaunchTemplate, in.MixedInstancesPolicy = nil, &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
		LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
		Overrides: []types.LaunchTemplateOverrides{{
			InstanceType:     aws.String("c5.large"),
			WeightedCapacity: aws.String("1"),
		}},
	}}
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
}

// TestPolicyIgnoresZeros: Terraform's provider sends 0 for members that a policy's type doesn't have.
func TestPolicyIgnoresZeros(t *testing.T) {
	w := newWorld(t)
	for _, in := range []*api.PutScalingPolicyInput{steps("steps", [3]float64{0, -1, 1}), tracking("load")} {
		in.ScalingAdjustment = aws.Int32(0)
		in.Cooldown = aws.Int32(0)
		in.MinAdjustmentMagnitude = aws.Int32(0)
		w.must(errOf(w.PutScalingPolicy(t.Context(), in)))
		out, err := w.DescribePolicies(t.Context(), &api.DescribePoliciesInput{PolicyNames: []string{*in.PolicyName}})
		w.must(err)
		if p := out.ScalingPolicies[0]; p.ScalingAdjustment != nil || p.Cooldown != nil || p.MinAdjustmentMagnitude != nil {
			t.Errorf("%s: %v", *in.PolicyName, p)
		}
	}
}

// TestActivitiesOfDeletedGroups: activities outlive their group, and are shown to who asks for those of groups that are gone.
func TestActivitiesOfDeletedGroups(t *testing.T) {
	w := newWorld(t)
	w.update(func(tx *state.Tx) {
		gone := tx.AutoScalingGroups.Get("g").Clone()
		gone.AutoScalingGroupARN = aws.String("arn:of-one-before")
		tx.StartGroupActivity(gone, "before", "", types.ScalingActivityStatusCodeSuccessful, 100, w.now)
	})
	count := func(deleted bool) (all, gone int) {
		out, err := w.DescribeScalingActivities(t.Context(), &api.DescribeScalingActivitiesInput{
			AutoScalingGroupName: aws.String("g"), IncludeDeletedGroups: &deleted,
		})
		w.must(err)
		for _, a := range out.Activities {
			if aws.ToString(a.AutoScalingGroupState) == "Deleted" {
				gone++
			}
		}
		return len(out.Activities), gone
	}
	live, none := count(false)
	all, one := count(true)
	if none != 0 || one != 1 || all != live+1 {
		t.Errorf("%d activities, of which %d are of a deleted group; with deleted groups %d and %d", live, none, all, one)
	}
}

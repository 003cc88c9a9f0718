package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// quiet is a CloudWatch without alarms.
type quiet struct{}

func (quiet) DescribeAlarms(
	context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options),
) (*cloudwatch.DescribeAlarmsOutput, error) {
	return &cloudwatch.DescribeAlarmsOutput{}, nil
}

func (quiet) GetMetricData(
	context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options),
) (*cloudwatch.GetMetricDataOutput, error) {
	return &cloudwatch.GetMetricDataOutput{}, nil
}

// newWorld returns a store with the group g of 0 to 5 instances, and a loop over it.
func newWorld(t testing.TB, dir string) (*state.Store, *Loop) {
	t.Helper()
	store := statetest.OpenIn(t, dir)
	put(t, store, func(tx *state.Tx) {
		tx.LaunchTemplates.Put(&state.LaunchTemplate{
			LaunchTemplate: ec2types.LaunchTemplate{
				LaunchTemplateId:     aws.String("lt-1"),
				LaunchTemplateName:   aws.String("lt"),
				DefaultVersionNumber: aws.Int64(1),
				LatestVersionNumber:  aws.Int64(1),
			},
			Versions: []ec2types.LaunchTemplateVersion{{
				VersionNumber:      aws.Int64(1),
				LaunchTemplateData: &ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-00000000"), InstanceType: "g4dn.xlarge"},
			}},
		})
		tx.AutoScalingGroups.Put(&state.AutoScalingGroup{AutoScalingGroup: types.AutoScalingGroup{
			AutoScalingGroupName: aws.String("g"),
			AutoScalingGroupARN:  aws.String("arn:g"),
			MinSize:              aws.Int32(0),
			MaxSize:              aws.Int32(5),
			DesiredCapacity:      aws.Int32(0),
			DefaultCooldown:      aws.Int32(300),
			AvailabilityZones:    []string{"z"},
			TerminationPolicies:  []string{"Default"},
			LaunchTemplate:       &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-1")},
		}})
	})
	return store, New(store, Options{Now: time.Now, CloudWatch: quiet{}, Lost: time.Minute, Log: slog.New(slog.DiscardHandler)})
}

func put(t testing.TB, store *state.Store, change func(*state.Tx)) {
	t.Helper()
	if err := store.Update(context.Background(), func(tx *state.Tx) error { change(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

// changeGroup changes the group.
func changeGroup(t testing.TB, store *state.Store, change func(*state.AutoScalingGroup)) {
	put(t, store, func(tx *state.Tx) {
		g := tx.AutoScalingGroups.Get("g").Clone()
		change(g)
		tx.AutoScalingGroups.Put(g)
	})
}

// runMachines plays the fleet: pending machines start running, and shutting-down ones terminate.
func runMachines(t testing.TB, store *state.Store) {
	put(t, store, func(tx *state.Tx) {
		for _, i := range slices.Collect(tx.Instances.All()) {
			switch i.Name() {
			case ec2types.InstanceStateNamePending:
				tx.Instances.Put(i.In(ec2types.InstanceStateNameRunning))
			case ec2types.InstanceStateNameStopping:
				tx.Instances.Put(i.In(ec2types.InstanceStateNameStopped))
			case ec2types.InstanceStateNameShuttingDown:
				tx.Instances.Put(i.In(ec2types.InstanceStateNameTerminated))
			}
		}
	})
}

func mustStep(t testing.TB, l *Loop) {
	t.Helper()
	if err := l.Step(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// states returns the lifecycle states of the group's instances, sorted.
func states(store *state.Store) (out []string) {
	for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
		out = append(out, string(i.Member.LifecycleState))
	}
	slices.Sort(out)
	return out
}

func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.DesiredCapacity = aws.Int32(1)
			g.Hooks = []types.LifecycleHook{
				{
					LifecycleHookName:   aws.String("up"),
					LifecycleTransition: aws.String(launching),
					DefaultResult:       aws.String("CONTINUE"),
					HeartbeatTimeout:    aws.Int32(60),
				},
				{
					LifecycleHookName:   aws.String("down"),
					LifecycleTransition: aws.String(terminating),
					DefaultResult:       aws.String("ABANDON"),
					HeartbeatTimeout:    aws.Int32(60),
				},
			}
		})
		want := func(after string, states1 ...string) {
			t.Helper()
			if got := states(store); !slices.Equal(got, states1) {
				t.Errorf("%s: %v, want %v", after, got, states1)
			}
		}
		mustStep(t, l)
		want("launched", "Pending")
		runMachines(t, store)
		mustStep(t, l)
		want("running", "Pending:Wait")
		time.Sleep(59 * time.Second)
		mustStep(t, l)
		want("before the hook's end", "Pending:Wait")
		time.Sleep(time.Second)
		mustStep(t, l)
		want("after the hook's end", "InService")
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		mustStep(t, l)
		mustStep(t, l)
		want("shrinking", "Terminating:Wait")
		time.Sleep(time.Minute)
		mustStep(t, l)
		runMachines(t, store)
		mustStep(t, l)
		want("gone")
		var all []string
		for a := range store.View().GroupActivities.All() {
			all = append(all, string(a.StatusCode))
		}
		if fmt.Sprint(all) != "[Successful Successful]" {
			t.Errorf("the activities are %v", all)
		}
	})
}

// TestFailedLaunches: the more launches have failed, the longer the next one waits.
// TestLaunchConfiguration: a group may launch from a launch configuration. After it was given another, a scale-in takes the instances of
// the one before.
func TestLaunchConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		for n, name := range []string{"first", "second"} {
			put(t, store, func(tx *state.Tx) {
				tx.LaunchConfigurations.Put(&state.LaunchConfiguration{LaunchConfiguration: types.LaunchConfiguration{
					LaunchConfigurationName: &name,
					ImageId:                 aws.String("ami-00000000"),
					InstanceType:            aws.String("t3.micro"),
					CreatedTime:             new(time.Now()),
					BlockDeviceMappings:     []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &types.Ebs{VolumeSize: aws.Int32(40)}}},
				}})
			})
			changeGroup(t, store, func(g *state.AutoScalingGroup) {
				g.LaunchTemplate = nil
				g.LaunchConfigurationName = &name
				g.DesiredCapacity = aws.Int32(int32(n + 1))
			})
			for range 3 {
				mustStep(t, l)
				runMachines(t, store)
			}
			time.Sleep(time.Minute)
		}
		made := func() (out []string) {
			for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
				if !i.Member.IsLeaving() {
					out = append(out, i.Member.LaunchConfiguration+" "+string(i.InstanceType))
					if len(i.Devices) != 1 || *i.Devices[0].Ebs.VolumeSize != 40 {
						t.Errorf("its devices are %+v", i.Devices)
					}
				}
			}
			slices.Sort(out)
			return out
		}
		if got := made(); !slices.Equal(got, []string{"first t3.micro", "second t3.micro"}) {
			t.Fatalf("the instances are of %q", got)
		}
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		mustStep(t, l)
		if got := made(); !slices.Equal(got, []string{"second t3.micro"}) {
			t.Errorf("after the scale-in: %q", got)
		}
	})
}

func TestFailedLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		launches := 0
		for range 60 {
			mustStep(t, l)
			put(t, store, func(tx *state.Tx) {
				for _, i := range slices.Collect(tx.Instances.By(state.InstancesByState, "pending")) {
					launches++
					tx.Instances.Put(i.Terminating("Server.InternalError", "no machine").In(ec2types.InstanceStateNameTerminated))
				}
			})
			time.Sleep(time.Second)
		}
		if launches < 3 || launches > 6 {
			t.Errorf("%d launches in a minute", launches)
		}
	})
}

// TestZones: instances are spread over the group's zones. If a zone has no machines, the others take its share, and the zone is
// tried again later.
func TestZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.AvailabilityZones = []string{"a", "b", "c"}
			g.DesiredCapacity = aws.Int32(4)
		})
		full := "" // a zone without machines
		runs := func(want string) {
			t.Helper()
			for range 40 {
				mustStep(t, l)
				put(t, store, func(tx *state.Tx) {
					for _, i := range slices.Collect(tx.Instances.By(state.InstancesByState, "pending")) {
						if *i.Placement.AvailabilityZone == full {
							tx.Instances.Put(i.Terminating("c", "none").In(ec2types.InstanceStateNameTerminated))
						}
					}
				})
				runMachines(t, store)
				time.Sleep(time.Second)
			}
			in := map[string]int{}
			for _, i := range store.View().ActiveMembers("g") {
				in[*i.Placement.AvailabilityZone]++
			}
			if got := fmt.Sprint(in); got != want {
				t.Errorf("without %q: %s, want %s", full, got, want)
			}
		}
		runs("map[a:2 b:1 c:1]")
		for a := range store.View().GroupActivities.All() {
			i := store.View().Instances.Get((*a.Description)[len("Launching a new EC2 instance: "):])
			if *a.Details != `{"Availability Zone":"`+*i.Placement.AvailabilityZone+`"}` {
				t.Errorf("the activity's details are %s", *a.Details)
			}
		}
		full = "b"
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.MaxSize, g.DesiredCapacity = aws.Int32(9), aws.Int32(7) })
		runs("map[a:3 b:1 c:3]")
		full = ""
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(9) })
		runs("map[a:3 b:3 c:3]")
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(3) })
		runs("map[a:1 b:1 c:1]")
	})
}

// TestPrices: lowest-price picks the cheapest type by the given prices.
func TestPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		mixTypes(t, store, "lowest-price", "g4dn.xlarge", "p3.2xlarge")
		for _, c := range []struct {
			prices map[string]float64
			want   string
		}{{nil, "g4dn.xlarge"}, {map[string]float64{"g4dn.xlarge": 0.5, "p3.2xlarge": 0.4}, "p3.2xlarge"}} {
			l.opts.Prices = c.prices
			changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(*g.DesiredCapacity + 1) })
			mustStep(t, l)
			for i := range store.View().Instances.By(state.InstancesByState, "pending") {
				if string(i.InstanceType) != c.want {
					t.Errorf("with %v it is a %s", c.prices, i.InstanceType)
				}
			}
			runMachines(t, store)
		}
	})
}

// TestNoCapacity: if there are no machines of one type, the group launches another.
func TestNoCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		mixTypes(t, store, "prioritized", "g4dn.xlarge", "p3.2xlarge")
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(2) })
		for range 20 {
			mustStep(t, l)
			put(t, store, func(tx *state.Tx) {
				for _, i := range slices.Collect(tx.Instances.By(state.InstancesByState, "pending")) {
					if i.InstanceType == "g4dn.xlarge" {
						tx.Instances.Put(i.Terminating("c", "none").In(ec2types.InstanceStateNameTerminated))
					}
				}
			})
			runMachines(t, store)
			time.Sleep(time.Second)
		}
		var got []string
		for _, i := range store.View().ActiveMembers("g") {
			got = append(got, string(i.InstanceType))
		}
		if fmt.Sprint(got) != "[p3.2xlarge p3.2xlarge]" {
			t.Errorf("it has %v", got)
		}
	})
}

// mixTypes sets the types that the group launches.
func mixTypes(t testing.TB, store *state.Store, strategy string, names ...string) {
	m := &types.MixedInstancesPolicy{
		InstancesDistribution: &types.InstancesDistribution{OnDemandAllocationStrategy: &strategy},
		LaunchTemplate: &types.LaunchTemplate{
			LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-1")},
		},
	}
	for _, name := range names {
		m.LaunchTemplate.Overrides = append(m.LaunchTemplate.Overrides, types.LaunchTemplateOverrides{InstanceType: &name})
	}
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.LaunchTemplate, g.MixedInstancesPolicy = nil, m })
}

// TestBounds makes random changes to a group. It must never have more instances than allowed, protected ones must stay as it
// shrinks, and it must reach its desired capacity.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		protected := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				n := rapid.Int32Range(0, 5).Draw(r, "desired")
				changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &n })
			case 1:
				runMachines(t, store)
			case 2:
				for _, i := range store.View().ActiveMembers("g") {
					row := i.Clone()
					row.Member.Protected = rapid.Bool().Draw(r, "protected")
					protected[*i.InstanceId] = row.Member.Protected
					put(t, store, func(tx *state.Tx) { tx.Instances.Put(row) })
				}
			}
			mustStep(t, l)
			v := store.View()
			if n := len(v.ActiveMembers("g")); n > 5 {
				r.Fatalf("%d instances", n)
			}
			for id, is := range protected {
				if i := v.Instances.Get(id); is && (i.IsOver() || i.Member.IsLeaving()) {
					r.Fatalf("%s was protected", id)
				}
			}
		}
		for range 3 {
			mustStep(t, l)
			runMachines(t, store)
		}
		mustStep(t, l)
		v, safe := store.View(), 0
		for _, i := range v.ActiveMembers("g") {
			if i.Member.Protected {
				safe++
			}
		}
		if n, want := len(v.ActiveMembers("g")), max(int(*v.AutoScalingGroups.Get("g").DesiredCapacity), safe); n != want {
			r.Fatalf("%d instances, want %d", n, want)
		}
	})
}

// TestImagesByParameters: an instance has the image that its template's parameter stands for when it's launched. Without one there's no launch.
func TestImagesByParameters(t *testing.T) {
	store, l := newWorld(t, t.TempDir())
	images := map[string]string{"ami-00000000": "ami-1"}
	l.opts.Image = func(id string) (string, error) {
		if image := images[id]; image != "" {
			return image, nil
		}
		return "", errors.New("the following aliases are invalid: " + id)
	}
	launched := func(desired int32) (ids []string) {
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &desired })
		mustStep(t, l)
		for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
			ids = append(ids, *i.ImageId)
		}
		slices.Sort(ids)
		return ids
	}
	if got := launched(1); !slices.Equal(got, []string{"ami-1"}) {
		t.Errorf("launched %v", got)
	}
	images["ami-00000000"] = "ami-2"
	if got := launched(2); !slices.Equal(got, []string{"ami-1", "ami-2"}) {
		t.Errorf("with another value: launched %v", got)
	}
	delete(images, "ami-00000000")
	if got := launched(3); len(got) != 2 {
		t.Errorf("without a parameter: launched %v", got)
	}
	for a := range store.View().GroupActivities.All() {
		if a.StatusCode == types.ScalingActivityStatusCodeFailed &&
			*a.StatusMessage == "the following aliases are invalid: ami-00000000. Launching EC2 instance failed." {
			return
		}
	}
	t.Error("no activity tells why")
}

package triggers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// fake answers with pages of one alarm each, and records which alarms it was asked for.
type fake struct {
	alarms []types.MetricAlarm
	asked  []string // a name, or "all", for each call's first page
}

func (f *fake) DescribeAlarms(
	_ context.Context, in *awscloudwatch.DescribeAlarmsInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.DescribeAlarmsOutput, error) {
	var found []types.MetricAlarm
	for _, a := range f.alarms {
		if len(in.AlarmNames) == 0 || slices.Contains(in.AlarmNames, *a.AlarmName) {
			found = append(found, a)
		}
	}
	first := 0
	if in.NextToken == nil {
		f.asked = append(f.asked, cmp.Or(strings.Join(in.AlarmNames, "+"), "all"))
	} else {
		fmt.Sscan(*in.NextToken, &first) //nolint:errcheck // the token is ours
	}
	out := &awscloudwatch.DescribeAlarmsOutput{MetricAlarms: found[min(first, len(found)):min(first+1, len(found))]}
	if first+1 < len(found) {
		out.NextToken = aws.String(fmt.Sprint(first + 1))
	}
	return out, nil
}

func (f *fake) GetMetricData(
	context.Context, *awscloudwatch.GetMetricDataInput, ...func(*awscloudwatch.Options),
) (*awscloudwatch.GetMetricDataOutput, error) {
	return &awscloudwatch.GetMetricDataOutput{}, nil
}

// TestDue: an enabled alarm's actions for its state are due when it changes to the state and tells us, and every period that it
// stays there. CloudWatch is asked only if an alarm was told or is due.
func TestDue(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	alarm := func(name string, state types.StateValue, enabled bool) types.MetricAlarm {
		return types.MetricAlarm{
			AlarmName:             &name,
			StateValue:            state,
			StateUpdatedTimestamp: &start,
			ActionsEnabled:        &enabled,
			Period:                aws.Int32(60),
			AlarmActions:          []string{"out " + name},
			OKActions:             []string{"in " + name},
		}
	}
	f := &fake{alarms: []types.MetricAlarm{
		alarm("busy", types.StateValueAlarm, true), alarm("quiet", types.StateValueOk, true), alarm("off", types.StateValueAlarm, false),
		alarm("blind", types.StateValueInsufficientData, true),
	}}
	triggers := New(f, nil)
	move := func(i int, to types.StateValue, at time.Duration) {
		f.alarms[i].StateValue = to
		f.alarms[i].StateUpdatedTimestamp = aws.Time(start.Add(at))
	}
	for _, step := range []struct {
		at    time.Duration
		do    func()
		due   string
		acts  string
		asked string
	}{
		{0, nil, "in quiet, out busy", "in quiet, out busy", "all"},
		{time.Second, nil, "", "in quiet, out busy", ""},
		{59 * time.Second, nil, "", "in quiet, out busy", ""},
		{time.Minute, nil, "in quiet, out busy", "in quiet, out busy", "busy+quiet"},
		{70 * time.Second, func() {
			move(3, types.StateValueAlarm,
				70*time.Second)
			triggers.Tell("blind")
		}, "out blind", "in quiet, out blind, out busy", "blind+busy+quiet"},
		{80 * time.Second, func() { move(0, types.StateValueInsufficientData, 80*time.Second) }, "", "in quiet, out blind, out busy", ""},
		{2 * time.Minute, nil, "in quiet", "in quiet, out blind", "blind+busy+quiet"},
		{130 * time.Second, nil, "out blind", "in quiet, out blind", "blind+quiet"},
		{140 * time.Second, func() { triggers.Tell("gone") }, "", "in quiet, out blind", "blind+gone+quiet"},
	} {
		if step.do != nil {
			step.do()
		}
		f.asked = nil
		due, acting, err := triggers.Due(t.Context(), start.Add(step.at), false)
		if err != nil {
			t.Fatal(err)
		}
		got := [3]string{join(due), join(acting), strings.Join(f.asked, ", ")}
		if want := [3]string{step.due, step.acts, step.asked}; got != want {
			t.Errorf("after %v: due, acting, asked are\n%q, want\n%q", step.at, got, want)
		}
	}
	if _, _, err := triggers.Due(t.Context(), start.Add(141*time.Second), true); err != nil || len(f.asked) != 2 {
		t.Errorf("fresh ones were asked for %d times, %v", len(f.asked)-1, err)
	}
}

func join[V any](m map[string]V) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }

// BenchmarkDue measures what a scaling loop asks when an alarm is due, with 5,000 alarms. Either all or one in a hundred belong to
// policies.
func BenchmarkDue(b *testing.B) {
	for _, every := range []int{1, 100} {
		b.Run(fmt.Sprintf("policies=%d", 5000/every), func(b *testing.B) {
			store := statetest.Open(b)
			err := store.Update(context.Background(), func(tx *state.Tx) error {
				for i := range 5000 {
					action := "http://localhost/tell"
					if i%every == 0 {
						action = fmt.Sprintf("%sus-east-1:000000000000:scalingPolicy:%d", state.PolicyPrefix, i)
					}
					tx.Alarms.Put(&state.Alarm{Metric: &types.MetricAlarm{
						AlarmName:      aws.String(fmt.Sprintf("alarm-%04d", i)),
						StateValue:     types.StateValueOk,
						ActionsEnabled: aws.Bool(true),
						Period:         aws.Int32(60),
						AlarmActions:   []string{action},
					}})
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			triggers := New(client{service: cloudwatch.New(nil, store, cloudwatch.Options{})}, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := triggers.Due(context.Background(), time.Now(), true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// client is Pintle's CloudWatch with the signatures of the SDK's client.
type client struct {
	*fake
	service *cloudwatch.Service
}

func (c client) DescribeAlarms(
	ctx context.Context, in *awscloudwatch.DescribeAlarmsInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.DescribeAlarmsOutput, error) {
	return c.service.DescribeAlarms(ctx, in)
}

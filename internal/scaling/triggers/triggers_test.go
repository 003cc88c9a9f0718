package triggers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/state"
)

// fake answers with two pages of alarms.
type fake struct{ alarms []types.MetricAlarm }

func (f fake) DescribeAlarms(_ context.Context, in *awscloudwatch.DescribeAlarmsInput, _ ...func(*awscloudwatch.Options)) (*awscloudwatch.DescribeAlarmsOutput, error) {
	if in.NextToken == nil {
		return &awscloudwatch.DescribeAlarmsOutput{MetricAlarms: f.alarms[:1], NextToken: aws.String("more")}, nil
	}
	return &awscloudwatch.DescribeAlarmsOutput{MetricAlarms: f.alarms[1:]}, nil
}

func (f fake) GetMetricData(context.Context, *awscloudwatch.GetMetricDataInput, ...func(*awscloudwatch.Options)) (*awscloudwatch.GetMetricDataOutput, error) {
	return &awscloudwatch.GetMetricDataOutput{}, nil
}

// TestActing: an alarm takes the actions of the state that it is in, if it takes any; it is heeded when it gets there, and every
// period that it stays.
func TestActing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	alarm := func(name string, state types.StateValue, enabled bool) types.MetricAlarm {
		return types.MetricAlarm{
			AlarmName: &name, StateValue: state, StateUpdatedTimestamp: &now, ActionsEnabled: &enabled, Period: aws.Int32(60),
			AlarmActions: []string{"out"}, OKActions: []string{"in"}, InsufficientDataActions: []string{"unknown"},
		}
	}
	f := fake{[]types.MetricAlarm{alarm("busy", types.StateValueAlarm, true), alarm("quiet", types.StateValueOk, true), alarm("off", types.StateValueAlarm, false)}}
	triggers := New(f, nil)
	acting, err := triggers.Acting(t.Context())
	if err != nil || len(acting) != 2 || *acting["out"][0].AlarmName != "busy" || *acting["in"][0].AlarmName != "quiet" || len(acting["out"]) != 1 {
		t.Fatalf("%v: %+v", err, acting)
	}
	for _, step := range []struct {
		after time.Duration
		due   bool
	}{{0, true}, {time.Second, false}, {59 * time.Second, false}, {time.Minute, true}, {61 * time.Second, false}} {
		due := triggers.Heed(acting, now.Add(step.after))
		if due["out"] != step.due || due["in"] != step.due {
			t.Errorf("after %v: %v", step.after, due)
		}
	}
}

// BenchmarkActing is what scaling loops ask every second, of 5,000 alarms: all of them policies', or one in a hundred.
func BenchmarkActing(b *testing.B) {
	for _, every := range []int{1, 100} {
		b.Run(fmt.Sprintf("policies=%d", 5000/every), func(b *testing.B) {
			journal, err := state.OpenSQLite(context.Background(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			store, err := state.Open(context.Background(), journal)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close() //nolint:errcheck // it is over
			err = store.Update(context.Background(), func(tx *state.Tx) error {
				for i := range 5000 {
					action := "http://localhost/tell"
					if i%every == 0 {
						action = fmt.Sprintf("%sus-east-1:000000000000:scalingPolicy:%d", actionPrefix, i)
					}
					tx.Alarms.Put(&state.Alarm{Metric: &types.MetricAlarm{
						AlarmName: aws.String(fmt.Sprintf("alarm-%04d", i)), StateValue: types.StateValueOk, ActionsEnabled: aws.Bool(true), Period: aws.Int32(60), AlarmActions: []string{action},
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
				if _, err := triggers.Acting(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// client is a CloudWatch of ours, with the signatures of the SDK's.
type client struct {
	fake
	service *cloudwatch.Service
}

func (c client) DescribeAlarms(
	ctx context.Context, in *awscloudwatch.DescribeAlarmsInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.DescribeAlarmsOutput, error) {
	return c.service.DescribeAlarms(ctx, in)
}

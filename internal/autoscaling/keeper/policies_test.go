package keeper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/state"
)

// ringing is a CloudWatch with one alarm on a metric of 5.
type ringing struct{ store *state.Store }

func (r ringing) DescribeAlarms(
	context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options),
) (*cloudwatch.DescribeAlarmsOutput, error) {
	return &cloudwatch.DescribeAlarmsOutput{MetricAlarms: []cloudwatchtypes.MetricAlarm{*r.store.View().Alarms.Get("a").Metric}}, nil
}

func (r ringing) GetMetricData(
	context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options),
) (*cloudwatch.GetMetricDataOutput, error) {
	return &cloudwatch.GetMetricDataOutput{MetricDataResults: []cloudwatchtypes.MetricDataResult{{
		Timestamps: []time.Time{time.Now()},
		Values:     []float64{5},
	}}}, nil
}

// TestActsAtOnce: a policy acts as soon as its alarm changes state, without waiting for the next tick.
func TestActsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		l = New(store, Options{Now: time.Now, CloudWatch: ringing{store}, Lost: time.Minute, Log: l.opts.Log})
		turn := func(to cloudwatchtypes.StateValue) {
			put(t, store, func(tx *state.Tx) {
				tx.Alarms.Put(&state.Alarm{Metric: &cloudwatchtypes.MetricAlarm{
					AlarmName:             aws.String("a"),
					StateValue:            to,
					StateUpdatedTimestamp: aws.Time(time.Now()),
					ActionsEnabled:        aws.Bool(true),
					Period:                aws.Int32(60),
					EvaluationPeriods:     aws.Int32(1),
					Threshold:             aws.Float64(0),
					AlarmActions:          []string{"arn:p"},
					MetricName:            aws.String("m"),
					Namespace:             aws.String("n"),
					Statistic:             "Maximum",
				}})
			})
		}
		turn(cloudwatchtypes.StateValueOk)
		put(t, store, func(tx *state.Tx) {
			tx.GroupPolicies.Put(&state.GroupPolicy{ScalingPolicy: types.ScalingPolicy{
				AutoScalingGroupName: aws.String("g"),
				PolicyName:           aws.String("p"),
				PolicyARN:            aws.String("arn:p"),
				PolicyType:           aws.String("StepScaling"),
				Enabled:              aws.Bool(true),
				AdjustmentType:       aws.String("ExactCapacity"),
				StepAdjustments:      []types.StepAdjustment{{MetricIntervalLowerBound: aws.Float64(0), ScalingAdjustment: aws.Int32(2)}},
			}})
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		time.Sleep(every + every/4)
		turn(cloudwatchtypes.StateValueAlarm)
		l.Tell("a")
		synctest.Wait()
		if got := *store.View().AutoScalingGroups.Get("g").DesiredCapacity; got != 2 {
			t.Errorf("the desired capacity is %d", got)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

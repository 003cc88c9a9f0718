package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/instancetype"
)

// bubble is the clock of a synctest bubble, on which the loops run.
type bubble struct{}

func (bubble) Now() time.Time        { return time.Now() }
func (bubble) AdvanceTo(t time.Time) { time.Sleep(time.Until(t)) }

// live is Run, but the control plane's loops run by themselves on the bubble's clock, as in the server. It feeds them the load
// and plays the nodes as Run does, but doesn't call the loops.
func live(t *testing.T, s Scenario, policy *Policy) *Result {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := newReplay(ctx, s, bubble{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.install(ctx, policy); err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { p.Rollout.Run(ctx, p.State) }) //nolint:errcheck // it ends with ctx
	loops.Go(func() {
		alarms.Run(ctx, p.State, alarms.Options{ //nolint:errcheck // it ends with ctx
			Now:      time.Now,
			Metrics:  p.Metrics,
			Arrivals: p.Arrivals,
		})
	})
	loops.Go(func() { p.Deliveries.Run(ctx) }) //nolint:errcheck // it ends with ctx
	synctest.Wait()
	p.actAsNodes()
	time.Sleep(scalerDelay)
	loops.Go(func() { p.Scaler.Run(ctx) }) //nolint:errcheck // it ends with ctx
	for at := time.Second; at <= s.Length; at += time.Second {
		end := p.epoch.Add(at)
		if err := p.advanceLive(ctx, end); err != nil {
			t.Fatal(err)
		}
		if err := p.measure(end); err != nil {
			t.Fatal(err)
		}
		time.Sleep(scalerDelay)
		synctest.Wait()
		p.actAsNodes()
		p.record(end)
	}
	result := p.summarize()
	cancel()
	loops.Wait()
	if err := p.close(); err != nil {
		t.Error(err)
	}
	return result
}

// advanceLive is advance, but the services' loop runs by itself.
func (p *replay) advanceLive(ctx context.Context, end time.Time) error {
	for {
		e := p.popDue(end)
		if e == nil {
			p.advanceTo(end)
			if e = p.popDue(end); e == nil {
				return nil
			}
		}
		p.advanceTo(e.at)
		if err := e.do(ctx); err != nil {
			return err
		}
		synctest.Wait()
		p.actAsNodes()
	}
}

// bursty returns a load of quiet and busy minutes.
func bursty(seed uint64, length time.Duration) []Request {
	rnd := rand.New(rand.NewPCG(seed, seed))
	var out []Request
	minute, perMinute := time.Duration(-1), 0.0
	for at := time.Duration(0); at < length; {
		if now := at.Truncate(time.Minute); now != minute {
			minute, perMinute = now, []float64{5, 100, 400, 1500}[rnd.IntN(4)]
		}
		at += time.Duration(rnd.ExpFloat64() / perMinute * float64(time.Minute))
		out = append(out, Request{at, time.Duration(rnd.ExpFloat64() * float64(2*time.Second))})
	}
	return out[:len(out)-1]
}

func scenario(requests []Request, length time.Duration) Scenario {
	g4dn, err := instancetype.Lookup("g4dn.xlarge")
	if err != nil {
		panic(err)
	}
	return Scenario{
		Requests: requests,
		Length:   length,
		Slots:    4,
		Start:    30 * time.Second,
		SLO:      5 * time.Second,
		Min:      1,
		Max:      20,
		Fleet:    slices.Repeat([]instancetype.Type{g4dn}, 20),
		TaskDefinition: &awsecs.RegisterTaskDefinitionInput{
			Family: aws.String("f"),
			ContainerDefinitions: []types.ContainerDefinition{{
				Name:                 aws.String("main"),
				Image:                aws.String("i"),
				Memory:               aws.Int32(512),
				ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
			}},
		},
	}
}

// The policies: on GPU utilization, on the backlog per task, and in steps.

func onGPUs() *Policy {
	return tracking(75, &autoscalingtypes.CustomizedMetricSpecification{
		Namespace:  aws.String("ECS/ContainerInsights/Prometheus"),
		MetricName: aws.String("DCGM_FI_DEV_GPU_UTIL"),
		Statistic:  autoscalingtypes.MetricStatisticAverage,
		Dimensions: []autoscalingtypes.MetricDimension{
			{Name: aws.String("ClusterName"), Value: aws.String(Cluster)},
			{Name: aws.String("ServiceName"), Value: aws.String(Service)},
		},
	})
}

func onBacklog() *Policy {
	metric := func(
		id, namespace, name string, dimensions ...autoscalingtypes.TargetTrackingMetricDimension,
	) autoscalingtypes.TargetTrackingMetricDataQuery {
		return autoscalingtypes.TargetTrackingMetricDataQuery{
			Id:         &id,
			ReturnData: aws.Bool(false),
			MetricStat: &autoscalingtypes.TargetTrackingMetricStat{
				Stat:   aws.String("Average"),
				Metric: &autoscalingtypes.TargetTrackingMetric{Namespace: &namespace, MetricName: &name, Dimensions: dimensions},
			},
		}
	}
	return tracking(10, &autoscalingtypes.CustomizedMetricSpecification{Metrics: []autoscalingtypes.TargetTrackingMetricDataQuery{
		metric("waiting", "AWS/SQS", "ApproximateNumberOfMessagesVisible",
			autoscalingtypes.TargetTrackingMetricDimension{Name: aws.String("QueueName"), Value: aws.String(Queue)}),
		metric("tasks", "ECS/ContainerInsights", "RunningTaskCount",
			autoscalingtypes.TargetTrackingMetricDimension{Name: aws.String("ClusterName"), Value: aws.String(Cluster)},
			autoscalingtypes.TargetTrackingMetricDimension{Name: aws.String("ServiceName"), Value: aws.String(Service)}),
		{Id: aws.String("backlog"), Expression: aws.String("waiting / tasks"), ReturnData: aws.Bool(true)},
	}})
}

func tracking(target float64, metric *autoscalingtypes.CustomizedMetricSpecification) *Policy {
	return &Policy{PutScalingPolicyInput: applicationautoscaling.PutScalingPolicyInput{
		PolicyType: autoscalingtypes.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &autoscalingtypes.TargetTrackingScalingPolicyConfiguration{
			TargetValue:                   &target,
			ScaleOutCooldown:              aws.Int32(60),
			ScaleInCooldown:               aws.Int32(60),
			CustomizedMetricSpecification: metric,
		},
	}}
}

func inSteps() *Policy {
	return &Policy{
		PutScalingPolicyInput: applicationautoscaling.PutScalingPolicyInput{
			PolicyType: autoscalingtypes.PolicyTypeStepScaling,
			StepScalingPolicyConfiguration: &autoscalingtypes.StepScalingPolicyConfiguration{
				AdjustmentType: autoscalingtypes.AdjustmentTypeChangeInCapacity,
				Cooldown:       aws.Int32(60),
				StepAdjustments: []autoscalingtypes.StepAdjustment{
					{MetricIntervalLowerBound: aws.Float64(0), MetricIntervalUpperBound: aws.Float64(50), ScalingAdjustment: aws.Int32(2)},
					{MetricIntervalLowerBound: aws.Float64(50), ScalingAdjustment: aws.Int32(5)},
				},
			},
		},
		Alarms: []cloudwatch.PutMetricAlarmInput{{
			AlarmName:          aws.String("waiting"),
			Namespace:          aws.String("AWS/SQS"),
			MetricName:         aws.String("ApproximateNumberOfMessagesVisible"),
			Dimensions:         []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String(Queue)}},
			Statistic:          cloudwatchtypes.StatisticMaximum,
			Period:             aws.Int32(60),
			EvaluationPeriods:  aws.Int32(1),
			Threshold:          aws.Float64(20),
			ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		}},
	}
}

// TestEqualsLive: second by second, a replay gives the same desired counts and running tasks as a control plane whose loops run
// by themselves.
func TestEqualsLive(t *testing.T) {
	const length = time.Hour
	for name, policy := range map[string]func() *Policy{"GPUs": onGPUs, "backlog": onBacklog, "steps": inSteps} {
		for _, fast := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " fast", false: " faithful"}[fast], func(t *testing.T) {
				t.Parallel()
				s := scenario(bursty(1, length), length)
				s.Fast = fast
				replayed, err := Run(t.Context(), s, policy())
				if err != nil {
					t.Fatal(err)
				}
				synctest.Test(t, func(t *testing.T) {
					lived := live(t, s, policy())
					for i, want := range lived.Timeline {
						if got := replayed.Timeline[i]; got != want {
							t.Fatalf("replayed: %+v\nlived:    %+v", got, want)
						}
					}
				})
				if scalings := len(replayed.Scalings); scalings < 3 {
					t.Errorf("only %d scalings: this shows nothing", scalings)
				}
			})
		}
	}
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/plane"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/wire/validation"
)

const (
	region   = "us-east-1"
	account  = "000000000000"
	resource = "service/" + Cluster + "/" + Service
)

// replay is a control plane in simulated time, with the services and loops of the real one. It also plays the nodes: tasks
// start after a delay, and stop once their requests are done.
type replay struct {
	scenario Scenario
	result   Result

	timing timing
	epoch  time.Time

	mu     sync.Mutex // the store's writer reports changes, and the services' loop schedules functions
	events events
	tasks  []taskChange // not handled yet

	*plane.Plane
	dir     string
	load    *load
	held    map[string]time.Time // since when tasks have held their places, by ARN
	running int
}

// timing is a clock that can be advanced.
type timing interface {
	Now() time.Time
	// AdvanceTo lets time pass until then.
	AdvanceTo(time.Time)
}

// simulated is a clock whose time passes immediately.
type simulated struct {
	mu  sync.Mutex // the store's writer reads the time
	now time.Time
}

func (s *simulated) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *simulated) AdvanceTo(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.now) {
		s.now = t
	}
}

type taskChange struct{ before, after *state.Task }

// noJournal is a journal that keeps nothing.
type noJournal struct{}

func (noJournal) Since(context.Context, int64, func(store.Change) error) (int64, error) {
	return 0, nil
}
func (noJournal) Write(int64, []store.Change) error { return nil }
func (noJournal) Close() error                      { return nil }

// newReplay opens a control plane with the scenario's nodes and service.
func newReplay(ctx context.Context, s Scenario, t timing) (*replay, error) {
	p := &replay{scenario: s, timing: t, epoch: t.Now(), load: newLoad(&s), held: map[string]time.Time{}}
	ids := 0
	newID := func() string { ids++; return fmt.Sprintf("%032x", ids) }
	var err error
	if p.dir, err = os.MkdirTemp("", "pintle-sim-"); err != nil {
		return nil, err
	}
	reaction := scaling.Faithful
	if s.Fast {
		reaction = scaling.Fast
	}
	p.Plane, err = plane.Open(ctx, plane.Options{
		Region:    region,
		Account:   account,
		Data:      p.dir,
		Reaction:  reaction,
		Log:       slog.New(slog.DiscardHandler),
		Simulated: &plane.Simulated{Now: t.Now, After: p.afterFunc, NewID: newID, Journal: noJournal{}, Observer: p},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err := p.build(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *replay) close() error { return errors.Join(p.Close(), os.RemoveAll(p.dir)) }

// build creates the cluster, its nodes and the service.
func (p *replay) build(ctx context.Context) error {
	if _, err := p.ECS.CreateCluster(ctx, &awsecs.CreateClusterInput{}); err != nil {
		return err
	}
	definition, err := p.ECS.RegisterTaskDefinition(ctx, p.scenario.TaskDefinition)
	if err != nil {
		return err
	}
	for _, r := range definition.TaskDefinition.ContainerDefinitions {
		for _, need := range r.ResourceRequirements {
			if n := 0; need.Type == types.ResourceTypeGpu {
				fmt.Sscan(*need.Value, &n) //nolint:errcheck // RegisterTaskDefinition checked it
				p.result.GPUs += n
			}
		}
	}
	required := p.State.View().TaskDefinitions.Get(*definition.TaskDefinition.TaskDefinitionArn).RequiredAttributes()
	for i, t := range p.scenario.Fleet {
		if err := p.registerNode(ctx, i, t, required); err != nil {
			return err
		}
	}
	_, err = p.ECS.CreateService(ctx, &awsecs.CreateServiceInput{
		ServiceName:    aws.String(Service),
		TaskDefinition: definition.TaskDefinition.TaskDefinitionArn,
		DesiredCount:   aws.Int32(int32(p.scenario.Min)),
	})
	return err
}

// registerNode registers a simulated node that has all attributes that the task definition requires.
func (p *replay) registerNode(ctx context.Context, i int, t instancetype.Type, attributes []types.Attribute) error {
	in := &awsecs.RegisterContainerInstanceInput{
		Attributes: attributes,
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: int32(t.VCPUs * 1024)},
			{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: int32(t.MemoryMiB)},
		},
	}
	for gpu := range t.GPUs {
		id := fmt.Sprintf("GPU-%d-%d", i, gpu)
		in.PlatformDevices = append(in.PlatformDevices, types.PlatformDevice{Id: &id, Type: types.PlatformDeviceTypeGpu})
	}
	out, err := p.ECS.RegisterContainerInstance(ctx, in)
	if err != nil {
		return err
	}
	return p.State.Update(ctx, func(tx *state.Tx) error {
		row := *tx.ContainerInstances.Get(*out.ContainerInstance.ContainerInstanceArn)
		row.AgentConnected = true
		tx.ContainerInstances.Put(&row)
		return nil
	})
}

// install registers the service as a scalable target and puts the policy.
func (p *replay) install(ctx context.Context, policy *Policy) error {
	target := &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace:  autoscalingtypes.ServiceNamespaceEcs,
		ScalableDimension: autoscalingtypes.ScalableDimensionECSServiceDesiredCount,
		ResourceId:        aws.String(resource),
		MinCapacity:       aws.Int32(int32(p.scenario.Min)),
		MaxCapacity:       aws.Int32(int32(p.scenario.Max)),
	}
	if _, err := p.ApplicationAutoScaling.RegisterScalableTarget(ctx, target); err != nil {
		return err
	}
	in := policy.PutScalingPolicyInput
	in.ServiceNamespace = target.ServiceNamespace
	in.ScalableDimension = target.ScalableDimension
	in.ResourceId = target.ResourceId
	if in.PolicyName == nil {
		in.PolicyName = aws.String("policy")
	}
	constraints := validation.New(appautoscaling.API(nil).Constraints)
	out, err := validation.Checked(constraints, p.ApplicationAutoScaling.PutScalingPolicy)(ctx, &in) // checked, because it's the user's
	if err != nil {
		return err
	}
	for _, alarm := range policy.Alarms {
		alarm.AlarmActions = append(slices.Clone(alarm.AlarmActions), *out.PolicyARN)
		if _, err := p.CloudWatch.PutMetricAlarm(ctx, &alarm); err != nil {
			return err
		}
	}
	return nil
}

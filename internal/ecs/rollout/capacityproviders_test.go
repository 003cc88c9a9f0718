package rollout

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// provided adds two capacity providers to the default cluster, with a node each.
func (w *world) provided() (nodes map[string]string) {
	w.t.Helper()
	nodes = map[string]string{}
	for _, name := range []string{"spot", "base"} {
		_, err := w.ecs.CreateCapacityProvider(w.ctx, &awsecs.CreateCapacityProviderInput{
			Name:                     &name,
			AutoScalingGroupProvider: &types.AutoScalingGroupProvider{AutoScalingGroupArn: &name},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		nodes[w.node(types.Attribute{Name: aws.String(ecs.CapacityProviderAttribute), Value: &name})] = name
	}
	w.providers("spot", "base")
	return nodes
}

func (w *world) providers(names ...string) {
	w.t.Helper()
	if err := w.tryProviders(names...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryProviders(names ...string) error {
	_, err := w.ecs.PutClusterCapacityProviders(w.ctx, &awsecs.PutClusterCapacityProvidersInput{
		Cluster:                         aws.String("default"),
		CapacityProviders:               names,
		DefaultCapacityProviderStrategy: []types.CapacityProviderStrategyItem{},
	})
	return err
}

func share(provider string, base, weight int32) types.CapacityProviderStrategyItem {
	return types.CapacityProviderStrategyItem{CapacityProvider: &provider, Base: base, Weight: weight}
}

func by(strategy ...types.CapacityProviderStrategyItem) func(*awsecs.CreateServiceInput) {
	return func(in *awsecs.CreateServiceInput) { in.CapacityProviderStrategy = strategy }
}

// expectOnProviders counts the service's tasks by provider, and checks that each is on a node of its own.
func (w *world) expectOnProviders(nodes map[string]string, want map[string]int) {
	w.t.Helper()
	got := map[string]int{}
	for _, task := range w.tasks() {
		name := aws.ToString(task.CapacityProviderName)
		if got[name]++; nodes[*task.ContainerInstanceArn] != name || task.LaunchType != types.LaunchTypeEc2 {
			w.t.Errorf("a task of the provider %q and of the launch type %s is on a node of %q", name, task.LaunchType,
				nodes[*task.ContainerInstanceArn])
		}
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("the tasks belong to %v, want %v", got, want)
	}
}

func TestCapacityProviderStrategy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.provided()
		w.create(5, by(share("spot", 0, 3), share("base", 1, 1)))
		s := w.after(time.Minute)
		expect(t, s, 5, 0, 1, completed)
		if s.LaunchType != "" || len(s.CapacityProviderStrategy) != 2 || len(s.Deployments[0].CapacityProviderStrategy) != 2 {
			t.Errorf("the service has the launch type %q and the strategy %v", s.LaunchType, s.CapacityProviderStrategy)
		}
		w.expectOnProviders(nodes, map[string]int{"spot": 3, "base": 2})

		var inUse *types.ResourceInUseException
		if err := w.tryProviders("spot"); !errors.As(err, &inUse) {
			t.Errorf("a provider that is in use is taken out: %v", err)
		}
		w.change(&awsecs.UpdateServiceInput{CapacityProviderStrategy: []types.CapacityProviderStrategyItem{share("spot", 0, 1)}})
		w.after(3 * time.Minute)
		w.expectOnProviders(nodes, map[string]int{"spot": 5})
		w.providers("spot")
	})
}

// TestFullCapacityProvider checks that tasks wait when their provider is full, even though another has room.
func TestFullCapacityProvider(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.provided()
		w.define("gpu", oneGPU)
		w.create(2, by(share("spot", 0, 1)))
		expect(t, w.after(time.Second), 0, 1, 1, inProgress)
		w.expectOnProviders(nodes, map[string]int{"spot": 1})
		name := "spot"
		nodes[w.node(types.Attribute{Name: aws.String(ecs.CapacityProviderAttribute), Value: &name})] = name
		w.after(time.Minute)
		w.expectOnProviders(nodes, map[string]int{"spot": 2})
	})
}

// TestFullCapacityProviderStopsNoOther checks that a provider with room for one of its two tasks doesn't keep the other
// provider's tasks from starting.
func TestFullCapacityProviderStopsNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes, name := w.provided(), "base"
		nodes[w.node(types.Attribute{Name: aws.String(ecs.CapacityProviderAttribute), Value: &name})] = name
		w.define("gpu", oneGPU)
		w.create(4, by(share("spot", 0, 1), share("base", 0, 1)))
		w.after(time.Minute)
		w.expectOnProviders(nodes, map[string]int{"spot": 1, "base": 2})
	})
}

func TestRunTaskOnAFullCapacityProvider(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes, name := w.provided(), "base"
		nodes[w.node(types.Attribute{Name: aws.String(ecs.CapacityProviderAttribute), Value: &name})] = name
		w.define("gpu", oneGPU)
		out, err := w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{
			TaskDefinition:           aws.String("f"),
			Count:                    aws.Int32(4),
			CapacityProviderStrategy: []types.CapacityProviderStrategyItem{share("spot", 0, 1), share("base", 0, 1)},
		})
		if err != nil || len(out.Tasks) != 3 || len(out.Failures) == 0 {
			t.Error(out, err)
		}
		w.expectOnProviders(nodes, map[string]int{"spot": 1, "base": 2})
		time.Sleep(time.Minute)
	})
}

func TestDefaultCapacityProviderStrategy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.provided()
		_, err := w.ecs.PutClusterCapacityProviders(w.ctx, &awsecs.PutClusterCapacityProvidersInput{
			Cluster:                         aws.String("default"),
			CapacityProviders:               []string{"spot", "base", "FARGATE"},
			DefaultCapacityProviderStrategy: []types.CapacityProviderStrategyItem{share("spot", 0, 1), share("base", 0, 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.create(2)
		w.after(time.Second)
		w.expectOnProviders(nodes, map[string]int{"spot": 1, "base": 1})

		out, err := w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{TaskDefinition: aws.String("f"), Count: aws.Int32(4)})
		if err != nil || len(out.Tasks) != 4 {
			t.Fatal(out, err)
		}
		w.expectOnProviders(nodes, map[string]int{"spot": 3, "base": 3})
		out, err = w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{TaskDefinition: aws.String("f"), LaunchType: types.LaunchTypeEc2})
		if err != nil || len(out.Tasks) != 1 || out.Tasks[0].CapacityProviderName != nil {
			t.Error("a launch type does not overrule the default strategy", out, err)
		}
		w.after(time.Minute)
	})
}

// TestWaitsForCapacityProvider checks that tasks wait for a provider that must grow for them, and that no others are
// started in their place.
func TestWaitsForCapacityProvider(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.store.Update(w.ctx, func(tx *state.Tx) error {
			tx.AutoScalingGroups.Put(&state.AutoScalingGroup{AutoScalingGroup: autoscalingtypes.AutoScalingGroup{
				AutoScalingGroupName: aws.String("gpus"),
			}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.ecs.CreateCapacityProvider(w.ctx,
			&awsecs.CreateCapacityProviderInput{Name: aws.String("gpus"), AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
				AutoScalingGroupArn: aws.String("gpus"),
				ManagedScaling:      &types.ManagedScaling{Status: types.ManagedScalingStatusEnabled},
			}})
		if err != nil {
			t.Fatal(err)
		}
		w.providers("gpus")
		w.create(3, by(share("gpus", 0, 1)))
		expect(t, w.after(time.Minute), 0, 3, 1, inProgress)
		stopped, err := w.ecs.ListTasks(w.ctx, &awsecs.ListTasksInput{DesiredStatus: types.DesiredStatusStopped})
		if err != nil || len(stopped.TaskArns) > 0 {
			t.Errorf("%d tasks were stopped: %v", len(stopped.TaskArns), err)
		}
	})
}

// TestHopelessTasksDoNotWait checks that tasks which no instance of their capacity provider could ever take don't wait for it to grow:
// RunTask answers why, and a service's events say so.
func TestHopelessTasksDoNotWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.store.Update(w.ctx, func(tx *state.Tx) error {
			statetest.PutProvider(tx, "gpus", "g4dn.xlarge")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.providers("gpus")
		w.define("gpu", func(c *types.ContainerDefinition) {
			c.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("4")}}
		})
		const why = "The task needs 4 GPUs, and an instance of its capacity provider has at most 1."
		out, err := w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{
			TaskDefinition:           aws.String("f"),
			CapacityProviderStrategy: []types.CapacityProviderStrategyItem{share("gpus", 0, 1)},
		})
		if err != nil || len(out.Tasks) > 0 || len(out.Failures) != 1 || *out.Failures[0].Reason != "RESOURCE:GPU" ||
			*out.Failures[0].Detail != why {
			t.Errorf("got %+v, %v", out, err)
		}
		w.create(2, by(share("gpus", 0, 1)))
		service := w.after(time.Second)
		const event = "(service s) was unable to place a task because no container instance met all of its requirements. " +
			"Reason: RESOURCE:GPU. " + why
		if service.PendingCount != 0 || len(service.Events) == 0 || *service.Events[0].Message != event {
			t.Errorf("%d pending, events %+v", service.PendingCount, service.Events)
		}
	})
}

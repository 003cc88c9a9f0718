package rollout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestCallsInAnyOrder makes calls in random order while traffic shifts. Whatever they were, a last deployment that nothing stands against comes to
// its end, with all tasks in the one group that has all the traffic.
func TestCallsInAnyOrder(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := strategies[r.IntN(len(strategies))]
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			w.cluster(2)
			w.balanceTwo()
			go w.balancer(w.ctx)
			w.define("v1", withPort)
			w.create(2, shifting(c))
			w.after(time.Duration(r.IntN(60)) * time.Second)
			var story []string
			for range 12 {
				story = append(story, w.anything(r))
				w.after(time.Duration(r.IntN(90_000)) * time.Millisecond)
			}
			w.alarm("errors", cwtypes.StateValueOk)
			w.define("last", withPort)
			last := strategies[r.IntN(len(strategies))]
			last.LifecycleHooks = []types.DeploymentLifecycleHook{}
			w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(2), DeploymentConfiguration: &last})
			s := w.after(time.Hour)
			d := s.Deployments[0]
			groups := w.groupsOfTasks()
			if len(s.Deployments) != 1 || d.RolloutState != completed || s.RunningCount != 2 || len(groups) != 2 || groups[0] != groups[1] ||
				!w.isAllTrafficTo(groups[0]) || w.record().Status != types.ServiceDeploymentStatusSuccessful {
				t.Errorf("seed %d: %s after %v: %d deployments, %s, %s, %d run, in %v, traffic %v", seed, c.Strategy, story,
					len(s.Deployments), d.RolloutState, w.record().Status, s.RunningCount, groups, w.traffic(production))
			}
			w.end()
			time.Sleep(100 * time.Hour)
		})
	}
}

var strategies = func() (all []types.DeploymentConfiguration) {
	breaker := &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}
	alarms := &types.DeploymentAlarms{AlarmNames: []string{"errors"}, Enable: true, Rollback: true}
	pause := []types.DeploymentLifecycleHook{{
		TargetType:      types.DeploymentLifecycleHookTargetTypePause,
		LifecycleStages: []types.DeploymentLifecycleHookStage{"POST_TEST_TRAFFIC_SHIFT", "PRE_SCALE_UP"},
	}}
	bake := aws.Int32(1)
	return []types.DeploymentConfiguration{
		{Strategy: types.DeploymentStrategyBlueGreen, BakeTimeInMinutes: bake, DeploymentCircuitBreaker: breaker},
		{Strategy: types.DeploymentStrategyBlueGreen, BakeTimeInMinutes: bake, Alarms: alarms, LifecycleHooks: pause},
		{Strategy: types.DeploymentStrategyLinear, BakeTimeInMinutes: bake, Alarms: alarms, DeploymentCircuitBreaker: breaker,
			LinearConfiguration: &types.LinearConfiguration{StepPercent: aws.Float64(30), StepBakeTimeInMinutes: bake}},
		{Strategy: types.DeploymentStrategyCanary, BakeTimeInMinutes: bake, LifecycleHooks: pause,
			CanaryConfiguration: &types.CanaryConfiguration{CanaryPercent: aws.Float64(10), CanaryBakeTimeInMinutes: bake}},
		{Strategy: types.DeploymentStrategyRolling, DeploymentCircuitBreaker: breaker, Alarms: alarms},
	}
}()

// anything makes one call, or has one thing happen, and says what. Calls may be refused.
func (w *world) anything(r *rand.Rand) string {
	switch r.IntN(9) {
	case 0, 1:
		image := []string{"v2", "sick", "broken"}[r.IntN(3)]
		w.deploy(image)
		return "deploy " + image
	case 2:
		c := strategies[r.IntN(len(strategies))]
		_, err := w.ecs.UpdateService(w.ctx, &awsecs.UpdateServiceInput{Service: aws.String("s"), DeploymentConfiguration: &c, ForceNewDeployment: r.IntN(2) == 0})
		return fmt.Sprint(c.Strategy, " ", err)
	case 3:
		n := int32(r.IntN(4))
		w.change(&awsecs.UpdateServiceInput{DesiredCount: &n})
		return fmt.Sprint(n, " tasks")
	case 4:
		kind := types.StopServiceDeploymentStopType([]string{"ROLLBACK", "ABORT"}[r.IntN(2)])
		_, err := w.ecs.StopServiceDeployment(w.ctx, &awsecs.StopServiceDeploymentInput{ServiceDeploymentArn: w.record().ServiceDeploymentArn, StopType: kind})
		return fmt.Sprint("stop ", kind, err != nil)
	case 5:
		action := types.DeploymentLifecycleHookAction([]string{"CONTINUE", "ROLLBACK"}[r.IntN(2)])
		hooks := w.record().LifecycleHookDetails
		if len(hooks) == 0 {
			return "no hook"
		}
		_, err := w.ecs.ContinueServiceDeployment(w.ctx, &awsecs.ContinueServiceDeploymentInput{
			ServiceDeploymentArn: w.record().ServiceDeploymentArn, HookId: hooks[len(hooks)-1].HookId, Action: action})
		return fmt.Sprint(action, err != nil)
	case 6:
		state := []cwtypes.StateValue{cwtypes.StateValueAlarm, cwtypes.StateValueOk}[r.IntN(2)]
		w.alarm("errors", state)
		return string(state)
	case 7:
		if all := w.tasks(); len(all) > 0 {
			w.report(w.ctx, all[r.IntN(len(all))], "STOPPED", aws.Int32(137))
		}
		return "a task dies"
	}
	v := r.IntN(3) + 1
	_, err := w.ecs.UpdateService(w.ctx, &awsecs.UpdateServiceInput{Service: aws.String("s"), TaskDefinition: aws.String(fmt.Sprint("f:", v))})
	return fmt.Sprint("f:", v, " ", err)
}

// isAllTrafficTo reports whether the production rule forwards to one group alone.
func (w *world) isAllTrafficTo(group string) bool {
	shares := w.traffic(production)
	weight, there := shares[group]
	return there && (len(shares) == 1 || weight == 100)
}

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/ecs/trafficshift"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/journaltest"
)

const (
	arnOfELB   = "arn:aws:elasticloadbalancing:us-east-1:000000000000:"
	blueGroup  = arnOfELB + "targetgroup/blue/1"
	greenGroup = arnOfELB + "targetgroup/green/2"
	listener   = arnOfELB + "listener/app/web/1/2"
	production = arnOfELB + "listener-rule/app/web/1/2/3"
	testRule   = arnOfELB + "listener-rule/app/web/1/2/4" // the default rule
)

// balanceTwo makes two target groups, of which a rule and its listener's default rule forward to the first.
func (w *world) balanceTwo() {
	w.t.Helper()
	w.balance()
	w.update(func(tx *state.Tx) {
		for _, arn := range []string{blueGroup, greenGroup} {
			tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{TargetGroupArn: &arn, Protocol: "HTTP", TargetType: "instance"}})
		}
		forward := []elb.Action{{Type: "forward", TargetGroupArn: aws.String(blueGroup)}}
		tx.LoadBalancers.Put(&state.LoadBalancer{LoadBalancer: elb.LoadBalancer{LoadBalancerArn: aws.String("lb"), Type: "application"}})
		tx.Listeners.Put(&state.Listener{DefaultRule: testRule, Listener: elb.Listener{
			ListenerArn:     aws.String(listener),
			LoadBalancerArn: aws.String("lb"),
			DefaultActions:  forward,
		}})
		tx.ListenerRules.Put(&state.ListenerRule{Listener: listener, Rule: elb.Rule{RuleArn: aws.String(production), Actions: forward}})
	})
}

// balancer plays the load balancer's process: targets are healthy after a while, unless their task's image is "sick", and drain within a second.
func (w *world) balancer(ctx context.Context) {
	seen := map[string]bool{}
	for {
		v := w.store.Watch()
		v.Targets.Watch()
		for target := range v.Targets.All() {
			id := fmt.Sprint(target.Key(), target.Task, target.Draining != nil)
			if seen[id] {
				continue
			}
			seen[id] = true
			time.AfterFunc(time.Second, func() { w.settleTarget(ctx, target.Key()) })
		}
		if v.Changed(ctx) != nil {
			return
		}
	}
}

func (w *world) settleTarget(ctx context.Context, key string) {
	w.store.Update(ctx, func(tx *state.Tx) error { //nolint:errcheck // the world may have ended
		switch t := tx.Targets.Get(key); {
		case t == nil:
		case t.Draining != nil:
			tx.DeleteTarget(t)
		default:
			health := elb.TargetHealthStateEnumHealthy
			if row := tx.Tasks.Get(t.Task); row != nil && *row.Containers[0].Image == "sick" {
				health = elb.TargetHealthStateEnumUnhealthy
			}
			tx.Targets.Put(t.Checked(elb.TargetHealth{State: health}, time.Now()))
		}
		return nil
	})
}

// shifting has a service shift traffic.
func shifting(c types.DeploymentConfiguration) func(*awsecs.CreateServiceInput) {
	return func(in *awsecs.CreateServiceInput) {
		in.DeploymentConfiguration = &c
		in.LoadBalancers = []types.LoadBalancer{{
			TargetGroupArn: aws.String(blueGroup), ContainerName: aws.String("main"), ContainerPort: aws.Int32(80),
			AdvancedConfiguration: &types.AdvancedConfiguration{
				AlternateTargetGroupArn: aws.String(greenGroup),
				ProductionListenerRule:  aws.String(production),
				TestListenerRule:        aws.String(testRule),
			},
		}}
	}
}

// inShiftingWorld runs a test in a world with a load balancer and a service of two tasks that shifts traffic.
func inShiftingWorld(t *testing.T, c types.DeploymentConfiguration, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.cluster(2)
		w.balanceTwo()
		go w.balancer(w.ctx)
		w.define("v1", withPort)
		w.create(2, shifting(c))
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		if trafficshift.Shifts(c.Strategy) {
			w.expectTraffic(blueGroup, 100, blueGroup, 100)
		}
		test(t, w)
		w.end()
		time.Sleep(100 * time.Hour)
	})
}

// traffic returns the weights of a rule's target groups.
func (w *world) traffic(rule string) map[string]int32 {
	w.t.Helper()
	out := map[string]int32{}
	for _, g := range w.store.View().ForwardOf(rule).TargetGroups {
		out[*g.TargetGroupArn] = aws.ToInt32(g.Weight)
	}
	return out
}

// expectTraffic checks the weights of a group in the rules for production and test traffic.
func (w *world) expectTraffic(inProduction string, weight int32, inTest string, testWeight int32) {
	w.t.Helper()
	if p := w.traffic(production); p[inProduction] != weight {
		w.t.Errorf("production traffic: %v, want %d to %s", p, weight, inProduction)
	}
	if p := w.traffic(testRule); p[inTest] != testWeight {
		w.t.Errorf("test traffic: %v, want %d to %s", p, testWeight, inTest)
	}
}

// deploy starts a deployment of an image.
func (w *world) deploy(image string) {
	w.t.Helper()
	w.define(image, withPort)
	w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
}

func (w *world) stage() types.ServiceDeploymentLifecycleStage { return w.record().LifecycleStage }

// expectWeights checks what the record says of the traffic of the target revision and of the first source.
func (w *world) expectWeights(stage types.ServiceDeploymentLifecycleStage, production, source float64) {
	w.t.Helper()
	r := w.record()
	p, q := aws.ToFloat64(r.TargetServiceRevision.RequestedProductionTrafficWeight), aws.ToFloat64(r.SourceServiceRevisions[0].RequestedProductionTrafficWeight)
	if r.LifecycleStage != stage || p != production || q != source {
		w.t.Errorf("in stage %s the new revision has %v and the old one %v, want %s, %v and %v", r.LifecycleStage, p, q, stage, production, source)
	}
}

func blueGreen(bake int32) types.DeploymentConfiguration {
	return types.DeploymentConfiguration{Strategy: types.DeploymentStrategyBlueGreen, BakeTimeInMinutes: &bake}
}

func TestBlueGreen(t *testing.T) {
	inShiftingWorld(t, blueGreen(5), func(t *testing.T, w *world) {
		w.deploy("v2")
		w.after(2500 * time.Millisecond)
		if stage := w.stage(); stage != types.ServiceDeploymentLifecycleStageScaleUp {
			t.Error(stage)
		}
		w.expectTraffic(blueGroup, 100, blueGroup, 100)
		s := w.after(10 * time.Second)
		expect(t, s, 4, 0, 2, inProgress)
		w.expectTraffic(greenGroup, 100, greenGroup, 100)
		w.expectWeights(types.ServiceDeploymentLifecycleStageBakeTime, 100, 0)
		expect(t, w.after(4*time.Minute+30*time.Second), 4, 0, 2, inProgress)
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		w.expectWeights(types.ServiceDeploymentLifecycleStageCleanUp, 100, 0)
		for _, e := range w.service().Events {
			if strings.Contains(*e.Message, "taskSet") && strings.HasSuffix(*e.Message, reachedSteady) {
				t.Errorf("a part of the service told of itself: %s", *e.Message)
			}
		}
		if r := w.record(); r.Status != types.ServiceDeploymentStatusSuccessful || r.FinishedAt == nil {
			t.Errorf("%+v", r)
		}
		if got := w.groupsOfTasks(); !slices.Equal(got, []string{greenGroup, greenGroup}) {
			t.Errorf("the tasks are in %v", got)
		}
		if got := *w.service().LoadBalancers[0].TargetGroupArn; got != blueGroup {
			t.Errorf("the service shows %s", got)
		}
		w.deploy("v3") // back to the first group
		w.after(30 * time.Second)
		w.expectTraffic(blueGroup, 100, blueGroup, 100)
		expect(t, w.after(6*time.Minute), 2, 0, 1, completed)
		revision, err := w.ecs.DescribeServiceRevisions(w.ctx, &awsecs.DescribeServiceRevisionsInput{
			ServiceRevisionArns: []string{*w.record().TargetServiceRevision.Arn},
		})
		if err != nil || *revision.ServiceRevisions[0].ResolvedConfiguration.LoadBalancers[0].TargetGroupArn != blueGroup {
			t.Errorf("%v, %+v", err, revision)
		}
	})
}

// TestProcessThatIsBehind: a deployment goes on from a shift of traffic once the load balancers' processes have taken it up, and then at once.
func TestProcessThatIsBehind(t *testing.T) {
	inShiftingWorld(t, blueGreen(5), func(t *testing.T, w *world) {
		w.behind.Store(true)
		w.deploy("v2")
		expect(t, w.after(time.Hour), 4, 0, 2, inProgress)
		if stage := w.stage(); stage != types.ServiceDeploymentLifecycleStageTestTrafficShift {
			t.Error(stage)
		}
		w.expectTraffic(blueGroup, 100, greenGroup, 100)
		w.behind.Store(false)
		w.after(300 * time.Millisecond)
		w.expectWeights(types.ServiceDeploymentLifecycleStageBakeTime, 100, 0)
	})
}

// groupsOfTasks returns the groups of the targets that don't drain.
func (w *world) groupsOfTasks() (groups []string) {
	for target := range w.store.View().Targets.All() {
		if target.Draining == nil {
			groups = append(groups, target.Group)
		}
	}
	return groups
}

func TestLinearAndCanary(t *testing.T) {
	for _, c := range []struct {
		config types.DeploymentConfiguration
		want   string // the weight of the new group, each minute
	}{
		{types.DeploymentConfiguration{Strategy: "LINEAR", LinearConfiguration: &types.LinearConfiguration{
			StepPercent: aws.Float64(40), StepBakeTimeInMinutes: aws.Int32(2)}}, "40/100 40/100 80/100 80/100 100/100"},
		{types.DeploymentConfiguration{Strategy: "CANARY", CanaryConfiguration: &types.CanaryConfiguration{
			CanaryPercent: aws.Float64(0.5), CanaryBakeTimeInMinutes: aws.Int32(3)}}, "5/1000 5/1000 5/1000 100/100 100/100"},
	} {
		inShiftingWorld(t, c.config, func(t *testing.T, w *world) {
			w.deploy("v2")
			time.Sleep(10 * time.Second)
			var got []string
			for range 5 {
				p := w.traffic(production)
				got = append(got, fmt.Sprintf("%d/%d", p[greenGroup], p[greenGroup]+p[blueGroup]))
				w.after(time.Minute)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s: %s, want %s", c.config.Strategy, s, c.want)
			}
			expect(t, w.service(), 2, 0, 1, completed)
		})
	}
}

// TestSickTasksGetNoTraffic: the load balancer finds the new tasks unhealthy. The circuit breaker rolls back, and there never was traffic for them.
func TestSickTasksGetNoTraffic(t *testing.T) {
	c := blueGreen(5)
	c.DeploymentCircuitBreaker = &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}
	inShiftingWorld(t, c, func(t *testing.T, w *world) {
		w.deploy("sick")
		for range 10 {
			w.after(time.Second)
			w.expectTraffic(blueGroup, 100, blueGroup, 100)
		}
		s := w.after(10 * time.Minute)
		expect(t, s, 2, 0, 1, completed)
		if !strings.HasSuffix(*s.TaskDefinition, "f:1") || w.record().Status != types.ServiceDeploymentStatusRollbackSuccessful {
			t.Errorf("%s, %s", *s.TaskDefinition, w.record().Status)
		}
		w.expectTraffic(blueGroup, 100, blueGroup, 100)
	})
}

// TestRollBackOfShift: a deployment that has taken the traffic is rolled back at once: by an alarm, by a user, or since its listener is gone.
func TestRollBackOfShift(t *testing.T) {
	c := blueGreen(5)
	c.Alarms = &types.DeploymentAlarms{AlarmNames: []string{"errors"}, Enable: true, Rollback: true}
	stop := func(w *world) {
		arn := w.record().ServiceDeploymentArn
		if _, err := w.ecs.StopServiceDeployment(w.ctx, &awsecs.StopServiceDeploymentInput{ServiceDeploymentArn: arn}); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, how := range []struct {
		name string
		at   time.Duration
		fail func(*world)
		want string
	}{
		{"an alarm in the bake time", time.Minute, func(w *world) { w.alarm("errors", cwtypes.StateValueAlarm) },
			"ECS deployment alarms: alarm detected."},
		{"an alarm in the scale-up", time.Second, func(w *world) { w.alarm("errors", cwtypes.StateValueAlarm) },
			"ECS deployment alarms: alarm detected."},
		{"a stop in the bake time", time.Minute, stop, "ECS deployment: it was stopped by StopServiceDeployment."},
		{"a stop in the scale-up", time.Second, stop, "ECS deployment: it was stopped by StopServiceDeployment."},
		{"a listener's deletion", time.Second, func(w *world) {
			w.update(func(tx *state.Tx) { tx.DeleteListener(listener) })
		}, "ECS deployment: traffic could not be shifted."},
	} {
		inShiftingWorld(t, c, func(t *testing.T, w *world) {
			w.deploy("v2")
			w.after(how.at)
			how.fail(w)
			s := w.after(20 * time.Second)
			expect(t, s, 2, 0, 1, completed)
			if r := w.record(); r.Status != types.ServiceDeploymentStatusRollbackSuccessful || *r.StatusReason != how.want || r.Rollback == nil {
				t.Errorf("%s: %s, %s", how.name, r.Status, *r.StatusReason)
			}
			if !strings.HasSuffix(*s.TaskDefinition, "f:1") {
				t.Errorf("%s: it runs %s", how.name, *s.TaskDefinition)
			}
			if w.store.View().ForwardOf(production) != nil {
				w.expectTraffic(blueGroup, 100, blueGroup, 100)
				w.expectWeights(types.ServiceDeploymentLifecycleStageCleanUp, 0, 100)
			}
		})
	}
}

// TestRollBackAtAnyTime: whenever a deployment fails before its clean-up, all traffic goes to the old tasks, and at no time to a group without
// healthy targets.
func TestRollBackAtAnyTime(t *testing.T) {
	c := types.DeploymentConfiguration{
		Strategy:            types.DeploymentStrategyLinear,
		LinearConfiguration: &types.LinearConfiguration{StepPercent: aws.Float64(30), StepBakeTimeInMinutes: aws.Int32(1)},
		BakeTimeInMinutes:   aws.Int32(1),
		Alarms:              &types.DeploymentAlarms{AlarmNames: []string{"errors"}, Enable: true, Rollback: true},
	}
	rolledBack := 0
	for at := time.Duration(0); at < 5*time.Minute; at += 7300 * time.Millisecond {
		inShiftingWorld(t, c, func(t *testing.T, w *world) {
			w.deploy("v2")
			w.after(at)
			w.alarm("errors", cwtypes.StateValueAlarm)
			for range 20 {
				w.after(time.Second)
				w.checkTraffic()
			}
			expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
			switch status := w.record().Status; status {
			case types.ServiceDeploymentStatusRollbackSuccessful:
				rolledBack++
				w.expectTraffic(blueGroup, 100, blueGroup, 100)
			case types.ServiceDeploymentStatusSuccessful:
				w.expectTraffic(greenGroup, 100, greenGroup, 100)
			default:
				t.Errorf("after %s: %s", at, status)
			}
		})
	}
	if rolledBack < 25 {
		t.Errorf("only %d were rolled back", rolledBack)
	}
}

// TestPause: a deployment waits at its hooks, until somebody has it go on or roll back.
func TestPause(t *testing.T) {
	c := blueGreen(0)
	c.LifecycleHooks = []types.DeploymentLifecycleHook{{
		TargetType:      types.DeploymentLifecycleHookTargetTypePause,
		LifecycleStages: []types.DeploymentLifecycleHookStage{"POST_TEST_TRAFFIC_SHIFT"},
	}}
	goOn := func(w *world, action types.DeploymentLifecycleHookAction) error {
		r := w.record()
		hooks := r.LifecycleHookDetails
		_, err := w.ecs.ContinueServiceDeployment(w.ctx, &awsecs.ContinueServiceDeploymentInput{
			ServiceDeploymentArn: r.ServiceDeploymentArn, HookId: hooks[len(hooks)-1].HookId, Action: action})
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.cluster(2)
		w.balanceTwo()
		go w.balancer(w.ctx)
		w.define("v1", withPort)
		w.create(2, shifting(c))
		expect(t, w.after(time.Hour), 2, 0, 1, inProgress)
		if err := goOn(w, ""); err != nil {
			t.Fatal(err)
		}
		expect(t, w.after(time.Second), 2, 0, 1, completed)
		if err := goOn(w, ""); err == nil {
			t.Error("a hook was continued twice")
		}
		w.deploy("v2")
		expect(t, w.after(time.Hour), 4, 0, 2, inProgress)
		w.expectTraffic(blueGroup, 100, greenGroup, 100)
		h := w.record().LifecycleHookDetails[0]
		if h.Status != types.DeploymentLifecycleHookStatusAwaitingAction || h.TargetType != types.DeploymentLifecycleHookTargetTypePause {
			t.Errorf("%+v", h)
		}
		if err := goOn(w, types.DeploymentLifecycleHookActionRollback); err != nil {
			t.Fatal(err)
		}
		expect(t, w.after(10*time.Second), 2, 0, 1, completed)
		w.expectTraffic(blueGroup, 100, blueGroup, 100)
		w.deploy("v3")
		expect(t, w.after(25*time.Hour), 2, 0, 1, completed)
		if r := w.record(); r.Status != types.ServiceDeploymentStatusRollbackSuccessful || r.LifecycleHookDetails[0].Status != "TIMED_OUT" {
			t.Errorf("%+v", r)
		}
		w.end()
		time.Sleep(100 * time.Hour)
	})
}

// TestUpdateDuringShift: a newer deployment takes the traffic back from one that hasn't finished, and begins anew.
func TestUpdateDuringShift(t *testing.T) {
	c := types.DeploymentConfiguration{Strategy: "LINEAR", LinearConfiguration: &types.LinearConfiguration{
		StepPercent: aws.Float64(50), StepBakeTimeInMinutes: aws.Int32(5)}}
	for _, next := range []*types.DeploymentConfiguration{nil, {Strategy: types.DeploymentStrategyRolling}} {
		inShiftingWorld(t, c, func(t *testing.T, w *world) {
			w.deploy("v2")
			w.after(time.Minute)
			w.expectTraffic(greenGroup, 50, greenGroup, 100)
			w.define("v3", withPort)
			w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DeploymentConfiguration: next, DesiredCount: aws.Int32(3)})
			w.after(time.Second)
			w.expectTraffic(blueGroup, 100, blueGroup, 100)
			s := w.after(20 * time.Minute)
			expect(t, s, 3, 0, 1, completed)
			if want := map[bool]string{true: greenGroup, false: blueGroup}[next == nil]; w.groupsOfTasks()[0] != want {
				t.Errorf("the tasks are in %v, want %s", w.groupsOfTasks(), want)
			}
			w.expectTraffic(w.groupsOfTasks()[0], 100, w.groupsOfTasks()[0], 100)
		})
	}
}

// TestToRollingUpdates: a service whose tasks are in the alternate group stays there with rolling updates, and can't leave its listener behind.
func TestToRollingUpdates(t *testing.T) {
	inShiftingWorld(t, blueGreen(0), func(t *testing.T, w *world) {
		w.deploy("v2")
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		w.change(&awsecs.UpdateServiceInput{DeploymentConfiguration: &types.DeploymentConfiguration{Strategy: types.DeploymentStrategyRolling}})
		w.deploy("v3")
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		w.expectTraffic(greenGroup, 100, greenGroup, 100)
		if got := w.groupsOfTasks(); !slices.Equal(got, []string{greenGroup, greenGroup}) {
			t.Error(got)
		}
		in := &awsecs.CreateServiceInput{}
		shifting(types.DeploymentConfiguration{})(in)
		in.LoadBalancers[0].AdvancedConfiguration = nil
		_, err := w.ecs.UpdateService(w.ctx, &awsecs.UpdateServiceInput{Service: aws.String("s"), LoadBalancers: in.LoadBalancers})
		if err == nil || !strings.Contains(err.Error(), greenGroup) {
			t.Error(err)
		}
		in.LoadBalancers[0].TargetGroupArn = aws.String(greenGroup)
		w.change(&awsecs.UpdateServiceInput{LoadBalancers: in.LoadBalancers})
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
	})
}

// TestScalingAndDeletionDuringShift: both sides follow the desired count, a dead task of either is replaced, and a deleted service goes.
func TestScalingAndDeletionDuringShift(t *testing.T) {
	inShiftingWorld(t, blueGreen(10), func(t *testing.T, w *world) {
		w.deploy("v2")
		expect(t, w.after(time.Minute), 4, 0, 2, inProgress)
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(3)})
		expect(t, w.after(10*time.Second), 6, 0, 2, inProgress)
		for _, d := range w.service().Deployments {
			i := slices.IndexFunc(w.tasks(), func(t *state.Task) bool { return *t.StartedBy == *d.Id })
			w.report(w.ctx, w.tasks()[i], "STOPPED", aws.Int32(137))
		}
		s := w.after(10 * time.Second)
		expect(t, s, 6, 0, 2, inProgress)
		if s.Deployments[0].RunningCount != 3 || s.Deployments[1].RunningCount != 3 {
			t.Errorf("%d and %d run", s.Deployments[0].RunningCount, s.Deployments[1].RunningCount)
		}
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(1)})
		expect(t, w.after(10*time.Second), 2, 0, 2, inProgress)
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("s"), Force: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		if s := w.after(10 * time.Second); *s.Status != state.ServiceInactive || len(w.tasks()) != 0 {
			t.Errorf("it is %s with %d tasks", *s.Status, len(w.tasks()))
		}
	})
}

// TestShiftOfNetworkLoadBalancer: its listener forwards by weight.
func TestShiftOfNetworkLoadBalancer(t *testing.T) {
	const tcp = arnOfELB + "listener/net/tcp/1/2"
	inShiftingWorld(t, blueGreen(5), func(t *testing.T, w *world) {
		w.update(func(tx *state.Tx) {
			tx.LoadBalancers.Put(&state.LoadBalancer{LoadBalancer: elb.LoadBalancer{LoadBalancerArn: aws.String("net"), Type: "network"}})
			tx.Listeners.Put(&state.Listener{DefaultRule: "none", Listener: elb.Listener{
				ListenerArn:     aws.String(tcp),
				LoadBalancerArn: aws.String("net"),
				DefaultActions:  []elb.Action{{Type: "forward", TargetGroupArn: aws.String(blueGroup)}},
			}})
		})
		in := &awsecs.CreateServiceInput{}
		shifting(types.DeploymentConfiguration{})(in)
		in.LoadBalancers[0].AdvancedConfiguration.ProductionListenerRule = aws.String(tcp)
		w.define("v2", withPort)
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), LoadBalancers: in.LoadBalancers})
		w.after(time.Second)
		if got := w.traffic(tcp); got[blueGroup] != 100 || len(got) != 2 { // so that the new group is checked
			t.Error(got)
		}
		w.after(time.Minute)
		if got := w.traffic(tcp); got[greenGroup] != 100 {
			t.Error(got)
		}
		in.LoadBalancers[0].AdvancedConfiguration.ProductionListenerRule = aws.String(listener) // an application load balancer's, not a rule
		_, err := w.ecs.UpdateService(w.ctx, &awsecs.UpdateServiceInput{Service: aws.String("s"), LoadBalancers: in.LoadBalancers})
		if err == nil || !strings.Contains(err.Error(), "productionListenerRule") {
			t.Error(err)
		}
	})
}

// TestStrategyOfRunningUpdate: an update that shifts traffic takes the place of a rolling one that hasn't finished. The old tasks are all there
// before the rolling update's go.
func TestStrategyOfRunningUpdate(t *testing.T) {
	half := types.DeploymentConfiguration{
		Strategy:              types.DeploymentStrategyRolling,
		MinimumHealthyPercent: aws.Int32(50),
		MaximumPercent:        aws.Int32(150),
	}
	inShiftingWorld(t, half, func(t *testing.T, w *world) {
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(4)})
		w.after(time.Minute)
		w.deploy("v2")
		w.after(4 * time.Second)
		mixed := w.service().Deployments
		if len(mixed) != 2 || mixed[0].RunningCount == 0 || mixed[1].RunningCount == 4 {
			t.Fatalf("%+v", mixed)
		}
		w.define("v3", withPort)
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DeploymentConfiguration: new(blueGreen(0))})
		for range 20 {
			w.after(time.Second)
			w.checkTraffic()
			healthy := 0
			for target := range w.store.View().Targets.All() {
				if target.IsHealthy() && w.traffic(production)[target.Group] > 0 {
					healthy++
				}
			}
			if healthy < 3 {
				t.Fatalf("%d tasks have the traffic of four", healthy)
			}
		}
		expect(t, w.after(time.Minute), 4, 0, 1, completed)
		w.expectTraffic(greenGroup, 100, greenGroup, 100)
	})
}

// TestSickSourceIsMended: a deployment that shifts traffic takes the place of a rolling update whose source's tasks fail again and again. It doesn't
// wait for these, and the rolling update's tasks stay until it has the traffic.
func TestSickSourceIsMended(t *testing.T) {
	inShiftingWorld(t, types.DeploymentConfiguration{Strategy: types.DeploymentStrategyRolling}, func(t *testing.T, w *world) {
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(0)})
		w.after(time.Minute)
		w.deploy("sick") // complete, since nothing is to run
		w.after(time.Minute)
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(2)})
		w.after(time.Minute)
		w.deploy("v3")
		w.after(2500 * time.Millisecond)
		w.define("v4", withPort)
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DeploymentConfiguration: new(blueGreen(0))})
		s := w.after(time.Hour)
		expect(t, s, 2, 0, 1, completed)
		w.expectTraffic(greenGroup, 100, greenGroup, 100)
	})
}

// TestShiftWithoutLoadBalancer: a service without one has the stages all the same.
func TestShiftWithoutLoadBalancer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2, func(in *awsecs.CreateServiceInput) { in.DeploymentConfiguration = new(blueGreen(5)) })
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(time.Minute), 4, 0, 2, inProgress)
		if w.stage() != types.ServiceDeploymentLifecycleStageBakeTime {
			t.Error(w.stage())
		}
		expect(t, w.after(6*time.Minute), 2, 0, 1, completed)
	})
}

// TestKillsDuringShift kills the control plane after each of its writes during three deployments, of which one is rolled back and one replaced.
// Every time, the service comes to the same end.
func TestKillsDuringShift(t *testing.T) {
	type moment struct {
		rows journaltest.Rows
		at   time.Time
	}
	var history []moment
	c := types.DeploymentConfiguration{
		Strategy:                 types.DeploymentStrategyLinear,
		LinearConfiguration:      &types.LinearConfiguration{StepPercent: aws.Float64(50), StepBakeTimeInMinutes: aws.Int32(1)},
		DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true},
	}
	inShiftingWorld(t, c, func(t *testing.T, w *world) {
		w.journal.OnWrite(func(rows journaltest.Rows) { history = append(history, moment{rows, time.Now()}) })
		w.deploy("v2")
		w.after(10 * time.Minute)
		w.deploy("broken")
		w.after(10 * time.Minute)
		w.deploy("v4")
		w.after(20 * time.Second)
		w.deploy("v5")
		w.after(10 * time.Minute)
	})
	if len(history) < 30 {
		t.Fatalf("only %d writes", len(history))
	}
	for i, kill := range history {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(kill.at))
			w := newWorld(t, kill.rows)
			go w.balancer(w.ctx)
			for range 60 {
				w.after(10 * time.Second)
				w.checkTraffic()
			}
			s := w.service()
			if len(s.Deployments) != 1 || s.Deployments[0].RolloutState != completed || s.RunningCount != 2 || s.PendingCount != 0 {
				t.Errorf("killed after write %d: %d running, %+v", i, s.RunningCount, s.Deployments)
			}
			groups := w.groupsOfTasks()
			w.expectTraffic(groups[0], 100, groups[0], 100)
			if len(groups) != 2 || groups[0] != groups[1] {
				t.Errorf("the tasks are in %v", groups)
			}
			w.end()
			time.Sleep(time.Hour)
		})
	}
}

// checkTraffic expects the production rule to share the traffic between the two groups, and each one with a part of it to have a target that is
// healthy.
func (w *world) checkTraffic() {
	w.t.Helper()
	shares := w.traffic(production)
	if sum := shares[blueGroup] + shares[greenGroup]; len(shares) != 2 || sum != 100 && sum != 1000 {
		w.t.Errorf("the traffic is shared %v", shares)
	}
	healthy := map[string]int{}
	for target := range w.store.View().Targets.All() {
		if target.IsHealthy() {
			healthy[target.Group]++
		}
	}
	for group, weight := range shares {
		if weight > 0 && healthy[group] == 0 {
			w.t.Errorf("%s has %d of the traffic and no target", group, weight)
		}
	}
}

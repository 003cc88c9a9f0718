// Package trafficshift decides the next step of a deployment that moves a service's traffic to new tasks beside the old ones: at once
// (BLUE_GREEN), in equal steps (LINEAR) or by a small part first (CANARY). It is pure: how far the deployment has come and what is to be seen
// of its tasks go in, the next state comes out. The rollout loop calls it, and makes one change at a time.
package trafficshift

import (
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Stage is a lifecycle stage: API_ServiceDeployment. "" comes before the first one.
type Stage = types.ServiceDeploymentLifecycleStage

// The stages, in their order. Between two shifts of production traffic it goes back to PreProductionTrafficShift.
const (
	ReconcileService           = types.ServiceDeploymentLifecycleStageReconcileService
	PreScaleUp                 = types.ServiceDeploymentLifecycleStagePreScaleUp
	ScaleUp                    = types.ServiceDeploymentLifecycleStageScaleUp
	PostScaleUp                = types.ServiceDeploymentLifecycleStagePostScaleUp
	TestTrafficShift           = types.ServiceDeploymentLifecycleStageTestTrafficShift
	PostTestTrafficShift       = types.ServiceDeploymentLifecycleStagePostTestTrafficShift
	PreProductionTrafficShift  = Stage(types.DeploymentLifecycleHookStagePreProductionTrafficShift)
	ProductionTrafficShift     = types.ServiceDeploymentLifecycleStageProductionTrafficShift
	PostProductionTrafficShift = types.ServiceDeploymentLifecycleStagePostProductionTrafficShift
	BakeTime                   = types.ServiceDeploymentLifecycleStageBakeTime
	CleanUp                    = types.ServiceDeploymentLifecycleStageCleanUp
)

// Whole is all traffic. Weights are in tenths of a percent, which is how fine API_CanaryConfiguration takes them.
const Whole = 1000

// Weights returns the weights of two target groups of which the new one gets a part of the traffic. A weight is at most 999.
func Weights(part int) (green, blue int32) {
	if part%10 == 0 {
		return int32(part / 10), int32((Whole - part) / 10)
	}
	return int32(part), int32(Whole - part)
}

// Config is what a deployment was started with.
type Config struct {
	// Rolling is set for a rolling update that only has to clear away an unfinished shift before it begins.
	Rolling bool
	// First and Step are the parts of production traffic that the first shift moves, and each later one.
	First int
	Step  int
	// StepBake is the time between two shifts, Bake the time after the last one.
	StepBake time.Duration
	Bake     time.Duration
	Hooks    []types.DeploymentLifecycleHook
}

// ConfigOf returns what a deployment configuration says. The bake time may depend on alarms, so the caller knows it.
func ConfigOf(c *types.DeploymentConfiguration, bake time.Duration) Config {
	out := Config{Rolling: !Shifts(c.Strategy), First: Whole, Step: Whole, Bake: bake, Hooks: c.LifecycleHooks}
	switch {
	case c.Strategy == types.DeploymentStrategyCanary && c.CanaryConfiguration != nil:
		out.First = tenths(c.CanaryConfiguration.CanaryPercent)
		out.StepBake = minutes(c.CanaryConfiguration.CanaryBakeTimeInMinutes)
	case c.Strategy == types.DeploymentStrategyLinear && c.LinearConfiguration != nil:
		out.First = tenths(c.LinearConfiguration.StepPercent)
		out.Step = out.First
		out.StepBake = minutes(c.LinearConfiguration.StepBakeTimeInMinutes)
	}
	return out
}

// Shifts reports whether a deployment strategy shifts traffic.
func Shifts(s types.DeploymentStrategy) bool {
	return s == types.DeploymentStrategyBlueGreen || s == types.DeploymentStrategyLinear || s == types.DeploymentStrategyCanary
}

func tenths(percent *float64) int { return int(math.Round(aws.ToFloat64(percent) * 10)) }

func minutes(n *int32) time.Duration { return time.Duration(aws.ToInt32(n)) * time.Minute }

// State is how far a deployment has come.
type State struct {
	Stage Stage
	Since time.Time // since when it is in this stage
	// Production and Test are the parts of the traffic that its tasks get.
	Production int
	Test       int
	// Hooks are those that it has come to. One that is new has no id yet.
	Hooks []Hook
}

// Hook is a lifecycle hook that a deployment has come to, in a stage.
type Hook struct {
	types.DeploymentLifecycleHookDetail
	Stage Stage
}

// Seen is what is to be seen of the service.
type Seen struct {
	HasSource  bool // another deployment's tasks have the traffic when this one begins
	HasTest    bool // there are listeners for test traffic
	Reconciled bool // no tasks are left but the source's
	Ready      bool // as many tasks as desired are there, and all are healthy, by their load balancers too
	CleanedUp  bool // no other deployment's tasks are left
	Routed     bool // the load balancers' processes send the traffic where State has it
}

// glance is how long it takes at most to notice that the traffic is Routed.
const glance = 200 * time.Millisecond

// Plan is one step.
type Plan struct {
	State
	Changed  bool      // State isn't what it was
	RollBack bool      // a hook wants the deployment rolled back
	Done     bool      // nothing is left to do
	Wake     time.Time // when time alone may make another step due; zero is never
	Calls    []Call    // the functions that the stage's hooks invoke
}

// Call is a function that a hook invokes.
type Call struct {
	Stage Stage
	Hook  types.DeploymentLifecycleHook
	Index int // in State.Hooks, where it says what comes of it
}

// CallsFunction reports whether a hook invokes a function, as those without a type do.
func CallsFunction(h *types.DeploymentLifecycleHook) bool {
	return h.TargetType != types.DeploymentLifecycleHookTargetTypePause
}

// Decide plans the next step.
func Decide(c Config, s State, seen Seen, now time.Time) Plan {
	p := Plan{State: s}
	if !seen.HasSource { // there is nothing to go back to, nor to share the traffic with
		c.First = Whole
		c.Bake = 0
	}
	if p.await(now); s.Stage == CleanUp { // after a roll-back, too, nothing is left to go back to
		p.RollBack = false
	}
	if p.RollBack || !p.Wake.IsZero() {
		return p
	}
	switch s.Stage {
	case "":
		if seen.Reconciled && !c.Rolling {
			p.enter(c, PreScaleUp, now)
		} else {
			p.enter(c, ReconcileService, now)
		}
	case ReconcileService:
		switch {
		case !seen.Reconciled:
		case c.Rolling:
			p.Done = true
		default:
			p.enter(c, PreScaleUp, now)
		}
	case CleanUp:
		p.Done = seen.CleanedUp && seen.Ready
	case PreScaleUp:
		p.enter(c, ScaleUp, now)
	default:
		p.shift(c, seen, now)
	}
	return p
}

// shift moves on between the end of the scale-up and the clean-up. It does so only while all new tasks are well, and from a shift only when
// the traffic has moved: who is asked at the next stage may look at once.
func (p *Plan) shift(c Config, seen Seen, now time.Time) {
	if !seen.Ready {
		return
	}
	if (p.Stage == TestTrafficShift || p.Stage == ProductionTrafficShift) && !seen.Routed {
		p.Wake = now.Add(glance)
		return
	}
	switch p.Stage {
	case ScaleUp:
		p.enter(c, PostScaleUp, now)
	case PostScaleUp:
		if seen.HasTest {
			p.Test = Whole
		}
		p.enter(c, TestTrafficShift, now)
	case TestTrafficShift:
		p.enter(c, PostTestTrafficShift, now)
	case PostTestTrafficShift:
		p.enter(c, PreProductionTrafficShift, now)
	case PreProductionTrafficShift:
		p.Production = c.next(p.Production)
		p.enter(c, ProductionTrafficShift, now)
	case ProductionTrafficShift:
		switch {
		case p.Production == Whole:
			p.enter(c, PostProductionTrafficShift, now)
		case p.passed(c.StepBake, now):
			p.enter(c, PreProductionTrafficShift, now)
		}
	case PostProductionTrafficShift:
		p.enter(c, BakeTime, now)
	case BakeTime:
		if p.passed(c.Bake, now) {
			p.enter(c, CleanUp, now)
		}
	}
}

// next returns the part of production traffic after the next shift.
func (c Config) next(part int) int {
	if part == 0 {
		return min(c.First, Whole)
	}
	return min(part+c.Step, Whole)
}

// passed reports whether the stage has lasted for a time, and asks to be woken when it will have.
func (p *Plan) passed(d time.Duration, now time.Time) bool {
	end := p.Since.Add(d)
	if now.Before(end) {
		p.Wake = end
		return false
	}
	return true
}

// enter enters a stage, and comes to its hooks.
func (p *Plan) enter(c Config, stage Stage, now time.Time) {
	p.Stage = stage
	p.Since = now
	p.Changed = true
	p.hook(c, stage, now)
}

// hook comes to the hooks of a stage.
func (p *Plan) hook(c Config, stage Stage, now time.Time) {
	p.Hooks = slices.Clone(p.Hooks)
	for _, h := range c.Hooks {
		if !slices.Contains(h.LifecycleStages, types.DeploymentLifecycleHookStage(stage)) {
			continue
		}
		timeout, action := TimeoutOf(h.TimeoutConfiguration)
		detail := Hook{Stage: stage, DeploymentLifecycleHookDetail: types.DeploymentLifecycleHookDetail{
			TargetType:    h.TargetType,
			Status:        types.DeploymentLifecycleHookStatusAwaitingAction,
			ExpiresAt:     aws.Time(now.Add(timeout)),
			TimeoutAction: action,
		}}
		if CallsFunction(&h) {
			detail.TargetType = types.DeploymentLifecycleHookTargetTypeAwsLambda
			detail.TargetArn = h.HookTargetArn
			detail.Status = types.DeploymentLifecycleHookStatusInProgress
			p.Calls = append(p.Calls, Call{stage, h, len(p.Hooks)})
		}
		p.Hooks = append(p.Hooks, detail)
	}
}

// RollBack returns the state of what gets the traffic back from a deployment that has come to s. The hooks of the shifts that there were are
// invoked once more. Nobody waits for what they say before the traffic moves.
func RollBack(c Config, s State, now time.Time) Plan {
	p := Plan{State: s, Changed: true}
	if s.Production > 0 {
		p.hook(c, ProductionTrafficShift, now)
	}
	if slices.Contains(shifting, s.Stage) {
		p.hook(c, TestTrafficShift, now)
	}
	p.Stage = CleanUp
	p.Since = now
	p.Production = Whole
	p.Test = Whole
	return p
}

// shifting are the stages from the shift of test traffic on.
var shifting = []Stage{
	TestTrafficShift, PostTestTrafficShift, PreProductionTrafficShift, ProductionTrafficShift, PostProductionTrafficShift, BakeTime,
}

// Waits reports whether a hook with a status holds its deployment up.
func Waits(s types.DeploymentLifecycleHookStatus) bool {
	return s == types.DeploymentLifecycleHookStatusAwaitingAction || s == types.DeploymentLifecycleHookStatusInProgress
}

// TimeoutOf returns how long a hook waits and what happens then: a day and ROLLBACK, if it doesn't say.
func TimeoutOf(c *types.DeploymentLifecycleHookTimeoutConfiguration) (time.Duration, types.DeploymentLifecycleHookAction) {
	timeout, action := 24*time.Hour, types.DeploymentLifecycleHookActionRollback
	if c != nil && c.TimeoutInMinutes != nil {
		timeout = minutes(c.TimeoutInMinutes)
	}
	if c != nil && c.Action != "" {
		action = c.Action
	}
	return timeout, action
}

// await looks at the hooks: it notes which of them have waited for too long, and wakes when the next one will have.
func (p *Plan) await(now time.Time) {
	p.Hooks = slices.Clone(p.Hooks)
	for i := range p.Hooks {
		h := &p.Hooks[i]
		if Waits(h.Status) && !now.Before(*h.ExpiresAt) {
			h.Status = types.DeploymentLifecycleHookStatusTimedOut
			p.Changed = true
		}
		switch {
		case h.Status == types.DeploymentLifecycleHookStatusFailed,
			h.Status == types.DeploymentLifecycleHookStatusTimedOut && h.TimeoutAction == types.DeploymentLifecycleHookActionRollback:
			p.RollBack = true
		case Waits(h.Status) && (p.Wake.IsZero() || h.ExpiresAt.Before(p.Wake)):
			p.Wake = *h.ExpiresAt
		}
	}
}

package trafficshift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	all       = Seen{HasSource: true, HasTest: true, Reconciled: true, Ready: true, CleanedUp: true, Routed: true}
	blueGreen = Config{First: Whole, Step: Whole, Bake: 5 * time.Minute}
	linear    = Config{First: 400, Step: 400, StepBake: time.Minute, Bake: 5 * time.Minute}
	canary    = Config{First: 5, Step: Whole, StepBake: 10 * time.Minute}
)

func pause(stages ...types.DeploymentLifecycleHookStage) types.DeploymentLifecycleHook {
	return types.DeploymentLifecycleHook{TargetType: types.DeploymentLifecycleHookTargetTypePause, LifecycleStages: stages}
}

func function(stages ...types.DeploymentLifecycleHookStage) types.DeploymentLifecycleHook {
	return types.DeploymentLifecycleHook{HookTargetArn: aws.String("function"), LifecycleStages: stages}
}

// TestRollBack: hooks of the shifts that there were are called once more, and hold up no more than the end.
func TestRollBack(t *testing.T) {
	c := Config{Hooks: []types.DeploymentLifecycleHook{function("PRE_SCALE_UP", "TEST_TRAFFIC_SHIFT", "PRODUCTION_TRAFFIC_SHIFT")}}
	for _, test := range []struct {
		state State
		want  string
	}{
		{State{Stage: PreScaleUp}, "[]"},
		{State{Stage: PostScaleUp}, "[]"},
		{State{Stage: PostTestTrafficShift, Test: Whole}, "[TEST_TRAFFIC_SHIFT]"},
		{State{Stage: PreProductionTrafficShift, Production: 400}, "[PRODUCTION_TRAFFIC_SHIFT TEST_TRAFFIC_SHIFT]"},
		{State{Stage: BakeTime, Production: Whole}, "[PRODUCTION_TRAFFIC_SHIFT TEST_TRAFFIC_SHIFT]"},
	} {
		p := RollBack(c, test.state, now)
		stages := []Stage{}
		for _, call := range p.Calls {
			stages = append(stages, call.Stage)
		}
		if fmt.Sprint(stages) != test.want || p.Stage != CleanUp || p.Production != Whole {
			t.Errorf("%+v: %v, %+v", test.state, stages, p.State)
		}
		if p := Decide(c, p.State, all, now); p.Done != (len(stages) == 0) {
			t.Errorf("%+v: done %t before the functions said anything", test.state, p.Done)
		}
		if p := Decide(c, p.State, all, now.Add(25*time.Hour)); !p.Done || p.RollBack {
			t.Errorf("%+v: it isn't done when the time is over: %+v", test.state, p)
		}
	}
}

// TestCourse: each course is the stages with the time that passes before each, and the parts of the traffic where they change.
func TestCourse(t *testing.T) {
	without := func(c Seen, change func(*Seen)) Seen { change(&c); return c }
	for _, c := range []struct {
		name   string
		config Config
		seen   Seen
		want   string
	}{
		{"blue/green", blueGreen, all, "PRE_SCALE_UP SCALE_UP POST_SCALE_UP TEST_TRAFFIC_SHIFT test=1000 POST_TEST_TRAFFIC_SHIFT " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=1000 POST_PRODUCTION_TRAFFIC_SHIFT BAKE_TIME 5m0s CLEAN_UP done"},
		{"linear", linear, all, "PRE_SCALE_UP SCALE_UP POST_SCALE_UP TEST_TRAFFIC_SHIFT test=1000 POST_TEST_TRAFFIC_SHIFT " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=400 1m0s PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT " +
			"production=800 1m0s PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=1000 POST_PRODUCTION_TRAFFIC_SHIFT " +
			"BAKE_TIME 5m0s CLEAN_UP done"},
		{"canary without test traffic", canary, without(all, func(s *Seen) { s.HasTest = false }), "PRE_SCALE_UP SCALE_UP POST_SCALE_UP " +
			"TEST_TRAFFIC_SHIFT POST_TEST_TRAFFIC_SHIFT PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=5 10m0s " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=1000 POST_PRODUCTION_TRAFFIC_SHIFT BAKE_TIME CLEAN_UP done"},
		{"the first deployment", canary, without(all, func(s *Seen) { s.HasSource = false }), "PRE_SCALE_UP SCALE_UP POST_SCALE_UP " +
			"TEST_TRAFFIC_SHIFT test=1000 POST_TEST_TRAFFIC_SHIFT PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=1000 " +
			"POST_PRODUCTION_TRAFFIC_SHIFT BAKE_TIME CLEAN_UP done"},
		{"tasks that aren't ready", blueGreen, without(all, func(s *Seen) { s.Ready = false }), "PRE_SCALE_UP SCALE_UP waits"},
		{"others still there", blueGreen, without(all, func(s *Seen) { s.Reconciled = false }), "RECONCILE_SERVICE waits"},
		{"a rolling update", Config{Rolling: true}, all, "RECONCILE_SERVICE done"},
		{"old ones still there", blueGreen, without(all, func(s *Seen) { s.CleanedUp = false; s.HasTest = false }), "PRE_SCALE_UP SCALE_UP " +
			"POST_SCALE_UP TEST_TRAFFIC_SHIFT POST_TEST_TRAFFIC_SHIFT PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=1000 " +
			"POST_PRODUCTION_TRAFFIC_SHIFT BAKE_TIME 5m0s CLEAN_UP waits"},
		{"a pause that nobody ends", Config{First: Whole, Hooks: []types.DeploymentLifecycleHook{pause("POST_SCALE_UP", "CLEAN_UP")}}, all,
			"PRE_SCALE_UP SCALE_UP POST_SCALE_UP 24h0m0s rolls back"},
		{"pauses that go on by themselves", Config{First: Whole, Hooks: []types.DeploymentLifecycleHook{{
			TargetType:      types.DeploymentLifecycleHookTargetTypePause,
			LifecycleStages: []types.DeploymentLifecycleHookStage{"PRE_SCALE_UP"},
			TimeoutConfiguration: &types.DeploymentLifecycleHookTimeoutConfiguration{
				TimeoutInMinutes: aws.Int32(3),
				Action:           types.DeploymentLifecycleHookActionContinue,
			},
		}}}, without(all, func(s *Seen) { s.Ready = false }), "PRE_SCALE_UP 3m0s SCALE_UP waits"},
		{"functions at each step", Config{First: 500, Step: 500, StepBake: time.Minute, Hooks: []types.DeploymentLifecycleHook{
			function("PRODUCTION_TRAFFIC_SHIFT", "PRE_SCALE_UP")}}, all, "PRE_SCALE_UP calls SCALE_UP POST_SCALE_UP TEST_TRAFFIC_SHIFT test=1000 " +
			"POST_TEST_TRAFFIC_SHIFT PRE_PRODUCTION_TRAFFIC_SHIFT PRODUCTION_TRAFFIC_SHIFT production=500 calls 1m0s PRE_PRODUCTION_TRAFFIC_SHIFT " +
			"PRODUCTION_TRAFFIC_SHIFT production=1000 calls POST_PRODUCTION_TRAFFIC_SHIFT BAKE_TIME CLEAN_UP done"},
	} {
		if got := course(c.config, c.seen); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// course follows a deployment of which always the same is seen, to its end.
func course(c Config, seen Seen) string {
	s := State{}
	at := now
	var out []string
	for range 100 {
		p := Decide(c, s, seen, at)
		switch {
		case p.RollBack:
			return strings.Join(append(out, "rolls back"), " ")
		case p.Done:
			return strings.Join(append(out, "done"), " ")
		case !p.Changed && p.Wake.IsZero():
			return strings.Join(append(out, "waits"), " ")
		case !p.Changed:
			out = append(out, p.Wake.Sub(at).String())
			at = p.Wake
			continue
		}
		if p.Stage != s.Stage {
			out = append(out, string(p.Stage))
		}
		if p.Test != s.Test {
			out = append(out, fmt.Sprint("test=", p.Test))
		}
		if p.Production != s.Production {
			out = append(out, fmt.Sprint("production=", p.Production))
		}
		s = p.State
		for _, call := range p.Calls { // its function is through at once
			if call.Stage != s.Stage || s.Hooks[call.Index].Stage != s.Stage || s.Hooks[call.Index].Status != types.DeploymentLifecycleHookStatusInProgress {
				out = append(out, fmt.Sprintf("a call of %+v", call))
			}
			out = append(out, "calls")
			s.Hooks[call.Index].Status = types.DeploymentLifecycleHookStatusSucceeded
		}
	}
	return strings.Join(append(out, "no end"), " ")
}

// TestTrafficThatHasNotMoved: a deployment stays at a shift, and soon looks again, until load balancers send the traffic where it is to go.
func TestTrafficThatHasNotMoved(t *testing.T) {
	for _, stage := range []Stage{TestTrafficShift, ProductionTrafficShift} {
		s, seen := State{Stage: stage, Since: now, Test: Whole, Production: Whole}, all
		seen.Routed = false
		if p := Decide(blueGreen, s, seen, now); p.Changed || p.Wake != now.Add(glance) {
			t.Errorf("%s: %+v", stage, p)
		}
		if p := Decide(blueGreen, s, all, now); p.Stage == stage {
			t.Errorf("%s: it stays when the traffic has moved", stage)
		}
	}
}

func TestConfigOf(t *testing.T) {
	bake := 7 * time.Minute
	for _, c := range []struct {
		given types.DeploymentConfiguration
		want  Config
	}{
		{types.DeploymentConfiguration{Strategy: "BLUE_GREEN"}, Config{First: Whole, Step: Whole, Bake: bake}},
		{types.DeploymentConfiguration{Strategy: "ROLLING"}, Config{First: Whole, Step: Whole, Bake: bake, Rolling: true}},
		{types.DeploymentConfiguration{Strategy: "CANARY", CanaryConfiguration: &types.CanaryConfiguration{
			CanaryPercent: aws.Float64(0.1), CanaryBakeTimeInMinutes: aws.Int32(2)}},
			Config{First: 1, Step: Whole, Bake: bake, StepBake: 2 * time.Minute}},
		{types.DeploymentConfiguration{Strategy: "LINEAR", LinearConfiguration: &types.LinearConfiguration{
			StepPercent: aws.Float64(33.3), StepBakeTimeInMinutes: aws.Int32(1)}},
			Config{First: 333, Step: 333, Bake: bake, StepBake: time.Minute}},
	} {
		if got := ConfigOf(&c.given, bake); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", c.given.Strategy, got, c.want)
		}
	}
}

func TestWeights(t *testing.T) {
	for part := range Whole + 1 {
		green, blue := Weights(part)
		if green < 0 || blue < 0 || green > 999 || blue > 999 || int(green)*Whole != part*int(green+blue) {
			t.Errorf("%d of %d: %d and %d", part, Whole, green, blue)
		}
	}
}

// order is where a stage stands.
func order(s Stage) int {
	return slices.Index([]Stage{"", ReconcileService, PreScaleUp, ScaleUp, PostScaleUp, TestTrafficShift, PostTestTrafficShift,
		PreProductionTrafficShift, ProductionTrafficShift, PostProductionTrafficShift, BakeTime, CleanUp}, s)
}

// TestShifts: whatever is seen, and whenever, traffic moves only towards tasks that are ready, one stage at a time, and the old ones go only
// when all of it has moved and the bake time is over. Left alone with tasks that are well, a deployment comes to its end.
func TestShifts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := rapid.SampledFrom([]Config{blueGreen, linear, canary, {First: 30, Step: 30}}).Draw(r, "config")
		stages := types.DeploymentLifecycleHookStage("").Values()
		for range rapid.IntRange(0, 2).Draw(r, "hooks") {
			hook := rapid.SampledFrom([]func(...types.DeploymentLifecycleHookStage) types.DeploymentLifecycleHook{pause, function}).Draw(r, "kind")
			c.Hooks = append(c.Hooks, hook(rapid.SampledFrom(stages).Draw(r, "stage")))
		}
		s, at := State{}, now
		hasSource := rapid.Bool().Draw(r, "source")
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			seen := Seen{
				HasSource:  hasSource,
				HasTest:    rapid.Bool().Draw(r, "test"),
				Reconciled: rapid.Bool().Draw(r, "reconciled"),
				Ready:      rapid.Bool().Draw(r, "ready"),
				CleanedUp:  rapid.Bool().Draw(r, "cleaned up"),
				Routed:     rapid.Bool().Draw(r, "routed"),
			}
			at = at.Add(time.Duration(rapid.IntRange(0, 120).Draw(r, "seconds")) * time.Second)
			resume(r, &s)
			p := Decide(c, s, seen, at)
			checkStep(r, c, s, seen, p, at)
			if p.Done || p.RollBack {
				return
			}
			s = p.State
		}
		settle(r, c, s, at)
	})
}

// resume ends a pause at random.
func resume(r *rapid.T, s *State) {
	s.Hooks = slices.Clone(s.Hooks)
	for i := range s.Hooks {
		if Waits(s.Hooks[i].Status) {
			s.Hooks[i].Status = rapid.SampledFrom([]types.DeploymentLifecycleHookStatus{
				s.Hooks[i].Status,
				types.DeploymentLifecycleHookStatusSucceeded,
				types.DeploymentLifecycleHookStatusFailed,
			}).Draw(r, "hook")
		}
	}
}

func checkStep(r *rapid.T, c Config, s State, seen Seen, p Plan, at time.Time) {
	waits := slices.ContainsFunc(s.Hooks, func(h Hook) bool {
		return Waits(h.Status) && at.Before(*h.ExpiresAt)
	})
	switch {
	case p.Production < s.Production || p.Test < s.Test || p.Production > Whole || p.Test > Whole:
		r.Fatalf("the traffic goes from %+v to %+v", s, p)
	case (p.Production != s.Production || p.Test != s.Test) && !seen.Ready:
		r.Fatalf("traffic is shifted to tasks that aren't ready: %+v", p)
	case !seen.Routed && p.Stage != s.Stage && (s.Stage == TestTrafficShift || s.Stage == ProductionTrafficShift):
		r.Fatalf("it goes on to %s before the traffic has moved", p.Stage)
	case waits && (p.Stage != s.Stage || p.Done):
		r.Fatalf("it goes on while it is paused: %+v", p)
	case p.Changed && p.Stage != s.Stage && order(p.Stage) != order(s.Stage)+1 && s.Stage != "" && p.Stage != PreProductionTrafficShift:
		r.Fatalf("it goes from %s to %s", s.Stage, p.Stage)
	case p.Stage == CleanUp && p.Production != Whole:
		r.Fatalf("the old tasks go while they have traffic: %+v", p)
	case p.Stage == CleanUp && s.Stage == BakeTime && seen.HasSource && at.Sub(s.Since) < c.Bake:
		r.Fatalf("it has baked for %s", at.Sub(s.Since))
	case p.Done && (!seen.Ready || !seen.CleanedUp || s.Stage != CleanUp):
		r.Fatalf("it is done: %+v, %+v", p, seen)
	}
}

// settle leaves a deployment alone.
func settle(r *rapid.T, c Config, s State, at time.Time) {
	for range 200 {
		at = at.Add(time.Hour)
		for i := range s.Hooks {
			s.Hooks[i].Status = types.DeploymentLifecycleHookStatusSucceeded
		}
		p := Decide(c, s, all, at)
		if p.Done {
			return
		}
		s = p.State
	}
	r.Fatalf("it never ends: %+v", s)
}

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/lifecyclehook"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/journaltest"
	"github.com/pintle/pintle/internal/wire/call"
)

const (
	hookFunction = "arn:aws:lambda:us-east-1:000000000000:function:check"
	hookRole     = "arn:aws:iam::000000000000:role/hooks"
)

// functions play Lambda: they note each invocation, and answer it.
type functions struct {
	mu     sync.Mutex
	events []lifecyclehook.Event
	at     []time.Time
	as     string
	answer func(n int, e lifecyclehook.Event) (string, error) // of the invocation n, from 0
}

func (f *functions) Call(ctx context.Context, in any) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	invoke := in.(*lambda.InvokeInput)
	var e lifecyclehook.Event
	if err := json.Unmarshal(invoke.Payload, &e); err != nil {
		return nil, err
	}
	f.as = call.From(ctx).Principal
	f.events = append(f.events, e)
	f.at = append(f.at, time.Now())
	text, err := f.answer(len(f.events)-1, e)
	if err != nil {
		return nil, err
	}
	out := &lambda.InvokeOutput{Payload: []byte(text)}
	if strings.Contains(text, "errorMessage") {
		out.FunctionError = aws.String("Unhandled")
	}
	return out, nil
}

func (f *functions) seen() []lifecyclehook.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]lifecyclehook.Event{}, f.events...)
}

func (f *functions) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = nil
	f.at = nil
}

// stages returns the stages at which functions were invoked, with the weights that they were told of the target's and the other revision's traffic.
func (f *functions) stages() string {
	var out []string
	for _, e := range f.seen() {
		text := e.LifecycleStage
		for name, weights := range map[string]map[string]float64{
			"test": e.ExecutionDetails.TestTrafficWeights, "production": e.ExecutionDetails.ProductionTrafficWeights,
		} {
			for revision, weight := range weights {
				if revision == e.ExecutionDetails.TargetServiceRevisionARN {
					text += fmt.Sprintf(" %s=%v/%d", name, weight, len(weights))
				}
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// deliver tells functions what deployments owe, until the world ends.
func (w *world) deliver(f *functions) {
	w.ecs = ecs.New(w.store, w.loop.scheduler, ecs.Options{
		Account:  accounttest.New(time.Now),
		Services: f,
		Trusts:   func(role, service string) bool { return role == hookRole && service == "ecs.amazonaws.com" },
	})
	loop := delivery.New(state.Outbox{Store: w.store, Now: time.Now}, delivery.Options{
		Now:    time.Now,
		Routes: []delivery.Route{{Prefix: ecs.DeploymentPrefix, Tell: w.ecs.Tell}},
		Log:    slog.New(slog.DiscardHandler),
	})
	go loop.Run(w.ctx) //nolint:errcheck // it ends with ctx
}

func withFunction(c types.DeploymentConfiguration, stages ...types.DeploymentLifecycleHookStage) types.DeploymentConfiguration {
	details, err := state.Document([]byte(`{"bucket":"b"}`))
	if err != nil {
		panic(err)
	}
	c.LifecycleHooks = []types.DeploymentLifecycleHook{{
		HookTargetArn: aws.String(hookFunction), RoleArn: aws.String(hookRole), HookDetails: details, LifecycleStages: stages,
	}}
	return c
}

func succeeds(int, lifecyclehook.Event) (string, error) { return `{"hookStatus": "SUCCEEDED"}`, nil }

// inHookedWorld runs a test in a world with a service of two tasks that has functions invoked, and has come to its first deployment's end.
func inHookedWorld(t *testing.T, c types.DeploymentConfiguration, test func(*testing.T, *world, *functions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		f := &functions{answer: succeeds}
		w.deliver(f)
		w.cluster(2)
		w.balanceTwo()
		go w.balancer(w.ctx)
		w.define("v1", withPort)
		w.create(2, shifting(c))
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		test(t, w, f)
		w.end()
		time.Sleep(100 * time.Hour)
	})
}

// TestFunctionsAtEachStage: functions are invoked at each of a deployment's stages with the event that AWS documents, and with linear deployments at
// each step of the traffic.
func TestFunctionsAtEachStage(t *testing.T) {
	linear := types.DeploymentConfiguration{Strategy: "LINEAR", LinearConfiguration: &types.LinearConfiguration{
		StepPercent: aws.Float64(50), StepBakeTimeInMinutes: aws.Int32(1)}}
	inHookedWorld(t, withFunction(linear, types.DeploymentLifecycleHookStage("").Values()...), func(t *testing.T, w *world, f *functions) {
		const first = "PRE_SCALE_UP, POST_SCALE_UP, TEST_TRAFFIC_SHIFT test=100/1, POST_TEST_TRAFFIC_SHIFT, " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT production=0/1, PRODUCTION_TRAFFIC_SHIFT production=100/1, POST_PRODUCTION_TRAFFIC_SHIFT"
		if got := f.stages(); got != first {
			t.Errorf("the first deployment: %s\nwant %s", got, first)
		}
		f.forget()
		w.deploy("v2")
		expect(t, w.after(5*time.Minute), 2, 0, 1, completed)
		const second = "PRE_SCALE_UP, POST_SCALE_UP, TEST_TRAFFIC_SHIFT test=100/2, POST_TEST_TRAFFIC_SHIFT, " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT production=0/2, PRODUCTION_TRAFFIC_SHIFT production=50/2, " +
			"PRE_PRODUCTION_TRAFFIC_SHIFT production=50/2, PRODUCTION_TRAFFIC_SHIFT production=100/2, POST_PRODUCTION_TRAFFIC_SHIFT"
		if got := f.stages(); got != second {
			t.Errorf("the second deployment: %s\nwant %s", got, second)
		}
		r := w.record()
		for i, e := range f.seen() {
			h := r.LifecycleHookDetails[i]
			if e.ExecutionID != *h.HookId || e.ResourceARN != *r.ServiceDeploymentArn || e.ExecutionDetails.ServiceARN != *r.ServiceArn ||
				e.ExecutionDetails.TargetServiceRevisionARN != *r.TargetServiceRevision.Arn || string(e.HookDetails) != `{"bucket":"b"}` {
				t.Errorf("%+v", e)
			}
			if h.Status != types.DeploymentLifecycleHookStatusSucceeded || h.TargetType != "AWS_LAMBDA" || *h.TargetArn != hookFunction {
				t.Errorf("%+v", h)
			}
		}
		if f.as != hookRole {
			t.Errorf("the function was invoked as %s", f.as)
		}
	})
}

// TestFunctionInProgress: a function that isn't through is invoked again when it says, with what it returned; meanwhile nothing moves.
func TestFunctionInProgress(t *testing.T) {
	inHookedWorld(t, withFunction(blueGreen(0), "POST_TEST_TRAFFIC_SHIFT"), func(t *testing.T, w *world, f *functions) {
		f.forget()
		f.answer = func(n int, _ lifecyclehook.Event) (string, error) {
			return []string{
				`{"hookStatus": "IN_PROGRESS", "callBackDelay": 60, "hookDetails": {"n": 1}}`,
				`{"hookStatus": "IN_PROGRESS", "hookDetails": {"n": 2, "bucket": "c"}}`,
				`{"hookStatus": "IN_PROGRESS", "callBackDelay": 5}`,
				`{"hookStatus": "SUCCEEDED"}`,
			}[n], nil
		}
		w.deploy("v2")
		expect(t, w.after(time.Minute), 4, 0, 2, inProgress)
		w.expectTraffic(blueGroup, 100, greenGroup, 100)
		if h := w.record().LifecycleHookDetails[0]; h.Status != types.DeploymentLifecycleHookStatusInProgress || h.ExpiresAt == nil {
			t.Errorf("%+v", h)
		}
		expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
		var got []string
		for i, e := range f.seen() {
			got = append(got, string(e.HookDetails))
			if i > 0 {
				got = append(got, f.at[i].Sub(f.at[i-1]).Round(time.Second).String())
			}
		}
		const want = `{"bucket":"b"} {"bucket":"b","n":1} 1m0s {"bucket":"c","n":2} 30s {"bucket":"c","n":2} 5s`
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s\nwant %s", s, want)
		}
	})
}

// TestFunctionThatFails: whatever keeps a function from saying SUCCEEDED rolls its deployment back; hooks of the shifts that there were are invoked once
// more, whose answers change nothing. What Lambda has no room for is tried again.
func TestFunctionThatFails(t *testing.T) {
	answers := func(text string, err error) func(lifecyclehook.Event) (string, error) {
		return func(lifecyclehook.Event) (string, error) { return text, err }
	}
	forRole := func(role string) func(*types.DeploymentLifecycleHook) {
		return func(h *types.DeploymentLifecycleHook) { h.RoleArn = &role }
	}
	const shifts = "PRODUCTION_TRAFFIC_SHIFT production=100/2, PRODUCTION_TRAFFIC_SHIFT production=0/2"
	for _, c := range []struct {
		name   string
		stage  types.DeploymentLifecycleHookStage
		answer func(lifecyclehook.Event) (string, error)
		change func(*types.DeploymentLifecycleHook)
		stages string
		event  string // that the service has
	}{
		{"FAILED", "PRE_SCALE_UP", answers(`{"hookStatus": "FAILED"}`, nil), nil, "PRE_SCALE_UP", "failed at the stage PRE_SCALE_UP: the function returned FAILED."},
		{"FAILED after the shift", "PRODUCTION_TRAFFIC_SHIFT", answers(`{"hookStatus": "FAILED"}`, nil), nil, shifts,
			"failed at the stage PRODUCTION_TRAFFIC_SHIFT: the function returned FAILED."},
		{"an exception", "PRODUCTION_TRAFFIC_SHIFT", answers(`{"errorMessage": "boom"}`, nil), nil, shifts, `the function failed (Unhandled): {"errorMessage": "boom"}`},
		{"no status", "POST_SCALE_UP", answers(`{"statusCode": 200}`, nil), nil, "POST_SCALE_UP", "the function returned no hookStatus"},
		{"no function", "POST_SCALE_UP", answers("", &lambdatypes.ResourceNotFoundException{Message: aws.String("Function not found")}), nil,
			"POST_SCALE_UP", "Function not found"},
		{"too many details", "POST_SCALE_UP", answers(`{"hookStatus": "IN_PROGRESS", "hookDetails": "`+strings.Repeat("x", lifecyclehook.MaxDetails)+`"}`, nil), nil,
			"POST_SCALE_UP", "hookDetails have more than"},
		{"a role that was changed", "POST_SCALE_UP", answers("", nil), forRole("arn:aws:iam::000000000000:role/other"), "", "cannot be assumed by ecs.amazonaws.com"},
	} {
		inHookedWorld(t, withFunction(blueGreen(0), c.stage), func(t *testing.T, w *world, f *functions) {
			f.forget()
			f.answer = func(n int, e lifecyclehook.Event) (string, error) {
				if n == 0 {
					return "", &lambdatypes.TooManyRequestsException{}
				}
				return c.answer(e)
			}
			if c.change != nil {
				w.update(func(tx *state.Tx) {
					row := tx.Services.Get(*w.service().ServiceArn).Clone()
					config := *row.DeploymentConfiguration
					config.LifecycleHooks = append([]types.DeploymentLifecycleHook{}, config.LifecycleHooks...)
					c.change(&config.LifecycleHooks[0])
					row.DeploymentConfiguration = &config
					tx.Services.Put(row)
				})
			}
			w.deploy("v2")
			expect(t, w.after(time.Minute), 2, 0, 1, completed)
			w.expectTraffic(blueGroup, 100, blueGroup, 100)
			r := w.record()
			if r.Status != types.ServiceDeploymentStatusRollbackSuccessful || r.LifecycleHookDetails[0].Status != "FAILED" {
				t.Errorf("%s: %s, %+v", c.name, r.Status, r.LifecycleHookDetails)
			}
			first, _, _ := strings.Cut(c.stages, ", ")
			if got, want := f.stages(), strings.TrimPrefix(first+", "+c.stages, ", "); got != want {
				t.Errorf("%s: it was invoked at %s, want %s", c.name, got, want)
			}
			if !slices.ContainsFunc(w.service().Events, func(e types.ServiceEvent) bool { return strings.Contains(*e.Message, c.event) }) {
				t.Errorf("%s: %s", c.name, strings.Join(events(w.service()), "\n"))
			}
		})
	}
}

// TestFunctionsTimeOut: a hook whose function isn't through in time does what it says: it rolls back, or goes on. The function isn't invoked any more.
func TestFunctionsTimeOut(t *testing.T) {
	for _, c := range []struct {
		timeout *types.DeploymentLifecycleHookTimeoutConfiguration
		after   time.Duration
		status  types.ServiceDeploymentStatus
	}{
		{nil, 24 * time.Hour, types.ServiceDeploymentStatusRollbackSuccessful},
		{&types.DeploymentLifecycleHookTimeoutConfiguration{TimeoutInMinutes: aws.Int32(10), Action: "CONTINUE"}, 10 * time.Minute,
			types.ServiceDeploymentStatusSuccessful},
	} {
		config := withFunction(blueGreen(0), "POST_SCALE_UP")
		config.LifecycleHooks[0].TimeoutConfiguration = c.timeout
		inHookedWorld(t, config, func(t *testing.T, w *world, f *functions) {
			f.answer = func(int, lifecyclehook.Event) (string, error) {
				return `{"hookStatus": "IN_PROGRESS", "callBackDelay": 300}`, nil
			}
			w.deploy("v2")
			expect(t, w.after(c.after-time.Minute), 4, 0, 2, inProgress)
			expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
			if r := w.record(); r.Status != c.status || r.LifecycleHookDetails[0].Status != types.DeploymentLifecycleHookStatusTimedOut {
				t.Errorf("%s, %+v", r.Status, r.LifecycleHookDetails)
			}
			n := len(f.seen())
			if w.after(time.Hour); len(f.seen()) != n {
				t.Error("the function is invoked after its time")
			}
		})
	}
}

// TestKilledBetweenInvocations: wherever the process is killed, the next one invokes what has not said how it ended, and the deployment comes to its end.
func TestKilledBetweenInvocations(t *testing.T) {
	c := withFunction(blueGreen(0), "PRE_SCALE_UP", "POST_TEST_TRAFFIC_SHIFT")
	answer := func(_ int, e lifecyclehook.Event) (string, error) {
		if !strings.Contains(string(e.HookDetails), "again") {
			return `{"hookStatus": "IN_PROGRESS", "callBackDelay": 20, "hookDetails": {"again": true}}`, nil
		}
		return `{"hookStatus": "SUCCEEDED"}`, nil
	}
	var kept []journaltest.Rows
	var invoked []int // the invocations before each of them
	inHookedWorld(t, c, func(_ *testing.T, w *world, f *functions) {
		f.forget()
		f.answer = answer
		w.define("v2", withPort)
		w.journal.OnWrite(func(rows journaltest.Rows) {
			kept = append(kept, rows)
			invoked = append(invoked, len(f.seen()))
		})
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(3*time.Minute), 2, 0, 1, completed)
		w.journal.OnWrite(nil)
	})
	after := 0
	for i, rows := range kept {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rows)
			f := &functions{answer: answer}
			w.deliver(f)
			go w.balancer(w.ctx)
			expect(t, w.after(5*time.Minute), 2, 0, 1, completed)
			if r := w.record(); r.Status != types.ServiceDeploymentStatusSuccessful || len(r.LifecycleHookDetails) != 2 {
				t.Errorf("after write %d: %s, %+v", i, r.Status, r.LifecycleHookDetails)
			}
			if n := invoked[i] + len(f.seen()); n < 4 {
				t.Errorf("after write %d: the functions were invoked %d times", i, n)
			}
			after += len(f.seen())
			w.end()
			time.Sleep(100 * time.Hour)
		})
	}
	if after < 30 {
		t.Errorf("after %d kills only %d invocations were left", len(kept), after)
	}
}

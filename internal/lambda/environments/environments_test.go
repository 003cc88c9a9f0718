package environments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

// world is an ECS that has rows for its tasks, and logs that keep what they get.
type world struct {
	t     *testing.T
	store *state.Store
	*Manager

	mu      sync.Mutex
	started []string // the ARNs of tasks
	lines   []string
	full    bool
	hang    bool   // RunTask doesn't answer before its context ends
	after   func() // what is seen once Run has ended
}

func (w *world) RegisterTaskDefinition(
	_ context.Context, in *ecs.RegisterTaskDefinitionInput, _ ...func(*ecs.Options),
) (*ecs.RegisterTaskDefinitionOutput, error) {
	td := ecstypes.TaskDefinition{Family: in.Family, Volumes: in.Volumes, Status: ecstypes.TaskDefinitionStatusActive}
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		for range tx.TaskDefinitions.By(state.TaskDefinitionsByFamily, *in.Family) {
			td.Revision++
		}
		td.TaskDefinitionArn = aws.String(fmt.Sprintf("%s:%d", *in.Family, td.Revision))
		tx.TaskDefinitions.Put(&state.TaskDefinition{TaskDefinition: td})
	})
	return &ecs.RegisterTaskDefinitionOutput{TaskDefinition: &td}, nil
}

func (w *world) DeregisterTaskDefinition(
	_ context.Context, in *ecs.DeregisterTaskDefinitionInput, _ ...func(*ecs.Options),
) (*ecs.DeregisterTaskDefinitionOutput, error) {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		row := *tx.TaskDefinitions.Get(*in.TaskDefinition)
		row.Status = ecstypes.TaskDefinitionStatusInactive
		tx.TaskDefinitions.Put(&row)
	})
	return &ecs.DeregisterTaskDefinitionOutput{}, nil
}

func (w *world) RunTask(ctx context.Context, in *ecs.RunTaskInput, _ ...func(*ecs.Options)) (*ecs.RunTaskOutput, error) {
	if w.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if td := w.store.View().TaskDefinitions.Get(aws.ToString(in.TaskDefinition)); td != nil && td.Status != ecstypes.TaskDefinitionStatusActive {
		return nil, &ecstypes.ClientException{Message: aws.String("TaskDefinition is inactive")}
	}
	if w.full {
		return &ecs.RunTaskOutput{Failures: []ecstypes.Failure{{Reason: aws.String("RESOURCE:MEMORY")}}}, nil
	}
	arn := "arn:aws:ecs:us-east-1:000000000000:task/default/" + state.NewID()
	task := ecstypes.Task{
		TaskArn: &arn, ClusterArn: aws.String("c"), StartedBy: in.StartedBy, LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
	}
	statetest.Update(w.t, w.store, func(tx *state.Tx) { tx.Tasks.Put(&state.Task{Task: task}) })
	w.started = append(w.started, arn)
	return &ecs.RunTaskOutput{Tasks: []ecstypes.Task{task}}, nil
}

func (w *world) StopTask(_ context.Context, in *ecs.StopTaskInput, _ ...func(*ecs.Options)) (*ecs.StopTaskOutput, error) {
	w.stopTask(*in.Task, 0)
	return &ecs.StopTaskOutput{}, nil
}

// stopTask ends a task.
func (w *world) stopTask(arn string, code int32) {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		row := *tx.Tasks.Get(arn)
		row.LastStatus, row.DesiredStatus = aws.String("STOPPED"), aws.String("STOPPED")
		row.Containers = []ecstypes.Container{{ExitCode: &code}}
		tx.Tasks.Put(&row)
	})
}

func (w *world) CreateLogGroup(
	context.Context, *cloudwatchlogs.CreateLogGroupInput, ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	return nil, nil
}

func (w *world) CreateLogStream(
	context.Context, *cloudwatchlogs.CreateLogStreamInput, ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	return nil, nil
}

func (w *world) PutLogEvents(
	_ context.Context, in *cloudwatchlogs.PutLogEventsInput, _ ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.PutLogEventsOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range in.LogEvents {
		w.lines = append(w.lines, *e.Message)
	}
	return nil, nil
}

func (w *world) tasks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.started...)
}

// in runs a test in a world with a version of a function. Its time passes when all wait.
func in(t *testing.T, do func(w *world, v *state.FunctionVersion)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: statetest.Open(t)}
		w.Manager = New(w.store, Options{
			Account: account.New("000000000000", "us-east-1", time.Now), ECS: w, Logs: w, Log: slog.New(slog.DiscardHandler),
		})
		v := &state.FunctionVersion{FunctionConfiguration: types.FunctionConfiguration{
			FunctionName: aws.String("f"), Version: aws.String(state.Latest), RevisionId: aws.String("1"), Timeout: aws.Int32(3),
			MemorySize: aws.Int32(128), Runtime: "python3.12", Handler: aws.String("i.h"), PackageType: types.PackageTypeZip,
			LoggingConfig:    &types.LoggingConfig{LogGroup: aws.String("/aws/lambda/f")},
			EphemeralStorage: &types.EphemeralStorage{Size: aws.Int32(512)},
		}}
		statetest.Update(t, w.store, func(tx *state.Tx) { tx.FunctionVersions.Put(v) })
		ctx, cancel := context.WithCancel(w.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		do(w, v)
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if w.after != nil {
			w.after()
		}
	})
}

type told struct {
	Result
	err error
}

func (w *world) do(v *state.FunctionVersion, request string) <-chan told {
	out := make(chan told, 1)
	go func() {
		r, err := w.Do(w.t.Context(), Work{RequestID: request, Version: v, ARN: "arn", Payload: []byte(`{}`), Shared: 10, Tail: true})
		out <- told{r, err}
	}()
	synctest.Wait()
	return out
}

// TestWarmEnvironmentsAreUsedAgain: one after the other, and after five idle minutes there is none.
func TestWarmEnvironmentsAreUsedAgain(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		for _, request := range []string{"a", "b"} {
			got := w.do(v, request)
			h, err := w.Next(w.t.Context(), w.tasks()[0])
			if err != nil || h.RequestID != request || time.Until(h.Deadline) != 3*time.Second {
				t.Fatalf("got %+v, %v", h, err)
			}
			if again, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil || again.RequestID != request {
				t.Errorf("asked again it got %+v, %v", again, err)
			}
			if err := w.Answer(w.tasks()[0], "other", Result{}); !errors.Is(err, ErrNoRequest) {
				t.Errorf("an answer to another request: %v", err)
			}
			if err := w.Answer(w.tasks()[0], request, Result{Payload: []byte(request), Tail: []byte("said\n")}); err != nil {
				t.Fatal(err)
			}
			if r := <-got; string(r.Payload) != request || r.err != nil || !strings.Contains(string(r.Tail), "said\nEND RequestId: "+request) {
				t.Errorf("got %s %s %v", r.Payload, r.Tail, r.err)
			}
		}
		next := make(chan error, 1)
		go func() {
			_, err := w.Next(w.t.Context(), w.tasks()[0])
			next <- err
		}()
		began := time.Now()
		if err := <-next; !errors.Is(err, ErrNoEnvironment) || time.Since(began) < 5*time.Minute || time.Since(began) > 6*time.Minute {
			t.Errorf("it ended after %v with %v", time.Since(began), err)
		}
		synctest.Wait()
		if n := w.store.View().FunctionEnvironments.Len(); n != 0 || len(w.tasks()) != 1 {
			t.Errorf("%d environments are left of %d", n, len(w.tasks()))
		}
	})
}

// TestIdleGPUsGiveWay: a warm environment with a GPU ends as soon as something in its cluster waits for one, and not for what waits elsewhere, for
// something else, or while it's busy.
func TestIdleGPUsGiveWay(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		isThere := func() bool {
			synctest.Wait()
			return *w.store.View().Tasks.Get(w.tasks()[0]).DesiredStatus == "RUNNING"
		}
		waits := func(cluster string, gpus int) {
			statetest.Update(t, w.store, func(tx *state.Tx) {
				tx.Tasks.Put(&state.Task{Waiting: &state.Waiting{GPUs: gpus}, Task: ecstypes.Task{
					TaskArn: aws.String(cluster + fmt.Sprint(gpus)), ClusterArn: &cluster, LastStatus: aws.String("PROVISIONING"), DesiredStatus: aws.String("RUNNING"),
				}})
			})
		}
		got := make(chan told, 1)
		go func() {
			r, err := w.Do(w.t.Context(), Work{RequestID: "a", Version: v, Tags: map[string]string{TagGPU: "1"}, Payload: []byte(`{}`), Shared: 10})
			got <- told{r, err}
		}()
		synctest.Wait()
		if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(w.tasks()[0], "a", Result{}); err != nil {
			t.Fatal(err)
		}
		<-got
		waits("other", 1)
		waits("c", 0)
		next := make(chan error, 1)
		go func() {
			_, err := w.Next(w.t.Context(), w.tasks()[0])
			next <- err
		}()
		if !isThere() {
			t.Error("it gave way to what needs no GPU of its cluster")
		}
		waits("c", 1)
		if isThere() {
			t.Error("it has nothing to do, and keeps its GPU")
		}
		if err := <-next; !errors.Is(err, ErrNoEnvironment) {
			t.Errorf("it is told %v", err)
		}
	})
}

// TestUnplacedServicesWantGPUs: a deployment that found no room counts if its tasks have GPUs.
func TestUnplacedServicesWantGPUs(t *testing.T) {
	store := statetest.Open(t)
	for _, c := range []struct {
		unplaced bool
		kind     ecstypes.ResourceType
		want     bool
	}{{true, ecstypes.ResourceTypeGpu, true}, {false, ecstypes.ResourceTypeGpu, false}, {true, ecstypes.ResourceTypeInferenceAccelerator, false}} {
		statetest.Update(t, store, func(tx *state.Tx) {
			td := &state.TaskDefinition{TaskDefinition: ecstypes.TaskDefinition{TaskDefinitionArn: aws.String("td")}}
			td.ContainerDefinitions = []ecstypes.ContainerDefinition{{ResourceRequirements: []ecstypes.ResourceRequirement{{Type: c.kind}}}}
			tx.TaskDefinitions.Put(td)
			row := &state.Service{Service: ecstypes.Service{ServiceArn: aws.String("s"), ClusterArn: aws.String("c")}}
			row.Deployments = []state.Deployment{{Unplaced: c.unplaced, Deployment: ecstypes.Deployment{TaskDefinition: aws.String("td")}}}
			tx.Services.Put(row)
		})
		if got := wants(store.View(), "c"); len(got) > 0 != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestWhoGivesWay: a warm environment stays where its GPU is of no use to what waits: that needs more than the machine has, or another machine.
func TestWhoGivesWay(t *testing.T) {
	store := statetest.Open(t)
	m := New(store, Options{Account: account.New("000000000000", "us-east-1", time.Now), Suits: scheduler.Suits})
	onB := []ecstypes.PlacementConstraint{{Type: ecstypes.PlacementConstraintTypeMemberOf, Expression: aws.String("attribute:rack == b")}}
	statetest.Update(t, store, func(tx *state.Tx) {
		row := &state.ContainerInstance{ClusterArn: "c", GPUs: []state.GPU{{ID: "0"}, {ID: "1"}, {ID: "2"}, {ID: "3", Fault: &state.GPUFault{}}}}
		row.ContainerInstanceArn = aws.String("i")
		row.Attributes = []ecstypes.Attribute{{Name: aws.String("rack"), Value: aws.String("a")}}
		tx.ContainerInstances.Put(row)
		for id, gpu := range map[string]string{"warm": "0", "other": "1"} {
			tx.Tasks.Put(&state.Task{GPUs: []state.HeldGPU{{ID: gpu, Milli: 1000}}, Task: ecstypes.Task{
				TaskArn: &id, ClusterArn: aws.String("c"), ContainerInstanceArn: aws.String("i"), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
			}})
		}
	})
	m.tasks["warm"] = &environment{phase: idle, tags: map[string]string{TagGPU: "1"}}
	for _, c := range []struct {
		gpus        int
		constraints []ecstypes.PlacementConstraint
		want        bool
	}{{1, nil, true}, {2, nil, true}, {3, nil, false}, {1, onB, false}} {
		w := want{&state.TaskDefinition{}, c.constraints, c.gpus}
		if got := m.wouldHelp(store.View(), store.View().Tasks.Get("warm"), w); got != c.want {
			t.Errorf("%d GPUs, %d constraints: %v", c.gpus, len(c.constraints), got)
		}
	}
}

// TestLogsInJSON: Lambda's own lines are objects, and those below the system's level aren't written. The runtime is told its level.
func TestLogsInJSON(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		v.LoggingConfig.LogFormat, v.LoggingConfig.ApplicationLogLevel = types.LogFormatJson, types.ApplicationLogLevelFatal
		v.LoggingConfig.SystemLogLevel = types.SystemLogLevelInfo
		got := w.do(v, "a")
		if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(w.tasks()[0], "a", Result{Tail: []byte("said\n")}); err != nil {
			t.Fatal(err)
		}
		tail := string((<-got).Tail)
		for _, want := range []string{`"type":"platform.start","record":{"requestId":"a","version":"$LATEST"}`, "said\n", `"status":"success"`, `"memorySizeMB":128`} {
			if !strings.Contains(tail, want) || strings.Contains(tail, "REPORT") {
				t.Errorf("got %s without %s", tail, want)
			}
		}
		var told string
		for _, kv := range w.variables(v) {
			if strings.HasPrefix(*kv.Name, "AWS_LAMBDA_LOG_F") || strings.HasPrefix(*kv.Name, "AWS_LAMBDA_LOG_LE") {
				told += *kv.Value + " "
			}
		}
		if told != "JSON FATAL " {
			t.Errorf("the runtime is told %q", told)
		}
		v.LoggingConfig.SystemLogLevel = types.SystemLogLevelWarn
		inv := &invocation{Work: Work{Version: v}, timedOut: true}
		failed := inv.endLines(time.Now(), 0, 0, true)
		if inv.startLine() != "" || len(inv.endLines(time.Now(), 0, 0, false)) != 0 || len(failed) != 1 || !strings.Contains(failed[0], `"timeout"`) {
			t.Errorf("got %v", failed)
		}
	})
}

// TestEndsOfEnvironments: a function that takes too long, one that crashes, and one that can't begin, are told, and don't serve again.
func TestEndsOfEnvironments(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world, task string)
		want string
	}{
		"too slow": {func(*world, string) { time.Sleep(4 * time.Second) }, "RequestId: a Error: Task timed out after 3.00 seconds"},
		"crash":    {func(w *world, task string) { w.stopTask(task, 7) }, "RequestId: a Error: Runtime exited with error: exit status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world, v *state.FunctionVersion) {
				got := w.do(v, "a")
				if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
					t.Fatal(err)
				}
				c.do(w, w.tasks()[0])
				if r := <-got; r.err != nil || r.Error != "Unhandled" || !strings.Contains(string(r.Payload), c.want) {
					t.Errorf("got %s %v", r.Payload, r.err)
				}
				if err := w.Answer(w.tasks()[0], "a", Result{}); !errors.Is(err, ErrNoEnvironment) {
					t.Errorf("it answered after its end: %v", err)
				}
			})
		})
	}
	in(t, func(w *world, v *state.FunctionVersion) {
		got := w.do(v, "a")
		if err := w.FailInit(w.tasks()[0], []byte(`{"errorType":"Runtime.ImportModuleError"}`)); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.Error != "Unhandled" || !strings.Contains(string(r.Payload), "ImportModuleError") {
			t.Errorf("got %s %v", r.Payload, r.err)
		}
	})
}

// TestFailsWhileBusy: a runtime that says it can't begin when it has begun ends with its invocation, and no other one.
func TestFailsWhileBusy(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		got := w.do(v, "a")
		if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.FailInit(w.tasks()[0], []byte(`"why"`)); err != nil {
			t.Error(err)
		}
		if r := <-got; r.err != nil || r.Error != "Unhandled" || string(r.Payload) != `"why"` {
			t.Errorf("got %+v", r)
		}
		if w.Manager.shared != 0 {
			t.Errorf("%d invocations count as running", w.Manager.shared)
		}
	})
}

// TestNeverAsksAgain: an environment that has answered and asks for no more ends with the time that its invocation had, and others don't wait for it.
func TestNeverAsksAgain(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		first := w.do(v, "a")
		if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(w.tasks()[0], "a", Result{}); err != nil {
			t.Fatal(err)
		}
		<-first
		second := w.do(v, "b")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if len(w.tasks()) != 2 {
			t.Fatalf("there were %d environments", len(w.tasks()))
		}
		if _, err := w.Next(w.t.Context(), w.tasks()[1]); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(w.tasks()[1], "b", Result{}); err != nil {
			t.Fatal(err)
		}
		<-second
	})
}

// TestDefinitions: a task definition that is no longer active is registered again, whoever has deregistered it. Of others in its family, only
// Lambda's own go.
func TestDefinitions(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		start := func(v *state.FunctionVersion, gpus string) {
			t.Helper()
			n := len(w.tasks())
			g := &group{key: *v.FunctionName + *v.RevisionId, version: v, all: map[string]*environment{}}
			e := &environment{id: state.EnvironmentStarter + state.NewID(), group: g, cluster: "default", tags: map[string]string{TagGPU: gpus}}
			if _, err := w.runTask(w.t.Context(), e); err != nil || len(w.tasks()) != n+1 {
				t.Errorf("GPUs %q: %v", gpus, err)
			}
		}
		active := func() (all []string) {
			for td := range w.store.View().TaskDefinitions.All() {
				if td.Status == ecstypes.TaskDefinitionStatusActive {
					all = append(all, *td.TaskDefinitionArn)
				}
			}
			return all
		}
		family := aws.String("lambda-f")
		if _, err := w.RegisterTaskDefinition(w.t.Context(), &ecs.RegisterTaskDefinitionInput{Family: family}); err != nil {
			t.Fatal(err)
		}
		for _, gpus := range []string{"1", "1", "2", "1"} {
			start(v, gpus)
		}
		if got := fmt.Sprint(active()); got != "[lambda-f:0 lambda-f:3]" {
			t.Errorf("%s are active", got)
		}
		if _, err := w.DeregisterTaskDefinition(w.t.Context(), &ecs.DeregisterTaskDefinitionInput{TaskDefinition: aws.String("lambda-f:3")}); err != nil {
			t.Fatal(err)
		}
		start(v, "1")
		one, other := *v, *v
		one.Version, other.FunctionName = aws.String("1"), aws.String("f-1")
		start(&one, "")
		start(&other, "")
		if got := fmt.Sprint(active()); got != "[lambda-f-1:0 lambda-f:0 lambda-f:4 lambda_1_f:0]" {
			t.Errorf("%s are active", got)
		}
		if err := w.store.Update(w.t.Context(), func(tx *state.Tx) error {
			Deregister(tx, v, new(time.Now()))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(active()); got != "[lambda-f-1:0 lambda-f:0 lambda_1_f:0]" {
			t.Errorf("once the version is gone %s are active", got)
		}
	})
}

// TestUncheckedBodies: of a request that doesn't state its body's hash, which anybody can begin, no large body is read.
func TestUncheckedBodies(t *testing.T) {
	m := New(statetest.Open(t), Options{Account: account.New("000000000000", "us-east-1", time.Now)})
	for _, whole := range []bool{false, true} {
		h := m.Handlers(func(*http.Request) (func([]byte) (call.Call, error), bool, error) {
			return func([]byte) (call.Call, error) { return call.Call{}, nil }, whole, nil
		})[acs.FunctionPath+"response"]
		body := strings.NewReader(strings.Repeat("0", 1<<20))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, acs.FunctionPath+"response?task=t", body))
		if isRead := body.Len() == 0; isRead != whole {
			t.Errorf("whole %v: %d bytes weren't read", whole, body.Len())
		}
	}
}

// TestNoRoom: an invocation for which no environment can be had is refused with the reason, and leaves nothing.
func TestNoRoom(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		w.full = true
		if r := <-w.do(v, "a"); r.err == nil || !strings.Contains(r.err.Error(), "RESOURCE:MEMORY") {
			t.Errorf("got %v", r.err)
		}
		synctest.Wait()
		if n := w.store.View().FunctionEnvironments.Len(); n != 0 {
			t.Errorf("%d environments are left", n)
		}
	})
}

// TestConcurrency: as many run as are reserved, and the next one is refused.
func TestConcurrency(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		work := Work{RequestID: "b", Version: v, Reserved: aws.Int32(0), Shared: 10}
		var many *types.TooManyRequestsException
		if _, err := w.Do(w.t.Context(), work); !errors.As(err, &many) ||
			many.Reason != types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded {
			t.Errorf("got %v", err)
		}
		work.Reserved, work.Shared = nil, 1
		first := w.do(v, "a")
		if _, err := w.Do(w.t.Context(), work); !errors.As(err, &many) {
			t.Errorf("got %v", err)
		}
		if _, err := w.Next(w.t.Context(), w.tasks()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(w.tasks()[0], "a", Result{}); err != nil {
			t.Fatal(err)
		}
		<-first
	})
}

// TestNothingIsLeftWorking: Run waits for what it has begun, and whoever waits for an environment is told. Its row stays for the next process.
func TestNothingIsLeftWorking(t *testing.T) {
	in(t, func(w *world, v *state.FunctionVersion) {
		w.hang = true
		waiting := w.do(v, "a")
		w.after = func() {
			if got := <-waiting; got.err == nil {
				t.Errorf("got %s", got.Payload)
			}
			if got := <-w.do(v, "b"); got.err == nil {
				t.Errorf("after the end it got %s", got.Payload)
			}
			if n := w.store.View().FunctionEnvironments.Len(); n != 1 {
				t.Errorf("%d rows", n)
			}
		}
	})
}

// TestLeftEnvironmentsEnd: a process that begins ends the tasks of the one before, and touches no others.
func TestLeftEnvironmentsEnd(t *testing.T) {
	w := &world{t: t, store: statetest.Open(t)}
	w.Manager = New(w.store, Options{Account: account.New("000000000000", "us-east-1", time.Now), ECS: w, Logs: w})
	statetest.Update(t, w.store, func(tx *state.Tx) {
		tx.FunctionEnvironments.Put(&state.FunctionEnvironment{ID: "lambda/1", Function: "f"})
		tx.FunctionEnvironments.Put(&state.FunctionEnvironment{ID: "lambda/2", Function: "f"}) // whose task was never run
	})
	for _, by := range []string{"lambda/1", "somebody"} {
		if _, err := w.RunTask(w.t.Context(), &ecs.RunTaskInput{StartedBy: &by}); err != nil {
			t.Fatal(err)
		}
	}
	w.endLeft(w.t.Context())
	v := w.store.View()
	own, other := v.Tasks.Get(w.started[0]), v.Tasks.Get(w.started[1])
	if *own.DesiredStatus != "STOPPED" || *other.DesiredStatus != "RUNNING" || v.FunctionEnvironments.Len() != 0 {
		t.Errorf("%s %s, %d rows", *own.DesiredStatus, *other.DesiredStatus, v.FunctionEnvironments.Len())
	}
}

// TestConcurrencyIsMeasured: how many invocations of a function and of all run, and how many of those share what isn't reserved.
func TestConcurrencyIsMeasured(t *testing.T) {
	m := New(nil, Options{Account: account.New("000000000000", "us-east-1", time.Now)})
	invoke := func(name string, reserved *int32) *invocation {
		v := &state.FunctionVersion{FunctionConfiguration: types.FunctionConfiguration{FunctionName: &name}}
		return &invocation{Work: Work{Version: v, Reserved: reserved}}
	}
	first := invoke("f", nil)
	for _, inv := range []*invocation{first, invoke("f", nil), invoke("g", aws.Int32(5))} {
		m.count(inv, 1)
	}
	m.count(first, -1)
	m.count(invoke("f", nil), 1)
	var got []string
	for len(m.figures) > 0 {
		f := <-m.figures
		got = append(got, fmt.Sprintf("%s %s %.0f", f.Function, strings.TrimSuffix(f.Metric, "ConcurrentExecutions"), f.Value))
	}
	want := "f  1,  1, Unreserved 1,f  2,  2, Unreserved 2,g  1,  3, Unreserved 2,f  2,  3, Unreserved 2"
	if strings.Join(got, ",") != want {
		t.Errorf("got %s", strings.Join(got, ","))
	}
}

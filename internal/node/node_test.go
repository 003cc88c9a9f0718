package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/gpu"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

const (
	cluster  = "arn:aws:ecs:us-east-1:000000000000:cluster/default"
	instance = "arn:aws:ecs:us-east-1:000000000000:container-instance/default/i1"
	taskArn  = "arn:aws:ecs:us-east-1:000000000000:task/default/t1"
	patience = time.Minute // how long to wait for what should come soon, even on a busy machine
)

// plane is a control plane. Its methods are the ECS API; ACS and TCS are web sockets.
type plane struct {
	t         *testing.T
	server    *httptest.Server
	registers chan *ecs.RegisterContainerInstanceInput
	submits   chan *ecs.SubmitTaskStateChangeInput
	opened    chan *peer // web sockets, as they are opened
	refuse    chan string

	mu    sync.Mutex
	known string // the registered instance
	fail  error  // returned to the next registration
}

// peer is the control plane's end of a web socket.
type peer struct {
	kind     string
	query    url.Values
	header   http.Header
	conn     *websocket.Conn
	headers  chan http.Header // of the frames
	received chan acs.Message
}

func newPlane(t *testing.T) *plane {
	p := &plane{
		t:         t,
		known:     instance,
		registers: make(chan *ecs.RegisterContainerInstanceInput, 10),
		submits:   make(chan *ecs.SubmitTaskStateChangeInput, 100),
		opened:    make(chan *peer, 10),
		refuse:    make(chan string, 1),
	}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.server.Close)
	return p
}

func (p *plane) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/tcs/") {
		select {
		case code := <-p.refuse:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"type":"`+code+`","message":{"message":"no"}}`) //nolint:errcheck // a test
			return
		default:
		}
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	conn.SetReadLimit(acs.MaxFrame)
	s := &peer{
		kind:     r.URL.Path[1:4],
		query:    r.URL.Query(),
		header:   r.Header,
		conn:     conn,
		headers:  make(chan http.Header, 1000),
		received: make(chan acs.Message, 1000),
	}
	p.opened <- s
	defer close(s.received)
	for {
		_, b, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		h, body, err := acs.DecodeSigned(b)
		if err != nil {
			p.t.Error(err)
			return
		}
		m, err := acs.Decode(body)
		if err != nil {
			p.t.Error(err)
			return
		}
		s.headers <- h
		s.received <- m
	}
}

// next waits for the next web socket of a kind.
func (p *plane) next(kind string) *peer {
	p.t.Helper()
	for {
		select {
		case s := <-p.opened:
			if s.kind == kind {
				return s
			}
		case <-time.After(patience):
			p.t.Fatalf("no %s connection", kind)
		}
	}
}

func (s *peer) send(t *testing.T, m acs.Message) {
	t.Helper()
	b, err := acs.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.conn.Write(t.Context(), websocket.MessageText, b); err != nil {
		t.Fatal(err)
	}
}

// receive waits for a message of a type, and skips others.
func receive[M acs.Message](t *testing.T, s *peer) M {
	t.Helper()
	for {
		select {
		case m, ok := <-s.received:
			if !ok {
				t.Fatalf("the connection ended before a %v", reflect.TypeFor[M]())
			}
			if m, ok := m.(M); ok {
				return m
			}
		case <-time.After(patience):
			t.Fatalf("no %v", reflect.TypeFor[M]())
		}
	}
}

func (p *plane) RegisterContainerInstance(
	_ context.Context, in *ecs.RegisterContainerInstanceInput, _ ...func(*ecs.Options),
) (*ecs.RegisterContainerInstanceOutput, error) {
	copied := *in
	p.registers <- &copied
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fail; err != nil {
		p.fail = nil
		return nil, err
	}
	if in.ContainerInstanceArn != nil && *in.ContainerInstanceArn != p.known {
		return nil, &types.InvalidParameterException{Message: aws.String("unknown")}
	}
	return &ecs.RegisterContainerInstanceOutput{ContainerInstance: &types.ContainerInstance{ContainerInstanceArn: aws.String(p.known)}}, nil
}

func (p *plane) DiscoverPollEndpoint(
	context.Context, *ecs.DiscoverPollEndpointInput, ...func(*ecs.Options),
) (*ecs.DiscoverPollEndpointOutput, error) {
	return &ecs.DiscoverPollEndpointOutput{
		Endpoint:          aws.String(p.server.URL + "/acs"),
		TelemetryEndpoint: aws.String(p.server.URL + "/tcs"),
	}, nil
}

func (p *plane) SubmitTaskStateChange(
	_ context.Context, in *ecs.SubmitTaskStateChangeInput, _ ...func(*ecs.Options),
) (*ecs.SubmitTaskStateChangeOutput, error) {
	p.submits <- in
	return &ecs.SubmitTaskStateChangeOutput{}, nil
}

// nextReport waits for the next report.
func (p *plane) nextReport() *ecs.SubmitTaskStateChangeInput {
	p.t.Helper()
	select {
	case in := <-p.submits:
		return in
	case <-time.After(patience):
		p.t.Fatal("no report")
		return nil
	}
}

func (p *plane) GetTaskProtection(
	context.Context, *ecs.GetTaskProtectionInput, ...func(*ecs.Options),
) (*ecs.GetTaskProtectionOutput, error) {
	return nil, errors.New("not asked here")
}

func (p *plane) UpdateTaskProtection(
	context.Context, *ecs.UpdateTaskProtectionInput, ...func(*ecs.Options),
) (*ecs.UpdateTaskProtectionOutput, error) {
	return nil, errors.New("not asked here")
}

func (p *plane) ListTagsForResource(
	context.Context, *ecs.ListTagsForResourceInput, ...func(*ecs.Options),
) (*ecs.ListTagsForResourceOutput, error) {
	return nil, errors.New("not asked here")
}

// fakeRuntime is a runtime whose containers run until they're stopped.
type fakeRuntime struct {
	runtime.Runtime

	mu         sync.Mutex
	containers map[string]chan struct{}
	specs      map[string]*runtime.Spec
	cpu        time.Duration
}

func newFakeRuntime() *fakeRuntime {
	return &fakeRuntime{containers: map[string]chan struct{}{}, specs: map[string]*runtime.Spec{}}
}

func (b *fakeRuntime) Name() string { return "process" }

func (b *fakeRuntime) Pull(context.Context, string, *runtime.RegistryAuth) (string, error) {
	return "sha256:1", nil
}

func (b *fakeRuntime) Create(_ context.Context, s *runtime.Spec) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.specs[s.ID] = s
	return nil
}

func (b *fakeRuntime) Start(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.containers[id] == nil {
		b.containers[id] = make(chan struct{})
	}
	return nil
}

func (b *fakeRuntime) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	b.mu.Lock()
	end := b.containers[id]
	b.mu.Unlock()
	select {
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	case <-end:
		return runtime.Exit{Code: 143, FinishedAt: time.Now()}, nil
	}
}

func (b *fakeRuntime) Stop(_ context.Context, id string, _ time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.containers[id])
	return nil
}

func (b *fakeRuntime) List(context.Context, string) ([]runtime.Container, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []runtime.Container
	for id := range b.containers {
		out = append(out, runtime.Container{ID: id, Status: runtime.Running, StartedAt: time.Now()})
	}
	return out, nil
}

// Stats says that a container keeps one core busy.
func (b *fakeRuntime) Stats(context.Context, string) (runtime.Stats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpu += time.Second
	return runtime.Stats{At: time.Unix(0, 0).Add(b.cpu), CPU: b.cpu, MemoryBytes: 64 << 20}, nil
}

type noLogs struct{}

func (noLogs) CreateLogGroup(
	context.Context, *cloudwatchlogs.CreateLogGroupInput, ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	return nil, nil
}

func (noLogs) CreateLogStream(
	context.Context, *cloudwatchlogs.CreateLogStreamInput, ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	return nil, nil
}

func (noLogs) PutLogEvents(
	context.Context, *cloudwatchlogs.PutLogEventsInput, ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.PutLogEventsOutput, error) {
	return nil, nil
}

// startNode starts an agent on a data directory. end stops it and waits for it.
func startNode(t *testing.T, p *plane, b *fakeRuntime, dir string) (a *Agent, end func()) {
	t.Helper()
	typ, err := instancetype.Lookup("p3.8xlarge")
	if err != nil {
		t.Fatal(err)
	}
	a = New(Config{
		Name:         "n",
		Cluster:      "default",
		Region:       "us-east-1",
		Zone:         "us-east-1a",
		DataDir:      dir,
		InstanceType: typ.Name,
		CPU:          32 * 1024,
		MemoryMiB:    typ.MemoryMiB,
		Attributes:   map[string]string{"rack": "r1"},
		Endpoint:     "http://127.0.0.1:4566",
		Version:      "1",
		Runtime:      b,
		GPUs:         gpu.NewSimulated("n", typ),
		ECS:          p,
		Logs:         noLogs{},
		Credentials:  credentials.NewStaticCredentialsProvider("AK", "SK", ""),
		Log:          slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the agent ended: %v", err)
		}
	})
	t.Cleanup(end)
	return a, end
}

func payload(tasks ...acs.Task) *acs.PayloadMessage {
	return &acs.PayloadMessage{MessageID: "m1", ClusterArn: cluster, ContainerInstanceArn: instance, SeqNum: 5, Tasks: tasks}
}

func sleeper() acs.Task {
	return acs.Task{
		Arn:             taskArn,
		Family:          "f",
		Version:         "1",
		DesiredStatus:   "RUNNING",
		NetworkMode:     "bridge",
		TaskClusterArn:  cluster,
		RoleCredentials: &acs.IAMRoleCredentials{CredentialsID: "c1", AccessKeyID: "TASK", Expiration: "2026-11-21T06:00:00Z"},
		Containers: []acs.Container{{
			Name:         "main",
			Image:        "i",
			Essential:    true,
			CPU:          2048,
			Memory:       128,
			Command:      []string{"sleep"},
			DockerConfig: acs.DockerConfig{Config: `{"Healthcheck":{"Test":["CMD","true"]}}`},
		}},
	}
}

func TestRegistration(t *testing.T) {
	p, dir := newPlane(t), t.TempDir()
	a, _ := startNode(t, p, newFakeRuntime(), dir)
	in := <-p.registers
	if *in.Cluster != "default" || in.ContainerInstanceArn != nil || len(in.PlatformDevices) != 4 {
		t.Errorf("registered %+v", in)
	}
	attributes := map[string]string{}
	for _, at := range in.Attributes {
		attributes[*at.Name] = aws.ToString(at.Value)
	}
	for name, want := range map[string]string{
		"ecs.instance-type": "p3.8xlarge", "ecs.availability-zone": "us-east-1a", "ecs.os-type": "linux", "rack": "r1",
		"pintle.gpu": "simulated",
		"com.amazonaws.ecs.capability.logging-driver.awslogs": "", "ecs.capability.container-ordering": "",
	} {
		if got, has := attributes[name]; !has || got != want {
			t.Errorf("attribute %s is %q", name, got)
		}
	}
	var names []string
	for _, r := range in.TotalResources {
		names = append(names, *r.Name)
	}
	if !slices.Equal(names, []string{"CPU", "MEMORY", "PORTS", "PORTS_UDP"}) {
		t.Errorf("resources %v", names)
	}
	p.next("acs")
	if a.Instance() != instance {
		t.Errorf("it is %s", a.Instance())
	}
	portOf(t, dir)
}

func TestTaskFromPayloadToStopped(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	a, _ := startNode(t, p, b, t.TempDir())
	s := p.next("acs")
	if q := s.query; q.Get("containerInstanceArn") != instance || q.Get("clusterArn") != "default" || q.Get("protocolVersion") != "2" ||
		q.Get("sendCredentials") != "true" {
		t.Errorf("opened with %v", q)
	}
	if !strings.Contains(s.header.Get("Authorization"), "Credential=AK/") {
		t.Error("the upgrade is not signed")
	}
	if m := receive[*acs.PintleNodeInventory](t, s); m.InstanceType != "p3.8xlarge" || len(m.GPUs) != 4 || !m.GPUs[0].Simulated {
		t.Errorf("inventory %+v", m)
	}
	s.send(t, &acs.HeartbeatMessage{MessageID: "h1", Healthy: true})
	if m := receive[*acs.HeartbeatAckRequest](t, s); m.MessageID != "h1" {
		t.Errorf("acknowledged %+v", m)
	}

	s.send(t, payload(sleeper()))
	if m := receive[*acs.AckRequest](t, s); m.MessageID != "m1" || m.ContainerInstance != instance || m.Cluster != "default" {
		t.Errorf("acknowledged %+v", m)
	}
	if m := receive[*acs.IAMRoleCredentialsAckRequest](t, s); m.CredentialsID != "c1" || m.MessageID != "m1" {
		t.Errorf("acknowledged %+v", m)
	}
	if in := p.nextReport(); *in.Status != "RUNNING" || *in.Task != taskArn || *in.Containers[0].Status != "RUNNING" ||
		*in.Containers[0].ImageDigest != "sha256:1" {
		t.Errorf("reported %+v", in)
	}
	checkEnvironment(t, b.specs["t1-main"].Env)

	stop := sleeper()
	stop.DesiredStatus = "STOPPED"
	s.send(t, payload(stop))
	if in := p.nextReport(); *in.Status != "STOPPED" || *in.Containers[0].ExitCode != 143 || in.ExecutionStoppedAt == nil {
		t.Errorf("reported %+v", in)
	}
	if err := a.engine.Drain(t.Context()); err != nil { // returns once the agent has noted that the report was accepted
		t.Fatal(err)
	}
	s.send(t, &acs.TaskManifestMessage{
		MessageID:            "m2",
		ClusterArn:           cluster,
		ContainerInstanceArn: instance,
		Timeline:             6,
		Tasks:                []acs.TaskIdentifier{{TaskArn: taskArn, DesiredStatus: "RUNNING"}},
	})
	if in := p.nextReport(); *in.Status != "STOPPED" {
		t.Errorf("a manifest that has it running still is answered by %+v", in)
	}
}

// checkEnvironment checks a container's environment, and that its URLs answer.
func checkEnvironment(t *testing.T, env []string) {
	t.Helper()
	m := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	if m["AWS_REGION"] != "us-east-1" || m["AWS_DEFAULT_REGION"] != "us-east-1" || m["AWS_ENDPOINT_URL"] != "http://127.0.0.1:4566" {
		t.Errorf("environment %v", env)
	}
	for name, want := range map[string]string{
		"ECS_CONTAINER_METADATA_URI_V4": `"Name":"main"`, "ECS_CONTAINER_METADATA_URI": `"Name":"main"`,
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": `"AccessKeyId":"TASK"`,
	} {
		r, err := http.Get(m[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close() //nolint:errcheck // it was read to the end
		if !strings.Contains(string(body), want) {
			t.Errorf("%s gives %s", name, body)
		}
	}
}

func TestManifest(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	startNode(t, p, b, t.TempDir())
	s := p.next("acs")
	s.send(t, payload(sleeper()))
	p.nextReport()
	manifest := &acs.TaskManifestMessage{MessageID: "m2", ClusterArn: cluster, ContainerInstanceArn: instance, Timeline: 5}
	s.send(t, manifest) // stale, so it's ignored
	manifest.Timeline = 6
	s.send(t, manifest)
	if m := receive[*acs.TaskStopVerificationMessage](t, s); m.MessageID != "m2" || len(m.StopCandidates) != 1 ||
		m.StopCandidates[0].TaskArn != taskArn {
		t.Errorf("asked %+v", m)
	}
	s.send(t, &acs.TaskStopVerificationAck{MessageID: "m2", StopTasks: []acs.TaskIdentifier{{TaskArn: taskArn, DesiredStatus: "STOPPED"}}})
	if in := p.nextReport(); *in.Status != "STOPPED" {
		t.Errorf("reported %+v", in)
	}
}

// TestManifestOfALostTask: a task that the node has reported RUNNING and doesn't know is over, and one that is still on its way isn't.
func TestManifestOfALostTask(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	startNode(t, p, b, t.TempDir())
	s := p.next("acs")
	manifest := &acs.TaskManifestMessage{MessageID: "m", ClusterArn: cluster, ContainerInstanceArn: instance, Timeline: 5}
	lost := acs.TaskIdentifier{TaskArn: taskArn + "f", DesiredStatus: "RUNNING", TaskClusterArn: cluster, LastStatus: "RUNNING"}
	coming := acs.TaskIdentifier{TaskArn: taskArn, DesiredStatus: "RUNNING", TaskClusterArn: cluster}
	manifest.Tasks = []acs.TaskIdentifier{coming, lost}
	s.send(t, manifest)
	if in := p.nextReport(); *in.Task != lost.TaskArn || *in.Status != "STOPPED" ||
		!strings.HasPrefix(aws.ToString(in.Reason), "TaskRecordMissingError: ") {
		t.Errorf("reported %+v", in)
	}
	s.send(t, payload(sleeper()))
	if in := p.nextReport(); *in.Task != taskArn || *in.Status != "RUNNING" {
		t.Errorf("reported %+v", in)
	}
}

func TestPayloadWithInvalidTaskIsNotAcknowledged(t *testing.T) {
	p := newPlane(t)
	startNode(t, p, newFakeRuntime(), t.TempDir())
	s := p.next("acs")
	bad := sleeper()
	bad.Arn += "bad"
	bad.Containers = nil
	s.send(t, payload(bad, sleeper()))
	for range 2 {
		switch in := p.nextReport(); *in.Task {
		case bad.Arn:
			if *in.Status != "STOPPED" || !strings.HasPrefix(*in.Reason, "UnrecognizedTaskError") {
				t.Errorf("reported %+v", in)
			}
		case taskArn:
			if *in.Status != "RUNNING" {
				t.Errorf("reported %+v", in)
			}
		}
	}
	again := payload(sleeper())
	again.MessageID = "m2"
	s.send(t, again)
	if m := receive[*acs.AckRequest](t, s); m.MessageID != "m2" {
		t.Errorf("acknowledged %+v", m)
	}
}

func TestNewCredentials(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	dir := t.TempDir()
	a, end := startNode(t, p, b, dir)
	s := p.next("acs")
	s.send(t, payload(sleeper()))
	p.nextReport()
	s.send(t, &acs.IAMRoleCredentialsMessage{
		MessageID:       "m3",
		TaskArn:         taskArn,
		RoleType:        acs.TaskRole,
		RoleCredentials: &acs.IAMRoleCredentials{CredentialsID: "c1", AccessKeyID: "NEW"},
	})
	for {
		if m := receive[*acs.IAMRoleCredentialsAckRequest](t, s); m.MessageID == "m3" {
			break
		}
	}
	if c, _, ok := a.engine.Credentials("c1"); !ok || c.AccessKeyID != "NEW" {
		t.Errorf("it has %+v", c)
	}
	end()
	a, _ = startNode(t, p, b, dir)
	p.next("acs")
	if c, _, ok := a.engine.Credentials("c1"); !ok || c.AccessKeyID != "NEW" {
		t.Errorf("the next agent has %+v", c)
	}
}

func TestTelemetry(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	a, _ := startNode(t, p, b, t.TempDir())
	tcs := p.next("tcs")
	if m := receive[*acs.PublishMetricsRequest](t, tcs); !m.Metadata.Idle || !m.Metadata.Fin || m.Metadata.ContainerInstance != instance {
		t.Errorf("an idle node says %+v", m)
	}
	if h := <-tcs.headers; !strings.Contains(h.Get("Authorization"), "Credential=AK/") || h.Get("X-Amz-Date") == "" || h.Get("Host") == "" {
		t.Errorf("a frame is signed by %v", h)
	}
	if m := receive[*acs.PintleGPUTelemetry](t, tcs); len(m.GPUs) != 4 || !m.GPUs[0].Simulated {
		t.Errorf("GPUs %+v", m)
	}
	a.beats <- struct{}{}
	if m := receive[*acs.PublishInstanceStatusRequest](t, tcs); m.Statuses[0].Status != "OK" || m.Statuses[0].LastStatusChange == 0 {
		t.Errorf("the node is %+v", m)
	}
}

// TestErrorsAreReportedOnce: the control plane gets each error once, even over a new connection. Whoever scrapes the node sees the last one
// for as long as the node runs. The test calls the sampler itself, since an agent samples slowly.
func TestErrorsAreReportedOnce(t *testing.T) {
	typ, err := instancetype.Lookup("p3.8xlarge")
	if err != nil {
		t.Fatal(err)
	}
	faulty := &faultyGPU{Source: gpu.NewSimulated("n", typ)}
	a := New(Config{Name: "n", DataDir: t.TempDir(), Runtime: newFakeRuntime(), GPUs: faulty, Log: slog.New(slog.DiscardHandler)})
	if a.engine, err = engine.Open(engine.Options{Dir: t.TempDir(), Runtime: a.config.Runtime}); err != nil {
		t.Fatal(err)
	}
	m := a.sampler
	for range 2 * maxErrors {
		m.sampleGPUs(t.Context())
	}
	if got := m.takeLoad(); len(got[0].XIDErrors) != maxErrors || len(got[1].XIDErrors) != 0 {
		t.Errorf("told of %d errors, want %d", len(got[0].XIDErrors), maxErrors)
	}
	m.sampleGPUs(t.Context())
	if got := m.takeLoad(); !slices.Equal(got[0].XIDErrors, []uint64{2*maxErrors + 1}) {
		t.Errorf("then told of %v", got[0].XIDErrors)
	}
	families := scrape(t, a)
	xids := families["DCGM_FI_DEV_XID_ERRORS"].GetMetric()
	if len(families) != 2+len(gauges)+len(gpu.Figures) || len(xids) != 4 {
		t.Fatalf("scraped %d metrics: %v", len(families), xids)
	}
	want := map[string]string{
		"DCGM_FI_DRIVER_VERSION": "simulated", "Hostname": "n", "UUID": faulty.Devices()[0].ID, "device": "nvidia0", "gpu": "0",
		"modelName": faulty.Devices()[0].Model, "pci_bus_id": "00000000:01:00.0", "simulated": "true",
	}
	if got := labelsOf(xids[0]); !maps.Equal(got, want) || xids[0].GetGauge().GetValue() != 129 {
		t.Errorf("scraped %v %v", got, xids[0])
	}
}

// faultyGPU has an error in each sample.
type faultyGPU struct {
	gpu.Source
	errors uint64
}

func (f *faultyGPU) Load(ctx context.Context, busy func(string) float64) []gpu.Sample {
	out := f.Source.Load(ctx, busy)
	f.errors++
	out[0].XIDErrors = []uint64{f.errors}
	return out
}

func TestSampler(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	a, _ := startNode(t, p, b, t.TempDir())
	s := p.next("acs")
	pinned := sleeper()
	pinned.Associations = []acs.Association{{Type: "gpu", Name: a.config.GPUs.Devices()[1].ID, Containers: []string{"main"}}}
	s.send(t, payload(pinned))
	p.nextReport()
	m := newSampler(a)
	for range 3 {
		m.sample(t.Context())
	}
	if got := m.busy(a.config.GPUs.Devices()[1].ID); got != 0.5 || m.busy(a.config.GPUs.Devices()[0].ID) != 0 {
		t.Errorf("a core of two reserved is a load of %v", got)
	}
	tasks := m.collect()
	if len(tasks) != 1 || tasks[0].TaskArn != taskArn {
		t.Fatalf("collected %+v", tasks)
	}
	c := tasks[0].ContainerMetrics[0]
	if c.CPUStatsSet.SampleCount != 2 || c.CPUStatsSet.Max != 100.0/32 || c.MemoryStatsSet.Min != 64 {
		t.Errorf("collected %+v", c)
	}
	if again := m.collect(); len(again) != 0 {
		t.Errorf("collected again %+v", again)
	}
}

func TestSimulatedLoad(t *testing.T) {
	dir := t.TempDir()
	inFile, pipe := filepath.Join(dir, "load"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(inFile, []byte("0.7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, want := range map[string]float64{
		"0.8": 0.8, "": 0.1, "NaN": 0.1, "2": 0.1, "much": 0.1, inFile: 0.7, filepath.Join(dir, "missing"): 0, pipe: 0, dir: 0,
	} {
		c := &acs.Container{CPU: 1024, Environment: map[string]string{simulatedLoadVar: says}}
		if got := simulatedLoad(c, 0.1); got != want {
			t.Errorf("%q: load %v, want %v", says, got, want)
		}
	}
}

// TestTypeStays: the data of one type of machine are not taken for those of another.
func TestTypeStays(t *testing.T) {
	p, dir := newPlane(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "instance.json"), []byte(`{"InstanceType":"c5.large"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := New(Config{DataDir: dir, InstanceType: "p3.8xlarge", ECS: p, Log: slog.New(slog.DiscardHandler)})
	if err := a.register(t.Context()); err == nil || !strings.Contains(err.Error(), "is a c5.large") {
		t.Errorf("it registers: %v", err)
	}
}

func TestRestartKeepsInstance(t *testing.T) {
	p, b, dir := newPlane(t), newFakeRuntime(), t.TempDir()
	port := runtimetest.FreePort(t) // a port from the kernel could go to another program between the two agents
	if err := os.WriteFile(filepath.Join(dir, "instance.json"), fmt.Appendf(nil, `{"MetadataPort":%d}`, port), 0o600); err != nil {
		t.Fatal(err)
	}
	_, end := startNode(t, p, b, dir)
	s := p.next("acs")
	s.send(t, payload(sleeper()))
	p.nextReport()
	first := <-p.registers
	before := portOf(t, dir)
	end()
	startNode(t, p, b, dir)
	in := <-p.registers
	if aws.ToString(in.ContainerInstanceArn) != instance {
		t.Errorf("registered as %v", in.ContainerInstanceArn)
	}
	if machine := aws.ToString(in.InstanceIdentityDocument); machine != aws.ToString(first.InstanceIdentityDocument) ||
		!regexp.MustCompile(`"instanceId":"i-[0-9a-f]{17}"`).MatchString(machine) {
		t.Errorf("it is the machine %s, and was %s", machine, aws.ToString(first.InstanceIdentityDocument))
	}
	s = p.next("acs")
	s.send(t, payload(sleeper()))
	receive[*acs.AckRequest](t, s)
	if len(b.containers) != 1 {
		t.Errorf("containers %v", b.containers)
	}
	if after := portOf(t, dir); after != before {
		t.Errorf("the metadata endpoint moved from port %d to %d", before, after)
	}
}

// TestCopiedDirectory: an agent with a copy of another's data directory would remove the containers that the copy doesn't know of.
func TestCopiedDirectory(t *testing.T) {
	p, b, dir := newPlane(t), newFakeRuntime(), t.TempDir()
	_, end := startNode(t, p, b, dir)
	p.next("acs")
	<-p.registers
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	second := New(Config{Cluster: "default", DataDir: copied, InstanceType: "p3.8xlarge", Runtime: b, ECS: p, Logs: noLogs{}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := second.Run(ctx); err == nil || !strings.Contains(err.Error(), "another agent on this machine is the node of "+copied) {
		t.Errorf("the second agent ends with %v", err)
	}
	if len(p.registers) > 0 {
		t.Error("the second agent registers as the first one's node")
	}
	end()
	startNode(t, p, b, copied)
	p.next("acs") // the directory may move
}

func portOf(t *testing.T, dir string) int {
	t.Helper()
	var id identity
	if err := file.ReadSealed(filepath.Join(dir, "instance.json"), &id); err != nil || id.MetadataPort == 0 {
		t.Fatalf("%+v, %v", id, err)
	}
	return id.MetadataPort
}

// TestADamagedIdentity: a node that doesn't know any more whose its containers are must not begin as another one.
func TestADamagedIdentity(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	for _, content := range []string{"", `{"Cluster":"default","Owner":"arn:a`, "{}\ncrc32c 00000000\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "instance.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := New(Config{Cluster: "default", DataDir: dir, InstanceType: "p3.8xlarge", Runtime: b, ECS: p, Logs: noLogs{}}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), path+" is damaged") || len(p.registers) > 0 {
			t.Errorf("with %q the agent ends with %v", content, err)
		}
	}
}

func TestForgottenNodeRegistersAgain(t *testing.T) {
	p, b := newPlane(t), newFakeRuntime()
	a, _ := startNode(t, p, b, t.TempDir())
	s := p.next("acs")
	p.mu.Lock()
	p.known = instance + "-new"
	p.mu.Unlock()
	p.refuse <- "InvalidInstanceException"
	s.conn.Close(websocket.StatusInternalError, "") //nolint:errcheck // as meant
	s = p.next("acs")
	if got := s.query.Get("containerInstanceArn"); got != instance+"-new" || a.Instance() != got {
		t.Errorf("it came back as %s", got)
	}
	if a.identity.Load().Owner != instance {
		t.Error("its containers would be lost")
	}
}

func TestRefusedRegistration(t *testing.T) {
	p := newPlane(t)
	p.fail = &types.ClusterNotFoundException{Message: aws.String("no such cluster")}
	a := New(Config{Name: "n", Cluster: "nowhere", DataDir: t.TempDir(), Runtime: newFakeRuntime(), ECS: p, Logs: noLogs{}})
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}

// TestWrongKey: an agent whose key stays refused ends, and says what to do.
func TestWrongKey(t *testing.T) {
	p := newPlane(t)
	refused := wrongKey{p}
	a := New(Config{Name: "n", Cluster: "c", DataDir: t.TempDir(), Runtime: newFakeRuntime(), ECS: refused, Logs: noLogs{}})
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("got %v", err)
	}
}

// wrongKey is a control plane that refuses the node's key.
type wrongKey struct{ *plane }

func (wrongKey) RegisterContainerInstance(
	context.Context, *ecs.RegisterContainerInstanceInput, ...func(*ecs.Options),
) (*ecs.RegisterContainerInstanceOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "InvalidSignatureException", Message: "no"}
}

func TestReadRefusal(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"InactiveInstanceException","message":{"message":"gone"}}`: "InactiveInstanceException: gone",
		`{"InactiveInstanceException":"gone"}`:                              "InactiveInstanceException: gone",
		`busy`:                                                              "dial: busy",
	} {
		r := &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(body))}
		if got := readRefusal(r, errors.New("dial")).Error(); got != want {
			t.Errorf("%s is %q", body, got)
		}
	}
}

func TestEnvironmentInOwnNetwork(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:4566":      "http://169.254.170.2:51678",
		"http://localhost:1":         "http://169.254.170.2:51678",
		"http://10.0.0.1:4566":       "http://10.0.0.1:4566",
		"https://pintle.example.com": "https://pintle.example.com",
	} {
		task := sleeper()
		a := New(Config{Runtime: oci{}, Endpoint: endpoint})
		if got := a.environment(&task, "token")["AWS_ENDPOINT_URL"]; got != want {
			t.Errorf("a container finds %s at %s, want %s", endpoint, got, want)
		}
	}
	a := New(Config{Runtime: oci{}, Region: "r"})
	task := sleeper()
	env := a.environment(&task, "token")
	if env["ECS_CONTAINER_METADATA_URI_V4"] != "http://169.254.170.2/v4/token" ||
		env["ECS_AGENT_URI"] != "http://169.254.170.2/api/token" || env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] != "/v2/credentials/c1" {
		t.Errorf("environment %v", env)
	}
	fargate := task
	fargate.LaunchType = "FARGATE"
	if a, b := env["AWS_EXECUTION_ENV"], a.environment(&fargate, "token")["AWS_EXECUTION_ENV"]; a != "AWS_ECS_EC2" || b != "AWS_ECS_FARGATE" {
		t.Errorf("programs are told that they are in %s and %s", a, b)
	}
}

type oci struct{ runtime.Runtime }

func (oci) Name() string { return "oci" }

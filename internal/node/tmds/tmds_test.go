package tmds

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

const taskArn = "arn:aws:ecs:us-east-1:000000000000:task/default/t1"

// node has one task with two containers: web, which is running, and init, which has ended.
type node struct{ record *engine.Record }

func newNode() *node {
	at, zero := time.Date(2026, 11, 21, 5, 29, 36, 0, time.UTC), 0
	return &node{&engine.Record{
		Task: acs.Task{
			Arn:            taskArn,
			Family:         "f",
			Version:        "3",
			TaskClusterArn: "arn:cluster",
			LaunchType:     "EC2",
			NetworkMode:    "bridge",
			CPU:            0.5,
			Memory:         512,
			ServiceName:    "s",
			RoleCredentials: &acs.IAMRoleCredentials{
				CredentialsID:   "id1",
				AccessKeyID:     "AK",
				SecretAccessKey: "SK",
				SessionToken:    "ST",
				Expiration:      "2026-11-21T06:00:00Z",
				RoleArn:         "arn:role",
			},
			Volumes: []acs.Volume{{Name: "data", Host: &acs.HostVolume{SourcePath: "/srv"}}},
			Containers: []acs.Container{
				{
					Name:         "web",
					Image:        "nginx",
					CPU:          256,
					Memory:       128,
					ContainerArn: "arn:container",
					Essential:    true,
					MountPoints:  []acs.MountPoint{{SourceVolume: "data", ContainerPath: "/data"}},
					DockerConfig: acs.DockerConfig{Config: `{"Labels":{"team":"gold"}}`, HostConfig: `{"LogConfig":{"Type":"awslogs","Config":{"awslogs-group":"g"}}}`},
				},
				{Name: "init", Image: "busybox"},
			},
		},
		Containers: map[string]*engine.Container{
			"web": {
				Status:      engine.Running,
				Token:       "web-token",
				Digest:      "sha256:1",
				StartedAt:   at,
				Ports:       []engine.Port{{Container: 80, Host: 49153, Protocol: "tcp"}},
				Health:      engine.Healthy,
				HealthSince: at,
			},
			"init": {Status: engine.Stopped, Token: "init-token", ExitCode: &zero},
		},
		PullStartedAt: at, PullStoppedAt: at,
	}}
}

func (n *node) ByToken(token string) (*engine.Record, string, bool) {
	for name, c := range n.record.Containers {
		if c.Token == token {
			return n.record, name, true
		}
	}
	return nil, "", false
}

func (n *node) Task(arn string) (*engine.Record, bool) { return n.record, arn == taskArn }

func (n *node) Credentials(id string) (acs.IAMRoleCredentials, string, bool) {
	c := *n.record.Task.RoleCredentials
	return c, taskArn, c.CredentialsID == id
}

func (n *node) Address(context.Context, string) (string, error) { return "10.213.0.2", nil }

func (n *node) Stats(context.Context, string) (runtime.Stats, error) {
	return runtime.Stats{CPU: time.Second, MemoryBytes: 1 << 20, MemoryLimit: 1 << 27, RxBytes: 10, TxBytes: 20}, nil
}

// plane is a control plane that records its last calls.
type plane struct {
	accessKey string // with which it was called
	protected *ecs.UpdateTaskProtectionInput
	err       error
	failures  []types.Failure
}

func (p *plane) recordCaller(options []func(*ecs.Options)) {
	var o ecs.Options
	for _, f := range options {
		f(&o)
	}
	c, _ := o.Credentials.Retrieve(context.Background())
	p.accessKey = c.AccessKeyID
}

func (p *plane) answer() ([]types.ProtectedTask, []types.Failure) {
	if p.failures != nil {
		return nil, p.failures
	}
	at := time.Date(2026, 11, 21, 5, 29, 36, 0, time.UTC)
	return []types.ProtectedTask{{TaskArn: aws.String(taskArn), ProtectionEnabled: true, ExpirationDate: &at}}, nil
}

func (p *plane) GetTaskProtection(
	_ context.Context, _ *ecs.GetTaskProtectionInput, o ...func(*ecs.Options),
) (*ecs.GetTaskProtectionOutput, error) {
	p.recordCaller(o)
	tasks, failures := p.answer()
	return &ecs.GetTaskProtectionOutput{ProtectedTasks: tasks, Failures: failures}, p.err
}

func (p *plane) UpdateTaskProtection(
	_ context.Context, in *ecs.UpdateTaskProtectionInput, o ...func(*ecs.Options),
) (*ecs.UpdateTaskProtectionOutput, error) {
	p.recordCaller(o)
	p.protected = in
	tasks, failures := p.answer()
	return &ecs.UpdateTaskProtectionOutput{ProtectedTasks: tasks, Failures: failures}, p.err
}

func (p *plane) ListTagsForResource(
	_ context.Context, in *ecs.ListTagsForResourceInput, _ ...func(*ecs.Options),
) (*ecs.ListTagsForResourceOutput, error) {
	return &ecs.ListTagsForResourceOutput{Tags: []types.Tag{{Key: aws.String("of"), Value: in.ResourceArn}}}, nil
}

func serve(n *node, p *plane) *Server {
	return New(Options{
		Tasks:    n,
		Runtime:  n,
		ECS:      p,
		Region:   "us-east-1",
		Zone:     "us-east-1a",
		Instance: func() string { return "arn:instance" },
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// request makes a request and returns the status and the body.
func request(s *Server, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// valueAt returns the value at a path in JSON.
func valueAt(t *testing.T, body string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func TestMetadata(t *testing.T) {
	s := serve(newNode(), &plane{})
	for _, c := range []struct {
		path  string
		value []any // its path in the body
		want  any
	}{
		{"/v4/web-token", []any{"DockerId"}, "t1-web"},
		{"/v4/web-token", []any{"Name"}, "web"},
		{"/v4/web-token", []any{"Image"}, "nginx"},
		{"/v4/web-token", []any{"ImageID"}, "sha256:1"},
		{"/v4/web-token", []any{"KnownStatus"}, "RUNNING"},
		{"/v4/web-token", []any{"DesiredStatus"}, "RUNNING"},
		{"/v4/web-token", []any{"Limits", "CPU"}, 256.0},
		{"/v4/web-token", []any{"Limits", "Memory"}, 128.0},
		{"/v4/web-token", []any{"StartedAt"}, "2026-11-21T05:29:36Z"},
		{"/v4/web-token", []any{"Health", "status"}, "HEALTHY"},
		{"/v4/web-token", []any{"Ports", 0, "HostPort"}, 49153.0},
		{"/v4/web-token", []any{"Volumes", 0, "Source"}, "/srv"},
		{"/v4/web-token", []any{"LogDriver"}, "awslogs"},
		{"/v4/web-token", []any{"LogOptions", "awslogs-group"}, "g"},
		{"/v4/web-token", []any{"Networks", 0, "NetworkMode"}, "bridge"},
		{"/v4/web-token", []any{"Networks", 0, "IPv4Addresses", 0}, "10.213.0.2"},
		{"/v4/init-token", []any{"Networks", 0, "IPv4Addresses", 0}, ""},
		{"/v4/web-token", []any{"ContainerARN"}, "arn:container"},
		{"/v4/web-token", []any{"Labels", "team"}, "gold"},
		{"/v4/web-token", []any{"Labels", "com.amazonaws.ecs.task-arn"}, taskArn},
		{"/v3/init-token", []any{"ExitCode"}, 0.0},
		{"/v4/web-token/task", []any{"TaskARN"}, taskArn},
		{"/v4/web-token/task", []any{"Revision"}, "3"},
		{"/v4/web-token/task", []any{"KnownStatus"}, "RUNNING"},
		{"/v4/web-token/task", []any{"Limits", "CPU"}, 0.5},
		{"/v4/web-token/task", []any{"AvailabilityZone"}, "us-east-1a"},
		{"/v4/web-token/task", []any{"Containers", 1, "Name"}, "init"},
		{"/v4/web-token/task", []any{"TaskTags"}, nil},
		{"/v4/web-token/taskWithTags", []any{"TaskTags", "of"}, taskArn},
		{"/v4/web-token/taskWithTags", []any{"ContainerInstanceTags", "of"}, "arn:instance"},
		{"/v4/web-token/stats", []any{"cpu_stats", "cpu_usage", "total_usage"}, 1e9},
		{"/v4/web-token/stats", []any{"memory_stats", "limit"}, float64(1 << 27)},
		{"/v4/web-token/task/stats", []any{"t1-web", "networks", "eth0", "tx_bytes"}, 20.0},
		{"/v4/web-token/task/stats", []any{"t1-init"}, nil},
	} {
		code, body := request(s, "GET", c.path, "")
		if got := valueAt(t, body, c.value...); code != http.StatusOK || got != c.want {
			t.Errorf("%s %v: %d, %v, want %v", c.path, c.value, code, got, c.want)
		}
	}
}

// TestDockersOwnIDs: where the runtime has ids of its own, as Docker has, containers are told these.
func TestDockersOwnIDs(t *testing.T) {
	id := strings.Repeat("4f", 32)
	n := newNode()
	n.record.Containers["web"].RuntimeID = id
	n.record.Containers["web"].ImageID = "sha256:2"
	s := serve(n, &plane{})
	for _, c := range []struct {
		path  string
		value []any
		want  any
	}{
		{"/v3/web-token", []any{"DockerId"}, id},
		{"/v4/web-token", []any{"DockerId"}, id},
		{"/v4/web-token", []any{"DockerName"}, "t1-web"},
		{"/v4/web-token", []any{"ImageID"}, "sha256:2"},
		{"/v4/web-token/task", []any{"Containers", 0, "DockerId"}, id},
		{"/v4/web-token/task/stats", []any{id, "networks", "eth0", "tx_bytes"}, 20.0},
	} {
		code, body := request(s, "GET", c.path, "")
		if got := valueAt(t, body, c.value...); code != http.StatusOK || got != c.want {
			t.Errorf("%s %v: %d, %v, want %v", c.path, c.value, code, got, c.want)
		}
	}
}

func TestUnknownTokens(t *testing.T) {
	s := serve(newNode(), &plane{})
	for _, path := range []string{
		"/v4/nobody", "/v4/nobody/task", "/v3/nobody/stats", "/v2/credentials/nobody", "/api/nobody/task-protection/v1/state", "/", "/v4/",
	} {
		if code, body := request(s, "GET", path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestOnlyOneTask: where one task's containers ask, another's ids are unknown, so that whoever learned one gets nothing for it.
func TestOnlyOneTask(t *testing.T) {
	all := serve(newNode(), &plane{})
	for _, path := range []string{"/v2/credentials/id1", "/v4/web-token/task", "/v3/web-token", "/api/web-token/task-protection/v1/state"} {
		if code, _ := request(all.For(taskArn), "GET", path, ""); code != 200 {
			t.Errorf("the task itself gets %d for %s", code, path)
		}
		if code, _ := request(all.For(taskArn+"x"), "GET", path, ""); code != 404 {
			t.Errorf("another task gets %d for %s", code, path)
		}
	}
}

// TestVersion2: in the network of a task of mode awsvpc its containers ask without a token.
func TestVersion2(t *testing.T) {
	n := newNode()
	all := serve(n, &plane{})
	for path, value := range map[string][]any{
		"/v2/metadata":        {"Containers", 0, "Name"},
		"/v2/metadata/t1-web": {"Name"},
		"/v2/stats":           {"t1-web", "name"},
		"/v2/stats/t1-web":    {"name"},
	} {
		n.record.Task.NetworkMode = "bridge"
		if code, body := request(all.For(taskArn), "GET", path, ""); code != http.StatusNotFound {
			t.Errorf("%s in mode bridge: %d %s", path, code, body)
		}
		n.record.Task.NetworkMode = "awsvpc"
		code, body := request(all.For(taskArn), "GET", path, "")
		if got := valueAt(t, body, value...); code != http.StatusOK || got != "web" && got != "/t1-web" {
			t.Errorf("%s: %d, %v", path, code, got)
		}
		for whom, s := range map[string]*Server{"another task": all.For(taskArn + "x"), "the machine": all} {
			if code, body := request(s, "GET", path, ""); code != http.StatusNotFound {
				t.Errorf("%s gets %s: %d %s", whom, path, code, body)
			}
		}
	}
	if code, _ := request(all.For(taskArn), "GET", "/v2/metadata/nobody", ""); code != http.StatusNotFound {
		t.Errorf("a container that isn't there: %d", code)
	}
}

func TestCredentials(t *testing.T) {
	_, body := request(serve(newNode(), &plane{}), "GET", "/v2/credentials/id1", "")
	want := `{"RoleArn":"arn:role","AccessKeyId":"AK","SecretAccessKey":"SK","Token":"ST","Expiration":"2026-11-21T06:00:00Z"}`
	if body != want {
		t.Errorf("got %s", body)
	}
}

func TestProtection(t *testing.T) {
	const path = "/api/web-token/task-protection/v1/state"
	denied := &types.AccessDeniedException{Message: aws.String("no")}
	for _, c := range []struct {
		name     string
		method   string
		body     string
		plane    plane
		roleless bool
		code     int
		want     string
	}{
		{
			"get", "GET", "", plane{}, false, 200,
			`{"protection":{"ProtectionEnabled":true,"ExpirationDate":"2026-11-21T05:29:36Z","TaskArn":"` + taskArn + `"}}`,
		},
		{"put", "PUT", `{"ProtectionEnabled":true,"ExpiresInMinutes":120}`, plane{}, false, 200, `"ProtectionEnabled":true`},
		{"not JSON", "PUT", `{`, plane{}, false, 400, `"Code":"InvalidParameterException"`},
		{"another type", "PUT", `{"ProtectionEnabled":"yes"}`, plane{}, false, 400, `"Code":"InvalidParameterException"`},
		{"unknown member", "PUT", `{"ProtectionEnabled":true,"Forever":true}`, plane{}, false, 400, `"Code":"InvalidParameterException"`},
		{"nothing asked", "PUT", `{}`, plane{}, false, 400, `ProtectionEnabled must be given`},
		{"no role", "GET", "", plane{}, true, 403, `"Code":"AccessDeniedException"`},
		{"denied", "GET", "", plane{err: denied}, false, 403, `"Message":"no"`},
		{"too late", "GET", "", plane{err: context.DeadlineExceeded}, false, 504, `"Code":"RequestCanceled"`},
		{
			"a failure", "GET", "",
			plane{failures: []types.Failure{{Arn: aws.String(taskArn), Reason: aws.String("TASK_NOT_VALID")}}}, false,
			200, `{"failure":{"Arn":"` + taskArn + `","Reason":"TASK_NOT_VALID"}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode()
			if c.roleless {
				n.record.Task.RoleCredentials = nil
			}
			code, body := request(serve(n, &c.plane), c.method, path, c.body)
			if code != c.code || !strings.Contains(body, c.want) {
				t.Errorf("%d %s", code, body)
			}
			if c.code == 200 && c.plane.accessKey != "AK" {
				t.Errorf("called with access key %q", c.plane.accessKey)
			}
			if c.name == "put" && *c.plane.protected.ExpiresInMinutes != 120 {
				t.Errorf("asked for %+v", c.plane.protected)
			}
		})
	}
}

// TestStats: what collectors compute with is there, whatever the runtime knows, and the second answer has rates.
func TestStats(t *testing.T) {
	s := serve(newNode(), &plane{})
	began := time.Unix(1000, 0)
	first := s.compare("c", runtime.Stats{At: began, CPU: time.Second, RxBytes: 100, TxBytes: 10})
	if first.Rates != nil || first.CPUStats.SystemUsage == 0 || first.CPUStats.OnlineCPUs == 0 || first.MemoryStats.Stats == nil || first.ID != "c" {
		t.Errorf("got %+v", first)
	}
	second := s.compare("c", runtime.Stats{At: began.Add(2 * time.Second), CPU: 3 * time.Second, RxBytes: 300, TxBytes: 10})
	if *second.Rates != (networkRates{100, 0}) || second.PreCPUStats.CPUUsage.TotalUsage != 1e9 || !second.PreRead.Equal(began) {
		t.Errorf("then %+v, %+v", second, second.Rates)
	}
	s.compare("d", runtime.Stats{At: began.Add(time.Hour)})
	if len(s.samples) != 1 {
		t.Errorf("it keeps %v", s.samples)
	}
}

// TestInstanceService: the instance metadata service is there for whoever knows a container's token, if the machine has one.
func TestInstanceService(t *testing.T) {
	get := func(service http.Handler, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		New(Options{Tasks: newNode(), Metadata: service, Log: slog.New(slog.DiscardHandler)}).ServeHTTP(w, httptest.NewRequest("PUT", path, nil))
		return w
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Method+" "+r.URL.Path) })
	if w := get(echo, "/imds/web-token/latest/api/token"); w.Body.String() != "PUT /latest/api/token" {
		t.Errorf("got %s", w.Body)
	}
	if w := get(echo, "/imds/nobody/latest/api/token"); w.Code != http.StatusNotFound {
		t.Errorf("a stranger gets %d", w.Code)
	}
	if w := get(nil, "/imds/web-token/latest/api/token"); w.Code != http.StatusNotFound {
		t.Errorf("without a service there is %d", w.Code)
	}
}

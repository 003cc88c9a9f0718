package test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/sdkhttp"
	"github.com/pintle/pintle/internal/state"
)

var (
	chaosFor     = flag.Duration("chaos.for", 20*time.Second, "how long a service's containers are killed at random")
	chaosUpdates = flag.Int("chaos.updates", 2, "rolling updates during which the control plane is killed")
)

// webServer answers with its version, after a short delay, on its own port. It writes the port to a file named after its task,
// and to another for its health check. After SIGTERM it keeps serving while clients may not know yet, and finishes the requests
// it has begun.
const webServer = `import http.server, json, os, signal, threading, time, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.02)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"VERSION")
    def log_message(self, *args): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
server = Server(("127.0.0.1", 0), Handler)
def end(*_):
    threading.Timer(8, server.shutdown).start()
signal.signal(signal.SIGTERM, end)
metadata = os.environ["ECS_CONTAINER_METADATA_URI_V4"]
task = json.load(urllib.request.urlopen(metadata + "/task"))["TaskARN"].split("/")[-1]
up = os.path.join("PORTS", "up-" + metadata.split("/")[-1])
with open(up, "w") as f: f.write(str(server.server_port))
os.link(up, os.path.join("PORTS", task))
server.serve_forever()
server.server_close()`

// web is a service of web servers.
type web struct {
	*Pintle
	client  *ecs.Client
	define  func(version string)
	address func(types.Task) string // "" if not known yet
}

// TestRollingUpdatesLoseNoRequest updates services while clients constantly send requests to the tasks that the API lists, as a
// load balancer does. No request may fail.
func TestRollingUpdatesLoseNoRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		web     func(*testing.T) *web
		updates int
	}{{"process", webOfProcesses, 3}, {"runc", webOfContainers, 2}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.web(t).updates(t, c.updates, func() {})
		})
	}
}

// TestKillsDuringRollingUpdates repeatedly kills the control plane and the nodes' agents with it during rolling updates. The
// updates continue and complete, and no request fails.
func TestKillsDuringRollingUpdates(t *testing.T) {
	t.Parallel()
	w := webOfProcesses(t)
	w.updates(t, *chaosUpdates, func() {
		for range 3 {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			w.Kill()
			w.Start()
		}
	})
}

func (p *Pintle) sdk() *ecs.Client {
	return ecs.New(ecs.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &p.Endpoint,
		RetryMaxAttempts: 1,
		HTTPClient:       sdkhttp.New(),
		Credentials:      credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
	})
}

func webOfProcesses(t *testing.T) *web {
	p := Up(t, "c5.2xlarge=2", "--settle", "2s")
	ports := t.TempDir()
	return &web{
		Pintle: p, client: p.sdk(),
		define: func(version string) {
			script := strings.NewReplacer("VERSION", version, "PORTS", ports).Replace(webServer)
			check := "test -e " + ports + "/up-${ECS_CONTAINER_METADATA_URI_V4##*/}" // Python may take a while to start
			p.define("web", map[string]any{"image": "i", "command": []string{python, "-c", script},
				"healthCheck": map[string]any{"command": []string{"CMD-SHELL", check}, "interval": 5}})
		},
		address: func(task types.Task) string {
			port, err := os.ReadFile(filepath.Join(ports, state.NameOf(*task.TaskArn)))
			if err != nil {
				return ""
			}
			return "127.0.0.1:" + string(port)
		},
	}
}

func webOfContainers(t *testing.T) *web {
	p := Up(t, "c5.2xlarge=2", "--settle", "2s", "--runtime", "oci")
	image := "rootfs:" + rootfs(t)
	return &web{
		Pintle: p, client: p.sdk(),
		define: func(version string) {
			script := "trap 'sleep 8; exit 0' TERM; echo -n " + version + " > /index.html; httpd -f -p 80 -h / & wait"
			p.define("web", map[string]any{"image": image, "command": []string{"/bin/sh", "-c", script},
				"portMappings": []any{map[string]any{"containerPort": 80}},
				"healthCheck":  map[string]any{"command": []string{"CMD-SHELL", "wget -q -O /dev/null http://127.0.0.1/"}, "interval": 5}})
		},
		address: func(task types.Task) string {
			if task.HealthStatus != types.HealthStatusHealthy {
				return ""
			}
			return fmt.Sprintf("127.0.0.1:%d", *task.Containers[0].NetworkBindings[0].HostPort)
		},
	}
}

// define registers a revision of a family with one small container.
func (p *Pintle) define(family string, container map[string]any) {
	p.t.Helper()
	container["name"] = "main"
	container["cpu"] = 64
	container["memory"] = 64
	container["stopTimeout"] = 30
	text, err := json.Marshal([]any{container})
	if err != nil {
		p.t.Fatal(err)
	}
	p.AWS("ecs", "register-task-definition", "--family", family, "--container-definitions", string(text))
}

// updates makes rolling updates under load, disturbs each, and drains a node.
func (w *web) updates(t *testing.T, updates int, disturb func()) {
	const wanted = 3
	w.define("v0")
	w.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", fmt.Sprint(wanted))
	w.awaitService("the roll-out's end", "web", described.isCompleted)
	l := w.load(t)
	for i := 1; i <= updates; i++ {
		w.define(fmt.Sprintf("v%d", i))
		w.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
		disturb()
		s := w.awaitService("the update's end", "web", described.isCompleted)
		if want := fmt.Sprintf("web:%d", i+1); !strings.HasSuffix(s.TaskDefinition, want) || s.RunningCount != wanted {
			t.Errorf("%d of %s run, want %d of %s", s.RunningCount, s.TaskDefinition, wanted, want)
		}
	}
	w.drain(wanted)
	l.end(t, fmt.Sprintf("v%d", updates))
}

// drain drains one node and waits until its tasks are replaced on the other.
func (w *web) drain(wanted int) {
	w.t.Helper()
	node := w.list("list-container-instances", "--query", "containerInstanceArns[0]")[0]
	w.AWS("ecs", "update-container-instances-state", "--container-instances", node, "--status", "DRAINING")
	w.awaitService("the replacement of a draining node's tasks", "web", func(s described) bool {
		return s.RunningCount == wanted && len(w.list("list-tasks", "--container-instance", node, "--query", "taskArns[]")) == 0
	})
}

// load sends requests all the time to the tasks it knows of.
type load struct {
	*web
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	targets  []string
	answers  map[string]int // by version
	latest   string
	failures []string
}

func (w *web) load(t *testing.T) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{web: w, stop: cancel, answers: map[string]int{}}
	t.Cleanup(func() { cancel(); l.running.Wait() })
	Eventually(t, "something to send requests to", func() bool { l.discover(ctx); return len(l.targets) > 0 })
	l.running.Go(func() {
		for ctx.Err() == nil {
			l.discover(ctx)
			time.Sleep(100 * time.Millisecond)
		}
	})
	for range 3 {
		l.running.Go(func() {
			for ctx.Err() == nil {
				l.request()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return l
}

// discover finds the tasks that are RUNNING and meant to stay. If the API doesn't answer, the previous targets remain.
func (l *load) discover(ctx context.Context) {
	list, err := l.client.ListTasks(ctx, &ecs.ListTasksInput{ServiceName: aws.String("web")})
	if err != nil || len(list.TaskArns) == 0 {
		return
	}
	out, err := l.client.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: list.TaskArns})
	if err != nil {
		return
	}
	var targets []string
	for _, task := range out.Tasks {
		if *task.LastStatus != "RUNNING" || *task.DesiredStatus != "RUNNING" {
			continue
		}
		if address := l.address(task); address != "" {
			targets = append(targets, address)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.targets = targets
}

// unshared opens a connection for each request.
var unshared = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (l *load) request() {
	l.mu.Lock()
	targets := l.targets
	l.mu.Unlock()
	if len(targets) == 0 {
		l.note("", fmt.Errorf("no task is there"))
		return
	}
	resp, err := unshared.Get("http://" + targets[rand.IntN(len(targets))] + "/index.html")
	if err != nil {
		l.note("", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	l.note(string(body), err)
}

func (l *load) note(version string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, time.Now().Format(time.StampMilli)+" "+err.Error())
		return
	}
	l.answers[version]++
	l.latest = version
}

// end stops the load and reports what failed.
func (l *load) end(t *testing.T, last string) {
	t.Helper()
	time.Sleep(time.Second) // only the last version serves now
	l.stop()
	l.running.Wait()
	if len(l.failures) > 0 {
		t.Errorf("%d requests failed, the first ones: %v", len(l.failures), l.failures[:min(5, len(l.failures))])
	}
	if l.latest != last || l.answers["v0"] == 0 {
		t.Errorf("the last answer is from %s, of %v", l.latest, l.answers)
	}
	t.Logf("answers by version: %v", l.answers)
}

// TestKillsOfContainers kills a service's containers at random for a while. At the end exactly as many run as desired.
func TestKillsOfContainers(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=3", "--settle", "1s")
	mark := newMark()
	const wanted = 6
	p.register("web", "exec sleep "+mark)
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", fmt.Sprint(wanted))
	p.awaitService("the roll-out's end", "web", described.isCompleted)
	kills := 0
	for end := time.Now().Add(*chaosFor); time.Now().Before(end); {
		if pids := processes(mark); len(pids) > 0 {
			syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL) //nolint:errcheck // it may have ended
			kills++
		}
		if n := len(processes(mark)); n > 2*wanted {
			t.Fatalf("%d containers run, of a service of %d with a maximumPercent of 200", n, wanted)
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	}
	t.Logf("%d containers were killed in %s", kills, *chaosFor)
	if kills < int(*chaosFor/(4*time.Second)) {
		t.Error("most of the time there was none to kill")
	}
	// the last kill may not be noticed yet
	Eventually(t, "the wanted number of containers", func() bool { return len(processes(mark)) == wanted })
	p.awaitService("the desired count", "web", func(s described) bool { return s.RunningCount == wanted && s.PendingCount == 0 })
	tasks := p.tasksOf("web")
	time.Sleep(2 * time.Second)
	if after := p.tasksOf("web"); !slices.Equal(tasks, after) || len(processes(mark)) != wanted {
		t.Errorf("left alone, its tasks changed from %v to %v, %d containers run", tasks, after, len(processes(mark)))
	}
}

// TestDeploymentAlarms: an alarm on a service's own metric rolls its update back.
func TestDeploymentAlarms(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge", "--settle", "1s", "--reaction", "fast")
	p.register("web", "exec sleep 600")
	p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", "errors", "--namespace", "web", "--metric-name", "errors", "--statistic", "Sum",
		"--period", "10", "--evaluation-periods", "1", "--threshold", "5", "--comparison-operator", "GreaterThanThreshold",
		"--treat-missing-data", "notBreaching")
	deployment := func(query string) string {
		arn := p.AWS("ecs", "list-service-deployments", "--service", "web", "--query", "serviceDeployments[0].serviceDeploymentArn",
			"--output", "text")
		return p.AWS("ecs", "describe-service-deployments", "--service-deployment-arns", arn, "--query", "serviceDeployments[0]."+query,
			"--output", "text")
	}
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "2",
		"--deployment-configuration", "alarms={alarmNames=[errors],enable=true,rollback=true}")
	if got := deployment("[status,alarms.status,alarms.alarmNames[0]]"); got != "IN_PROGRESS\tMONITORING\terrors" {
		t.Errorf("the deployment is %s", got)
	}
	p.awaitService("the bake time's end", "web", described.isCompleted)
	if got := deployment("[status,alarms.status]"); got != "SUCCESSFUL\tMONITORING_COMPLETE" {
		t.Errorf("the deployment is %s", got)
	}
	p.register("web", "exec sleep 601")
	client, metrics := p.sdk(), p.cloudWatch() // SDK clients: the bake time may end before the AWS CLI sees it and puts the metric
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
	Eventually(t, "the bake time", func() bool {
		list, err := client.ListServiceDeployments(t.Context(), &ecs.ListServiceDeploymentsInput{Service: aws.String("web")})
		if err != nil {
			t.Fatal(err)
		}
		out, err := client.DescribeServiceDeployments(t.Context(),
			&ecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*list.ServiceDeployments[0].ServiceDeploymentArn}})
		if err != nil {
			t.Fatal(err)
		}
		return out.ServiceDeployments[0].LifecycleStage == types.ServiceDeploymentLifecycleStageBakeTime
	})
	_, err := metrics.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("web"),
		MetricData: []cloudwatchtypes.MetricDatum{
			{MetricName: aws.String("errors"), Value: aws.Float64(100), StorageResolution: aws.Int32(1)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := p.awaitService("the roll-back", "web", func(s described) bool {
		return s.isCompleted() && strings.HasSuffix(s.TaskDefinition, "web:1")
	})
	if !s.hasEvent("deployment failed: alarm detected.") || !s.hasEvent("rolling back to deployment ecs-svc/") {
		t.Errorf("%+v", s.Events)
	}
	if got := deployment("[status,alarms.status,alarms.triggeredAlarmNames[0]]"); got != "ROLLBACK_SUCCESSFUL\tTRIGGERED\terrors" {
		t.Errorf("the deployment is %s", got)
	}
	out, err := p.TryAWS("ecs", "update-service", "--service", "web", "--deployment-configuration",
		"alarms={alarmNames=[],enable=true,rollback=true}")
	if err == nil || !strings.Contains(out, "alarmNames") {
		t.Errorf("alarms without names: %s", out)
	}
}

// TestZoneRebalancing moves tasks to a new zone.
func TestZoneRebalancing(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge", "--settle", "1s")
	p.register("web", "exec sleep 600")
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "4",
		"--availability-zone-rebalancing", "ENABLED")
	p.awaitService("the roll-out's end", "web", described.isCompleted)
	agent := &daemon{
		t: t,
		args: []string{"agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--name", "b",
			"--instance-type", "c5.xlarge", "--runtime", "process", "--attribute", "ecs.availability-zone=us-east-1b", "--metrics="},
	}
	agent.start()
	defer agent.kill()
	s := p.awaitService("its balance", "web", func(s described) bool {
		if s.RunningCount < 4 || s.RunningCount+s.PendingCount > 5 {
			t.Errorf("%d running and %d pending of 4", s.RunningCount, s.PendingCount)
		}
		return s.hasEvent("is AZ balanced with 2 tasks in us-east-1a, 2 tasks in us-east-1b.")
	})
	if !s.hasEvent("is not AZ balanced with 4 tasks in us-east-1a, 0 tasks in us-east-1b. AZ Rebalancing in progress.") {
		t.Errorf("%+v", s.Events)
	}
	zones := p.list(append([]string{"describe-tasks", "--query", "tasks[].availabilityZone", "--tasks"}, p.tasksOf("web")...)...)
	if slices.Sort(zones); !slices.Equal(zones, []string{"us-east-1a", "us-east-1a", "us-east-1b", "us-east-1b"}) {
		t.Errorf("the tasks are in %v", zones)
	}
	p.AWS("ecs", "delete-service", "--service", "web", "--force")
	p.awaitInactive("web")
	Eventually(t, "the end of its tasks", func() bool {
		return p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[runningTasksCount,pendingTasksCount]",
			"--output", "text") == "0\t0"
	})
}

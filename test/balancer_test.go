package test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var balancedRuntime = flag.String("balanced.runtime", "oci", "the runtime of the services behind load balancers: oci, or docker with a pushed image")

// balanced is a load balancer in front of a target group, and clients that constantly ask it.
type balanced struct {
	*Pintle
	group   string
	address string

	stop    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	answers map[string]int
	failed  []string
}

// balance makes a load balancer with a listener and a target group of instances.
func (p *Pintle) balance() *balanced {
	p.t.Helper()
	text := func(args ...string) string { p.t.Helper(); return p.AWS(append(args, "--output", "text")...) }
	subnets := strings.Fields(text("ec2", "describe-subnets", "--query", "Subnets[:2].SubnetId"))
	vpc := text("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId")
	b := &balanced{Pintle: p, address: freeAddress(p.t), stop: make(chan struct{}), answers: map[string]int{}}
	_, port, _ := net.SplitHostPort(b.address)
	balancer := text("elbv2", "create-load-balancer", "--name", "web", "--subnets", subnets[0], subnets[1],
		"--query", "LoadBalancers[0].LoadBalancerArn")
	b.group = text("elbv2", "create-target-group", "--name", "web", "--protocol", "HTTP", "--port", "80", "--vpc-id", vpc,
		"--health-check-interval-seconds", "5", "--health-check-timeout-seconds", "2", "--query", "TargetGroups[0].TargetGroupArn")
	p.AWS("elbv2", "create-listener", "--load-balancer-arn", balancer, "--protocol", "HTTP", "--port", port,
		"--default-actions", "Type=forward,TargetGroupArn="+b.group)
	return b
}

// ask begins to send requests, which are to succeed from now on.
func (b *balanced) ask() { b.askFor("/index.html", 4) }

// askFor has clients ask for a path, each for one answer at a time.
func (b *balanced) askFor(path string, clients int) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	for range clients {
		b.running.Go(func() {
			for {
				select {
				case <-b.stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				b.note(request(client, "http://"+b.address+path))
			}
		})
	}
}

func request(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

func (b *balanced) note(answer string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.failed = append(b.failed, time.Now().Format(time.StampMilli)+" "+err.Error())
		return
	}
	b.answers[answer]++
}

// answered returns how many answers had a text.
func (b *balanced) answered(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers[text]
}

// end ends the requests. None may have failed.
func (b *balanced) end() {
	b.t.Helper()
	close(b.stop)
	b.running.Wait()
	if len(b.failed) > 0 {
		b.t.Errorf("%d requests failed, the first ones: %v", len(b.failed), b.failed[:min(5, len(b.failed))])
	}
	b.t.Logf("answers by version: %v", b.answers)
}

// healthy returns how many targets are healthy.
func (b *balanced) healthy() string {
	return b.AWS("elbv2", "describe-target-health", "--target-group-arn", b.group,
		"--query", "length(TargetHealthDescriptions[?TargetHealth.State=='healthy'])", "--output", "text")
}

// shift has the service deploy by shifting its traffic: in two steps, between which the control plane is killed, and once more with an alarm in
// the bake time, which takes the traffic back.
func (b *balanced) shift(define func(version string)) {
	p, t := b.Pintle, b.t
	text := func(args ...string) string { t.Helper(); return p.AWS(append(args, "--output", "text")...) }
	update := func(args ...string) {
		t.Helper()
		p.AWS(append([]string{"ecs", "update-service", "--service", "web"}, args...)...)
	}
	deployment := func(query string) string {
		t.Helper()
		arn := text("ecs", "list-service-deployments", "--service", "web", "--query", "serviceDeployments[0].serviceDeploymentArn")
		return text("ecs", "describe-service-deployments", "--service-deployment-arns", arn, "--query", "serviceDeployments[0]."+query)
	}
	green := text("elbv2", "create-target-group", "--name", "green", "--protocol", "HTTP", "--port", "80", "--vpc-id",
		text("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId"), "--health-check-interval-seconds", "5", "--health-check-timeout-seconds", "2",
		"--query", "TargetGroups[0].TargetGroupArn")
	rule := text("elbv2", "describe-rules", "--listener-arn", text("elbv2", "describe-listeners", "--load-balancer-arn",
		text("elbv2", "describe-load-balancers", "--query", "LoadBalancers[0].LoadBalancerArn"), "--query", "Listeners[0].ListenerArn"),
		"--query", "Rules[0].RuleArn")
	paused := func() bool { return deployment("lifecycleHookDetails[-1].status") == "AWAITING_ACTION" }
	goOn := func() {
		t.Helper()
		Eventually(t, "a pause", paused)
		p.AWS("ecs", "continue-service-deployment", "--service-deployment-arn", deployment("serviceDeploymentArn"), "--hook-id",
			deployment("lifecycleHookDetails[-1].hookId"))
	}
	define("v3")
	update("--task-definition", "web", "--load-balancers", "targetGroupArn="+b.group+",containerName=main,containerPort=80,"+
		"advancedConfiguration={alternateTargetGroupArn="+green+",productionListenerRule="+rule+"}", "--deployment-configuration",
		`{"strategy": "LINEAR", "linearConfiguration": {"stepPercent": 50, "stepBakeTimeInMinutes": 0},
		"lifecycleHooks": [{"targetType": "PAUSE", "lifecycleStages": ["PRE_PRODUCTION_TRAFFIC_SHIFT"]}]}`)
	goOn()
	Eventually(t, "answers of the new tasks", func() bool { return b.answered("v3") > 20 })
	Eventually(t, "the next pause", paused)
	if got := deployment("[lifecycleStage, targetServiceRevision.requestedProductionTrafficWeight]"); got != "PRE_PRODUCTION_TRAFFIC_SHIFT\t50.0" {
		t.Errorf("half of the traffic: %s", got)
	}
	p.Kill()
	asked := b.answered("v2") + b.answered("v3")
	Eventually(t, "answers while nobody controls", func() bool { return b.answered("v2")+b.answered("v3") > asked+100 })
	p.Start()
	goOn()
	p.awaitService("the shift's end", "web", described.isCompleted)
	p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", "errors", "--namespace", "web", "--metric-name", "errors", "--statistic", "Sum",
		"--period", "10", "--evaluation-periods", "1", "--threshold", "5", "--comparison-operator", "GreaterThanThreshold",
		"--treat-missing-data", "notBreaching")
	define("v4")
	update("--task-definition", "web", "--deployment-configuration",
		`{"strategy": "BLUE_GREEN", "lifecycleHooks": [], "alarms": {"alarmNames": ["errors"], "enable": true, "rollback": true}}`)
	Eventually(t, "answers of the newest tasks", func() bool { return b.answered("v4") > 20 })
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "web", "--metric-data", "MetricName=errors,Value=100,StorageResolution=1")
	p.awaitService("the roll-back", "web", func(s described) bool { return s.isCompleted() && strings.HasSuffix(s.TaskDefinition, ":4") })
	if got := deployment("[status, alarms.triggeredAlarmNames[0]]"); got != "ROLLBACK_SUCCESSFUL\terrors" {
		t.Errorf("the deployment is %s", got)
	}
	asked = b.answered("v3")
	Eventually(t, "answers of what was before", func() bool { return b.answered("v3") > asked+20 })
}

// TestServiceBehindLoadBalancer updates a service of containers that end at once when they are told to, while clients ask its load balancer,
// and kills the control plane with its nodes in between. The updates are rolling ones, and others that shift the traffic. No request fails.
func TestServiceBehindLoadBalancer(t *testing.T) {
	t.Parallel()
	r := newWebRuntime(t)
	p := Up(t, "c5.2xlarge=2", append(r.args, "--settle", "1s", "--reaction", "fast")...)
	b := p.balance()
	image := r.image(p)
	define := func(version string) {
		script := "trap 'exit 0' TERM; echo -n " + version + " > /index.html; httpd -f -p 80 -h / & wait"
		p.define("web", map[string]any{"image": image, "command": []string{"/bin/sh", "-c", script},
			"portMappings": []any{map[string]any{"containerPort": 80}}})
	}
	define("v0")
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "2",
		"--load-balancers", "targetGroupArn="+b.group+",containerName=main,containerPort=80")
	p.awaitService("the roll-out's end", "web", described.isCompleted)
	if n := b.healthy(); n != "2" {
		t.Fatalf("%s targets are healthy", n)
	}
	b.ask()
	define("v1")
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
	p.awaitService("the update's end", "web", described.isCompleted)
	Eventually(t, "answers of the new version", func() bool { return b.answered("v1") > 100 })
	define("v2")
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
	p.Kill()
	asked := b.answered("v1")
	Eventually(t, "answers while nobody controls", func() bool { return b.answered("v1") > asked+100 })
	p.Start()
	p.awaitService("the update's end", "web", described.isCompleted)
	Eventually(t, "answers of the newest version", func() bool { return b.answered("v2") > 100 })
	p.AWS("ecs", "update-service", "--service", "web", "--desired-count", "1")
	Eventually(t, "one task", func() bool {
		return len(p.list("list-tasks", "--service-name", "web", "--query", "taskArns[]")) == 1 && b.healthy() == "1"
	})
	b.shift(define)
	b.end()
	p.AWS("ecs", "delete-service", "--service", "web", "--force")
	Eventually(t, "no targets", func() bool { return b.healthy() == "0" })
}

// TestNodeDiesBehindLoadBalancer kills a node in the middle of requests, its agent and its containers at once, as when a machine loses its power.
// Nobody loses more than what was under way there, and the service is whole again on the other node.
func TestNodeDiesBehindLoadBalancer(t *testing.T) {
	t.Parallel()
	const clients = 8
	r := newWebRuntime(t)
	address, data := freeAddress(t), t.TempDir()
	t.Cleanup(func() { removeContainers(t, data) })
	endpoint := "http://" + address
	node := func(name string) *daemon {
		return &daemon{t: t, args: append([]string{"agent", "--endpoint", endpoint, "--data", filepath.Join(data, name),
			"--instance-type", "c5.2xlarge", "--metrics="}, r.args...)}
	}
	stays, dies := node("n1"), node("n2")
	for _, d := range []*daemon{
		{t: t, args: []string{"serve", "--listen", address, "--data", filepath.Join(data, "plane"), "--settle", "1s", "--lost", "5s"}},
		{t: t, args: []string{"balancer", "--endpoint", endpoint, "--data", filepath.Join(data, "balancer")}},
		stays, dies,
	} {
		d.start()
		t.Cleanup(d.kill)
	}
	p := &Pintle{t: t, Endpoint: endpoint, key: "test", secret: "test", data: data}
	Eventually(t, "two nodes", func() bool {
		out, err := p.TryAWS("ecs", "list-container-instances")
		return err == nil && strings.Count(out, "arn:") == 2
	})
	b := p.balance()
	p.define("web", map[string]any{"image": r.image(p), "command": []string{"/bin/sh", "-c",
		"mkdir -p /cgi-bin; echo -n well > /index.html; printf '#!/bin/sh\necho; sleep 0.2; echo -n ok' > /cgi-bin/slow; chmod +x /cgi-bin/slow; exec httpd -f -p 80 -h /"},
		"portMappings": []any{map[string]any{"containerPort": 80}}})
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "4",
		"--placement-strategy", "type=spread,field=instanceId", "--load-balancers", "targetGroupArn="+b.group+",containerName=main,containerPort=80")
	p.awaitService("the roll-out's end", "web", described.isCompleted)
	b.askFor("/cgi-bin/slow", clients)
	Eventually(t, "answers", func() bool { return b.answered("ok") > 50 })
	dies.kill()
	r.killContainers(p, filepath.Join(data, "n2"))
	asked := b.answered("ok")
	Eventually(t, "answers of the other node", func() bool { return b.answered("ok") > asked+100 })
	Eventually(t, "four tasks on the other node", func() bool { return b.healthy() == "4" })
	asked = b.answered("ok")
	Eventually(t, "answers of all", func() bool { return b.answered("ok") > asked+50 })
	close(b.stop)
	b.running.Wait()
	if len(b.failed) > clients {
		t.Errorf("%d requests failed, where %d were under way at most, the first ones: %v", len(b.failed), clients, b.failed[:clients])
	}
	t.Logf("%d answers, %d requests failed: %v", b.answered("ok"), len(b.failed), b.failed)
}

// webRuntime is what the services behind load balancers run with.
type webRuntime struct {
	t    *testing.T
	args []string
	host string // Docker's, if it's that
}

func newWebRuntime(t *testing.T) *webRuntime {
	if *balancedRuntime != "docker" {
		return &webRuntime{t, []string{"--runtime", *balancedRuntime}, ""}
	}
	host := dockerd(t)
	return &webRuntime{t, []string{"--runtime", "docker", "--docker-host", host}, host}
}

// image returns the image of busybox that they have.
func (r *webRuntime) image(p *Pintle) string {
	if r.host == "" {
		return "rootfs:" + rootfs(r.t)
	}
	p.dockerPush(r.host, "team/web", "v1")
	return imageHost + "team/web:v1"
}

// killContainers kills the containers of a node without an agent, given its data directory.
func (r *webRuntime) killContainers(p *Pintle, data string) {
	if r.host == "" {
		killContainers(r.t, data)
		return
	}
	b, err := os.ReadFile(filepath.Join(data, "instance.json"))
	owner := regexp.MustCompile(`"Owner": ?"([^"]+)"`).FindSubmatch(b)
	if owner == nil {
		r.t.Fatalf("whose the containers are: %s, %v", b, err)
	}
	ids := strings.Fields(p.docker(r.host, "", "ps", "--quiet", "--filter", "label=dev.pintle.owner="+string(owner[1])))
	if len(ids) == 0 {
		r.t.Fatal("the node has no containers")
	}
	pids := strings.Fields(p.docker(r.host, "", append([]string{"inspect", "--format", "{{.State.Pid}}"}, ids...)...))
	var all []int
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			r.t.Fatalf("the containers' processes: %v", pids)
		}
		all = append(all, pid)
	}
	killAtOnce(r.t, all)
}

// killAtOnce kills processes in so short a time that no client notices the end of one and asks the next.
func killAtOnce(t *testing.T, pids []int) {
	t.Helper()
	if slices.ContainsFunc(pids, func(pid int) bool { return pid <= 1 }) {
		t.Fatalf("these aren't containers' processes: %v", pids)
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
}

// killContainers kills the containers of a node without an agent, and whatever watches over them.
func killContainers(t *testing.T, data string) {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(data, "containers", "*", "state.json"))
	if err != nil || len(states) == 0 {
		t.Fatalf("the node has no containers: %v", err)
	}
	var shims, all []int
	for _, path := range states {
		var state struct{ PID int }
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &state)
		}
		if err != nil {
			t.Fatalf("%s: %s, %v", path, b, err)
		}
		parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", state.PID))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(parent[strings.LastIndexByte(string(parent), ')')+1:]))
		shim, err := strconv.Atoi(fields[1]) // the parent
		if err != nil {
			t.Fatalf("%s: %v", parent, err)
		}
		shims, all = append(shims, shim), append(all, state.PID) // all of the container end with its first process
	}
	killAtOnce(t, append(shims, all...))
}

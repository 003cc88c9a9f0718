package test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestGPUServiceFollowsItsLoad runs examples/0-gpu-service/by-hand with the AWS CLI on simulated g4dn.xlarge. Target tracking on GPU
// utilization scales the service out while its tasks are under stress, and in when they rest. The subtests differ in where the
// metric comes from: the nodes, a collector that finds the tasks and scrapes their machines, or a sidecar in each task. With
// the last two the nodes report no GPU metrics, as on AWS.
func TestGPUServiceFollowsItsLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		most       string
		definition string
		up         []string
		collector  bool
	}{
		{name: "nodes", most: "3", definition: "taskdef.json"},
		{name: "collector", most: "2", definition: "taskdef.json", up: []string{"--no-gpu-metrics"}, collector: true},
		{name: "sidecar", most: "2", definition: "sidecar-taskdef.json", up: []string{"--no-gpu-metrics"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exporter := freeAddress(t)
			p := Up(t, "g4dn.xlarge=3", append(c.up, "--metrics", exporter, "--reaction", "fast", "--settle", "1s")...)
			_, port, err := net.SplitHostPort(exporter)
			if err != nil {
				t.Fatal(err)
			}
			if c.collector {
				p.startCollector()
			}
			cmd := p.Command("../examples/0-gpu-service/by-hand/scale.sh")
			cmd.Env = append(cmd.Env, "TASKDEF="+withLessCPU(t, "../examples/0-gpu-service/by-hand/"+c.definition, `"cpu": 128`, `"cpu": 16`),
				"MOST="+c.most, "EXPORTER_PORT="+port, "STRESS_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{
				`TargetTracking-service/default/gpu-service-AlarmHigh-\S+\s+TargetTracking-service/default/gpu-service-AlarmLow-`,
				`(?s)--- stress.*desired and running: ` + c.most + `\t` + c.most + `;.*--- rest.*desired and running: 1\t1;`,
				`(?s)--- stress.*; GPUs' average and maximum: \S+\t[1-9]\d.*--- rest`,
				`StateUpdate\tAlarm updated from \S+ to ALARM`,
				`Action\tSuccessfully executed action arn:aws:autoscaling:\S+:policyName/gpu`,
				`Successful\tSetting desired count to ` + c.most +
					`\.\tmonitor alarm TargetTracking-service/default/gpu-service-AlarmHigh-\S+ in state ALARM triggered policy gpu`,
				`Setting desired count to 1\.\tmonitor alarm TargetTracking-service/default/gpu-service-AlarmLow-\S+ in state ALARM ` +
					`triggered policy gpu`,
			} {
				if !regexp.MustCompile(want).Match(out) {
					t.Errorf("the script's output lacks %s:\n%s", want, out)
				}
			}
		})
	}
}

// TestWebServiceFollowsItsLoad runs examples/4-web-service with the AWS CLI: a service behind a load balancer, whose requests need its tasks' CPU,
// as the node measures it. Target tracking has it at its most tasks and at one again, no request fails, and nothing is left in the end.
func TestWebServiceFollowsItsLoad(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	p := Up(t, "c5.2xlarge", "--reaction", "fast", "--settle", "1s")
	p.clean() // what was interrupted before it had begun
	cmd := p.Command("../examples/4-web-service/run.sh")
	// Few CPU units, and a plain process may use more: the tasks have the load even on a machine whose processors others share.
	cmd.Env = append(cmd.Env, "MAX_TASKS=3", "PARAMETERS=ClusterName=default LaunchType=EC2 Cpu=128 ListenerPort="+port)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`(?s)running: 1 1;.*--- work.*running: 3 3;.*--- rest.*running: 1 1;.*--- summary`,
		`requests answered: [1-9]\d\d+, failed: 0\n`,
		`tasks over time: \S+ → 1, .*\S+ → 3, .*\S+ → 1\n`,
		`Setting desired count to 3\.\tmonitor alarm TargetTracking-service/default/\S+-AlarmHigh-\S+ in state ALARM triggered policy cpu`,
		`Setting desired count to 1\.\tmonitor alarm TargetTracking-service/default/\S+-AlarmLow-\S+ in state ALARM triggered policy cpu`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the script's output lacks %s:\n%s", want, out)
		}
	}
	p.clean()
	for call, query := range map[string]string{
		"ecs list-services": "serviceArns", "ecs list-task-definitions": "taskDefinitionArns", "elbv2 describe-load-balancers": "LoadBalancers",
		"elbv2 describe-target-groups": "TargetGroups", "logs describe-log-groups": "logGroups", "iam list-roles": "Roles",
		"cloudwatch describe-alarms": "MetricAlarms", "ec2 describe-security-groups": "SecurityGroups[?GroupName!='default']",
	} {
		if left := p.AWS(append(strings.Fields(call), "--query", query, "--output", "text")...); left != "" {
			t.Errorf("%s: %s are left", call, left)
		}
	}
}

// clean runs the example's clean.sh.
func (p *Pintle) clean() {
	p.t.Helper()
	if out, err := p.Command("../examples/4-web-service/clean.sh").CombinedOutput(); err != nil {
		p.t.Errorf("clean.sh: %v\n%s", err, out)
	}
}

// TestExampleServiceGoes: what a run of an example left that was interrupted after each of its first steps, the next one takes away.
func TestExampleServiceGoes(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge", "--settle", "1s")
	const service, script = "gpu-service", "../examples/0-gpu-service/by-hand/scale.sh"
	p.createGPUService(service, 0) // without a scalable target
	for range 2 {
		if out, err := p.Command(script, "down").CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	}
	p.createGPUService(service, 0)
	p.AWS("ecs", "delete-service", "--service", service, "--force")
	if out, err := p.Command(script, "down").CombinedOutput(); err != nil {
		t.Errorf("down while it drains: %v\n%s", err, out)
	}
}

// withLessCPU copies an example's task definition and replaces its CPU with less. The tasks' stress is measured relative to their
// CPU, so they reach it even on a machine whose processors others share.
func withLessCPU(t *testing.T, path string, lessCPU ...string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(lessCPU...).Replace(string(b))
	if text == string(b) {
		t.Fatalf("%s has not the CPU that it is to have less of", path)
	}
	path = filepath.Join(t.TempDir(), "taskdef.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startCollector runs the example's collector until the test ends.
func (p *Pintle) startCollector() {
	p.t.Helper()
	cmd := p.Command(python, "../examples/0-gpu-service/by-hand/collector.py", "--interval", "2")
	stderr := new(strings.Builder)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended, and Wait reports that
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("the collector: %v\n%s", err, stderr)
		}
	})
}

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

// TestGPUServiceFollowsItsLoad runs examples/0-gpu-service with the AWS CLI on simulated g4dn.xlarge. Target tracking on GPU
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
			cmd := p.Command("../examples/0-gpu-service/scale.sh")
			cmd.Env = append(cmd.Env, "TASKDEF="+withLessCPU(t, "../examples/0-gpu-service/"+c.definition, `"cpu": 128`, `"cpu": 16`),
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

// TestCPUServiceFollowsItsLoad runs examples/4-cpu-service with the AWS CLI. Target tracking follows the CPU that the service's
// tasks use, as the node measures it.
func TestCPUServiceFollowsItsLoad(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge", "--reaction", "fast", "--settle", "1s")
	cmd := p.Command("../examples/4-cpu-service/scale.sh")
	cmd.Env = append(cmd.Env, "TASKDEF="+withLessCPU(t, "../examples/4-cpu-service/taskdef.json", `"cpu": "256",`, "", `"cpu": 256`,
		`"cpu": 32`), "WORK_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`TargetTracking-service/default/ml-service-AlarmHigh-\S+\s+TargetTracking-service/default/ml-service-AlarmLow-`,
		`(?s)desired and running: 1 1;.*--- work.*desired and running: ([2-9]|10) ([2-9]|10); CPU: \d{2,}\..*--- rest.*desired and ` +
			`running: 1 1;`,
		`Setting desired count to \d+\.\tmonitor alarm TargetTracking-service/default/ml-service-AlarmHigh-\S+ in state ALARM ` +
			`triggered policy ecs-appautoscaling-policy`,
		`Setting desired count to 1\.\tmonitor alarm TargetTracking-service/default/ml-service-AlarmLow-\S+ in state ALARM triggered ` +
			`policy ecs-appautoscaling-policy`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the script's output lacks %s:\n%s", want, out)
		}
	}
}

// TestExampleServicesGo: what a run of an example left that was interrupted after each of its first steps, the next one takes away.
func TestExampleServicesGo(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge", "--settle", "1s")
	for service, script := range map[string]string{
		"gpu-service": "../examples/0-gpu-service/scale.sh",
		"ml-service":  "../examples/4-cpu-service/scale.sh",
	} {
		p.createGPUService(service, 0) // without a scalable target
		for range 2 {
			if out, err := p.Command(script, "down").CombinedOutput(); err != nil {
				t.Errorf("%s down: %v\n%s", script, err, out)
			}
		}
		p.createGPUService(service, 0)
		p.AWS("ecs", "delete-service", "--service", service, "--force")
		if out, err := p.Command(script, "down").CombinedOutput(); err != nil {
			t.Errorf("%s down while it drains: %v\n%s", script, err, out)
		}
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
	cmd := p.Command(python, "../examples/0-gpu-service/collector.py", "--interval", "2")
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

package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSidecar runs pintle metrics inside the tasks of a service, under a control plane that checks signatures. With its role's
// credentials it puts the utilization of its own task's GPU only, though the node's exporter shows others too.
func TestSidecar(t *testing.T) {
	t.Parallel()
	exporter := freeAddress(t)
	p := UpSigned(t, "g4dn.12xlarge", "--metrics", exporter, "--no-gpu-metrics")
	p.AWS("ecs", "register-task-definition", "--family", "busy", "--network-mode", "host",
		"--task-role-arn", "arn:aws:iam::000000000000:role/metrics", "--container-definitions", fmt.Sprintf(`[
		{"name": "gpu", "image": "i", "memory": 64, "command": ["sleep", "600"],
		 "environment": [{"name": "PINTLE_SIMULATED_GPU_LOAD", "value": "0.8"}], "resourceRequirements": [{"type": "GPU", "value": "1"}]},
		{"name": "metrics", "image": "i", "memory": 64, "command": ["pintle", "metrics", "--interval", "1s", "--by", "task"],
		 "environment": [{"name": "DCGM_EXPORTER_URL", "value": "http://%s/metrics"}]}]`, exporter))
	p.AWS("ecs", "create-service", "--service-name", "busy", "--task-definition", "busy", "--desired-count", "2")

	Eventually(t, "the tasks' GPUs, and no others, are 80 % busy", func() bool {
		now := time.Now().UTC().Truncate(5 * time.Second)
		return p.AWS("cloudwatch", "get-metric-statistics", "--namespace", "ECS/ContainerInsights/Prometheus",
			"--metric-name", "DCGM_FI_DEV_GPU_UTIL",
			"--dimensions", "Name=ClusterName,Value=default", "Name=ServiceName,Value=busy", "--period", "5", "--statistics", "Minimum",
			"Average", "--start-time", now.Add(-5*time.Second).Format(time.RFC3339), "--end-time", now.Format(time.RFC3339),
			"--query", "Datapoints[].[Minimum,Average,Unit]", "--output", "text") == "80.0\t80.0\tPercent"
	})
	Eventually(t, "metrics of two tasks", func() bool {
		return len(strings.Fields(p.AWS("cloudwatch", "list-metrics", "--metric-name", "DCGM_FI_DEV_GPU_TEMP",
			"--query", "Metrics[].Dimensions[?Name=='TaskId'][].Value", "--output", "text"))) == 2
	})
	cmd := p.Command(bin(t, "pintle"), "metrics", "--dry-run", "--url", "http://"+exporter+"/metrics", "--cluster", "c", "--service", "s",
		"--metric", "DCGM_FI_DEV_GPU_UTIL")
	out, err := cmd.CombinedOutput()
	const metric = "ECS/ContainerInsights/Prometheus DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s "
	if err != nil || !strings.Contains(string(out), metric) ||
		!strings.Contains(string(out), " 2×80") || !strings.Contains(string(out), " 2×0") {
		t.Errorf("outside ECS, of all four GPUs: %v\n%s", err, out)
	}
}

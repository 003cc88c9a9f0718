package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGPUTaskDefinitions runs examples/2-gpu-training with the AWS CLI: tasks of one, four and eight GPUs on two simulated
// p3.16xlarge.
func TestGPUTaskDefinitions(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.16xlarge=2")
	for _, n := range []string{"1", "4", "8"} {
		arn := p.AWS("ecs", "register-task-definition", "--cli-input-json", "file://../examples/2-gpu-training/gpu-"+n+"-taskdef.json",
			"--query", "taskDefinition.taskDefinitionArn", "--output", "text")
		if !strings.HasSuffix(arn, "task-definition/tensorflow-"+n+"-gpu:1") {
			t.Errorf("registered %s", arn)
		}
	}
	forLong := `{"containerOverrides":[{"name":"tensorflow-N-gpu","environment":[{"name":"STEPS","value":"6000"}]}]}`
	four, fourGPUs := p.run(t, "tensorflow-4-gpu", strings.ReplaceAll(forLong, "N", "4"))
	eight, eightGPUs := p.run(t, "tensorflow-8-gpu", strings.ReplaceAll(forLong, "N", "8"))
	if len(fourGPUs) != 4 || len(eightGPUs) != 8 {
		t.Fatalf("gpuIds are %v and %v", fourGPUs, eightGPUs)
	}
	for _, id := range fourGPUs {
		if slices.Contains(eightGPUs, id) {
			t.Errorf("GPU %s is in both tasks", id)
		}
	}
	p.Await(four, "RUNNING")
	p.Await(eight, "RUNNING")

	reasons := p.AWS("ecs", "run-task", "--task-definition", "tensorflow-8-gpu", "--query", "failures[].reason", "--output", "text")
	if strings.Join(strings.Fields(reasons), " ") != "RESOURCE:GPU RESOURCE:GPU" {
		t.Errorf("a third task with 12 of 16 GPUs held fails with %q, want RESOURCE:GPU from both nodes", reasons)
	}
	p.AWS("ecs", "stop-task", "--task", four)
	p.Await(four, "STOPPED")
	again, gpus := p.run(t, "tensorflow-8-gpu", `{}`)
	if len(gpus) != 8 {
		t.Fatalf("with 8 GPUs free it got %v", gpus)
	}

	stream := "ecs/tensorflow-8-gpu/" + again[strings.LastIndexByte(again, '/')+1:]
	var log string
	Eventually(t, "the devices line", func() bool {
		log, _ = p.TryAWS("logs", "get-log-events", "--log-group-name", "/ecs/tensorflow-8-gpu", "--log-stream-name", stream,
			"--query", "events[].message", "--output", "json")
		return strings.Contains(log, "devices:")
	})
	if !strings.Contains(log, "NVIDIA_VISIBLE_DEVICES="+strings.Join(gpus, ",")) {
		t.Errorf("the container saw %s, describe-tasks says %v", log, gpus)
	}
	filtered := p.AWS("logs", "filter-log-events", "--log-group-name", "/ecs/tensorflow-8-gpu", "--filter-pattern", "devices",
		"--query", "events[].logStreamName", "--output", "text")
	if !strings.Contains(filtered, stream) {
		t.Errorf("filter-log-events finds %q", filtered)
	}
	p.Await(again, "STOPPED")
	code := p.AWS("ecs", "describe-tasks", "--tasks", again, "--query", "tasks[0].containers[0].exitCode", "--output", "text")
	if code != "0" {
		t.Errorf("exit code %s", code)
	}
}

// TestTrainingExamples runs examples/1-recommender and examples/2-gpu-training as their users would: stacks are made, tasks train on as many
// GPUs as they ask for, larger machines take the place of smaller ones, and nothing is left once their clean.sh has run.
func TestTrainingExamples(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	for _, c := range []struct {
		folder string
		says   []string
	}{
		{"1-recommender", []string{"mpirun -np 4 train -e 5", "trained on 4 workers", "viewer-1\t"}},
		{"2-gpu-training", []string{"devices: ['/gpu:0']\n", "'/gpu:7']", "8 GPUs: total images/sec"}},
	} {
		for _, script := range []string{"run.sh", "clean.sh"} {
			out, err := p.Command("../examples/" + c.folder + "/" + script).CombinedOutput()
			if err != nil {
				t.Fatalf("%s of %s: %v\n%s", script, c.folder, err, out)
			}
			for _, text := range c.says {
				if script == "run.sh" && !strings.Contains(string(out), text) {
					t.Errorf("%s of %s doesn't say %q:\n%s", script, c.folder, text, out)
				}
			}
		}
	}
	left := map[string][]string{
		"clusters":              {"ecs", "list-clusters", "--query", "clusterArns[?!ends_with(@, '/default')]"},
		"networks":              {"ec2", "describe-vpcs", "--query", "Vpcs[?!IsDefault]"},
		"roles":                 {"iam", "list-roles", "--query", "Roles[?contains(RoleName, 'recommender') || contains(RoleName, 'training')]"},
		"launch configurations": {"autoscaling", "describe-launch-configurations", "--query", "LaunchConfigurations"},
		"launch templates":      {"ec2", "describe-launch-templates", "--query", "LaunchTemplates"},
		"instances":             {"ec2", "describe-instances", "--query", "Reservations[].Instances[?State.Name!='terminated'][]"},
		"buckets":               {"s3api", "list-buckets", "--query", "Buckets"},
		"task definitions":      {"ecs", "list-task-definitions", "--query", "taskDefinitionArns"},
		"logs":                  {"logs", "describe-log-groups", "--query", "logGroups[].logGroupName"},
	}
	for what, args := range left {
		if got := p.AWS(append(args, "--output", "json")...); got != "[]" {
			t.Errorf("%s are left: %s", what, got)
		}
	}
	if found, err := os.ReadDir(filepath.Join(p.data, "fleet")); err != nil || len(found) > 0 {
		t.Errorf("of the machines there is %v, %v", found, err)
	}
}

// run runs a task and returns its ARN and its GPUs.
func (p *Pintle) run(t *testing.T, definition, overrides string, options ...string) (arn string, gpus []string) {
	t.Helper()
	var out struct {
		Tasks []struct {
			TaskArn    string
			Containers []struct{ GpuIds []string }
		}
		Failures []any
	}
	text := p.AWS(append([]string{"ecs", "run-task", "--task-definition", definition, "--overrides", overrides}, options...)...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Tasks) != 1 || len(out.Failures) > 0 {
		t.Fatalf("run-task of %s: %s", definition, text)
	}
	return out.Tasks[0].TaskArn, out.Tasks[0].Containers[0].GpuIds
}

package test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFargateOfAnyCluster makes the stack of examples/4-web-service as on AWS, with a cluster of its own that has no machine: its task of Fargate runs
// on one of the cluster default, outlives a SIGKILL of the control plane and its node, answers behind the balancer, and all of it goes.
func TestFargateOfAnyCluster(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := Up(t, "c5.2xlarge", "--settle", "1s")
	stack := func() string {
		out, err := p.TryAWS("cloudformation", "describe-stacks", "--stack-name", "web", "--query", "Stacks[0].StackStatus", "--output", "text")
		if err != nil {
			return "gone"
		}
		return out
	}
	answers := func() bool {
		r, err := http.Get("http://" + address + "/")
		if err != nil {
			return false
		}
		r.Body.Close() //nolint:errcheck // it was only read
		return r.StatusCode == http.StatusOK
	}
	p.AWS("cloudformation", "create-stack", "--stack-name", "web", "--template-body", "file://../examples/4-web-service/web.yml",
		"--capabilities", "CAPABILITY_IAM", "--parameters", "ParameterKey=ListenerPort,ParameterValue="+port)
	Eventually(t, "the stack is there", func() bool { return stack() == "CREATE_COMPLETE\n" })
	Eventually(t, "the service answers", answers)
	cluster := p.AWS("ecs", "list-clusters", "--query", "clusterArns[?!ends_with(@, '/default')] | [0]", "--output", "text")
	running := func() string {
		return p.AWS("ecs", "list-tasks", "--cluster", cluster, "--desired-status", "RUNNING", "--query", "taskArns", "--output", "text")
	}
	task := running()
	p.Kill()
	p.Start()
	Eventually(t, "the service answers again", answers)
	if now := running(); now != task {
		t.Errorf("%s runs, and before the kill it was %s", now, task)
	}
	p.AWS("cloudformation", "delete-stack", "--stack-name", "web")
	Eventually(t, "the stack is gone", func() bool { return stack() == "gone" })
	holds := p.AWS("ecs", "describe-container-instances", "--query", "containerInstances[0].runningTasksCount", "--output", "text", "--container-instances",
		p.AWS("ecs", "list-container-instances", "--query", "containerInstanceArns[0]", "--output", "text"))
	if holds != "0" {
		t.Errorf("the machine still has %s tasks", holds)
	}
}

// TestNoServerlessCluster: with --serverless-cluster ” Fargate's tasks stay in their cluster, where a machine of its own would be needed, and
// functions run in the cluster default.
func TestNoServerlessCluster(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large", "--serverless-cluster", "")
	p.AWS("ecs", "create-cluster", "--cluster-name", "own")
	p.AWS("ecs", "register-task-definition", "--family", "idle", "--requires-compatibilities", "FARGATE", "--network-mode", "awsvpc", "--cpu", "256",
		"--memory", "512", "--container-definitions", `[{"name": "main", "image": "i", "command": ["sleep", "600"]}]`)
	subnet := p.AWS("ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	run := func(cluster string) (string, error) {
		return p.TryAWS("ecs", "run-task", "--cluster", cluster, "--task-definition", "idle", "--launch-type", "FARGATE", "--platform-version", "LATEST",
			"--network-configuration", "awsvpcConfiguration={subnets="+strings.TrimSpace(subnet)+"}",
			"--query", "[tasks[0].containerInstanceArn, failures[0].reason]", "--output", "text")
	}
	if out, err := run("own"); err == nil && !strings.HasPrefix(out, "None\t") {
		t.Errorf("a task of a cluster without machines runs on %s", out)
	}
	if out, err := run("default"); err != nil || !strings.Contains(out, ":container-instance/default/") {
		t.Errorf("a task of the cluster default: %s, %v", out, err)
	}
	code := zipFile(t, map[string][]byte{"app.py": []byte("def handler(event, context):\n    return event")})
	p.AWS("lambda", "create-function", "--function-name", "f", "--runtime", "python3.12", "--handler", "app.handler", "--zip-file", "fileb://"+code,
		"--role", "arn:aws:iam::000000000000:role/r")
	answer := filepath.Join(t.TempDir(), "answer")
	p.AWS("lambda", "invoke", "--function-name", "f", "--payload", `{"n": 1}`, answer)
	if text, err := os.ReadFile(answer); err != nil || string(text) != `{"n": 1}` {
		t.Errorf("the function answers %s, %v", text, err)
	}
}

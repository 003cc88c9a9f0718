package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestJoin adds a node with nothing but a join token, over TLS with an authority of the control plane's own. A task there calls
// back with boto3, and finds no token in the environment of what started it. The node's key is for its own instance, and ends with it.
func TestJoin(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large", "--tls", "auto")
	p.Endpoint = strings.Replace(p.Endpoint, "http:", "https:", 1)
	ca := filepath.Join(p.data, "tls", "ca.pem")
	aws := func(args ...string) string { return p.AWS(append([]string{"--ca-bundle", ca}, args...)...) }
	instances := func() []string {
		return strings.Fields(aws("ecs", "list-container-instances", "--query", "containerInstanceArns", "--output", "text"))
	}
	own := instances()
	newToken := p.Command(bin(t, "pintle"), "token", "--endpoint", p.Endpoint)
	newToken.Env = append(newToken.Env, "AWS_CA_BUNDLE="+ca)
	token, err := newToken.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	agent := exec.Command(bin(t, "pintle"), "agent", "--data", dir,
		"--runtime", "process", "--instance-type", "c5.large", "--metrics=", "--ephemeral")
	agent.Env = append(os.Environ(), "PINTLE_JOIN_TOKEN="+strings.TrimSpace(string(token)))
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
		agent.Wait()                         //nolint:errcheck // it was asked to end
	})
	joined := ""
	Eventually(t, "the machine joins", func() bool {
		all := slices.DeleteFunc(instances(), func(arn string) bool { return slices.Contains(own, arn) })
		if len(all) == 0 {
			return false
		}
		joined = all[0]
		return aws("ecs", "describe-container-instances", "--container-instances", joined,
			"--query", "containerInstances[0].agentConnected", "--output", "text") == "True"
	})
	aws("ecs", "register-task-definition", "--cli-input-json", `{"family":"who","taskRoleArn":"arn:aws:iam::000000000000:role/worker",
		"containerDefinitions":[{"name":"main","image":"i","memory":64,
		"command":["python3","-c","import boto3, os; boto3.client('sts').get_caller_identity()\nparent = open('/proc/%d/environ' % os.getppid()).read(); assert parent and 'pintle-join' not in parent"]}]}`)
	task := aws("ecs", "start-task", "--task-definition", "who", "--container-instances", joined,
		"--query", "tasks[0].taskArn", "--output", "text")
	Eventually(t, "the task ends", func() bool {
		return aws("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].lastStatus", "--output", "text") == "STOPPED"
	})
	if got := aws("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].exitCode", "--output", "text"); got != "0" {
		t.Errorf("boto3 on the node that joined ends with %s", got)
	}
	var key struct{ AccessKeyID, SecretAccessKey string }
	b, err := os.ReadFile(filepath.Join(dir, "membership.json"))
	if err != nil || json.Unmarshal(b, &key) != nil {
		t.Fatalf("the node's key: %s, %v", b, err)
	}
	node := *p
	node.key, node.secret = key.AccessKeyID, key.SecretAccessKey
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := node.TryAWS(append([]string{"--ca-bundle", ca, "ecs"}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("a node's key gets from %s: %s", args[0], out)
		}
	}
	refused("AccessDeniedException", "list-clusters")
	refused("AccessDeniedException", "deregister-container-instance", "--force", "--container-instance", own[0])
	aws("ecs", "deregister-container-instance", "--force", "--container-instance", joined)
	refused("UnrecognizedClientException", "discover-poll-endpoint")
}

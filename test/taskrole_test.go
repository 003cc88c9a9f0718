package test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTaskRole runs boto3 inside a task, under a control plane that checks signatures. It finds the endpoint and its task
// role's credentials in its environment, and its identity is the role's.
func TestTaskRole(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{
		"family": "who", "taskRoleArn": "arn:aws:iam::000000000000:role/worker",
		"containerDefinitions": [{
			"name": "main", "image": "i", "memory": 64,
			"command": ["python3", "-c", "import boto3; `+
		`print(boto3.client('sts').get_caller_identity()['Arn'], len(boto3.client('ecs').list_clusters()['clusterArns']))"],
			"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "who"}}
		}]}`)
	task, _ := p.run(t, "who", `{}`)
	p.Await(task, "STOPPED")
	got := p.AWS("logs", "filter-log-events", "--log-group-name", "who", "--query", "events[].message", "--output", "text")
	want := "arn:aws:sts::000000000000:assumed-role/worker/" + task[strings.LastIndexByte(task, '/')+1:] + " 1"
	if got != want {
		t.Errorf("inside the task boto3 says %q, want %q", got, want)
	}
}

// TestTaskRoleIsNotTheCluster tries, from within a task, what would make a task's credentials the whole cluster: a definition
// with more rights than the task has, and whatever nodes do. Once the task has stopped, its credentials are worth nothing.
func TestTaskRoleIsNotTheCluster(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large=2")
	script, err := filepath.Abs("taskrole.py")
	if err != nil {
		t.Fatal(err)
	}
	const main = `"containerDefinitions":[{"name":"main","image":"i","memory":64,"command":["sleep","600"]}]}`
	const role = `"taskRoleArn":"arn:aws:iam::000000000000:role/`
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"plain",`+main)
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"admin",`+role+`admin",`+main)
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"evil",`+role+`reader","containerDefinitions":[{
		"name":"main","image":"i","memory":64,"command":["python3",`+strconv.Quote(script)+`],
		"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"evil"}}}]}`)
	victim, _ := p.run(t, "plain", `{}`)
	p.Await(victim, "RUNNING")
	node := p.AWS("ecs", "describe-tasks", "--tasks", victim, "--query", "tasks[0].containerInstanceArn", "--output", "text")
	task, _ := p.run(t, "evil", `{"containerOverrides":[{"name":"main","environment":[
		{"name":"NODE","value":"`+node+`"},{"name":"VICTIM","value":"`+victim+`"}]}]}`)
	p.Await(task, "STOPPED")
	said := p.AWS("logs", "filter-log-events", "--log-group-name", "evil", "--query", "join('\n', events[].message)", "--output", "text")
	tries, key, _ := strings.Cut(said, "\nkey ")
	for i, line := range strings.Split(tries, "\n") {
		name, got, _ := strings.Cut(line, " ")
		if want := map[bool]string{true: "allowed", false: "AccessDeniedException"}[i < 2]; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if n := strings.Count(tries, "\n") + 1; n != 16 {
		t.Errorf("the task tried %d things:\n%s", n, said)
	}
	if got := p.AWS("ecs", "describe-tasks", "--tasks", victim, "--query", "tasks[0].lastStatus", "--output", "text"); got != "RUNNING" {
		t.Errorf("the other task is %s", got)
	}
	k := strings.Fields(key)
	if len(k) != 3 {
		t.Fatalf("the task's credentials are %q", key)
	}
	cmd := p.Command(filepath.Join(cli, "aws"), "--endpoint-url", p.Endpoint, "ecs", "list-clusters")
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+k[0], "AWS_SECRET_ACCESS_KEY="+k[1], "AWS_SESSION_TOKEN="+k[2])
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "ExpiredTokenException") {
		t.Errorf("the credentials of a stopped task get %s", out)
	}
}

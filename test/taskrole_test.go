package test

import (
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

package test

import (
	"strings"
	"testing"
)

// TestTaskMayReadOneBucket runs boto3 in a task whose role may read one bucket. It can do just that; everything else is refused in AWS's words.
func TestTaskMayReadOneBucket(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	for _, bucket := range []string{"mine", "other"} {
		p.AWS("s3api", "create-bucket", "--bucket", bucket)
		p.AWS("s3api", "put-object", "--bucket", bucket, "--key", "k")
	}
	p.AWS("iam", "create-role", "--role-name", "reader", "--assume-role-policy-document",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}}`)
	p.AWS("iam", "put-role-policy", "--role-name", "reader", "--policy-name", "read", "--policy-document",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::mine/*"}}`)
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{
		"family": "tries", "taskRoleArn": "arn:aws:iam::000000000000:role/reader",
		"containerDefinitions": [{
			"name": "main", "image": "i", "memory": 64,
			"command": ["python3", "-c", "`+strings.Join([]string{
		`import boto3`,
		`def say(call, **given):`,
		`  try: call(**given); print('allowed')`,
		`  except Exception as e: print(e)`,
		`s3 = boto3.client('s3')`,
		`say(s3.get_object, Bucket='mine', Key='k')`,
		`say(s3.get_object, Bucket='other', Key='k')`,
		`say(s3.delete_object, Bucket='mine', Key='k')`,
		`say(boto3.client('ecs').run_task, taskDefinition='tries')`,
	}, `\n`)+`"],
			"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "tries"}}
		}]}`)
	task, _ := p.run(t, "tries", `{}`)
	p.Await(task, "STOPPED")
	got := p.AWS("logs", "filter-log-events", "--log-group-name", "tries", "--query", "join('\n', events[].message)", "--output", "text")
	who := "User: arn:aws:sts::000000000000:assumed-role/reader/" + task[strings.LastIndexByte(task, '/')+1:] + " is not authorized to perform: "
	refused := func(code, operation, action, resource string) string {
		return "An error occurred (" + code + ") when calling the " + operation + " operation: " + who + action + " on resource: " + resource +
			" because no identity-based policy allows the " + action + " action"
	}
	want := strings.Join([]string{
		"allowed",
		refused("AccessDenied", "GetObject", "s3:GetObject", `"arn:aws:s3:::other/k"`),
		refused("AccessDenied", "DeleteObject", "s3:DeleteObject", `"arn:aws:s3:::mine/k"`),
		refused("AccessDeniedException", "RunTask", "ecs:RunTask", "arn:aws:ecs:us-east-1:000000000000:task-definition/tries:1"),
	}, "\n")
	if got != want {
		t.Errorf("boto3 says\n%s\nwant\n%s", got, want)
	}
}

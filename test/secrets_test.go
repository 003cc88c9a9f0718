package test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsOfContainers: parameters reach a container as its execution role, under a control plane that checks signatures and that was
// killed since. Nothing of the control plane's or of the agent's own has a value; a parameter that isn't there fails the task as on AWS.
func TestSecretsOfContainers(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	p.AWS("ssm", "put-parameter", "--name", "/app/password", "--value", "hunter2", "--type", "SecureString")
	p.AWS("ssm", "put-parameter", "--name", "/app/password", "--value", "hunter3", "--overwrite")
	p.Kill()
	p.Start()
	define := func(family, secrets string) {
		p.AWS("ecs", "register-task-definition", "--cli-input-json", `{
			"family": "`+family+`", "executionRoleArn": "arn:aws:iam::000000000000:role/execution",
			"containerDefinitions": [{
				"name": "main", "image": "i", "memory": 64, "command": ["sh", "-c", "case $OLD-$NEW in h*r2-h*r3) ;; *) exit 1; esac"],
				"environment": [{"name": "OTHER", "value": "x"}], "secrets": [`+secrets+`]}]}`)
	}
	const arn = "arn:aws:ssm:us-east-1:000000000000:parameter/app/password"
	define("good", `{"name": "OLD", "valueFrom": "/app/password:1"}, {"name": "NEW", "valueFrom": "`+arn+`"}`)
	define("bad", `{"name": "OLD", "valueFrom": "/app/none"}`)
	stopped := func(family, query string) string {
		t.Helper()
		task, _ := p.run(t, family, `{}`)
		p.Await(task, "STOPPED")
		return p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", query, "--output", "text")
	}
	if code := stopped("good", "tasks[0].containers[0].exitCode"); code != "0" {
		t.Errorf("the container ends with %s", code)
	}
	got := stopped("bad", "tasks[0].[stopCode, stoppedReason]")
	if !strings.HasPrefix(got, "TaskFailedToStart\tResourceInitializationError: unable to pull secrets or registry auth: ") ||
		!strings.HasSuffix(got, "invalid parameters: /app/none") {
		t.Errorf("the task ends with %q", got)
	}
	read := 0
	err := filepath.WalkDir(p.data, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "processes" {
			return fs.SkipDir // the containers themselves, with their environments
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // it may go meanwhile
		}
		b, err := os.ReadFile(path)
		if err == nil {
			read++
		}
		if bytes.Contains(b, []byte("hunter")) {
			t.Errorf("%s has a secret", path)
		}
		return nil
	})
	if err != nil || read < 5 {
		t.Errorf("%d files were read: %v", read, err)
	}
}

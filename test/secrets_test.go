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

// TestEnvironmentsOfContainers: a container gets a key of a secret, a parameter and variables of a file through its execution role, in every
// form of valueFrom. What isn't there fails the task in ECS's words.
func TestEnvironmentsOfContainers(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	p.AWS("ssm", "put-parameter", "--name", "/app/token", "--value", "tok", "--type", "SecureString")
	arn := p.AWS("secretsmanager", "create-secret", "--name", "app/db", "--secret-string", `{"user": "me", "port": 1}`, "--query", "ARN", "--output", "text")
	version := p.AWS("secretsmanager", "put-secret-value", "--secret-id", arn, "--secret-string", `{"user": "you", "port": 2}`,
		"--query", "VersionId", "--output", "text")
	p.AWS("s3api", "create-bucket", "--bucket", "files")
	path := filepath.Join(t.TempDir(), "x.env")
	if err := os.WriteFile(path, []byte("# a comment\nFILE=a b=\"c\"\nOWN=file\nOTHER=first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.AWS("s3api", "put-object", "--bucket", "files", "--key", "dir/x.env", "--body", path)
	define := func(family, secrets, files string) {
		p.AWS("ecs", "register-task-definition", "--cli-input-json", `{
			"family": "`+family+`", "executionRoleArn": "arn:aws:iam::000000000000:role/execution",
			"containerDefinitions": [{
				"name": "main", "image": "i", "memory": 64, "environment": [{"name": "OWN", "value": "mine"}],
				"command": ["sh", "-c", "echo \"$USER1 $USER2 $PORT $WHOLE $TOKEN $FILE $OWN\" >&2; test \"$USER1 $USER2 $PORT $WHOLE $TOKEN $FILE $OWN\" = 'me you 2 {\"user\": \"you\", \"port\": 2} tok a b=\"c\" mine'"],
				"secrets": [`+secrets+`], "environmentFiles": [`+files+`]}]}`)
	}
	from := func(name, value string) string { return `{"name": "` + name + `", "valueFrom": "` + value + `"}` }
	file := func(key string) string { return `{"type": "s3", "value": "arn:aws:s3:::files/` + key + `"}` }
	define("good", strings.Join([]string{
		from("USER1", arn+":user:AWSPREVIOUS:"), from("USER2", arn+":user::"+version), from("PORT", arn[:len(arn)-7]+":port::"),
		from("WHOLE", arn), from("TOKEN", "/app/token"),
	}, ","), file("dir/x.env"))
	define("nokey", from("A", arn+":none::"), "")
	define("nosecret", from("A", arn[:len(arn)-1]), "")
	define("nofile", "", file("none.env"))
	const pulling = "TaskFailedToStart\tResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: " +
		"unable to retrieve secret from asm: service call has been retried 1 time(s): "
	for _, c := range []struct{ family, query, want string }{
		{"good", "tasks[0].containers[0].exitCode", "0"},
		{"nokey", "tasks[0].[stopCode, stoppedReason]", pulling + "retrieved secret from Secrets Manager did not contain json key none"},
		{"nosecret", "tasks[0].[stopCode, stoppedReason]", pulling + "failed to fetch secret " + arn[:len(arn)-1] + " from secrets manager: " +
			"ResourceNotFoundException: Secrets Manager can't find the specified secret."},
		{"nofile", "tasks[0].[stopCode, stoppedReason]", "TaskFailedToStart\tResourceInitializationError: failed to download env files: " +
			"unable to download env file with key none.env from bucket files, error: NoSuchKey: The specified key does not exist."},
	} {
		task, _ := p.run(t, c.family, `{}`)
		p.Await(task, "STOPPED")
		if got := p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", c.query, "--output", "text"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.family, got, c.want)
		}
	}
}

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestS3Operations calls every implemented S3 operation through boto3 and through the AWS CLI.
func TestS3Operations(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"boto3", "aws"} {
		p := Up(t, "c5.large")
		out, err := p.Command(python, "s3.py", client).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", client, err, out)
		}
		called := strings.Fields(string(out))
		for _, op := range implemented(t) {
			if strings.HasPrefix(op, "s3:") && !slices.Contains(called, op) {
				t.Errorf("%s: %s is implemented and was not called", client, op)
			}
		}
	}
}

// TestS3Forms uploads by forms that boto3 has signed.
func TestS3Forms(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	cmd := p.Command(python, "forms.py")
	cmd.Env = append(cmd.Env, "PINTLE_PID="+strconv.Itoa(p.cmd.Process.Pid))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestS3Sync syncs a tree of 5,000 files up and down with the AWS CLI, and deletes it. A kill in between loses nothing that was
// acknowledged.
func TestS3Sync(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	there, back := t.TempDir(), t.TempDir()
	old := time.Now().Add(-time.Hour) // sync compares times by the second
	for i := range 5000 {
		path := filepath.Join(there, fmt.Sprintf("%02d", i%50), fmt.Sprintf("file %d+ü.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte{byte(i)}, i*7%90000), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	p.AWS("s3", "mb", "s3://sync")
	p.AWS("s3", "sync", "--quiet", there, "s3://sync/in")
	p.Kill()
	p.Start()
	if out := p.AWS("s3", "sync", there, "s3://sync/in"); out != "" {
		t.Errorf("the second sync does %.200s", out)
	}
	if n := strings.Count(p.AWS("s3", "ls", "--recursive", "s3://sync/")+"\n", "\n"); n != 5000 {
		t.Errorf("%d objects are listed", n)
	}
	p.AWS("s3", "sync", "--quiet", "s3://sync/in", back)
	if out, err := p.Command("diff", "-r", there, back).CombinedOutput(); err != nil {
		t.Errorf("what came back differs: %.500s", out)
	}
	p.AWS("s3", "rm", "--quiet", "--recursive", "s3://sync")
	p.AWS("s3", "rb", "s3://sync")
}

// TestS3Lifecycle: objects that a bucket's rules expire are gone after Pintle has looked, which it does at its start.
func TestS3Lifecycle(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large=1")
	p.AWS("s3api", "create-bucket", "--bucket", "logs")
	for _, key := range []string{"old/a", "old/b", "kept"} {
		p.AWS("s3api", "put-object", "--bucket", "logs", "--key", key, "--body", "s3_test.go")
	}
	p.AWS("s3api", "put-bucket-lifecycle-configuration", "--bucket", "logs", "--lifecycle-configuration",
		`{"Rules":[{"Status":"Enabled","Filter":{"Prefix":"old/"},"Expiration":{"Date":"2026-01-01T00:00:00Z"}}]}`)
	p.Kill()
	p.Start()
	Eventually(t, "one object", func() bool {
		return p.AWS("s3api", "list-objects-v2", "--bucket", "logs", "--query", "Contents[].Key", "--output", "text") == "kept"
	})
}

// TestS3TaskRole transfers a file in parts with boto3 inside a task with a role, as a queue's worker does, under a control
// plane that checks signatures.
func TestS3TaskRole(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	p.AWS("s3", "mb", "s3://work")
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{
		"family": "worker", "taskRoleArn": "arn:aws:iam::000000000000:role/worker",
		"containerDefinitions": [{
			"name": "main", "image": "i", "memory": 64,
			"command": ["python3", "-c", "`+strings.ReplaceAll(`import boto3, os
os.chdir(os.environ.get('TMPDIR', '/tmp'))
n = 'pintle-%d' % os.getpid()
open(n, 'wb').write(os.urandom(1 << 20) * 20)
b = boto3.resource('s3').Bucket('work')
b.upload_file(n, 'k')
b.download_file('k', n + '2')
print('same' if open(n, 'rb').read() == open(n + '2', 'rb').read() else 'other')
os.remove(n)
os.remove(n + '2')`, "\n", "; ")+`"],
			"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "worker"}}
		}]}`)
	task, _ := p.run(t, "worker", `{}`)
	p.Await(task, "STOPPED")
	got := p.AWS("logs", "filter-log-events", "--log-group-name", "worker", "--query", "events[].message", "--output", "text")
	if got != "same" {
		t.Errorf("inside the task boto3 says %q", got)
	}
	p.key = "AKOTHER"
	if out, err := p.TryAWS("s3", "ls"); err == nil || !strings.Contains(out, "InvalidAccessKeyId") {
		t.Errorf("an unknown key lists buckets: %s", out)
	}
}

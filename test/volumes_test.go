package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mounted lists the mounts on this machine below a directory.
func mounted(t *testing.T, dir string) (all []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir) {
			all = append(all, fields[1])
		}
	}
	return all
}

// put puts an object.
func (p *Pintle) put(t *testing.T, bucket, key, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.AWS("s3api", "put-object", "--bucket", bucket, "--key", key, "--body", path)
}

// dataSets checks that tasks read what lies in S3 through the node's cache, once for all, with their role's permission alone, across a kill
// of the agent, and that nothing is left of it.
func (c *containers) dataSets(t *testing.T) {
	c.AWS("s3api", "create-bucket", "--bucket", "weights")
	c.put(t, "weights", "m/a", strings.Repeat("0123456789abcdef", 1<<16))
	c.put(t, "weights", "m/sub/b", "hello weights\n")
	c.AWS("iam", "create-role", "--role-name", "nobody", "--assume-role-policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)
	definition := func(family, role string) {
		c.register(t, family, "trap 'exit 7' TERM; wc -c < /w/a; cat /w/sub/b; touch /w/x; rm /w/a; echo looked; while :; do sleep 0.1; done",
			toLogs+`,"mountPoints":[{"sourceVolume":"w","containerPath":"/w"}]`, fmt.Sprintf(
				`,"taskRoleArn":"arn:aws:iam::000000000000:role/%s","volumes":[{"name":"w","dockerVolumeConfiguration":{"driver":"pintle-s3",
				"scope":"task","driverOpts":{"source":"s3://weights/m"}}}]`, role))
	}
	definition("reads", "reader")
	definition("pries", "nobody")
	var tasks []string
	for range 2 {
		task, _ := c.run(t, "reads", `{}`)
		tasks = append(tasks, task)
	}
	c.awaitLog(tasks[1], "looked")
	cache := filepath.Join(c.data, "machine/datasets")
	if n := links(t, cache); n != 3 {
		t.Errorf("the weights have %d links with two tasks, not 3", n)
	}
	c.Kill()
	c.Start()
	third, _ := c.run(t, "reads", `{}`)
	tasks = append(tasks, third)
	for _, task := range tasks {
		log := c.awaitLog(task, "looked")
		if !strings.Contains(log, "1048576") || !strings.Contains(log, "hello weights") || strings.Count(log, "Read-only file system") != 2 {
			t.Errorf("a task says:\n%s", log)
		}
	}
	pries, _ := c.run(t, "pries", `{}`)
	c.Await(pries, "STOPPED")
	why := c.AWS("ecs", "describe-tasks", "--tasks", pries, "--query", "tasks[0].[stopCode,stoppedReason]", "--output", "text")
	if !strings.Contains(why, "TaskFailedToStart\tResourceInitializationError: failed to set up volume w: ") || !strings.Contains(why, "AccessDenied") {
		t.Errorf("a task that may not read stops with %q", why)
	}
	for _, task := range tasks {
		c.AWS("ecs", "stop-task", "--task", task)
		c.Await(task, "STOPPED")
	}
	if n := links(t, cache); n != 1 {
		t.Errorf("the weights have %d links once no task runs", n)
	}
	if left := mounted(t, cache); len(left) > 0 {
		t.Errorf("%v is still mounted", left)
	}
}

// links counts the links of the larger object of a cache, of which there must be two.
func links(t *testing.T, cache string) (n uint64) {
	t.Helper()
	objects, err := filepath.Glob(cache + "/objects/*")
	if err != nil || len(objects) != 2 {
		t.Fatalf("the cache has %v: %v", objects, err)
	}
	for _, path := range objects {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1000 {
			n = info.Sys().(*syscall.Stat_t).Nlink
		}
	}
	return n
}

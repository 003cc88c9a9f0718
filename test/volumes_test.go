package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// mountWeights registers a task that mounts a data set, looks at it, and goes on until it's stopped.
func (c *containers) mountWeights(t *testing.T, family, source string) {
	c.register(t, family, "trap 'exit 7' TERM; wc -c < /w/a; cat /w/sub/b; touch /w/x; rm /w/a; echo looked; while :; do sleep 0.1; done",
		toLogs+`,"mountPoints":[{"sourceVolume":"w","containerPath":"/w"}]`, fmt.Sprintf(
			`,"taskRoleArn":"arn:aws:iam::000000000000:role/reader","volumes":[{"name":"w","dockerVolumeConfiguration":{"driver":"pintle-s3",
			"scope":"task","driverOpts":{"source":%q}}}]`, source))
}

// failsToStart checks that a task fails to start, and why.
func (c *containers) failsToStart(t *testing.T, family string, says ...string) {
	t.Helper()
	task, _ := c.run(t, family, `{}`)
	c.Await(task, "STOPPED")
	why := c.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].[stopCode,stoppedReason]", "--output", "text")
	for _, s := range append(says, "TaskFailedToStart\tResourceInitializationError: failed to set up volume w: ") {
		if !strings.Contains(why, s) {
			t.Errorf("%s stops with %q, which doesn't say %q", family, why, s)
		}
	}
}

// dataSets checks that tasks read what lies in S3 through the node's cache, once for all, across a kill of the agent, and that nothing is
// left of it.
func (c *containers) dataSets(t *testing.T) {
	c.AWS("s3api", "create-bucket", "--bucket", "weights")
	c.put(t, "weights", "m/a", strings.Repeat("0123456789abcdef", 1<<16))
	c.put(t, "weights", "m/sub/b", "hello weights\n")
	c.mountWeights(t, "reads", "s3://weights/m")
	c.mountWeights(t, "errs", "s3://weights/mm")
	var tasks []string
	for range 2 {
		task, _ := c.run(t, "reads", `{}`)
		tasks = append(tasks, task)
	}
	c.awaitLog(tasks[1], "looked")
	cache := filepath.Join(c.data, "machine/datasets")
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
	if n := links(t, cache); n != 4 {
		t.Errorf("the weights have %d links with three tasks, not 4", n)
	}
	c.failsToStart(t, "errs", "there is no object under s3://weights/mm/")
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

// fileSystems checks that tasks share a file system, across a kill of the agent, and that nothing is left mounted.
func (c *containers) fileSystems(t *testing.T) {
	root := c.args[slices.Index(c.args, "--file-systems")+1]
	if err := os.MkdirAll(filepath.Join(root, "fs-0123456789abcdef0/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	register := func(family, directory, script string) {
		c.register(t, family, script, toLogs+`,"mountPoints":[{"sourceVolume":"w","containerPath":"/w"}]`, fmt.Sprintf(
			`,"volumes":[{"name":"w","efsVolumeConfiguration":{"fileSystemId":"fs-0123456789abcdef0","rootDirectory":%q}}]`, directory))
	}
	register("shares", "/d", "trap 'exit 7' TERM; echo hello >> /w/f; echo wrote; while :; do sleep 0.1; done")
	register("counts", "/", "grep -c hello /w/d/f")
	register("misses", "/none", "true")
	first, _ := c.run(t, "shares", `{}`)
	c.awaitLog(first, "wrote")
	c.Kill()
	c.Start()
	second, _ := c.run(t, "shares", `{}`)
	c.awaitLog(second, "wrote")
	third, _ := c.run(t, "counts", `{}`)
	c.awaitLog(third, "2")
	c.failsToStart(t, "misses", "open /none in fs-0123456789abcdef0")
	for _, task := range []string{first, second, third} {
		c.AWS("ecs", "stop-task", "--task", task)
		c.Await(task, "STOPPED")
	}
	if left := mounted(t, filepath.Join(c.data, "nodes/node-1/file-systems")); len(left) > 0 {
		t.Errorf("%v is still mounted", left)
	}
	if b, err := os.ReadFile(filepath.Join(root, "fs-0123456789abcdef0/d/f")); string(b) != "hello\nhello\n" || err != nil {
		t.Errorf("the file system has %q, %v", b, err)
	}
}

// blockVolumes checks that a task has as much room as it asked for and no more, across a kill of the agent, and that its volume is gone when it
// has ended, unless it's to be kept.
func (c *containers) blockVolumes(t *testing.T) {
	for family, script := range map[string]string{
		"fills":  "dd if=/dev/zero of=/w/f bs=1M count=2048 || wc -c < /w/f; echo wrote",
		"writes": "echo hello > /w/f; echo wrote",
	} {
		c.register(t, family, "trap 'exit 7' TERM; "+script+"; while :; do sleep 0.1; done",
			toLogs+`,"mountPoints":[{"sourceVolume":"w","containerPath":"/w"}]`, `,"volumes":[{"name":"w","configuredAtLaunch":true}]`)
	}
	launch := func(family string, size int, deletes bool) (task string) {
		task, _ = c.run(t, family, `{}`, "--volume-configurations", fmt.Sprintf(`[{"name":"w","managedEBSVolume":{"roleArn":
			"arn:aws:iam::000000000000:role/ecsInfrastructureRole","sizeInGiB":%d,"filesystemType":"ext4","terminationPolicy":{"deleteOnTermination":%t}}}]`,
			size, deletes))
		return task
	}
	volumes := func(query string) string {
		return c.AWS("ec2", "describe-volumes", "--filters", "Name=tag:AmazonECSManaged,Values=true", "--query", query, "--output", "text")
	}
	dir := filepath.Join(c.data, "nodes/node-1/volumes")
	gone, kept := launch("fills", 1, true), launch("writes", 1, false)
	if log := c.awaitLog(gone, "wrote"); !strings.Contains(log, "No space left on device") || !regexp.MustCompile(`\b(9[5-9]|10[0-7])\d{7}\b`).MatchString(log) {
		t.Errorf("of 1 GiB, the task writes\n%s", log)
	}
	c.awaitLog(kept, "wrote")
	c.Kill()
	c.Start()
	if got := volumes("sort(Volumes[].State)"); got != "in-use\tin-use" {
		t.Errorf("while the tasks run, the volumes are %q", got)
	}
	attached := c.AWS("ecs", "describe-tasks", "--tasks", gone, "--query",
		"tasks[0].attachments[0].[type,status,details[?name=='sizeInGiB'].value|[0]]", "--output", "text")
	if attached != "AmazonElasticBlockStorage\tATTACHED\t1" || len(mounted(t, dir)) != 2 {
		t.Errorf("the task has %q, and mounted are %v", attached, mounted(t, dir))
	}
	for _, task := range []string{gone, kept} {
		c.AWS("ecs", "stop-task", "--task", task)
		c.Await(task, "STOPPED")
	}
	if left := mounted(t, dir); len(left) > 0 {
		t.Errorf("%v is still mounted", left)
	}
	if got := volumes("Volumes[].State"); got != "available" {
		t.Errorf("once they have ended, the volumes are %q", got)
	}
	if files := all(t, dir+"/*/*"); len(files) != 1 {
		t.Errorf("the node has %v", files)
	}
	c.AWS("ec2", "delete-volume", "--volume-id", volumes("Volumes[].VolumeId"))
	Eventually(t, "the kept volume is gone", func() bool { return volumes("Volumes[].VolumeId") == "" })
	if files := all(t, dir+"/*/*"); len(files) != 0 {
		t.Errorf("the node still has %v", files)
	}
	task := launch("writes", 16384, true)
	c.Await(task, "STOPPED")
	why := c.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].[stopCode,stoppedReason]", "--output", "text")
	if !strings.Contains(why, "TaskFailedToStart\tResourceInitializationError: failed to set up volume w: there is no room for its 16384 GiB") {
		t.Errorf("a task whose volume has no room stops with %q", why)
	}
}

// all lists the files of a pattern.
func all(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDataSetsNeedTheTaskRolesPermission: a task whose role may not read an object gets it neither from S3 nor from the node's cache.
func TestDataSetsNeedTheTaskRolesPermission(t *testing.T) {
	t.Parallel()
	c := &containers{UpSigned(t, "c5.large", "--runtime", "oci"), "rootfs:" + rootfs(t)}
	c.AWS("s3api", "create-bucket", "--bucket", "weights")
	c.put(t, "weights", "m/a", "secret")
	c.AWS("iam", "create-role", "--role-name", "reader", "--assume-role-policy-document",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}}`)
	allow := func(action, resource string) {
		c.AWS("iam", "put-role-policy", "--role-name", "reader", "--policy-name", action[3:], "--policy-document", fmt.Sprintf(
			`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":%q,"Resource":%q}}`, action, resource))
	}
	c.mountWeights(t, "pries", "s3://weights/m")
	c.failsToStart(t, "pries", "AccessDenied", "s3:ListBucket")
	allow("s3:ListBucket", "arn:aws:s3:::weights")
	c.failsToStart(t, "pries", "s3://weights/m/a: AccessDenied", "s3:GetObject")
	allow("s3:GetObject", "arn:aws:s3:::weights/m/*")
	task, _ := c.run(t, "pries", `{}`)
	c.awaitLog(task, "looked")
	c.AWS("iam", "delete-role-policy", "--role-name", "reader", "--policy-name", "GetObject")
	c.failsToStart(t, "pries", "s3://weights/m/a: Forbidden")
	dir := filepath.Join(t.TempDir(), "weights")
	if said, err := c.pintle("mount", "s3://weights/m", dir, "--dataset-cache", filepath.Join(c.data, "machine/datasets")); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); string(b) != "secret" || err != nil {
		t.Errorf("pintle mount shows %q, %v", b, err)
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

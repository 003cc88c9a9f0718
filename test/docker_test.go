package test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dockerd starts a Docker Engine of the test's own, and ends it with the test.
func dockerd(t *testing.T) (host string) {
	t.Helper()
	path, err := exec.LookPath("dockerd")
	if err != nil {
		t.Fatal("this test needs root and Debian's docker.io, iptables and busybox-static: ", err)
	}
	dir, err := os.MkdirTemp("", "pintle-docker-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	host = "unix://" + dir + "/s"
	cmd := exec.Command(path, "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "-H", host)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // it was told to
		os.RemoveAll(dir)
	})
	Eventually(t, "the Docker Engine's start", 30*time.Second, func() bool {
		_, err := os.Stat(dir + "/s")
		return err == nil
	})
	return host
}

// rootfs packs busybox into a tarball of a root file system.
func rootfs(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal("this test needs Debian's busybox-static: ", err)
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(busybox))}) //nolint:errcheck // Close tells
	w.Write(busybox)                                                                        //nolint:errcheck // Close tells
	for _, name := range []string{"sh", "echo", "sleep", "cat", "tail", "httpd"} {
		w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}) //nolint:errcheck // Close tells
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := os.WriteFile(out, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDocker runs tasks on a real Docker Engine through the AWS CLI: a memory limit that is enforced, a
// port that is reachable, a volume that is kept, and a stop that is gentle first.
func TestDocker(t *testing.T) {
	p := Up(t, "g4dn.xlarge", "--runtime", "docker", "--docker-host", dockerd(t))
	image := "rootfs:" + rootfs(t)
	register := func(family, container, more string) {
		p.AWS("ecs", "register-task-definition", "--cli-input-json",
			fmt.Sprintf(`{"family":%q,"containerDefinitions":[{"name":"main","image":%q,"entryPoint":["/bin/sh","-c"],%s}]%s}`, family, image, container, more))
	}
	finish := func(family string) (task, description string) {
		task, _ = p.run(t, family, `{}`)
		p.AWS("ecs", "wait", "tasks-stopped", "--tasks", task)
		return task, p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].[stopCode,containers[0].exitCode,containers[0].reason]", "--output", "text")
	}

	register("hungry", `"command":["tail /dev/zero"],"memory":32,"linuxParameters":{"maxSwap":0}`, "")
	if _, got := finish("hungry"); !strings.Contains(got, "OutOfMemoryError: Container killed due to memory usage") {
		t.Errorf("a container that takes too much memory ends with %q", got)
	}

	register("web", `"command":["echo hello > /index.html; httpd -f -p 80 -h /"],"memory":32,"portMappings":[{"containerPort":80}]`, "")
	web, _ := p.run(t, "web", `{}`)
	p.AWS("ecs", "wait", "tasks-running", "--tasks", web)
	port := p.AWS("ecs", "describe-tasks", "--tasks", web, "--query", "tasks[0].containers[0].networkBindings[0].hostPort", "--output", "text")
	var body string
	Eventually(t, "an answer from port "+port, 10*time.Second, func() bool {
		resp, err := http.Get("http://127.0.0.1:" + port + "/")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		body = string(b)
		return true
	})
	if body != "hello\n" {
		t.Errorf("port %s answers %q", port, body)
	}

	shared := `,"volumes":[{"name":"kept","dockerVolumeConfiguration":{"scope":"shared","autoprovision":true}}]`
	register("writer", `"command":["echo kept > /v/file"],"memory":32,"mountPoints":[{"sourceVolume":"kept","containerPath":"/v"}]`, shared)
	register("reader", `"command":["grep kept /v/file || cat /v/file"],"memory":32,"mountPoints":[{"sourceVolume":"kept","containerPath":"/v","readOnly":true}]`, shared)
	finish("writer")
	if _, got := finish("reader"); !strings.Contains(got, "\t0\t") {
		t.Errorf("the volume's reader ends with %q", got)
	}

	register("gentle", `"command":["trap 'exit 7' TERM; while :; do sleep 0.1; done"],"memory":32,"stopTimeout":20`, "")
	register("deaf", `"command":["trap '' TERM; while :; do sleep 0.1; done"],"memory":32,"stopTimeout":2`, "")
	for family, code := range map[string]string{"gentle": "7", "deaf": "137"} {
		task, _ := p.run(t, family, `{}`)
		p.AWS("ecs", "wait", "tasks-running", "--tasks", task)
		time.Sleep(300 * time.Millisecond) // the shell must have come to its trap
		p.AWS("ecs", "stop-task", "--task", task)
		p.AWS("ecs", "wait", "tasks-stopped", "--tasks", task)
		if got := p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].exitCode", "--output", "text"); got != code {
			t.Errorf("%s ends with %s, want %s", family, got, code)
		}
	}
}

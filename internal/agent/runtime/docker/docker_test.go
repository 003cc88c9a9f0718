package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/agent/runtime"
)

// The tests run a Docker Engine of their own, on a socket and in a directory of their own. They need
// root, and Debian's docker.io, iptables and busybox-static; without those they fail.

var (
	engine *Runtime
	image  string
)

func TestMain(m *testing.M) {
	code, err := withEngine(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docker tests need root and Debian's docker.io, iptables and busybox-static:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withEngine runs the tests with an engine, and ends it.
func withEngine(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "pintle-docker-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path, err := exec.LookPath("dockerd")
	if err != nil {
		return 0, err
	}
	socket := "unix://" + dir + "/docker.sock"
	log, err := os.Create(dir + "/log")
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "-H", socket)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // it was told to
	}()
	for range 300 {
		if engine, err = New(context.Background(), socket); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		text, _ := os.ReadFile(dir + "/log")
		return 0, fmt.Errorf("%w\n%s", err, text)
	}
	defer engine.Close()
	if err := makeImage(dir + "/rootfs.tar"); err != nil {
		return 0, err
	}
	image = "rootfs:" + dir + "/rootfs.tar"
	if _, err := engine.Pull(context.Background(), image, nil); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// makeImage packs busybox under the names that the tests use.
func makeImage(path string) error {
	busybox, err := os.ReadFile("/usr/bin/busybox")
	if errors.Is(err, os.ErrNotExist) {
		busybox, err = os.ReadFile("/bin/busybox")
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(busybox))}) //nolint:errcheck // Close tells
	w.Write(busybox)                                                                        //nolint:errcheck // Close tells
	for _, name := range []string{"sh", "echo", "sleep", "cat", "tail", "httpd", "env", "dd", "true"} {
		w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}) //nolint:errcheck // Close tells
	}
	w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o777}) //nolint:errcheck // Close tells
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// run creates and starts a container that runs a shell script, and removes it with the test.
func run(t *testing.T, script string, change func(*runtime.Spec)) string {
	t.Helper()
	spec := &runtime.Spec{
		ID: strings.ReplaceAll(t.Name(), "/", "-"), Owner: "me", Image: image, Entrypoint: []string{"/bin/sh", "-c"}, Command: []string{script},
		CPUShares: 2, Network: runtime.Network{Mode: "bridge"},
	}
	if change != nil {
		change(spec)
	}
	for range 2 { // once more does no harm
		if err := engine.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background()
		engine.Stop(ctx, spec.ID, 0) //nolint:errcheck // it may have ended
		if err := engine.Remove(ctx, spec.ID); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		if err := engine.Start(t.Context(), spec.ID); err != nil {
			t.Fatal(err)
		}
	}
	return spec.ID
}

func wait(t *testing.T, id string) runtime.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := engine.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func logs(t *testing.T, id, from string) (lines []runtime.Line) {
	t.Helper()
	if err := engine.Logs(t.Context(), id, from, false, func(l runtime.Line) error { lines = append(lines, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return lines
}

func text(lines []runtime.Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return strings.Join(all, "\n")
}

func TestRunsToItsExitCodeAndLogs(t *testing.T) {
	id := run(t, "echo one; echo two >&2; echo $NVIDIA_VISIBLE_DEVICES; exit 3", func(s *runtime.Spec) {
		s.GPUs, s.SimulatedGPUs = []string{"GPU-1", "GPU-2"}, true
	})
	if exit := wait(t, id); exit.Code != 3 || exit.OOMKilled || exit.FinishedAt.IsZero() {
		t.Fatalf("got %+v", exit)
	}
	lines := logs(t, id, "")
	if len(lines) != 3 || !strings.Contains(text(lines), "GPU-1,GPU-2") {
		t.Fatalf("got %+v", lines)
	}
	if rest := logs(t, id, lines[1].Cursor); len(rest) != 1 || rest[0].Text != lines[2].Text {
		t.Errorf("behind the second line there is %+v", rest)
	}
	if err := engine.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := len(logs(t, id, "")); n != 3 {
		t.Errorf("a container that had ended ran again: %d lines", n)
	}
}

func TestWithoutGPUsItSeesNone(t *testing.T) {
	id := run(t, "echo $NVIDIA_VISIBLE_DEVICES", nil)
	wait(t, id)
	if got := text(logs(t, id, "")); got != "void" {
		t.Errorf("got %q", got)
	}
}

func TestTheLastLineNeedsNoNewline(t *testing.T) {
	id := run(t, "echo one; printf last", nil)
	wait(t, id)
	if got := text(logs(t, id, "")); got != "one\nlast" {
		t.Errorf("got %q", got)
	}
}

func TestMemoryLimit(t *testing.T) {
	id := run(t, "tail /dev/zero", func(s *runtime.Spec) { s.MemoryBytes, s.MemorySwap = 32<<20, 32<<20 })
	if exit := wait(t, id); !exit.OOMKilled || exit.Code != 137 {
		t.Errorf("got %+v, want a kill for memory", exit)
	}
}

func TestPortIsReachable(t *testing.T) {
	port := freePort(t)
	run(t, "echo hello > /tmp/index.html; httpd -f -p 80 -h /tmp", func(s *runtime.Spec) {
		s.Network.Ports = []runtime.Port{{ContainerPort: 80, HostPort: port, Protocol: "tcp"}}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(b) != "hello\n" {
				t.Fatalf("got %q", b)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func TestVolumeIsKept(t *testing.T) {
	volume := []runtime.Mount{{Source: "kept", Destination: "/v", Volume: true}}
	first := run(t, "echo kept > /v/file", func(s *runtime.Spec) { s.ID, s.Mounts = "volume-1", volume })
	wait(t, first)
	if err := engine.Remove(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := run(t, "cat /v/file", func(s *runtime.Spec) { s.ID, s.Mounts = "volume-2", volume })
	wait(t, second)
	if got := text(logs(t, second, "")); got != "kept" {
		t.Errorf("got %q", got)
	}
}

func TestBindMount(t *testing.T) {
	dir := t.TempDir()
	id := run(t, "echo from inside > /host/file", func(s *runtime.Spec) { s.Mounts = []runtime.Mount{{Source: dir, Destination: "/host"}} })
	wait(t, id)
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "from inside\n" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestStopIsGentleThenNot(t *testing.T) {
	gentle := run(t, "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done", func(s *runtime.Spec) { s.ID = "gentle" })
	deaf := run(t, "trap '' TERM; echo up; while :; do sleep 0.1; done", func(s *runtime.Spec) { s.ID = "deaf" })
	for _, id := range []string{gentle, deaf} {
		for len(logs(t, id, "")) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if err := engine.Stop(t.Context(), id, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if exit := wait(t, gentle); exit.Code != 7 {
		t.Errorf("the gentle one ended with %+v", exit)
	}
	if exit := wait(t, deaf); exit.Code != 137 {
		t.Errorf("the deaf one ended with %+v", exit)
	}
}

func TestListExecAndStats(t *testing.T) {
	id := run(t, "sleep 60", nil)
	list, err := engine.List(t.Context(), "me")
	if err != nil || len(list) == 0 || list[0].ID != id || list[0].Status != runtime.Running || list[0].PID == 0 {
		t.Fatalf("got %+v, %v", list, err)
	}
	if others, _ := engine.List(t.Context(), "somebody"); len(others) != 0 {
		t.Errorf("somebody has %+v", others)
	}
	var out bytes.Buffer
	code, err := engine.Exec(t.Context(), id, runtime.Exec{Command: []string{"/bin/sh", "-c", "echo inside; exit 4"}, Stdout: &out})
	if err != nil || code != 4 || out.String() != "inside\n" {
		t.Errorf("exec: %d, %q, %v", code, out.String(), err)
	}
	if s, err := engine.Stats(t.Context(), id); err != nil || s.MemoryBytes == 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	if _, err := engine.Wait(t.Context(), "none"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("wait: %v", err)
	}
	if err := engine.Remove(t.Context(), "none"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := engine.Pull(t.Context(), "127.0.0.1:1/none:1", nil); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("pull: %v", err)
	}
}

package docker

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// The tests run their own Docker Engine, with its own socket and directory. They fail without root or Debian's docker.io, iptables and
// busybox-static.

var (
	engine *Runtime
	host   string
)

// TestVolumeDrivers: an engine without plugins has its own driver.
func TestVolumeDrivers(t *testing.T) {
	if drivers, err := engine.VolumeDrivers(t.Context()); err != nil || len(drivers) != 1 || drivers[0] != "local" {
		t.Errorf("it has %v, %v", drivers, err)
	}
}

func TestMain(m *testing.M) {
	code, err := withEngine(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docker tests need root and Debian's docker.io, iptables and busybox-static:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withEngine starts an engine, runs the tests and stops the engine.
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
	host = "unix://" + dir + "/docker.sock"
	log, err := os.Create(dir + "/log")
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "-H", host)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)                            //nolint:errcheck // it may have ended
		cmd.Wait()                                                     //nolint:errcheck // it was told to
		syscall.Unmount(dir+"/exec/netns/default", syscall.MNT_DETACH) //nolint:errcheck // dockerd leaves it mounted
	}()
	for range 1200 { // two minutes
		if engine, err = New(context.Background(), host); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		text, _ := os.ReadFile(dir + "/log")
		return 0, fmt.Errorf("%w\n%s", err, text)
	}
	defer engine.Close()
	return m.Run(), nil
}

func TestRuntime(t *testing.T) {
	runtimetest.Run(t, engine, func() (runtime.Runtime, error) { return New(t.Context(), host) })
}

// fakeEngine returns a runtime on an engine that answers requests as told, and tells its version by itself.
func fakeEngine(t *testing.T, answer func(*http.Request) string) *Runtime {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/version") {
			fmt.Fprint(w, `{"ApiVersion":"1.51"}`) //nolint:errcheck // a test
			return
		}
		fmt.Fprint(w, answer(r)) //nolint:errcheck // a test
	}))
	t.Cleanup(server.Close)
	rt, err := New(t.Context(), "tcp://"+server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() }) //nolint:errcheck // a test
	return rt
}

// TestDigest: an image has a digest in each repository that it was pulled from, and none where it was built.
func TestDigest(t *testing.T) {
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	known := []string{"busybox@" + one, "registry.example.com/team/app@" + two}
	for ref, want := range map[string]string{
		"busybox:1":                              one,
		"docker.io/library/busybox":              one,
		"registry.example.com/team/app:3":        two,
		"registry.example.com/team/app:3@" + two: two,
		"mine:1":                                 "",
		"rootfs:/image.tar":                      "",
	} {
		if got := digestIn(ref, known); got != want {
			t.Errorf("%s: got %q, want %q", ref, got, want)
		}
	}
}

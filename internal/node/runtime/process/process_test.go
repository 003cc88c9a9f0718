package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// TestMain builds the shim.
func TestMain(m *testing.M) { os.Exit(runtimetest.WithShim(m.Run)) }

// patience is how long a test waits for what should come soon, so that it passes on a busy machine too.
const patience = 2 * time.Minute

func newRuntime(t *testing.T) *Runtime {
	t.Helper()
	return open(t, t.TempDir())
}

func open(t *testing.T, dir string) *Runtime {
	t.Helper()
	r, err := New(dir, runtimetest.Shim, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, r *Runtime, id, script string, args ...string) {
	t.Helper()
	spec := &runtime.Spec{
		ID:         id,
		Owner:      "me",
		Entrypoint: []string{"/bin/sh", "-c"},
		Command:    append([]string{script}, args...),
		GPUs:       []string{"GPU-1", "GPU-2"},
	}
	if err := r.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// TestStopOfADamagedContainer: all of a container's processes are stopped though the file is damaged that names the first.
func TestStopOfADamagedContainer(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	run(t, r, "c", "(setsid sleep 600 &); trap 'exit 7' TERM; touch $0; while :; do sleep 0.1; done", filepath.Join(dir, "ready"))
	for _, err := os.Stat(filepath.Join(dir, "ready")); err != nil; _, err = os.Stat(filepath.Join(dir, "ready")) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "c", "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(t.Context(), "c", patience); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, r, "c"); exit.Code != 7 {
		t.Errorf("it ended with %+v", exit)
	}
}

func wait(t *testing.T, r *Runtime, id string) runtime.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exit, err := r.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func logs(t *testing.T, r *Runtime, id, cursor string, follow bool) (text, last string) {
	t.Helper()
	err := r.Logs(t.Context(), id, cursor, follow, func(l runtime.Line) error {
		text += l.Text + "\n"
		last = l.Cursor
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, last
}

func TestRunsToItsExitCodeAndLogs(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", "echo one; echo two >&2; echo $NVIDIA_VISIBLE_DEVICES; printf three; exit 3")
	if exit := wait(t, r, "a"); exit.Code != 3 || exit.FinishedAt.IsZero() {
		t.Fatalf("got %+v", exit)
	}
	text, cursor := logs(t, r, "a", "", true)
	for _, want := range []string{"one\n", "two\n", "GPU-1,GPU-2\n", "three\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("logs are %q, want %q in them", text, want)
		}
	}
	if more, _ := logs(t, r, "a", cursor, true); more != "" {
		t.Errorf("behind the last cursor there is %q", more)
	}
}

func TestStartTwiceRunsOnce(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", "echo once")
	for range 3 {
		if err := r.Start(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, r, "a")
	if err := r.Start(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if text, _ := logs(t, r, "a", "", true); text != "once\n" {
		t.Fatalf("logs are %q", text)
	}
}

func TestStopsGracefullyThenKills(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "gentle", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done")
	run(t, r, "deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done")
	for _, id := range []string{"gentle", "deaf"} {
		for text := ""; text == ""; {
			text, _ = logs(t, r, id, "", false)
		}
	}
	if err := r.Stop(t.Context(), "gentle", patience); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, r, "gentle"); exit.Code != 7 {
		t.Errorf("the gentle one ended with %+v", exit)
	}
	if err := r.Stop(t.Context(), "deaf", 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, r, "deaf"); exit.Code != 137 {
		t.Errorf("the deaf one ended with %+v", exit)
	}
}

// TestIgnored: what a process can't have is named, and nothing else.
func TestIgnored(t *testing.T) {
	plain := &runtime.Spec{
		Image: "i", Command: []string{"true"}, Env: []string{"A=b"}, WorkingDir: "/", CPUShares: 2, MemoryBytes: 1 << 20,
		Mounts: []runtime.Mount{{Source: "/tmp", Destination: "/tmp"}}, Network: runtime.Network{Mode: "bridge"},
	}
	if got := new(Runtime).Ignored(plain); got != nil {
		t.Errorf("of a plain one: %v", got)
	}
	full := &runtime.Spec{
		User: "nobody", Mounts: []runtime.Mount{{Source: "/tmp", Destination: "/data"}}, Ulimits: []runtime.Ulimit{{Name: "nofile"}},
		CapAdd: []string{"SYS_PTRACE"}, Init: true, ShmSizeBytes: 1, Swappiness: new(int64(60)), Pid: "container:x", Privileged: true,
	}
	want := []string{"user", "mountPoints", "ulimits", "privileged", "pidMode", "linuxParameters.capabilities",
		"linuxParameters.initProcessEnabled", "linuxParameters.sharedMemorySize", "linuxParameters.swappiness"}
	if got := new(Runtime).Ignored(full); !slices.Equal(got, want) {
		t.Errorf("of a full one: %v", got)
	}
}

// TestRevives: a process that has ended starts again in its directory, once, and its output goes on.
func TestRevives(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", `echo run >> "$0"; wc -l < "$0"; exit 4`, filepath.Join(t.TempDir(), "kept"))
	ended := wait(t, r, "a").FinishedAt
	for range 2 {
		if err := errors.Join(r.Revive(t.Context(), "a", ended), r.Revive(t.Context(), "a", ended), r.Start(t.Context(), "a")); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, r, "a"); exit.Code != 4 || !exit.FinishedAt.After(ended) {
			t.Errorf("it ended again with %+v", exit)
		}
	}
	if text, _ := logs(t, r, "a", "", true); text != "1\n2\n" {
		t.Errorf("it printed %q", text)
	}
}

func TestNextAgentAdopts(t *testing.T) {
	dir, end := t.TempDir(), filepath.Join(t.TempDir(), "end")
	run(t, open(t, dir), "a", "until [ -e "+end+" ]; do sleep 0.05; done; exit 5")
	next := open(t, dir)
	list, err := next.List(t.Context(), "me")
	if err != nil || len(list) != 1 || list[0].Status != runtime.Running {
		t.Fatalf("got %+v, %v", list, err)
	}
	if others, _ := next.List(t.Context(), "somebody"); len(others) != 0 {
		t.Fatalf("somebody has %+v", others)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, next, "a"); exit.Code != 5 {
		t.Fatalf("got %+v", exit)
	}
}

func TestKilledShim(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", "echo $PPID; exec sleep 600")
	var shimPID int
	for text := ""; text == ""; {
		text, _ = logs(t, r, "a", "", false)
		shimPID = atoi(strings.TrimSpace(text))
	}
	st, _, err := shim.ReadState(r.containers.Dir + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(shimPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, r, "a"); exit.Code != shim.LostCode || exit.Error == "" {
		t.Errorf("got %+v", exit)
	}
	for deadline := time.Now().Add(patience); st.Running(); {
		if time.Now().After(deadline) {
			t.Fatal("the container's process is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestContainerEndKillsItsChildren(t *testing.T) {
	for name, script := range map[string]string{ // $0 is a file that doesn't exist yet
		"a background child":   "sleep 600 & echo $!",
		"a session of its own": "setsid sleep 600 & echo $!",
		"a child of one in between": `setsid sh -c 'sleep 600 & echo $!; touch "$0"; exec sleep 600' "$0" &
			until [ -e "$0" ]; do sleep 0.05; done`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			run(t, r, "a", script, filepath.Join(t.TempDir(), "said"))
			wait(t, r, "a")
			text, _ := logs(t, r, "a", "", true)
			left := atoi(strings.TrimSpace(text))
			for deadline := time.Now().Add(patience); syscall.Kill(left, 0) == nil; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it outlives its container")
				}
			}
		})
	}
}

func TestLostContainerIsListedAsExited(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", "echo $PPID; exec sleep 600")
	for text := ""; text == ""; {
		text, _ = logs(t, r, "a", "", false)
		if pid := atoi(strings.TrimSpace(text)); pid > 0 {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // wait would fail
		}
	}
	exit := wait(t, r, "a")
	list, err := r.List(t.Context(), "me")
	if err != nil || len(list) != 1 || list[0].Status != runtime.Exited || list[0].Exit != exit || exit.Code != shim.LostCode {
		t.Errorf("got %+v, %v, want the end %+v", list, err, exit)
	}
	if again := wait(t, r, "a"); again != exit {
		t.Errorf("it ended twice: %+v, then %+v", exit, again)
	}
}

func TestRefusals(t *testing.T) {
	r := newRuntime(t)
	if err := r.Create(t.Context(), &runtime.Spec{ID: "../x", Command: []string{"true"}}); err == nil {
		t.Error("an id with a path was taken")
	}
	if err := r.Create(t.Context(), &runtime.Spec{ID: "x"}); err == nil {
		t.Error("a container without a command was taken")
	}
	if err := r.Create(t.Context(), &runtime.Spec{ID: "y", Command: []string{"/no/such/program"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), "y"); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("starting what isn't there: %v", err)
	}
	if _, err := r.Wait(t.Context(), "none"); err == nil {
		t.Error("waited for what isn't there")
	}
}

func TestRemove(t *testing.T) {
	r := newRuntime(t)
	run(t, r, "a", "sleep 600")
	if err := r.Remove(t.Context(), "a"); err == nil {
		t.Error("a running container was removed")
	}
	if err := r.Stop(t.Context(), "a", time.Second); err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if list, _ := r.List(t.Context(), "me"); len(list) != 0 {
		t.Errorf("still there: %+v", list)
	}
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

// BenchmarkStart measures Start, which returns when the command runs, and the memory of the last shim.
func BenchmarkStart(b *testing.B) {
	r, err := New(b.TempDir(), runtimetest.Shim, nil)
	if err != nil {
		b.Fatal(err)
	}
	var rss int
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		id := "c" + strconv.Itoa(n)
		spec := &runtime.Spec{ID: id, Owner: "me", Entrypoint: []string{"/bin/sleep", "600"}}
		if err := r.Create(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := r.Start(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		st, _, err := shim.ReadState(filepath.Join(r.containers.Dir, id))
		if err != nil {
			b.Fatal(err)
		}
		rss = statusField(b, statusField(b, st.PID, "PPid"), "VmRSS")
		if err := r.Stop(b.Context(), id, 0); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(rss), "shim-RSS-kB")
}

// statusField returns a number from /proc/PID/status.
func statusField(b *testing.B, pid int, name string) int {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return atoi(strings.Fields(rest)[0])
		}
	}
	b.Fatalf("%d has no %s", pid, name)
	return 0
}

// TestStandIn: a container without a command runs what stands in for its image, whatever the image's tag, or is refused with what to do.
func TestStandIn(t *testing.T) {
	r, err := New(t.TempDir(), runtimetest.Shim, map[string]string{"a/web": "serve", "a/web:2": "serve two", "host:5000/x": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"a/web": "serve", "a/web:1": "serve", "a/web:2": "serve two", "a/web@sha256:aa": "serve", "a/web:1@sha256:aa": "serve",
		"host:5000/x": "x", "host:5000/x:1": "x", "web": "", "a/web2": "", "host:5000": "",
	} {
		spec := &runtime.Spec{ID: "c-" + strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(image), Image: image}
		err := r.Create(t.Context(), spec)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "--image '"+image+"=COMMAND'") {
				t.Errorf("%s: %v", image, err)
			}
			continue
		}
		if err != nil || !slices.Equal(spec.Command, []string{"/bin/sh", "-c", want}) {
			t.Errorf("%s runs %q, %v", image, spec.Command, err)
		}
	}
}

// Package runtimetest is the test suite that every container runtime must pass, so that tasks run the same on all of them.
package runtimetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/taskgroup"
)

// Mark is part of every name that this run of the tests creates on the machine. It's random, so names never clash with what a killed run
// left behind, with another package's tests that run at the same time, or with anything else.
var Mark = rand.Text()[:10]

// patience is how long a test waits for what should come soon, so that it passes on a busy machine too.
const patience = 2 * time.Minute

// suite is a runtime under test, with the image that MakeImage makes.
type suite struct {
	rt     runtime.Runtime
	reopen func() (runtime.Runtime, error)
	image  string
}

// Run tests a runtime whose containers have images, networks and limits. reopen opens the runtime a second time, as a restarted agent
// does.
func Run(t *testing.T, rt runtime.Runtime, reopen func() (runtime.Runtime, error)) {
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := MakeImage(path); err != nil {
		t.Fatal("these tests need Debian's busybox-static: ", err)
	}
	s := &suite{rt, reopen, "rootfs:" + path}
	if _, err := rt.Pull(t.Context(), s.image, nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T){
		"RunsToItsExitCodeAndLogs": s.runsToItsExitCodeAndLogs,
		"SeesItsGPUs":              s.seesItsGPUs,
		"LastLineNeedsNoNewline":   s.lastLineNeedsNoNewline,
		"LongLine":                 s.longLine,
		"MemoryLimit":              s.memoryLimit,
		"TaskLimit":                s.taskLimit,
		"PublishesPorts":           s.publishesPorts,
		"KeepsVolumes":             s.keepsVolumes,
		"RemovesVolumes":           s.removesVolumes,
		"MemoryVolumes":            s.memoryVolumes,
		"BindMounts":               s.bindMounts,
		"StopsGracefullyThenKills": s.stopsGracefullyThenKills,
		"Adopts":                   s.adopts,
		"Revives":                  s.revives,
		"Execs":                    s.execs,
		"Terminals":                s.terminals,
		"Stats":                    s.stats,
		"ProcessMatchesSpec":       s.processMatchesSpec,
		"UserIsUnprivileged":       s.userIsUnprivileged,
		"Groups":                   s.groups,
		"ReadonlyRootfs":           s.readonlyRootfs,
		"TmpfsAndShm":              s.tmpfsAndShm,
		"Ulimits":                  s.ulimits,
		"Networks":                 s.networks,
		"Links":                    s.links,
		"LinkVariables":            s.linkVariables,
		"Terminal":                 s.terminal,
		"LowPorts":                 s.lowPorts,
		"ImageVolumes":             s.imageVolumes,
		"SharesProcesses":          s.sharesProcesses,
		"NestedMounts":             s.nestedMounts,
		"OpenStdin":                s.openStdin,
		"SearchDomains":            s.searchDomains,
		"CannotStart":              s.cannotStart,
		"MissingParts":             s.missingParts,
		"NoEntryPoint":             s.noEntryPoint,
		"MountedTwice":             s.mountedTwice,
		"NotFound":                 s.notFound,
	} {
		t.Run(name, test)
	}
}

// run creates and starts a container that runs a shell script, and removes it with the test.
func (s *suite) run(t *testing.T, script string, change func(*runtime.Spec)) string {
	t.Helper()
	spec := s.create(t, script, change)
	for range 2 {
		if err := s.rt.Start(t.Context(), spec.ID); err != nil {
			t.Fatal(err)
		}
	}
	return spec.ID
}

func (s *suite) create(t *testing.T, script string, change func(*runtime.Spec)) *runtime.Spec {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	spec := &runtime.Spec{
		ID:         strings.ReplaceAll(name, "/", "-") + "-" + Mark,
		Owner:      "me",
		Image:      s.image,
		Entrypoint: []string{"/bin/sh", "-c"},
		Command:    []string{script},
		CPUShares:  2,
		Network:    runtime.Network{Mode: "none"},
	}
	if change != nil {
		change(spec)
	}
	for range 2 { // Create is idempotent
		if err := s.rt.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background()
		s.rt.Stop(ctx, spec.ID, 0) //nolint:errcheck // it may have ended
		if err := s.rt.Remove(ctx, spec.ID); err != nil {
			t.Error(err)
		}
	})
	return spec
}

// suffixed adds a suffix to the ID, for tests with several containers.
func suffixed(name string) func(*runtime.Spec) {
	return func(c *runtime.Spec) { c.ID += "-" + name }
}

func (s *suite) wait(t *testing.T, id string) runtime.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exit, err := s.rt.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func (s *suite) lines(t *testing.T, id, from string) (lines []runtime.Line) {
	t.Helper()
	if err := s.rt.Logs(t.Context(), id, from, false, func(l runtime.Line) error { lines = append(lines, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return lines
}

func (s *suite) text(t *testing.T, id string) string {
	t.Helper()
	var all []string
	for _, l := range s.lines(t, id, "") {
		all = append(all, l.Text)
	}
	return strings.Join(all, "\n")
}

// awaitOutput waits until a container has printed something.
func (s *suite) awaitOutput(t *testing.T, id string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if text := s.text(t, id); text != "" {
			return text
		}
		if time.Now().After(deadline) {
			t.Fatal("the container prints nothing")
		}
	}
}

// output runs a script to its end and returns what it prints.
func (s *suite) output(t *testing.T, script string, change func(*runtime.Spec)) string {
	t.Helper()
	id := s.run(t, script, change)
	s.wait(t, id)
	return s.text(t, id)
}

func (s *suite) runsToItsExitCodeAndLogs(t *testing.T) {
	id := s.run(t, "echo one; echo two >&2; exit 3", nil)
	if exit := s.wait(t, id); exit.Code != 3 || exit.OOMKilled || exit.FinishedAt.IsZero() {
		t.Fatalf("got %+v", exit)
	}
	lines := s.lines(t, id, "")
	if len(lines) != 2 || lines[0].Stderr == lines[1].Stderr {
		t.Fatalf("got %+v", lines)
	}
	if rest := s.lines(t, id, lines[0].Cursor); len(rest) != 1 || rest[0].Text != lines[1].Text {
		t.Errorf("behind the first line there is %+v", rest)
	}
	if err := s.rt.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := len(s.lines(t, id, "")); n != 2 {
		t.Errorf("a container that had ended ran again: %d lines", n)
	}
}

// revives: a container that has ended starts again with what it wrote, and once only, whichever agent it is that starts it.
func (s *suite) revives(t *testing.T) {
	port := FreePort(t)
	id := s.run(t, `[ -e /dev/shm/x ] && exit 5; touch /dev/shm/x; echo run >> /kept; wc -l < /kept; exit 4`,
		func(c *runtime.Spec) {
			c.Network = runtime.Network{Mode: "bridge", Ports: []runtime.Port{{ContainerPort: 80, HostPort: port, Protocol: "tcp"}}}
		})
	for runs := 2; runs < 4; runs++ {
		ended := s.wait(t, id).FinishedAt
		before := s.lines(t, id, "")
		for range 3 { // agents that are killed before they note it, one of them before the start
			next, err := s.reopen()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(next.Revive(t.Context(), id, ended), next.Revive(t.Context(), id, ended)); err != nil {
				t.Fatal(err)
			}
			if err := next.Start(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		exit := s.wait(t, id)
		if exit.Code != 4 || !exit.FinishedAt.After(ended) {
			t.Errorf("run %d ended with %+v", runs, exit)
		}
		if err := errors.Join(s.rt.Revive(t.Context(), id, ended), s.rt.Start(t.Context(), id)); err != nil {
			t.Fatal(err)
		}
		after := s.lines(t, id, before[len(before)-1].Cursor)
		if len(after) != 1 || after[0].Text != strconv.Itoa(runs) {
			t.Errorf("run %d printed %+v", runs, after)
		}
	}
}

func (s *suite) seesItsGPUs(t *testing.T) {
	got := s.output(t, "echo $NVIDIA_VISIBLE_DEVICES", func(c *runtime.Spec) {
		c.GPUs = []string{"GPU-1", "GPU-2"}
		c.SimulatedGPUs = true
	})
	if got != "GPU-1,GPU-2" {
		t.Errorf("with two GPUs: %q", got)
	}
	if got := s.output(t, "echo $NVIDIA_VISIBLE_DEVICES", suffixed("none")); got != "void" {
		t.Errorf("with none: %q", got)
	}
}

func (s *suite) lastLineNeedsNoNewline(t *testing.T) {
	if got := s.output(t, "echo one; printf last", nil); got != "one\nlast" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) longLine(t *testing.T) {
	const script = `x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11; do x=$x$x; done; echo $x; echo end`
	if got, want := s.output(t, script, nil), strings.Repeat("0123456789abcdef", 2048)+"\nend"; got != want {
		t.Errorf("a line of 32 KiB comes as %d bytes, with %d newlines", len(got), strings.Count(got, "\n"))
	}
}

func (s *suite) memoryLimit(t *testing.T) {
	id := s.run(t, "tail /dev/zero", func(c *runtime.Spec) {
		c.MemoryBytes = 32 << 20
		c.MemorySwap = 32 << 20
	})
	if exit := s.wait(t, id); !exit.OOMKilled || exit.Code != 137 {
		t.Errorf("got %+v, want a kill for memory", exit)
	}
}

// taskLimit: containers are in their task's control group, which limits them together.
func (s *suite) taskLimit(t *testing.T) {
	groups, err := taskgroup.Open(false)
	if err != nil {
		t.Fatal(err)
	}
	task := "TaskLimit-" + Mark
	parent, err := groups.Create(t.Context(), task, taskgroup.Limits{MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	id := s.run(t, "sleep 600", func(c *runtime.Spec) { c.CgroupParent = parent })
	found, err := s.rt.List(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found, func(c runtime.Container) bool { return c.ID == id })
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", found[i].PID))
	if err != nil || !strings.Contains(string(b), parent+"/") {
		t.Errorf("%v, its groups are\n%s", err, b)
	}
	if err := s.rt.Stop(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	s.wait(t, id)
	if err := groups.Delete(t.Context(), task); err != nil {
		t.Error(err)
	}
	for _, hierarchies := range []string{"", "*"} {
		if left, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", hierarchies, parent)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
}

func (s *suite) publishesPorts(t *testing.T) {
	port := FreePort(t)
	publish := func(c *runtime.Spec) {
		c.Network = runtime.Network{Mode: "bridge", Ports: []runtime.Port{{ContainerPort: 80, HostPort: port, Protocol: "tcp"}}}
	}
	for i, name := range []string{"first", "second"} { // a container's end frees its port
		id := s.run(t, "echo "+name+" > /tmp/index.html; httpd -f -p 80 -h /tmp", func(c *runtime.Spec) {
			publish(c)
			suffixed(name)(c)
		})
		if got := get(t, fmt.Sprintf("http://127.0.0.1:%d/", port)); got != name+"\n" {
			t.Fatalf("container %d answers %q", i, got)
		}
		if netns, err := s.rt.NetNS(t.Context(), id); err != nil || netns == "" {
			t.Errorf("its network namespace is %q, %v", netns, err)
		}
		if err := s.rt.Stop(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			return string(b)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// FreePort returns a TCP port that stays free until the test takes it. Linux assigns no ports below 32768 by itself, and a UDP socket
// reserves the port against the machine's other tests for as long as this one runs.
func FreePort(t testing.TB) uint16 {
	t.Helper()
	for port := 20000 + time.Now().UnixNano()%10000; port < 32000; port++ {
		claim, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			claim.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		return uint16(port)
	}
	t.Fatal("there is no free port")
	return 0
}

func (s *suite) keepsVolumes(t *testing.T) {
	volume := func(name string) func(*runtime.Spec) {
		return func(c *runtime.Spec) {
			suffixed(name)(c)
			c.Mounts = []runtime.Mount{{Source: "kept-" + Mark, Destination: "/data", Volume: true, ReadOnly: name == "reader"}}
		}
	}
	writer := s.run(t, "echo kept > /data/file", volume("writer"))
	if exit := s.wait(t, writer); exit.Code != 0 {
		t.Fatalf("the writer ends with %+v: %s", exit, s.text(t, writer))
	}
	if err := s.rt.Remove(t.Context(), writer); err != nil {
		t.Fatal(err)
	}
	got := s.output(t, "cat /data/file /data/seed; touch /data/x 2>/dev/null || echo read-only", volume("reader"))
	if got != "kept\nfrom the image\nread-only" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) removesVolumes(t *testing.T) {
	name := "gone-" + Mark
	volume := func(c *runtime.Spec) {
		c.Mounts = []runtime.Mount{{Source: name, Destination: "/v", Volume: true}}
	}
	first := s.run(t, "touch /v/file", volume)
	s.wait(t, first)
	if err := s.rt.Remove(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for range 2 { // RemoveVolume is idempotent
		if err := s.rt.RemoveVolume(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.output(t, "ls /v", func(c *runtime.Spec) { volume(c); suffixed("second")(c) }); got != "" {
		t.Errorf("a volume that was removed still has %q", got)
	}
}

// memoryVolumes: containers share a volume of the driver local that is memory. It begins empty, and its files are gone once it is removed.
func (s *suite) memoryVolumes(t *testing.T) {
	remove := func() error { return s.rt.RemoveVolume(context.Background(), "memory-"+Mark) }
	t.Cleanup(func() { remove() }) //nolint:errcheck // the runtime may be gone
	volume := func(name string) func(*runtime.Spec) {
		return func(c *runtime.Spec) {
			suffixed(name)(c)
			c.Mounts = []runtime.Mount{{
				Source: "memory-" + Mark, Destination: "/data", Volume: true, ReadOnly: name == "reader",
				DriverOpts: map[string]string{"type": "tmpfs", "device": "tmpfs", "o": "size=3m,uid=1234,noexec"},
			}}
		}
	}
	writer := s.run(t, "touch /data/file; mount | grep -c ' /data .*noexec.*size=3.*uid=1234'; sleep 600", volume("writer"))
	if got := s.awaitOutput(t, writer); got != "1" {
		t.Errorf("%s such file systems", got)
	}
	reader := s.run(t, "ls /data; touch /data/x 2>/dev/null || echo read-only", volume("reader"))
	s.wait(t, reader)
	if got := s.text(t, reader); got != "file\nread-only" {
		t.Errorf("got %q", got)
	}
	for _, id := range []string{reader, writer} {
		if err := errors.Join(s.rt.Stop(t.Context(), id, 0), s.rt.Remove(t.Context(), id)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // RemoveVolume is idempotent
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.output(t, "ls /data", volume("again")); got != "" {
		t.Errorf("a volume that was removed still has %q", got)
	}
}

func (s *suite) bindMounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	id := s.run(t, "echo from inside > /host/file", func(c *runtime.Spec) {
		c.Mounts = []runtime.Mount{{Source: dir, Destination: "/host"}}
	})
	s.wait(t, id)
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "from inside\n" {
		t.Errorf("got %q, %v", b, err)
	}
}

func (s *suite) stopsGracefullyThenKills(t *testing.T) {
	gentle := s.run(t, "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done", suffixed("gentle"))
	deaf := s.run(t, "trap '' TERM; echo up; while :; do sleep 0.1; done", suffixed("deaf"))
	for id, grace := range map[string]time.Duration{gentle: patience, deaf: time.Second} {
		s.awaitOutput(t, id)
		if err := s.rt.Stop(t.Context(), id, grace); err != nil {
			t.Fatal(err)
		}
	}
	if exit := s.wait(t, gentle); exit.Code != 7 {
		t.Errorf("the gentle one ended with %+v", exit)
	}
	if exit := s.wait(t, deaf); exit.Code != 137 {
		t.Errorf("the deaf one ended with %+v", exit)
	}
}

func (s *suite) adopts(t *testing.T) {
	dir := t.TempDir()
	id := s.run(t, "until [ -e /host/end ]; do sleep 0.1; done; exit 5", func(c *runtime.Spec) {
		c.Mounts = []runtime.Mount{{Source: dir, Destination: "/host"}}
	})
	waiting := s.create(t, "true", suffixed("created"))
	next, err := s.reopen()
	if err != nil {
		t.Fatal(err)
	}
	list, err := next.List(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]runtime.Container{}
	for _, c := range list {
		found[c.ID] = c
	}
	if c := found[id]; c.Status != runtime.Running || c.PID == 0 || time.Since(c.StartedAt) > time.Minute {
		t.Errorf("got %+v", c)
	}
	if c := found[waiting.ID]; c.Status != runtime.Created {
		t.Errorf("the one that was never started is %+v", c)
	}
	if others, _ := next.List(t.Context(), "somebody"); len(others) != 0 {
		t.Errorf("somebody has %+v", others)
	}
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, err := next.Wait(t.Context(), id); err != nil || exit.Code != 5 {
		t.Errorf("got %+v, %v", exit, err)
	}
	if list, _ = next.List(t.Context(), "me"); len(list) == 0 {
		t.Error("the list is empty")
	}
	for _, c := range list {
		if c.ID == id && (c.Status != runtime.Exited || c.Exit.Code != 5) {
			t.Errorf("after its end it is %+v", c)
		}
	}
}

func (s *suite) execs(t *testing.T) {
	id := s.run(t, "echo up; sleep 600", func(c *runtime.Spec) { c.Env = []string{"MINE=1"} })
	s.awaitOutput(t, id)
	var out bytes.Buffer
	code, err := s.rt.Exec(t.Context(), id, runtime.Exec{
		Command: []string{"/bin/sh", "-c", "echo $MINE $MORE $(id -u); cat; exit 4"},
		User:    "worker",
		Env:     []string{"MORE=2"},
		Stdin:   strings.NewReader("typed\n"),
		Stdout:  &out,
	})
	if err != nil || code != 4 || out.String() != "1 2 1234\ntyped\n" {
		t.Errorf("exec: %d, %q, %v", code, out.String(), err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.rt.Exec(soon, id, runtime.Exec{Command: []string{"sleep", "60"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that takes too long: %v", err)
	}
	code, err = s.rt.Exec(t.Context(), id, runtime.Exec{Command: []string{"no-such-program"}})
	if err == nil && code != 126 && code != 127 {
		t.Errorf("a command that is not there ends with %d", code)
	}
}

// terminals runs a command with a terminal: it is root's, has the user's size, and ctrl-C reaches the command.
func (s *suite) terminals(t *testing.T) {
	id := s.run(t, "echo up; sleep 600", func(c *runtime.Spec) { c.Env = []string{"MINE=1"} })
	s.awaitOutput(t, id)
	in, keys := io.Pipe()
	defer keys.Close()
	sizes := make(chan runtime.Size)
	var shown output
	done := make(chan int, 1)
	go func() {
		code, err := s.rt.Exec(t.Context(), id, runtime.Exec{
			Command: []string{"/bin/sh", "-c", "trap 'exit 9' INT; test -t 0 && echo terminal of $MINE; read x; stty size; echo $x; while :; do sleep 0.1; done"},
			Stdin:   in,
			Stdout:  &shown,
			Tty:     true,
			Resize:  sizes,
		})
		if err != nil {
			t.Errorf("at a terminal: %v", err)
		}
		done <- code
	}()
	shown.await(t, "terminal of 1")
	sizes <- runtime.Size{Cols: 99, Rows: 33}
	time.Sleep(200 * time.Millisecond) // runc passes the size on when it gets round to it
	io.WriteString(keys, "a line\r")   //nolint:errcheck // a test
	shown.await(t, "33 99\r\na line\r\n")
	io.WriteString(keys, "\x03") //nolint:errcheck // a test
	if code := <-done; code != 9 {
		t.Errorf("after ctrl-C the command ends with %d", code)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		code, err := s.rt.Exec(ctx, id, runtime.Exec{
			Command: []string{"/bin/sh", "-c", "while :; do stty size; sleep 0.1; done"},
			Stdin:   in,
			Stdout:  &shown,
			Tty:     true,
			Size:    runtime.Size{Cols: 77, Rows: 22},
		})
		if err == nil {
			t.Errorf("a session that was given up ended with %d", code)
		}
		done <- code
	}()
	shown.await(t, "22 77")
	stop()
	<-done
}

// output is what a command has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// await waits for a text.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(o.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the command wrote %q, not %q", o.String(), text)
		}
	}
}

func (s *suite) stats(t *testing.T) {
	id := s.run(t, "echo up; while :; do :; done", func(c *runtime.Spec) { c.MemoryBytes = 64 << 20 })
	s.awaitOutput(t, id)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := s.rt.Stats(t.Context(), id)
		if err != nil || got.MemoryBytes == 0 || got.MemoryLimit != 64<<20 || got.At.IsZero() {
			t.Fatalf("got %+v, %v", got, err)
		}
		if got.CPU >= 50*time.Millisecond {
			d := got.Docker
			if d.MemoryStats.Usage == 0 || len(d.MemoryStats.Stats) == 0 || d.CPUStats.CPUUsage.UsageInUsermode == 0 || d.PidsStats.Current == 0 {
				t.Errorf("Docker's form lacks something: %+v", d)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it uses no CPU: %+v", got)
		}
	}
}

func (s *suite) processMatchesSpec(t *testing.T) {
	got := s.output(t, "echo $0; pwd; id -u; id -g; id -G; hostname; echo $A $B; grep one /etc/hosts", func(c *runtime.Spec) {
		c.WorkingDir = "/data"
		c.User = "worker"
		c.Hostname = "named"
		c.Env = []string{"A=1", "B=2", "A=3"}
		c.ExtraHosts = []string{"one:192.0.2.1"}
	})
	if want := "/bin/sh\n/data\n1234\n1234\n1234 4321\nnamed\n3 2\n192.0.2.1\tone"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// groups: a user's groups have the first one among them, root's too.
func (s *suite) groups(t *testing.T) {
	for user, want := range map[string]string{
		"":        "uid=0(root) gid=0(root) groups=0(root)",
		"root":    "uid=0(root) gid=0(root) groups=0(root)",
		"worker":  "uid=1234(worker) gid=1234(worker) groups=1234(worker),4321(more)",
		"77:4321": "uid=77 gid=4321(more) groups=4321(more)",
		"77":      "uid=77 gid=0(root) groups=0(root)",
	} {
		if got := s.output(t, "id", func(c *runtime.Spec) { c.ID += "-" + strings.ReplaceAll(user, ":", "-"); c.User = user }); got != want {
			t.Errorf("%q: %s, want %s", user, got, want)
		}
	}
}

func (s *suite) userIsUnprivileged(t *testing.T) {
	const script = "mount -t tmpfs x /tmp 2>/dev/null || echo no; grep Seccomp: /proc/self/status; " +
		"grep CapBnd /proc/self/status; ls /dev/mem 2>/dev/null || echo no"
	if got, want := s.output(t, script, nil), "no\nSeccomp:\t2\nCapBnd:\t00000000a80425fb\nno"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := s.output(t, "grep CapBnd /proc/self/status", func(c *runtime.Spec) {
		suffixed("dropped")(c)
		c.CapDrop = []string{"ALL"}
		c.CapAdd = []string{"NET_ADMIN"}
	})
	if want := "CapBnd:\t0000000000001000"; got != want {
		t.Errorf("all dropped and one added: %q, want %q", got, want)
	}
}

func (s *suite) readonlyRootfs(t *testing.T) {
	if got := s.output(t, "touch /file 2>/dev/null || echo no", func(c *runtime.Spec) { c.ReadonlyRootfs = true }); got != "no" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) tmpfsAndShm(t *testing.T) {
	got := s.output(t, "df -k /scratch /dev/shm | grep -o '[0-9][0-9]* *0 .*'", func(c *runtime.Spec) {
		c.Tmpfs = []runtime.Tmpfs{{Path: "/scratch", SizeBytes: 5 << 20}}
		c.ShmSizeBytes = 7 << 20
	})
	if !strings.Contains(got, "5120 ") || !strings.Contains(got, "7168 ") {
		t.Errorf("got %q, want 5 MiB and 7 MiB", got)
	}
}

func (s *suite) ulimits(t *testing.T) {
	got := s.output(t, "ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc", func(c *runtime.Spec) {
		c.Ulimits = []runtime.Ulimit{{Name: "nofile", Soft: 123, Hard: 456}, {Name: "core", Soft: 0, Hard: -1}}
	})
	if got != "123\n456\n0\nunlimited" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) networks(t *testing.T) {
	const script = "ls /sys/class/net"
	if got := s.output(t, script, nil); got != "lo" {
		t.Errorf("in mode none it sees %q", got)
	}
	if got := s.output(t, script, func(c *runtime.Spec) { suffixed("bridge")(c); c.Network.Mode = "bridge" }); got != "eth0\nlo" {
		t.Errorf("in mode bridge it sees %q", got)
	}
	before := interfaces(t)
	got := strings.Fields(s.output(t, script, func(c *runtime.Spec) { suffixed("host")(c); c.Network.Mode = "host" }))
	after := interfaces(t)
	for _, name := range before { // others come and go with other tests
		if slices.Contains(after, name) && !slices.Contains(got, name) {
			t.Errorf("in mode host it sees %q and not %s", got, name)
		}
	}
}

// interfaces lists the machine's network interfaces.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

func (s *suite) links(t *testing.T) {
	bridge := func(name string) func(*runtime.Spec) {
		return func(c *runtime.Spec) { suffixed(name)(c); c.Network.Mode = "bridge" }
	}
	server := s.run(t, "echo linked > /tmp/index.html; httpd -p 80 -h /tmp; echo up; sleep 600", bridge("server"))
	s.awaitOutput(t, server)
	got := s.output(t, "wget -q -O - http://peer/", func(c *runtime.Spec) {
		bridge("client")(c)
		c.Network.Links = []string{server + ":peer"}
	})
	if got != "linked" {
		t.Errorf("got %q", got)
	}
}

// linkVariables: a linked container's ports and environment are in variables, as Docker's links have them.
func (s *suite) linkVariables(t *testing.T) {
	port := FreePort(t)
	server := s.run(t, "sleep 600", func(c *runtime.Spec) {
		suffixed("server")(c)
		c.Env = []string{"COLOR=red"}
		c.Network = runtime.Network{Mode: "bridge", Ports: []runtime.Port{{ContainerPort: 80, HostPort: port, Protocol: "tcp"}}}
	})
	got := s.output(t, "env | grep ^MY_DB_", func(c *runtime.Spec) {
		suffixed("client")(c)
		c.Network = runtime.Network{Mode: "bridge", Links: []string{server + ":my-db"}}
	})
	var names []string
	for line := range strings.Lines(got) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "MY_DB_PORT_80_TCP_PORT", "MY_DB_PORT_80_TCP_PROTO", "MY_DB_ENV_COLOR":
			name += "=" + value
		}
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"MY_DB_ENV_COLOR=red", "MY_DB_NAME", "MY_DB_PORT", "MY_DB_PORT_80_TCP", "MY_DB_PORT_80_TCP_ADDR", "MY_DB_PORT_80_TCP_PORT=80",
		"MY_DB_PORT_80_TCP_PROTO=tcp",
	}
	if names = slices.DeleteFunc(names, func(n string) bool { return n == "MY_DB_ENV_NVIDIA_VISIBLE_DEVICES" }); !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
}

// terminal: a container with a pseudo-terminal writes to it, and its output is kept.
func (s *suite) terminal(t *testing.T) {
	id := s.run(t, "[ -t 0 ] && [ -t 1 ] && echo a terminal; echo more >&2; exit 3", func(c *runtime.Spec) { c.Tty = true })
	if exit := s.wait(t, id); exit.Code != 3 {
		t.Errorf("got %+v", exit)
	}
	if got := s.text(t, id); got != "a terminal\nmore" {
		t.Errorf("got %q", got)
	}
}

// lowPorts: a user who isn't root may listen on port 80.
func (s *suite) lowPorts(t *testing.T) {
	got := s.output(t, "cat /proc/sys/net/ipv4/ip_unprivileged_port_start", func(c *runtime.Spec) { c.Network.Mode = "bridge" })
	if got != "0" {
		t.Errorf("ports from %s on need no root", got)
	}
}

// imageVolumes: what an image declares as a volume starts with the image's files, can be written under a read-only root, and is seen by
// the containers that take volumes from this one.
func (s *suite) imageVolumes(t *testing.T) {
	dir := t.TempDir()
	if err := MakeLayout(dir, strings.TrimPrefix(s.image, "rootfs:"), v1.Config{Volumes: map[string]struct{}{"/data": {}}}); err != nil {
		t.Fatal(err)
	}
	ref := "oci-layout:" + dir
	if _, err := s.rt.Pull(t.Context(), ref, nil); err != nil {
		t.Fatal(err)
	}
	first := s.run(t, "cat /data/seed; echo written > /data/new; sleep 600", func(c *runtime.Spec) {
		suffixed("first")(c)
		c.Image = ref
		c.ReadonlyRootfs = true
	})
	s.awaitOutput(t, first)
	for _, readonly := range []bool{false, true} {
		want := "from the image\nwritten\nmay write"
		if readonly {
			want = "from the image\nwritten"
		}
		script := "until cat /data/seed /data/new; do sleep 1; done 2>/dev/null; touch /data/mine 2>/dev/null && echo may write"
		got := s.output(t, script, func(c *runtime.Spec) {
			suffixed(fmt.Sprint("second-", readonly))(c)
			c.VolumesFrom = []runtime.VolumesFrom{{ID: first, ReadOnly: readonly}}
		})
		if got != want {
			t.Errorf("read-only %v: got %q", readonly, got)
		}
	}
}

func (s *suite) sharesProcesses(t *testing.T) {
	first := s.run(t, "touch /dev/shm/file; echo up; exec sleep 610", suffixed("first"))
	s.awaitOutput(t, first)
	got := s.output(t, "ps | grep -c 'sleep 61[0]'; ls /dev/shm", func(c *runtime.Spec) {
		suffixed("second")(c)
		c.Pid = "container:" + first
		c.IPC = "container:" + first
	})
	if got != "1\nfile" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) nestedMounts(t *testing.T) {
	outer, inner := t.TempDir(), t.TempDir()
	for dir, name := range map[string]string{outer: "outer", inner: "inner"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := s.output(t, "ls /a /a/b", func(c *runtime.Spec) {
		c.Mounts = []runtime.Mount{{Source: inner, Destination: "/a/b"}, {Source: outer, Destination: "/a"}}
	})
	if got != "/a:\nb\nouter\n\n/a/b:\ninner" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) openStdin(t *testing.T) {
	if got := s.output(t, "cat; echo end", suffixed("closed")); got != "end" {
		t.Errorf("got %q", got)
	}
	id := s.run(t, "echo up; cat; echo end", func(c *runtime.Spec) { c.OpenStdin = true })
	s.awaitOutput(t, id)
	time.Sleep(300 * time.Millisecond)
	if got := s.text(t, id); got != "up" {
		t.Errorf("a container that reads from an open standard input says %q", got)
	}
}

func (s *suite) searchDomains(t *testing.T) {
	got := s.output(t, "cat /etc/resolv.conf", func(c *runtime.Spec) {
		c.Network.Mode = "bridge"
		c.DNSSearch = []string{"corp.example"}
		c.DNS = []string{"192.0.2.53"}
	})
	if !strings.Contains(got, "search corp.example") || !strings.Contains(got, "nameserver 192.0.2.53") {
		t.Errorf("got %q", got)
	}
}

func (s *suite) cannotStart(t *testing.T) {
	spec := s.create(t, "", func(c *runtime.Spec) {
		c.Entrypoint = []string{"/no/such/program"}
		c.Command = nil
	})
	err := s.rt.Start(t.Context(), spec.ID)
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}

// noEntryPoint: an entry point of one empty word takes the image's away.
func (s *suite) noEntryPoint(t *testing.T) {
	got := s.output(t, "", func(c *runtime.Spec) {
		c.Entrypoint = []string{""}
		c.Command = []string{"/bin/sh", "-c", "echo run"}
	})
	if got != "run" {
		t.Errorf("got %q", got)
	}
}

func (s *suite) mountedTwice(t *testing.T) {
	for name, change := range map[string]func(*runtime.Spec, runtime.Mount){
		"another mount": func(c *runtime.Spec, m runtime.Mount) {
			m.Destination += "/."
			c.Mounts = append(c.Mounts, m)
		},
		"memory": func(c *runtime.Spec, m runtime.Mount) { c.Tmpfs = []runtime.Tmpfs{{Path: m.Destination}} },
	} {
		m := runtime.Mount{Source: t.TempDir(), Destination: "/v"}
		spec := &runtime.Spec{
			ID: "MountedTwice-" + Mark, Owner: "me", Image: s.image, Entrypoint: []string{"/bin/true"}, CPUShares: 2, Mounts: []runtime.Mount{m},
			Network: runtime.Network{Mode: "none"},
		}
		change(spec, m)
		if err := s.rt.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "uplicate mount point: /v") {
			t.Errorf("with %s: %v", name, err)
		}
		if err := s.rt.Remove(t.Context(), spec.ID); err != nil {
			t.Error(err)
		}
	}
}

// missingParts checks that what a machine or an image lacks keeps a container from starting, and not from being created, whenever a runtime
// finds out: clients tell the two apart.
func (s *suite) missingParts(t *testing.T) {
	for want, change := range map[string]func(*runtime.Spec){
		"/dev/none": func(c *runtime.Spec) { c.Devices = []runtime.Device{{HostPath: "/dev/none"}} },
		"nobody":    func(c *runtime.Spec) { c.User = "nobody" },
	} {
		spec := &runtime.Spec{
			ID: "MissingParts-" + Mark, Owner: "me", Image: s.image, Entrypoint: []string{"/bin/true"}, CPUShares: 2,
			Network: runtime.Network{Mode: "none"},
		}
		change(spec)
		err := s.rt.Create(t.Context(), spec)
		switch {
		case err == nil:
			err = s.rt.Start(t.Context(), spec.ID)
		case !errors.Is(err, runtime.ErrCannotStart):
			t.Errorf("without %s it cannot be created: %v", want, err)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", want, err)
		}
		if err := s.rt.Remove(t.Context(), spec.ID); err != nil {
			t.Error(err)
		}
	}
}

func (s *suite) notFound(t *testing.T) {
	if _, err := s.rt.Wait(t.Context(), "none"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("wait: %v", err)
	}
	if err := s.rt.Stop(t.Context(), "none", 0); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("stop: %v", err)
	}
	if err := s.rt.Remove(t.Context(), "none"); err != nil {
		t.Errorf("remove: %v", err)
	}
	for ref, isName := range map[string]bool{"127.0.0.1:1/none:1": true, "/x": false, "UPPER": false, "127.0.0.1:1/a/../none:1": false} {
		if _, err := s.rt.Pull(t.Context(), ref, nil); err == nil || errors.Is(err, runtime.ErrImageName) == isName {
			t.Errorf("pull %s: %v", ref, err)
		}
	}
}

package engine

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	code := 3
	rec := &Record{
		Task: newFakeTask("t", box("a", "run")), TakenAt: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC), Network: &Network{IP: "10.0.0.2"},
		Containers: map[string]*Container{"a": {Status: Stopped, ExitCode: &code, Ports: []Port{{Container: 80, Host: 49153, Protocol: "tcp"}}, Token: "x"}},
	}
	for range 2 { // a new one, and one that is replaced
		if err := rec.write(path); err != nil {
			t.Fatal(err)
		}
		got, err := readRecord(path)
		if err != nil || !reflect.DeepEqual(got, rec) {
			t.Errorf("got %+v, %v", got, err)
		}
		rec.Stop = true
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestARecordOfContainersMadeAnew: earlier agents made a new container at each restart, under a name of its own. One that runs is found.
func TestARecordOfContainersMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	rec := &Record{Task: newFakeTask("t", box("a", "run")), Containers: map[string]*Container{"a": {Status: Running, Restarts: 2}}}
	if err := rec.write(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := readRecord(path)
		if err != nil || got.ContainerID("a") != "t-a-2" {
			t.Fatalf("it is sought as %s, %v", got.ContainerID("a"), err)
		}
		got.Containers["a"].Restarts, got.Containers["a"].EndedAt = 3, time.Now()
		if err := got.write(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADamagedRecord: a record that isn't as it was written is put aside. The node's other tasks go on. What runs of its task is removed before
// its GPU goes to another one, and its end is reported, by this agent and by the next one. It's never run anew.
func TestADamagedRecord(t *testing.T) {
	for _, content := range []string{
		"",
		"{",
		`{}`,
		`{"Task":{"arn":"a","containers":[{"name":"a"}]},"Containers":{}}`,
		`{"Task":{"arn":"a"}}` + "\ncrc32c 00000000\n",
	} {
		synctest.Test(t, func(t *testing.T) { testDamagedRecord(t, content) })
	}
}

func testDamagedRecord(t *testing.T, content string) {
	w, dir := newWorld(), t.TempDir()
	ofGPUs := func(o *Options) { o.GPUs = []string{"GPU-0", "GPU-1"} }
	a := w.start(t, dir, ofGPUs)
	damaged := pinned(newFakeTask("damaged", box("a", "hung@65s")), "GPU-0")
	damaged.NetworkMode = "awsvpc"
	whole := pinned(newFakeTask("whole", box("a", "run")), "GPU-1")
	a.take(t, damaged)
	a.take(t, whole)
	path := a.engine.task(damaged.Arn).path()
	a.kill()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	later(time.Minute)

	b := w.start(t, dir, ofGPUs)
	next := pinned(newFakeTask("next", box("a", "run")), "GPU-0")
	b.take(t, next)
	b.take(t, damaged)
	b.engine.Remind(damaged.Arn)
	if synctest.Wait(); w.started("next-a") != 0 || w.last(damaged.Arn).Status == "STOPPED" || w.started("whole-a") != 1 {
		t.Errorf("with %q: while its container doesn't stop, the next one starts %d times, and it is %q", content, w.started("next-a"),
			w.last(damaged.Arn).Status)
	}
	later(time.Minute)
	if r := w.last(damaged.Arn); r.Status != "STOPPED" || r.Cluster != "default" || !strings.Contains(r.Reason, path+".damaged") {
		t.Errorf("with %q: it is reported as %+v", content, r)
	}
	w.mu.Lock()
	if w.starts["next-a"] != 1 || w.starts["damaged-a"] != 1 || w.clash != "" || w.networks["damaged"] {
		t.Errorf("with %q: starts are %v, networks %v, clash %q", content, w.starts, w.networks, w.clash)
	}
	w.mu.Unlock()
	if got, err := os.ReadFile(path + ".damaged"); err != nil || string(got) != content {
		t.Errorf("with %q: put aside is %q, %v", content, got, err)
	}
	b.kill()

	c := w.start(t, dir, ofGPUs)
	defer c.kill()
	w.mu.Lock()
	w.reports = nil
	w.mu.Unlock()
	c.take(t, damaged)
	c.engine.Remind(damaged.Arn)
	if synctest.Wait(); w.last(damaged.Arn).Status != "STOPPED" || w.started("damaged-a") != 1 {
		t.Errorf("with %q: the next agent reports %q, and starts it %d times", content, w.last(damaged.Arn).Status, w.started("damaged-a"))
	}
}

// TestAMissingRecord: a task whose record is missing ends once the control plane says that it ran, and not before its container has. One that
// comes anew starts after that.
func TestAMissingRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		lost, again := newFakeTask("lost", box("a", "hung@65s")), newFakeTask("again", box("a", "hung@65s"))
		for _, task := range []acs.Task{lost, again} {
			a.take(t, task)
		}
		paths := []string{a.engine.task(lost.Arn).path(), a.engine.task(again.Arn).path()}
		a.kill()
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		later(time.Minute)

		b := w.start(t, dir)
		defer b.kill()
		synctest.Wait()
		w.mu.Lock()
		w.reports = nil
		w.mu.Unlock()
		b.take(t, newFakeTask("again", box("a", "run")))
		b.engine.EndLost(lost.Arn)
		b.engine.EndLost(again.Arn) // it's known by now
		if synctest.Wait(); len(w.statuses(lost.Arn)) != 0 || w.started("again-a") != 1 {
			t.Errorf("while its container doesn't stop, it is reported as %q, and the other one starts %d times",
				w.statuses(lost.Arn), w.started("again-a"))
		}
		later(time.Minute)
		if r := w.last(lost.Arn); r.Status != "STOPPED" || r.Cluster != "default" || !strings.HasPrefix(r.Reason, "TaskRecordMissingError: ") {
			t.Errorf("it is reported as %+v", r)
		}
		if r := w.last(again.Arn); r.Status != "RUNNING" || w.started("again-a") != 2 || w.started("lost-a") != 1 {
			t.Errorf("the other one is reported as %+v, and started %d times", r, w.started("again-a"))
		}
	})
}

// started returns how often a container was started.
func (w *world) started(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts[id]
}

// TestARecordWithABitTurned: no change of a record is taken for what was written.
func TestARecordWithABitTurned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	rec := &Record{Task: newFakeTask("t", box("a", "run")), Containers: map[string]*Container{"a": {Status: Running}}}
	if err := rec.write(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			c := slices.Clone(b)
			c[i] ^= 1 << bit
			if err := os.WriteFile(path, c, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := readRecord(path)
			if damage, ok := errors.AsType[*file.Damage](err); !ok || damage.Path != path {
				t.Fatalf("bit %d of byte %d turned: %v", bit, i, err)
			}
		}
	}
}

// TestRecordsOfAnotherNode: containers are found by their owner, so an agent of another node would take them for gone.
func TestRecordsOfAnotherNode(t *testing.T) {
	for owner, opens := range map[string]bool{"": true, "me": true, "other": false} {
		dir := t.TempDir()
		rec := &Record{Task: newFakeTask("t", box("a", "run")), Owner: owner, Containers: map[string]*Container{"a": {Status: Running}}}
		if err := rec.write(filepath.Join(dir, "t.json")); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Dir: dir, Owner: "me", Runtime: &agent{world: newWorld()}})
		if (err == nil) != opens {
			t.Errorf("containers of %q: %v", owner, err)
		}
	}
}

// TestContainersOfAnotherRuntime: an agent takes whatever container engine it finds, and that of the last agent may not be up yet. It must
// not take the containers there for gone.
func TestContainersOfAnotherRuntime(t *testing.T) {
	for _, test := range []struct {
		runtime string
		status  Status
		opens   bool
	}{
		{"docker", Running, false},
		{"docker", Waiting, false},
		{"docker", Stopped, true},
		{"fake", Running, true},
	} {
		dir := t.TempDir()
		rec := &Record{Task: newFakeTask("t", box("a", "run")), Runtime: test.runtime, Containers: map[string]*Container{"a": {Status: test.status}}}
		if err := rec.write(filepath.Join(dir, "t.json")); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Dir: dir, Runtime: &agent{world: newWorld()}})
		if (err == nil) != test.opens {
			t.Errorf("with a container that is %q with %s: %v", test.status, test.runtime, err)
		}
	}
}

func TestATaskThatCannotBeWrittenIsNotTaken(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		works := a.engine.write
		a.engine.write = func(string, *Record) error { return os.ErrPermission }
		task := newFakeTask("t", box("a", "run"))
		if a.engine.Take(task) == nil || len(a.engine.Running()) != 0 {
			t.Error("taken")
		}
		a.engine.write = works
		a.take(t, task)
		a.engine.write = func(string, *Record) error { return os.ErrPermission }
		if a.engine.Take(stopOf(task)) == nil {
			t.Error("its stop was taken")
		}
		synctest.Wait()
		if a.story() != "start a, end a" || a.last(task.Arn).Status != "STOPPED" {
			t.Errorf("%s, reported %s: it may be what fills the disk", a.story(), a.last(task.Arn).Status)
		}
		if a.engine.Take(stopOf(task)) == nil {
			t.Error("its stop was taken when it still wasn't written")
		}
		a.engine.write = works
		a.take(t, stopOf(task))
		if rec, err := readRecord(a.engine.task(task.Arn).path()); err != nil || !rec.Stop {
			t.Errorf("its stop was taken and is not on disk: %v", err)
		}
	})
}

package engine

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	code := 3
	rec := &Record{
		Task: newFakeTask("t", box("a", "run")), TakenAt: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC), Network: &Network{IP: "10.0.0.2"},
		Containers: map[string]*Container{"a": {Status: Stopped, ExitCode: &code, Ports: []Port{{80, 49153, "tcp"}}, Token: "x"}},
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

func TestABadRecordIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"", "{", `{"Task":{"containers":[{"name":"a"}]},"Containers":{}}`} {
		if err := os.WriteFile(filepath.Join(dir, "t.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: dir}); err == nil {
			t.Errorf("%q was taken for a record", content)
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

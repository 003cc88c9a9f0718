package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// TestMain lets the test binary act as the shim, so that the race detector covers it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		os.Exit(program.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestShim runs a command with a lot of output under a shim, and reads the log.
func TestShim(t *testing.T) {
	dir := t.TempDir()
	const lines = 5000
	script := fmt.Sprintf(`for i in $(seq %d); do echo "$NAME $i"; echo "no $i" >&2; done; printf end; exit 3`, lines)
	c := Command{Args: []string{"/bin/sh", "-c", script}, Env: []string{"NAME=first", "PATH=" + os.Getenv("PATH"), "NAME=last"}, Dir: dir}
	if err := Start(t.Context(), dir, Program{os.Args[0], "shim"}, c); err != nil {
		t.Fatal(err)
	}
	exit, err := Wait(t.Context(), dir, func(State) { t.Error("the shim is lost") })
	if err != nil || exit.Code != 3 || exit.Error != "" || exit.FinishedAt.IsZero() {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
	got := map[string][]string{}
	emit := func(l Line) error { got[l.Stream] = append(got[l.Stream], l.Log); return nil }
	if err := readLog(t.Context(), dir, "", false, nil, emit); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for i := range lines {
		want["stdout"] = append(want["stdout"], fmt.Sprint("last ", i+1))
		want["stderr"] = append(want["stderr"], fmt.Sprint("no ", i+1))
	}
	want["stdout"] = append(want["stdout"], "end")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("of %d lines it wrote down %d and %d", lines, len(got["stdout"]), len(got["stderr"]))
	}
}

// TestNoSuchCommand: the agent learns why a command doesn't start.
func TestNoSuchCommand(t *testing.T) {
	dir := t.TempDir()
	err := Start(t.Context(), dir, Program{os.Args[0], "shim"}, Command{Args: []string{"/no/such"}, Dir: "/"})
	if err == nil || err.Error() != "fork/exec /no/such: no such file or directory" {
		t.Error(err)
	}
	if _, started, err := ReadState(dir); started || err != nil {
		t.Errorf("started %v, %v", started, err)
	}
}

// TestLateMaker: what the command of an interrupted attempt makes after it was undone, as it ends a moment after its shim, doesn't fail the next one.
func TestLateMaker(t *testing.T) {
	dir := t.TempDir()
	c := Command{
		Args:    []string{"/bin/sh", "-c", "mkdir made && { sleep 600 & echo $! > pid; }"},
		Undo:    []string{"/bin/sh", "-c", "if [ -e undone ]; then rmdir made; else touch undone; mkdir made; fi"},
		PIDFile: filepath.Join(dir, "pid"), Env: os.Environ(), Dir: dir,
	}
	if err := writeCommand(dir, c); err != nil { // the interrupted attempt's
		t.Fatal(err)
	}
	if err := Start(t.Context(), dir, Program{os.Args[0], "shim"}, c); err != nil {
		t.Fatal(err)
	}
	st, _, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(st.PID, syscall.SIGKILL) //nolint:errcheck // the exit tells
	if exit, err := Wait(t.Context(), dir, func(State) {}); err != nil || exit.Code != 137 {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
}

// TestFind: Find returns pintle-shim if its format matches the agent's, else the agent's own program.
func TestFind(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "pintle")
	beside := filepath.Join(filepath.Dir(agent), "pintle-shim")
	for name, test := range map[string]struct {
		script string
		want   Program
		reason string
	}{
		"a matching one":    {"#!/bin/sh\necho " + program.Format, Program{beside}, ""},
		"another version's": {"#!/bin/sh\necho 0", Program{agent, "shim"}, "format 0, not " + program.Format},
		"one that fails":    {"#!/bin/sh\nexit 1", Program{agent, "shim"}, "exit status 1"},
		"none":              {"", Program{agent, "shim"}, "no such file"},
	} {
		os.Remove(beside) //nolint:errcheck // it may not be there
		if test.script != "" {
			if err := os.WriteFile(beside, []byte(test.script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		got, reason := Find(context.Background(), agent)
		if !reflect.DeepEqual(got, test.want) || (reason == nil) != (test.reason == "") ||
			reason != nil && !strings.Contains(reason.Error(), test.reason) {
			t.Errorf("%s: got %v because of %v, want %v because of %q", name, got, reason, test.want, test.reason)
		}
	}
}

// TestDamagedFiles: a container that runs is never taken for gone because one of its files is damaged, and can be ended.
func TestDamagedFiles(t *testing.T) {
	for _, name := range []string{specFile, program.StateFile} {
		all := Containers{Dir: t.TempDir()}
		dir, err := all.Path("c")
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err == nil {
			err = WriteSpec(dir, &runtime.Spec{ID: "c", Owner: "me"})
		}
		if err == nil {
			err = Start(t.Context(), dir, Program{os.Args[0], "shim"}, Command{Args: []string{"/bin/sleep", "600"}, Dir: dir})
		}
		if err != nil {
			t.Fatal(err)
		}
		st, _, err := ReadState(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := all.List("me")
		if err != nil || len(list) != 1 || list[0].ID != "c" || list[0].Status != runtime.Running || list[0].Unknown != (name == specFile) {
			t.Errorf("without its %s there are %+v, %v", name, list, err)
		}
		wait := func(ctx context.Context, _ string) (runtime.Exit, error) { return Wait(ctx, dir, func(State) {}) }
		if found, ok, err := ReadState(dir); err != nil || !ok || found.PID != st.PID || !found.Running() {
			t.Errorf("without its %s it is %+v, %v, %v, not %+v", name, found, ok, err, st)
		}
		err = all.Stop(t.Context(), "c", time.Minute, func(st State, s syscall.Signal) error { return syscall.Kill(st.PID, s) }, wait)
		exit, waited := wait(t.Context(), "c")
		if err != nil || waited != nil || exit.Code != 143 {
			t.Errorf("without its %s it ended with %+v, %v, %v", name, exit, err, waited)
		}
		if list, err := all.List("me"); err != nil || len(list) != 1 || list[0].Status != runtime.Exited {
			t.Errorf("without its %s there are %+v in the end, %v", name, list, err)
		}
	}
}

// TestNothingTellsTheEnd: the shim was killed, and what it had written down is damaged.
func TestNothingTellsTheEnd(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program.StateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	exit, err := Wait(t.Context(), dir, func(State) {})
	if err != nil || exit.Code != LostCode || !strings.Contains(exit.Error, program.StateFile) {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
}

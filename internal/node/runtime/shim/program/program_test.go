package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestState: agents of all versions read these files, so they must never change.
func TestState(t *testing.T) {
	dir := t.TempDir()
	began := time.Date(2026, 11, 22, 3, 4, 5, 60_000_000, time.UTC)
	for want, st := range map[string]state{
		`{"PID":7,"StartTime":99,"StartedAt":"2026-11-22T03:04:05.06Z","Ended":false,"ExitCode":0,"FinishedAt":"0001-01-01T00:00:00Z"}`: {
			pid: 7, startTime: 99, startedAt: began,
		},
		`{"PID":7,"StartTime":0,"StartedAt":"2026-11-22T03:04:05.06Z","Ended":true,"ExitCode":137,"FinishedAt":"2026-11-22T03:04:06.06Z","Error":"a \"b\""}`: {
			pid: 7, startedAt: began, ended: true, exitCode: 137, finishedAt: began.Add(time.Second), reason: `a "b"`,
		},
	} {
		if err := st.write(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, StateFile)); err != nil || string(got) != want {
			t.Errorf("%v: got %s\nwant %s", err, got, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside the state there are %v, %v", left, err)
	}
}

// TestEndOnAFullDisk: where no new file can be written, the container's end is written over its beginning.
func TestEndOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	st := state{pid: 7, startTime: 99, startedAt: time.Now().UTC(), reason: "longer than what comes later"}
	if err := st.write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, StateFile+".new"), 0o700); err != nil { // stands for the full disk
		t.Fatal(err)
	}
	st.ended, st.exitCode, st.reason = true, 5, ""
	if err := st.writeEnd(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, StateFile)); err != nil || string(got) != string(st.encode()) {
		t.Errorf("%v: %s", err, got)
	}
	if err := st.writeEnd(filepath.Join(dir, "removed")); err == nil {
		t.Error("the end of a container that is gone was written")
	}
}

func TestCommand(t *testing.T) {
	for name, c := range map[string]Command{
		"of the process runtime": {Args: []string{"/bin/sh", "-c", "a=b\nc"}, Env: []string{"A=b=c", "EMPTY="}, Dir: "/d", OpenStdin: true},
		"of runc": {
			Args:    []string{"runc", ""},
			PIDFile: "/p",
			Console: "console.sock",
			Then:    []string{"runc", "start"},
			Undo:    []string{"runc", "delete"},
			Again:   true,
		},
	} {
		b, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(b); err != nil || !reflect.DeepEqual(*got, c) {
			t.Errorf("%s: %v: got %+v, want %+v", name, err, got, c)
		}
	}
	for want, text := range map[string]string{
		"cut off":       "arg=a\x00arg=b",
		"is cut off":    "arg=a\x00arg\x00",
		"is empty":      "dir=/\x00",
		"has a cgroup,": "arg=a\x00cgroup=x\x00",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, c := range []Command{
		{Args: []string{"a\x00"}}, {Args: []string{"a"}, Dir: "\x00"}, {Args: []string{"a"}, Env: []string{"A=\x00"}},
	} {
		if b, err := c.Encode(); err == nil {
			t.Errorf("%+v was written as %q", c, b)
		}
	}
}

// FuzzParse: whatever parse accepts, Encode and parse return unchanged.
func FuzzParse(f *testing.F) {
	f.Add([]byte("arg=/bin/sh\x00env=A=b\x00dir=/\x00pidfile=/p\x00then=a\x00undo=b\x00stdin=open\x00again=\x00"))
	f.Add([]byte("arg=\x00"))
	f.Add([]byte("arg"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parse(b)
		if err != nil {
			return
		}
		written, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parse(written); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%q: %+v became %+v, %v", b, c, again, err)
		}
	})
}

// FuzzAppendString: JSON decodes every string to the original, except for invalid UTF-8.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\n\t\r\x00\x1f\x7f", "ü€😀\u2028", "\xff\xfeé\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		b := appendString(nil, s)
		if err := json.Unmarshal(b, &got); err != nil || got != string([]rune(s)) {
			t.Errorf("%q is written as %s and read as %q, %v", s, b, got, err)
		}
	})
}

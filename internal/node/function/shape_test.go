package function

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

func volumeOf(options map[string]string) acs.Volume {
	return acs.Volume{DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{Driver: acs.FunctionDriver, DriverOpts: options}}
}

// TestBootstraps: a function that brings its runtime runs its own bootstrap, or else a layer's, in a container as in a plain process.
func TestBootstraps(t *testing.T) {
	for _, c := range []struct {
		name         string
		code, layers bool
		want         string
	}{
		{"in its code", true, false, "/var/task/bootstrap"},
		{"in both", true, true, "/var/task/bootstrap"},
		{"in a layer", false, true, "/opt/bootstrap"},
		{"nowhere", false, false, ""},
	} {
		for _, plain := range []bool{false, true} {
			f, err := New(Options{Dir: t.TempDir(), Plain: plain})
			if err != nil {
				t.Fatal(err)
			}
			task := &acs.Task{Arn: "task/1", Volumes: []acs.Volume{
				volumeOf(map[string]string{acs.FunctionRuntime: "provided.al2023", acs.FunctionCode: "aa"}),
				volumeOf(map[string]string{acs.FunctionLayers: "bb"}),
			}}
			inside := map[string]string{}
			for i, has := range []bool{c.code, c.layers} {
				dir := f.Path(task.Arn, task.Volumes[i])
				inside[[]string{"/var/task", "/opt"}[i]+"/bootstrap"] = dir + "/bootstrap"
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if has {
					if err := os.WriteFile(filepath.Join(dir, "bootstrap"), nil, 0o755); err != nil { //nolint:gosec // it's to be run
						t.Fatal(err)
					}
				}
			}
			want := c.want
			if plain {
				want = inside[want]
			}
			spec := &runtime.Spec{Entrypoint: []string{"/lambda-entrypoint.sh"}, Command: []string{"handler"}}
			err = f.Shape(spec, task)
			if (err == nil) != (c.want != "") || err == nil && (!slices.Equal(spec.Entrypoint, []string{want}) || spec.Command != nil) {
				t.Errorf("%s, plain %t: it runs %q %q, %v", c.name, plain, spec.Entrypoint, spec.Command, err)
			}
			f.Release("1")
		}
	}
}

// TestOwnStorage: an environment has a directory of its own that anybody may write to, and that goes with it, also if the agent didn't see it end.
func TestOwnStorage(t *testing.T) {
	dir := t.TempDir()
	f, err := New(Options{Dir: dir, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	v := volumeOf(map[string]string{acs.FunctionStorage: "512"})
	prepare := func(task string) (path string) {
		t.Helper()
		if err := f.Prepare(t.Context(), task, v); err != nil {
			t.Fatal(err)
		}
		path = f.Path(task, v)
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
			t.Errorf("%s: %v, %v", task, info, err)
		}
		return path
	}
	one, two := prepare("task/1"), prepare("task/2")
	if one == two {
		t.Errorf("two environments have %s", one)
	}
	gone := func(path string) bool { _, err := os.Stat(path); return os.IsNotExist(err) }
	f.Release("1")
	if !gone(one) || gone(two) {
		t.Errorf("one is gone: %t, two: %t", gone(one), gone(two))
	}
	f.removeStorage(map[string]string{})
	if !gone(two) {
		t.Error("what an earlier agent has left stays")
	}
}

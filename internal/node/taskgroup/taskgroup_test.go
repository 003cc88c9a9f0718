package taskgroup

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3"
)

// memoryFile is where a group's memory limit is.
func memoryFile(task string) string {
	if cgroups.Mode() == cgroups.Unified {
		return filepath.Join(root, path(task), "memory.max")
	}
	return filepath.Join(root, "memory", path(task), "memory.limit_in_bytes")
}

// TestGroup needs root, and control groups that may be changed.
func TestGroup(t *testing.T) {
	g, err := Open(false)
	if err != nil {
		t.Fatal(err)
	}
	task := "test-" + rand.Text()
	for _, mebibytes := range []int64{64, 32} { // a second agent sets the limits anew
		parent, err := g.Create(t.Context(), task, Limits{CPUShares: 512, CPUQuotaMilli: 500, MemoryBytes: mebibytes << 20})
		if err != nil || parent != "/ecs/"+task {
			t.Fatal(parent, err)
		}
		b, err := os.ReadFile(memoryFile(task))
		if err != nil || strings.TrimSpace(string(b)) != strconv.FormatInt(mebibytes<<20, 10) {
			t.Errorf("the limit is %s, %v", b, err)
		}
	}
	for range 2 {
		if err := g.Delete(t.Context(), task); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(memoryFile(task)); err == nil {
		t.Error("it is still there")
	}
}

// TestLeftovers: groups that an agent left behind in the second version's hierarchy are removed, but none that a task may have, here or of
// another agent.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	over, alive, full, other := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32), "somebody-else"
	for _, d := range []string{"unified/ecs/" + over, "unified/ecs/" + alive, "memory/ecs/" + alive, "unified/ecs/" + full + "/child", "unified/ecs/" + other} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeftovers(dir)
	left, err := filepath.Glob(filepath.Join(dir, "unified", "ecs", "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{alive, full, other}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// TestSlice: with systemd the groups are slices, whose limits hold until they are deleted. The commands were not run on a systemd here.
func TestSlice(t *testing.T) {
	var ran []string
	g := &Groups{systemd: true, run: func(_ context.Context, args ...string) error {
		ran = append(ran, strings.Join(args, " "))
		return nil
	}}
	parent, err := g.Create(t.Context(), "a-b", Limits{CPUShares: 1024, CPUQuotaMilli: 1505, MemoryBytes: 1 << 20})
	if err != nil || parent != "ecstasks-a_b.slice" {
		t.Error(parent, err)
	}
	if err := g.Delete(t.Context(), "a-b"); err != nil {
		t.Error(err)
	}
	want := []string{
		"set-property --runtime ecstasks-a_b.slice CPUAccounting=true MemoryAccounting=true CPUWeight=39 CPUQuota=150.5% MemoryMax=1048576",
		"start ecstasks-a_b.slice", "stop ecstasks-a_b.slice", "revert ecstasks-a_b.slice",
	}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %q", ran)
	}
}

// TestSecondVersion: the groups above a task's hand the controllers on, and its own has the limits. The kernel's files stand in a directory here.
func TestSecondVersion(t *testing.T) {
	root := t.TempDir()
	files := []string{"cgroup.subtree_control", "ecs/cgroup.subtree_control", "ecs/a/cpu.weight", "ecs/a/cpu.max", "ecs/a/memory.max"}
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := createV2(root, path("a"), Limits{CPUShares: 1024, CPUQuotaMilli: 1505, MemoryBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"+cpu +memory", "+cpu +memory", "39", "150500 100000", "1048576"} {
		if b, err := os.ReadFile(filepath.Join(root, files[i])); err != nil || string(b) != want {
			t.Errorf("%s says %q, %v, not %q", files[i], b, err, want)
		}
	}
	if err := createV2(root, path("b"), Limits{CPUShares: 2}); err == nil {
		t.Error("a group without the controller's file has a limit")
	}
	if err := remove(filepath.Join(root, path("a")), filepath.Join(root, path("b"))); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "ecs")); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestWeight: shares of the first version are weights of the second as runc 1.1 converts them, in systemd's slices as in the kernel's files.
func TestWeight(t *testing.T) {
	for shares, want := range map[int64]int64{1: 1, 2: 1, 512: 20, 1024: 39, 262144: 10000, 1 << 20: 10000} {
		if got := weight(shares); got != want {
			t.Errorf("%d shares weigh %d, not %d", shares, got, want)
		}
		if files := (Limits{CPUShares: shares}).v2(); files[0] != (setting{"cpu.weight", want}) {
			t.Errorf("%d shares are %v", shares, files)
		}
		var slice string
		g := &Groups{systemd: true, run: func(_ context.Context, args ...string) error {
			slice += strings.Join(args, " ")
			return nil
		}}
		if _, err := g.Create(t.Context(), "a", Limits{CPUShares: shares}); err != nil || !strings.Contains(slice, "CPUWeight="+strconv.FormatInt(want, 10)) {
			t.Errorf("%d shares are %q, %v", shares, slice, err)
		}
	}
}

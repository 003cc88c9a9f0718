package blockvolume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// These tests need root, loop devices and e2fsprogs.

func open(t *testing.T) *Volumes {
	t.Helper()
	v, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Release("task"); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile("/proc/mounts")
		if err != nil || strings.Contains(string(b), v.dir) {
			t.Errorf("mounts are left (%v) in\n%s", err, b)
		}
		devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		for _, d := range devices {
			if b, _ := os.ReadFile(d); strings.Contains(string(b), v.dir) {
				t.Errorf("%s is left, of %s", d, b)
			}
		}
		if names, namesErr := v.Names(); err != nil || namesErr != nil || len(names) > 0 {
			t.Errorf("left are %v, %v", names, errors.Join(err, namesErr))
		}
	})
	return v
}

// volume is one of ext4, which every machine that runs the tests can make.
var volume = Request{ID: "vol-1", SizeGiB: 1, FileSystem: "ext4"}

func TestSizeIsEnforced(t *testing.T) {
	v := open(t)
	for range 2 { // the second time as after a kill
		if err := v.Attach(volume, "task/data"); err != nil {
			t.Fatal(err)
		}
	}
	var s unix.Statfs_t
	if err := unix.Statfs(v.Path("task/data"), &s); err != nil || s.Type != unix.EXT4_SUPER_MAGIC {
		t.Fatalf("it is %#x, %v", s.Type, err)
	}
	if size := int64(s.Blocks) * s.Bsize; size > gibibyte || size < gibibyte*9/10 {
		t.Errorf("it has %d bytes", size)
	}
	f, err := os.Create(filepath.Join(v.Path("task/data"), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // of a test
	if err := unix.Fallocate(int(f.Fd()), 0, 0, gibibyte/2); err != nil {
		t.Errorf("half of it: %v", err)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 2*gibibyte); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("twice its size: %v", err)
	}
	var image unix.Stat_t
	if err := unix.Stat(filepath.Join(v.attached(), "task/data", imageFile), &image); err != nil || image.Blocks*512 < gibibyte {
		t.Errorf("the disk gives it %d bytes, %v", image.Blocks*512, err)
	}
	if names, err := v.Names(); !slices.Equal(names, []string{"task"}) || err != nil {
		t.Errorf("tasks: %v, %v", names, err)
	}
}

// TestKeptVolume: what was written is there once the task has ended, until the volume is deleted.
func TestKeptVolume(t *testing.T) {
	v := open(t)
	kept := volume
	kept.Keep = true
	if err := v.Attach(kept, "task/data"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.Path("task/data"), "f"), []byte("these words stay"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Release("task"); err != nil {
			t.Fatal(err)
		}
	}
	path, at := filepath.Join(v.kept(), "vol-1"), t.TempDir()
	if err := mount(path, "ext4", at); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(at, "f"))
	if err := errors.Join(err, unix.Unmount(at, 0)); string(b) != "these words stay" || err != nil {
		t.Errorf("it has %q, %v", b, err)
	}
	for range 2 {
		if err := v.Delete("vol-1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestAfterAKill: what an agent has left at any point goes with the task, and what it hasn't finished is made anew.
func TestAfterAKill(t *testing.T) {
	v := open(t)
	dir := filepath.Join(v.attached(), "task/data")
	if err := os.MkdirAll(filepath.Join(dir, mountPoint), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".new-image"), []byte("half a file system"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Release("task"); err != nil {
		t.Error(err)
	}
	if err := v.Attach(volume, "task/data"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.Path("task/data"), "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(v.Path("task/data"), 0); err != nil { // as by a restart of the machine
		t.Fatal(err)
	}
	if err := v.Attach(volume, "task/data"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(v.Path("task/data"), "f")); string(b) != "text" || err != nil {
		t.Errorf("it has %q, %v", b, err)
	}
}

// TestDeletedBeforeTheEnd: a volume that was to be kept isn't, if it's deleted while the node still has it for the task.
func TestDeletedBeforeTheEnd(t *testing.T) {
	v := open(t)
	kept := volume
	kept.Keep = true
	if err := v.Attach(kept, "task/data"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.Delete("vol-1"), v.Release("task")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(v.kept()); len(left) > 0 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestRefused(t *testing.T) {
	v := open(t)
	huge, foreign, outside := volume, volume, volume
	huge.SizeGiB = 1 << 20
	foreign.FileSystem = "ntfs"
	outside.ID = "../x"
	for want, r := range map[string]Request{
		"there is no room for its 1048576 GiB: the node's disk has": huge,
		"this node makes no file systems of the type ntfs":          foreign,
		"no volume can be named":                                    outside,
	} {
		if err := v.Attach(r, "task/data"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	if err := v.Delete("../attached"); err == nil {
		t.Error("it deletes what is no volume")
	}
}

// TestDamagedRecord: a volume whose record is damaged or gone is released, and kept, since nobody knows whether it was to be. Others are deleted
// meanwhile, and a task's other volumes go as they are to.
func TestDamagedRecord(t *testing.T) {
	for _, text := range []string{"", "{", "\x00\x00\x00\x00", "{}", `{"ID":"../../x","Keep":true}`, "gone"} {
		v := open(t)
		other := volume
		other.ID = "vol-2"
		if err := errors.Join(v.Attach(volume, "task/data"), v.Attach(other, "task/more")); err != nil {
			t.Fatal(err)
		}
		record := filepath.Join(v.attached(), "task/data", recordFile)
		err := os.WriteFile(record, []byte(text), 0o600)
		if text == "gone" {
			err = os.Remove(record)
		}
		if err := errors.Join(err, v.Delete("vol-3")); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := v.Release("task"); err == nil || !strings.Contains(err.Error(), "volume.json is damaged") || !strings.Contains(err.Error(), "kept/task.data") {
			t.Errorf("%q: %v", text, err)
		}
		kept, err := os.ReadDir(v.kept())
		if err != nil || len(kept) != 1 || kept[0].Name() != "task.data" {
			t.Errorf("%q: %v, %v", text, kept, err)
		}
		if err := v.Release("task"); err != nil {
			t.Errorf("%q, once more: %v", text, err)
		}
	}
}

package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// These tests need root.

// world is a root with the file system fs-1, in which there's a file in a directory.
func world(t *testing.T) *Mounts {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(dir+"/root/fs-1/a/b", 0o755), os.WriteFile(dir+"/root/fs-1/a/b/f", []byte("text"), 0o644), os.Chmod(dir+"/root/fs-1", 0o777),
		os.WriteFile(dir+"/root/secret", []byte("secret"), 0o644), os.Symlink("/etc", dir+"/root/fs-1/etc"),
		os.Symlink("../..", dir+"/root/fs-1/a/up"), os.Symlink("b", dir+"/root/fs-1/a/in"),
	)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir+"/root", dir+"/mounts")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount("t"); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile("/proc/mounts")
		if err != nil || strings.Contains(string(b), dir) {
			t.Errorf("mounts are left (%v) in\n%s", err, b)
		}
		if left, err := os.ReadDir(dir + "/mounts"); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
	return m
}

func TestMount(t *testing.T) {
	m := world(t)
	for name, dir := range map[string]string{"t/v/whole": "/", "t/v/part": "/a/b", "t/w/linked": "a/in"} {
		for range 2 { // the second time as after a kill
			if err := m.Mount(Request{FileSystem: "fs-1", Directory: dir}, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{"t/v/whole/a/b/f", "t/v/part/f", "t/w/linked/f"} {
		if b, err := os.ReadFile(m.Path(path)); string(b) != "text" || err != nil {
			t.Errorf("%s has %q, %v", path, b, err)
		}
	}
	if names, err := m.Names(); !slices.Equal(names, []string{"t"}) || err != nil {
		t.Errorf("it has %v, %v", names, err)
	}
	if err := m.Unmount("t"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(m.root + "/fs-1/a/b/f"); string(b) != "text" || err != nil {
		t.Errorf("the file system has lost %q, %v", b, err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	m := world(t)
	for want, r := range map[string]Request{
		"this node has no file system fs-2": {FileSystem: "fs-2"},
		`no file system is named ".."`:      {FileSystem: ".."},
		`no file system is named "fs-1/a"`:  {FileSystem: "fs-1/a"},
		`no file system is named ""`:        {},
		"open /none in fs-1":                {FileSystem: "fs-1", Directory: "/none"},
		"open /a/b/f in fs-1":               {FileSystem: "fs-1", Directory: "/a/b/f"},
		"open /etc in fs-1":                 {FileSystem: "fs-1", Directory: "/etc"},
		"open /a/up in fs-1":                {FileSystem: "fs-1", Directory: "/a/up"},
		"open /a/up/secret in fs-1":         {FileSystem: "fs-1", Directory: "/a/up/secret"},
		"create /etc/x in fs-1":             {FileSystem: "fs-1", Directory: "/etc/x", Create: &Creation{}},
	} {
		if err := m.Mount(r, "t/v/c"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	if _, err := Open(m.root+"/none", t.TempDir()); err == nil {
		t.Error("it opens without a root")
	}
	if err := m.Mount(Request{FileSystem: "fs-1", Directory: "/../../secret/.."}, "t/v/c"); err != nil { // which is the root, as in a path
		t.Error(err)
	}
	if _, err := os.Stat(m.Path("t/v/c/a")); err != nil {
		t.Error(err)
	}
}

// TestUsers: a container's user owns what is the access point's, and what it makes is the access point's.
func TestUsers(t *testing.T) {
	m := world(t)
	r := Request{
		FileSystem: "fs-1", Directory: "/home/app", Create: &Creation{1000, 1001, 0o750}, User: &User{UID: 1000, GID: 1001, AsUID: 0, AsGID: 0},
	}
	if err := m.Mount(r, "t/v/c"); err != nil {
		t.Fatal(err)
	}
	owned(t, m.root+"/fs-1/home", 1000, 1001, 0o750)
	owned(t, m.root+"/fs-1/home/app", 1000, 1001, 0o750)
	owned(t, m.Path("t/v/c"), 0, 0, 0o750)
	if err := os.WriteFile(m.Path("t/v/c/f"), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	owned(t, m.root+"/fs-1/home/app/f", 1000, 1001, 0o640)
	r.Create.Mode = 0o700 // what is there stays
	r.User = &User{UID: 1000, GID: 1001, AsUID: 7, AsGID: 8}
	if err := m.Mount(r, "t/v/d"); err != nil {
		t.Fatal(err)
	}
	owned(t, m.Path("t/v/d"), 7, 8, 0o750)
	owned(t, m.Path("t/v/d/f"), 7, 8, 0o640)
}

func TestMode(t *testing.T) {
	for octal, want := range map[string]os.FileMode{
		"750": 0o750, "0755": 0o755, "1777": 0o777 | os.ModeSticky, "2770": 0o770 | os.ModeSetgid, "": 0, "9": 0, "77777": 0,
	} {
		if got := Mode(octal); got != want {
			t.Errorf("%q is %v", octal, got)
		}
	}
}

func owned(t *testing.T, path string, uid, gid uint32, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	if s.Uid != uid || s.Gid != gid || info.Mode().Perm() != mode {
		t.Errorf("%s is %d:%d, %v; want %d:%d, %v", filepath.Base(path), s.Uid, s.Gid, info.Mode().Perm(), uid, gid, mode)
	}
}

// TestSwapped: a task that puts something else in the place of a directory that is being made changes nothing of that.
func TestSwapped(t *testing.T) {
	m := world(t)
	dir := m.root + "/fs-1"
	system, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	err = errors.Join(os.Mkdir(dir+"/victim", 0o700), os.WriteFile(dir+"/victim/f", nil, 0o600), os.Symlink("victim", dir+"/link"),
		os.Mkdir(dir+"/theirs", 0o700), os.Chown(dir+"/theirs", 1001, 1001), os.Mkdir(dir+"/open", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"link", "victim", "theirs", "open", "victim/f"} {
		if err := give(system, at, Creation{1000, 1000, 0o777}); err == nil {
			t.Errorf("%s is given away", at)
		}
	}
	owned(t, dir+"/victim", 0, 0, 0o700)
	owned(t, dir+"/victim/f", 0, 0, 0o600)
	owned(t, dir+"/open", 0, 0, 0o755)
}

// TestAtOnce: tasks that begin at once make their directories in one place.
func TestAtOnce(t *testing.T) {
	m := world(t)
	var making sync.WaitGroup
	for i := range 50 {
		making.Go(func() {
			r := Request{FileSystem: "fs-1", Directory: fmt.Sprint("/home/", i%10), Create: &Creation{1000, 1000, 0o750}}
			d, err := m.open(r)
			if err != nil {
				t.Error(err)
				return
			}
			d.Close()
		})
	}
	making.Wait()
	left, err := os.ReadDir(m.root + "/fs-1/home")
	if err != nil || len(left) != 10 {
		t.Errorf("there are %v, %v", left, err)
	}
	for i := range 10 {
		owned(t, fmt.Sprint(m.root, "/fs-1/home/", i), 1000, 1000, 0o750)
	}
}

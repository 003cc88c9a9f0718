package oci

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/image"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// These tests fail without root or Debian's runc, containernetworking-plugins, iptables and busybox-static.

// TestMain builds the shim.
func TestMain(m *testing.M) { os.Exit(runtimetest.WithShim(m.Run)) }

func open(t *testing.T, dir string) (*Runtime, error) {
	t.Helper()
	n, err := network.OpenBridge(t.Context(), filepath.Join(dir, "networks"), netip.MustParsePrefix("10.213.0.0/16"))
	if err != nil {
		return nil, err
	}
	return New(Options{Dir: dir, Shim: runtimetest.Shim, Networks: n, CDIDirs: []string{filepath.Join(dir, "cdi")}})
}

func newRuntime(t *testing.T) *Runtime {
	t.Helper()
	r, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal("these tests need root, runc, containernetworking-plugins and iptables: ", err)
	}
	return r
}

func TestRuntime(t *testing.T) {
	r := newRuntime(t)
	runtimetest.Run(t, r, func() (runtime.Runtime, error) { return open(t, r.opts.Dir) })
	t.Run("LeavesNothing", func(t *testing.T) { leavesNothing(t, r) })
}

// leavesNothing checks that the suite's containers, which have its mark in their names, left nothing on the machine.
func leavesNothing(t *testing.T, r *Runtime) {
	marked := "*" + runtimetest.Mark + "*"
	for _, pattern := range []string{
		r.containers.Dir + "/*",
		r.runc.root + "/*",
		filepath.Join(r.opts.Dir, "networks", marked),
		filepath.Join("/sys/fs/cgroup/pintle", marked),
		filepath.Join("/sys/fs/cgroup/*/pintle", marked),
	} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("%s still has %v, %v", pattern, left, err)
		}
	}
	links, err := filepath.Glob("/run/pintle/ports/*")
	if err != nil {
		t.Error(err)
	}
	for _, l := range links {
		if owner, _ := os.Readlink(l); strings.Contains(owner, r.opts.Dir) {
			t.Errorf("port %s is still reserved", l)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), r.opts.Dir) {
		t.Errorf("there are still mounts, %v", err)
	}
	for _, table := range []string{"nat", "filter"} {
		rules, err := exec.Command("iptables", "--wait", "-t", table, "-S").Output()
		if err != nil || strings.Contains(string(rules), runtimetest.Mark) {
			t.Errorf("there are still rules in %s, %v", table, err)
		}
	}
}

// TestIrregularPasswdFiles: images may have something else than a regular file as /etc/passwd.
func TestIrregularPasswdFiles(t *testing.T) {
	r := newRuntime(t)
	ref := busybox(t, r)
	for name, make := range map[string]func(path string) error{
		"a pipe":                func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":              func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) },
		"a link that leads out": func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		img, err := r.images.Get(ref)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := r.images.Mount(img, dir); err != nil {
			t.Fatal(err)
		}
		defer image.Unmount(dir) //nolint:errcheck // LeavesNothing notices
		passwd := filepath.Join(dir, "rootfs/etc/passwd")
		if err := os.Remove(passwd); err != nil {
			t.Fatal(err)
		}
		if err := make(passwd); err != nil {
			t.Fatal(err)
		}
		done := time.AfterFunc(time.Minute, func() { panic("userIn does not return") })
		if u, err := userIn(dir, "1234"); err != nil || u.Uid != 1234 {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
		if _, err := userIn(dir, "worker"); err == nil {
			t.Errorf("%s names a user", name)
		}
		done.Stop()
	}
}

// TestPipesOfUsers: a container of an image whose users are a pipe, also behind a link, isn't created: runc would wait for ever. Others may have any users.
func TestPipesOfUsers(t *testing.T) {
	for name, make := range map[string]func(etc string) error{
		"pipe": func(etc string) error { return syscall.Mkfifo(etc+"/group", 0o600) },
		"linked pipe": func(etc string) error {
			return errors.Join(syscall.Mkfifo(etc+"/fifo", 0o600), os.Symlink("/etc/fifo", etc+"/passwd"))
		},
		"none":     func(string) error { return nil },
		"link out": func(etc string) error { return os.Symlink("/../../etc/passwd", etc+"/passwd") },
	} {
		root := t.TempDir()
		if err := errors.Join(os.Mkdir(root+"/etc", 0o755), make(root+"/etc")); err != nil {
			t.Fatal(err)
		}
		if err := checkUsers(root); (err != nil) != strings.HasSuffix(name, "pipe") || err != nil && !strings.Contains(err.Error(), "is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShimKilledDuringStart kills the shim while runc creates the container. Either that start or the next one succeeds, and nothing
// unknown keeps running.
func TestShimKilledDuringStart(t *testing.T) {
	r := newRuntime(t)
	ref := busybox(t, r)
	for i := range 8 {
		spec := &runtime.Spec{
			ID:         unique(fmt.Sprint("early", i)),
			Owner:      "me",
			Image:      ref,
			Entrypoint: []string{"/bin/true"},
			Network:    runtime.Network{Mode: "none"},
		}
		if err := r.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		dir, err := r.containers.Path(spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		killer := time.AfterFunc(time.Duration(10+6*i)*time.Millisecond, func() { killShim(dir); close(killed) })
		err = r.Start(t.Context(), spec.ID)
		if !killer.Stop() {
			<-killed // otherwise it could kill the next shim
		}
		if err != nil {
			if err = r.Start(t.Context(), spec.ID); err != nil {
				t.Errorf("the second start: %v", err)
			}
		}
		if exit, err := r.Wait(t.Context(), spec.ID); err != nil || exit.Code != 0 && exit.Code != shim.LostCode {
			t.Errorf("it ends with %+v, %v", exit, err)
		}
		if err := r.Remove(t.Context(), spec.ID); err != nil {
			t.Error(err)
		}
	}
}

// killShim kills the shim of the container in dir.
func killShim(dir string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		b, _ := os.ReadFile(p)
		args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if len(args) != 2 || args[0] != runtimetest.Shim[0] || args[1] != dir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	}
}

func busybox(t *testing.T, r *Runtime) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := runtimetest.MakeImage(path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pull(t.Context(), "rootfs:"+path, nil); err != nil {
		t.Fatal(err)
	}
	return "rootfs:" + path
}

func start(t *testing.T, r *Runtime, spec *runtime.Spec) {
	t.Helper()
	if err := r.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
}

// checkOutput runs a container to its end, and checks that it succeeds and what it prints.
func checkOutput(t *testing.T, r *Runtime, spec *runtime.Spec, want string) {
	t.Helper()
	start(t, r, spec)
	exit, err := r.Wait(t.Context(), spec.ID)
	var text string
	r.Logs(t.Context(), spec.ID, "", false, func(l runtime.Line) error { //nolint:errcheck // the text would be wrong
		text += l.Text + "\n"
		return nil
	})
	if err != nil || exit.Code != 0 || text != want {
		t.Errorf("it ends with %+v, %v, and prints %q, want %q", exit, err, text, want)
	}
	if err := r.Remove(t.Context(), spec.ID); err != nil {
		t.Error(err)
	}
}

// unique returns an ID that no other run of the tests has used, so that what a failed run left behind doesn't matter.
func unique(name string) string { return name + "-" + runtimetest.Mark }

// TestRealGPUs checks what a container sees of a real GPU, which a CDI file like those of NVIDIA's tools describes. The device behind it is
// one that every machine has.
func TestRealGPUs(t *testing.T) {
	r := newRuntime(t)
	dir := filepath.Join(r.opts.Dir, "cdi")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// NVIDIA's tools write the first line's variable, for their own runtime.
	const file = `{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"]},"devices":[
		{"name":"GPU-1","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia7","hostPath":"/dev/null"}],"env":["SEEN=1"]}},
		{"name":"GPU-2","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia8","hostPath":"/dev/null"}]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "nvidia.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := &runtime.Spec{
		ID:         unique("gpu"),
		Image:      busybox(t, r),
		Entrypoint: []string{"/bin/sh", "-c", "ls /dev | grep nvidia; echo $SEEN $NVIDIA_VISIBLE_DEVICES; echo x > /dev/nvidia7"},
		Network:    runtime.Network{Mode: "none"},
		GPUs:       []string{"GPU-1"},
	}
	checkOutput(t, r, spec, "nvidia7\n1 GPU-1\n")
	spec.ID = unique("watches")
	spec.GPUs = nil
	spec.Privileged = true // so it has the machine's /dev, and needs the rest: the driver's files, for GPUs that are described
	spec.MachineGPUs = []string{"GPU-1", "GPU-2", "GPU-3"}
	spec.Entrypoint = []string{"/bin/sh", "-c", "echo $SEEN $NVIDIA_VISIBLE_DEVICES; ls -d /dev/nvidia[78] 2>/dev/null || echo as the machine"}
	checkOutput(t, r, spec, "1 all\nas the machine\n")
	spec.Privileged = false
	spec.MachineGPUs = nil
	spec.ID = "unknown-" + filepath.Base(r.opts.Dir)
	spec.GPUs = []string{"GPU-3"}
	if err := r.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "nvidia.com/gpu=GPU-3") {
		t.Errorf("a GPU that is nowhere described: %v", err)
	}
	if err := r.CheckGPUs(t.Context(), []string{"GPU-1", "GPU-2"}); err != nil {
		t.Errorf("GPUs that are described: %v", err)
	}
	err := r.CheckGPUs(t.Context(), []string{"GPU-1", "GPU-3"})
	if err == nil || !strings.Contains(err.Error(), "describes nvidia.com/gpu=GPU-3: make one with nvidia-ctk") {
		t.Errorf("one of two GPUs is nowhere described: %v", err)
	}
	for what, edit := range map[string]string{
		"/no/hook": `"hooks":[{"hookName":"createContainer","path":"/no/hook"}]`,
		"/no/file": `"mounts":[{"hostPath":"/no/file","containerPath":"/f","options":["ro","bind"]}]`,
		"/no/node": `"deviceNodes":[{"path":"/no/node"}]`,
	} {
		stale := strings.Replace(file, `"env":["NVIDIA_VISIBLE_DEVICES=void"]`, edit, 1)
		if err := os.WriteFile(filepath.Join(dir, "nvidia.json"), []byte(stale), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.CheckGPUs(t.Context(), []string{"GPU-1"}); err == nil || !strings.Contains(err.Error(), what) ||
			!strings.Contains(err.Error(), "make the") {
			t.Errorf("%s isn't on the machine: %v", what, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "nvidia.json"), []byte(file[:40]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.CheckGPUs(t.Context(), []string{"GPU-1"}); err == nil || !strings.Contains(err.Error(), "nvidia.json") {
		t.Errorf("a file that is cut off: %v", err)
	}
}

// TestPrivileged runs a container like one that monitors all the machine's GPUs, such as dcgm-exporter.
func TestPrivileged(t *testing.T) {
	r := newRuntime(t)
	spec := &runtime.Spec{
		ID:         unique("privileged"),
		Image:      busybox(t, r),
		Network:    runtime.Network{Mode: "host"},
		Privileged: true,
		Entrypoint: []string{
			"/bin/sh", "-c",
			"echo $NVIDIA_VISIBLE_DEVICES; mount -t tmpfs x /tmp && [ -e /dev/kmsg ] && echo sees the devices; " +
				"df -k /dev/shm | grep -c 7168",
		},
		ShmSizeBytes: 7 << 20,
		Env:          []string{"NVIDIA_VISIBLE_DEVICES=all"},
	}
	checkOutput(t, r, spec, "all\nsees the devices\n1\n")
}

// sleeping starts a container that does nothing, and returns its directory, too.
func sleeping(t *testing.T, r *Runtime, name string) (spec *runtime.Spec, dir string) {
	t.Helper()
	spec = &runtime.Spec{
		ID:         unique(name),
		Owner:      "me",
		Image:      busybox(t, r),
		Entrypoint: []string{"/bin/sleep", "600"},
		Network:    runtime.Network{Mode: "none"},
	}
	start(t, r, spec)
	dir, err := r.containers.Find(spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	return spec, dir
}

func TestContainerEndsWithKilledShim(t *testing.T) {
	r := newRuntime(t)
	spec, dir := sleeping(t, r, "lost")
	st, _, err := shim.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	killParent(t, st.PID)
	exit, err := r.Wait(t.Context(), spec.ID)
	if err != nil || exit.Code != shim.LostCode || exit.Error == "" {
		t.Errorf("got %+v, %v", exit, err)
	}
	for deadline := time.Now().Add(2 * time.Minute); st.Running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the container's process is still there")
		}
	}
	if err := r.Remove(t.Context(), spec.ID); err != nil {
		t.Error(err)
	}
}

// TestInterruptedCreate interrupts Create, as killing the agent does, and lets the next agent repeat it.
func TestInterruptedCreate(t *testing.T) {
	r := newRuntime(t)
	spec := &runtime.Spec{
		ID:         unique("again"),
		Image:      busybox(t, r),
		Entrypoint: []string{"/bin/true"},
		Network:    runtime.Network{Mode: "bridge"},
	}
	dir, err := r.containers.Path(spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.make(t.Context(), dir, spec); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "spec.json")); err != nil { // Create writes it last
		t.Fatal(err)
	}
	if err := r.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	for range 3 { // several agents start it at once
		others.Go(func() { r.Start(t.Context(), spec.ID) }) //nolint:errcheck // Wait returns how it ended
	}
	err = r.Start(t.Context(), spec.ID)
	others.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for status := runtime.Created; status == runtime.Created; time.Sleep(time.Millisecond) {
		if status, _, err = shim.Status(dir); err != nil {
			t.Fatal(err)
		}
	}
	if exit, err := r.Wait(t.Context(), spec.ID); err != nil || exit.Code != 0 || exit.Error != "" {
		t.Errorf("got %+v, %v", exit, err)
	}
	if err := r.Remove(t.Context(), spec.ID); err != nil {
		t.Error(err)
	}
}

// TestStopOfADamagedContainer: a container is stopped though the file is damaged that names its process.
func TestStopOfADamagedContainer(t *testing.T) {
	r := newRuntime(t)
	spec, dir := sleeping(t, r, "damaged")
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(t.Context(), spec.ID, 0); err != nil {
		t.Fatal(err)
	}
	if exit, err := r.Wait(t.Context(), spec.ID); err != nil || exit.Code != 137 || exit.Error != "" {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
}

func TestRefusals(t *testing.T) {
	r := newRuntime(t)
	ref := busybox(t, r)
	for name, change := range map[string]func(*runtime.Spec){
		"a path as id":     func(c *runtime.Spec) { c.ID = "../x" },
		"a path as volume": func(c *runtime.Spec) { c.Mounts = []runtime.Mount{{Volume: true, Source: "../x", Destination: "/v"}} },
		"a driver of volumes": func(c *runtime.Spec) {
			c.Mounts = []runtime.Mount{{Volume: true, Source: "v", Destination: "/v", Driver: "nfs"}}
		},
		"a relative bind":         func(c *runtime.Spec) { c.Mounts = []runtime.Mount{{Source: "etc", Destination: "/v"}} },
		"an unknown user":         func(c *runtime.Spec) { c.User = "nobody-knows" },
		"an unknown capability":   func(c *runtime.Spec) { c.CapAdd = []string{"EVERYTHING"} },
		"an unknown network":      func(c *runtime.Spec) { c.Network.Mode = "token-ring" },
		"an unknown image":        func(c *runtime.Spec) { c.Image = "none" },
		"a device that is none":   func(c *runtime.Spec) { c.Devices = []runtime.Device{{HostPath: "/etc/passwd"}} },
		"nothing to run":          func(c *runtime.Spec) { c.Entrypoint = nil },
		"an unknown security opt": func(c *runtime.Spec) { c.SecurityOpt = []string{"label:x"} },
	} {
		spec := &runtime.Spec{ID: "refused", Image: ref, Entrypoint: []string{"/bin/true"}, Network: runtime.Network{Mode: "none"}}
		change(spec)
		if err := r.Create(t.Context(), spec); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if entries, _ := os.ReadDir(r.containers.Dir); len(entries) != 0 {
		t.Errorf("what was refused leaves %v", entries)
	}
}

// killParent kills the shim of a container's first process.
func killParent(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "PPid:"); ok {
			parent, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || parent < 2 {
				t.Fatalf("its parent is %q", text)
			}
			if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Package oci runs containers with runc, without a daemon. Images come from the image store, networks from CNI, and a shim beside each
// container outlives the agent. It needs root.
package oci

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/image"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// Options configure the runtime.
type Options struct {
	Dir      string            // for images, containers and volumes
	Shim     shim.Program      // runs beside each container
	Networks *network.Networks // for containers in bridge mode
	CDIDirs  []string          // where CDI files describe GPUs; nil means CDI's defaults, /etc/cdi and /var/run/cdi
}

// Runtime is a runtime.Runtime on runc. Besides the files of shim and image, a container's directory has:
//
//	config.json   runc's configuration
//	hosts …       files that are mounted into the container
//	image.json    the image that it was made from
//	exit.json     written once the container has ended and its resources are released
type Runtime struct {
	opts       Options
	images     *image.Store
	containers shim.Containers
	runc       runc
	settling   keyedMutex // by container, and by volume

	pruning sync.Mutex
	pruned  time.Time // when pruneNowAndThen last looked
}

var (
	_ runtime.Runtime    = (*Runtime)(nil)
	_ runtime.GPUChecker = (*Runtime)(nil)
)

// New returns the runtime, or an error that says what this machine lacks.
func New(o Options) (*Runtime, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the oci runtime needs root")
	}
	r, err := Beside(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = r.opts.Dir
	r.opts = o
	for _, d := range []string{r.containers.Dir, r.volumes()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := file.Clean(r.volumes()); err != nil { // a killed agent may have left unfinished volumes
		return nil, err
	}
	r.images, err = image.Open(filepath.Join(o.Dir, "images"))
	return r, err
}

// Beside returns the runtime in dir for a process beside the agent: it may call Exec and IsRunning.
func Beside(dir string) (*Runtime, error) {
	path, err := exec.LookPath("runc")
	if err != nil {
		return nil, errors.New("runc is not installed (apt-get install runc)")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &Runtime{
		opts:       Options{Dir: dir},
		containers: shim.Containers{Dir: filepath.Join(dir, "containers")},
		runc:       runc{path, filepath.Join(dir, "runc")},
	}, nil
}

// Name implements runtime.Runtime.
func (*Runtime) Name() string { return "oci" }

// IsRunning reports whether a container runs. One that isn't there doesn't.
func (r *Runtime) IsRunning(_ context.Context, id string) (bool, error) {
	return r.containers.IsRunning(id)
}

func (r *Runtime) volumes() string { return filepath.Join(r.opts.Dir, "volumes") }

// Pull implements runtime.Runtime.
func (r *Runtime) Pull(ctx context.Context, ref string, auth *runtime.RegistryAuth) (string, error) {
	img, err := r.images.Pull(ctx, ref, auth)
	if err != nil {
		return "", err
	}
	return img.Digest, nil
}

// Stored implements runtime.Runtime.
func (r *Runtime) Stored(_ context.Context, ref string) (string, error) {
	img, err := r.images.Stored(ref)
	if err != nil {
		return "", err
	}
	return img.Digest, nil
}

// Create implements runtime.Runtime. When it returns, the container's file system is mounted and its network exists; only its processes
// are missing.
func (r *Runtime) Create(ctx context.Context, spec *runtime.Spec) error {
	dir, err := r.containers.Path(spec.ID)
	if err != nil {
		return err
	}
	if r.isCreated(dir, spec) {
		return nil
	}
	if err := r.dispose(ctx, dir, spec.ID); err != nil { // removes what an interrupted Create left
		return err
	}
	if err := r.make(ctx, dir, spec); err != nil {
		return errors.Join(err, r.dispose(context.WithoutCancel(ctx), dir, spec.ID))
	}
	return nil
}

// isCreated reports whether a container was created and still has its mount and network. After a reboot, a container that never ran has
// only its files.
func (r *Runtime) isCreated(dir string, spec *runtime.Spec) bool {
	if _, err := r.containers.Find(spec.ID); err != nil {
		return false
	}
	if status, _, err := shim.Status(dir); err != nil || status != runtime.Created {
		return true
	}
	mounted, err := image.Mounted(dir)
	if err != nil || !mounted {
		return false
	}
	if spec.Network.Mode != "bridge" {
		return true
	}
	_, err = r.opts.Networks.Find(spec.ID)
	return err == nil
}

func (r *Runtime) make(ctx context.Context, dir string, spec *runtime.Spec) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	img, err := r.images.Get(spec.Image)
	if err != nil {
		return err
	}
	if err := r.assemble(ctx, dir, spec, img); err != nil {
		return err
	}
	if err := file.WriteJSON(filepath.Join(dir, imageFile), img, false); err != nil {
		return err
	}
	if spec.StopSignal == "" {
		withSignal := *spec
		withSignal.StopSignal = img.Config.StopSignal
		spec = &withSignal
	}
	return shim.WriteSpec(dir, spec)
}

// imageFile, in a container's directory, is the image that it was made from. Its name may stand for another by the time of a restart.
const imageFile = "image.json"

// assemble mounts a container's file system over what it has written so far, connects it, and writes what runc needs to know.
func (r *Runtime) assemble(ctx context.Context, dir string, spec *runtime.Spec, img *image.Image) (err error) {
	if err := r.images.Mount(img, dir); err != nil {
		return err
	}
	b := &bundle{runtime: r, dir: dir, spec: spec, image: img.Config, ip: spec.Network.IP}
	if spec.Network.Mode == "bridge" {
		if b.netns, b.ip, err = r.connect(ctx, spec); err != nil {
			return err
		}
	}
	return b.write(ctx)
}

// Revive implements runtime.Runtime. The container's own files stay where they are; its mounts, network and configuration are made anew.
func (r *Runtime) Revive(ctx context.Context, id string, ended time.Time) error {
	dir, spec, err := r.containers.Open(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err != nil || status == runtime.Created && r.isCreated(dir, spec) {
		return err // an earlier agent has revived it, and may be starting it
	}
	defer r.settling.lock(id)()
	return shim.Revive(dir, ended, func() error { return r.reassemble(ctx, dir, spec) })
}

// reassemble assembles an ended container once more. What an interrupted attempt left goes first.
func (r *Runtime) reassemble(ctx context.Context, dir string, spec *runtime.Spec) error {
	img := new(image.Image)
	if err := file.ReadJSON(filepath.Join(dir, imageFile), img); err != nil {
		return fmt.Errorf("the image that the container was made from: %w", err)
	}
	if err := r.release(ctx, dir, spec.ID); err != nil {
		return err
	}
	stale, err := file.Glob(dir, "pid-*")
	if err != nil {
		return err
	}
	for _, path := range append(stale, filepath.Join(dir, "exit.json"), filepath.Join(dir, shmDir)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return r.assemble(ctx, dir, spec, img)
}

// connect gives a container in bridge mode its network and its ports.
func (r *Runtime) connect(ctx context.Context, spec *runtime.Spec) (netns, ip string, err error) {
	if r.opts.Networks == nil {
		return "", "", errors.New("this node has no bridge network")
	}
	var ports []network.Port
	for _, p := range spec.Network.Ports {
		ports = append(ports, network.Port{HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: p.Protocol})
	}
	a, err := r.opts.Networks.Attach(ctx, spec.ID, ports)
	return a.NetNS, a.IP, err
}

// NetNS implements runtime.Runtime.
func (r *Runtime) NetNS(_ context.Context, id string) (string, error) {
	_, spec, err := r.containers.Open(id)
	if err != nil || spec.Network.Mode != "bridge" {
		return "", err
	}
	a, err := r.opts.Networks.Find(id)
	return a.NetNS, err
}

// Address returns the address of a container in mode bridge.
func (r *Runtime) Address(_ context.Context, id string) (string, error) {
	if r.opts.Networks == nil {
		return "", errors.New("this node has no bridge network")
	}
	a, err := r.opts.Networks.Find(id)
	return a.IP, err
}

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, id string) error {
	dir, spec, err := r.containers.Open(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err != nil || status != runtime.Created {
		return err
	}
	// Each attempt uses a new name, because runc refuses a PID file that an earlier attempt began to write.
	pid, log := filepath.Join(dir, "pid-"+rand.Text()), filepath.Join(dir, "runc.log")
	create := r.runc.command("--log", log, "--log-format", "json", "create", "--bundle", dir, "--pid-file", pid)
	console := ""
	if spec.Tty {
		console = "console.sock"
		create = append(create, "--console-socket", console)
	}
	err = shim.Start(ctx, dir, r.opts.Shim, shim.Command{
		Undo:      r.runc.command("delete", "--force", id),
		Args:      append(create, id),
		Console:   console,
		Then:      r.runc.command("--log", log, "--log-format", "json", "start", id),
		PIDFile:   pid,
		Dir:       dir,
		Env:       os.Environ(),
		OpenStdin: spec.OpenStdin,
	})
	if err != nil {
		return explain(log, err)
	}
	return nil
}

// Wait implements runtime.Runtime. When it returns, the container holds nothing but its files.
func (r *Runtime) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	dir, err := r.containers.Find(id)
	if err != nil {
		return runtime.Exit{}, err
	}
	exit, err := shim.Wait(ctx, dir, func(shim.State) {}) // settle kills what is left
	if err != nil {
		return runtime.Exit{}, err
	}
	ended, err := r.settle(ctx, dir, id)
	exit.OOMKilled = ended.OOMKilled
	return exit, err
}

// exitFile is the content of exit.json: what can't be found out once the container's cgroup is removed.
type exitFile struct{ OOMKilled bool }

// settle releases what an ended container holds of the machine: processes, cgroup, mounts, network and ports.
func (r *Runtime) settle(ctx context.Context, dir, id string) (exitFile, error) {
	defer r.settling.lock(id)()
	path := filepath.Join(dir, "exit.json")
	var e exitFile
	if file.ReadJSON(path, &e) == nil {
		return e, nil
	}
	spec, err := shim.ReadSpec(dir)
	if _, damaged := errors.AsType[*file.Damage](err); err != nil && !damaged {
		return e, err
	} else if !damaged {
		e.OOMKilled = mounted(cgroupOf(spec)).oomKilled()
	}
	if err := r.release(ctx, dir, id); err != nil {
		return e, err
	}
	if err := file.WriteJSON(path, e, true); err != nil { // a full disk, say; the container's end is known all the same
		slog.Warn("cannot write that a container's resources are released", "container", id, "error", err)
	}
	return e, nil
}

func (r *Runtime) release(ctx context.Context, dir, id string) error {
	if err := r.runc.delete(ctx, id); err != nil {
		return err
	}
	if err := errors.Join(image.Unmount(dir), kernel.Unmount(filepath.Join(dir, shmDir)), r.releaseMemory(id)); err != nil {
		return err
	}
	if r.opts.Networks == nil {
		return nil
	}
	return r.opts.Networks.Detach(ctx, id)
}

// dispose removes a container and everything it has.
func (r *Runtime) dispose(ctx context.Context, dir, id string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := r.release(ctx, dir, id); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Stop implements runtime.Runtime.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	signal := func(st shim.State, s syscall.Signal) error { return syscall.Kill(st.PID, s) }
	return r.containers.Stop(ctx, id, grace, signal, r.Wait)
}

// Remove implements runtime.Runtime.
func (r *Runtime) Remove(ctx context.Context, id string) error {
	dir, err := r.containers.Path(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err == nil && status == runtime.Running {
		return fmt.Errorf("container %s is running", id)
	}
	unlock := r.settling.lock(id)
	err = r.dispose(ctx, dir, id)
	unlock()
	if err != nil {
		return err
	}
	if err := r.pruneNowAndThen(); err != nil {
		slog.Warn("cannot remove unused layers of images", "error", err)
	}
	return nil
}

// ImagesSize says how many bytes all images take.
func (r *Runtime) ImagesSize(context.Context) (int64, error) {
	mounted, _, err := r.mounted()
	if err != nil {
		return 0, err
	}
	return r.images.Size(mounted)
}

// Images are the stored images, with when each was used last.
func (r *Runtime) Images() (map[string]time.Time, error) { return r.images.Images() }

// RemoveImage removes an image. What containers have of it stays with them.
func (r *Runtime) RemoveImage(_ context.Context, ref string) error {
	if err := r.images.Remove(ref); err != nil {
		return err
	}
	return r.prune()
}

// pruneEvery limits how often the end of a container has prune look.
const pruneEvery = time.Minute

// pruneNowAndThen removes layers that nothing has any more, unless that was looked at just now.
func (r *Runtime) pruneNowAndThen() error {
	r.pruning.Lock()
	defer r.pruning.Unlock()
	if time.Since(r.pruned) < pruneEvery {
		return nil
	}
	r.pruned = time.Now()
	return r.prune()
}

// prune removes layers that nothing has any more.
func (r *Runtime) prune() error {
	mounted, whole, err := r.mounted()
	if err != nil || !whole {
		return err
	}
	return r.images.Prune(mounted)
}

// mounted returns the layers of all containers. It's not the whole if there is a container that doesn't say, because an earlier version made it
// or because it is being made.
func (r *Runtime) mounted() (layers map[string]bool, whole bool, err error) {
	entries, err := os.ReadDir(r.containers.Dir)
	if err != nil {
		return nil, false, err
	}
	layers, whole = map[string]bool{}, true
	for _, e := range entries {
		names, err := image.LayersOf(filepath.Join(r.containers.Dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			whole = false
			continue
		}
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			layers[name] = true
		}
	}
	return layers, whole, nil
}

// RemoveVolume implements runtime.Runtime.
func (r *Runtime) RemoveVolume(_ context.Context, name string) error {
	if err := checkVolumeName(name); err != nil {
		return err
	}
	defer r.lockVolume(name)()
	dir := filepath.Join(r.volumes(), name)
	if err := errors.Join(os.RemoveAll(r.usersOf(name)), kernel.Unmount(dir)); err != nil { // an agent that was killed may have left them
		return err
	}
	return os.RemoveAll(dir)
}

// List implements runtime.Runtime.
func (r *Runtime) List(_ context.Context, owner string) ([]runtime.Container, error) {
	return r.containers.List(owner)
}

// Logs implements runtime.Runtime.
func (r *Runtime) Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error {
	return r.containers.Logs(ctx, id, cursor, follow, emit)
}

// keyedMutex is a mutex for each name.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*countedMutex
}

// countedMutex counts who holds it or waits for it.
type countedMutex struct {
	sync.Mutex
	users int
}

func (k *keyedMutex) lock(name string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*countedMutex{}
	}
	h := k.locks[name]
	if h == nil {
		h = new(countedMutex)
		k.locks[name] = h
	}
	h.users++
	k.mu.Unlock()
	h.Lock()
	return func() {
		h.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(k.locks, name)
		}
	}
}

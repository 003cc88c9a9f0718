// Package blockvolume makes volumes of a fixed size for tasks: those that EBS would have. Each is a file, whose room on the disk is taken when
// it's made, with a file system that is mounted through a loop device. They outlive the agent, which calls it, but not the task, unless they're
// to be kept. It needs root.
package blockvolume

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
)

// Volumes are those of a node. Its directory has attached/TASK/VOLUME for each that a task has, and kept/ID for each that was kept.
type Volumes struct {
	dir   string
	types []string

	// mu is held while one is made, so that two don't count on the same room, and while one goes, which Delete may want to go for good.
	mu sync.Mutex
}

// Request is a volume that a task wants.
type Request struct {
	ID         string // EC2's
	SizeGiB    int64
	ScratchMiB int64  // instead of SizeGiB, for one whose room is taken as it's written to, and that nobody wants after a power cut
	FileSystem string // one of FileSystems, or "" for the first of them
	Keep       bool   // when the task has ended
}

// programs make file systems, the one that AWS makes by default first. None of them may give the room of the file back to the disk.
var programs = []struct {
	fileSystem string
	command    []string
}{
	{"xfs", []string{"mkfs.xfs", "-q", "-K"}},
	{"ext4", []string{"mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard"}},
	{"ext3", []string{"mkfs.ext3", "-q", "-F", "-m", "0", "-E", "nodiscard"}},
}

// spare is how much of the disk is left to others.
const spare = 1 << 30

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// The files of a volume that a task has.
const (
	recordFile = "volume.json"
	imageFile  = "image"
	mountPoint = "mount"
)

// Open opens a node's volumes. It returns an error if this machine can't have any.
func Open(dir string) (*Volumes, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the agent is not root")
	}
	control, err := os.Open(loopControl)
	if err != nil {
		return nil, fmt.Errorf("the machine has no loop devices: %w", err)
	}
	defer control.Close() //nolint:errcheck // nothing was done with it
	v := &Volumes{dir: dir, types: fileSystems()}
	if len(v.types) == 0 {
		return nil, errors.New("there is neither mkfs.ext4 nor mkfs.xfs: install e2fsprogs or xfsprogs")
	}
	return v, errors.Join(os.MkdirAll(v.attached(), 0o700), os.MkdirAll(v.kept(), 0o700))
}

// fileSystems lists those that there are programs for and that the kernel has, or could have: it loads modules when they're mounted.
func fileSystems() (types []string) {
	for _, p := range programs {
		if _, err := exec.LookPath(p.command[0]); err == nil {
			types = append(types, p.fileSystem)
		}
	}
	return types
}

// FileSystems lists the types of file systems that volumes can have here.
func (v *Volumes) FileSystems() []string { return v.types }

func (v *Volumes) attached() string { return filepath.Join(v.dir, "attached") }
func (v *Volumes) kept() string     { return filepath.Join(v.dir, "kept") }

// Path returns where a task's volume is mounted. The name is of the form task/volume.
func (v *Volumes) Path(name string) string { return filepath.Join(v.attached(), name, mountPoint) }

// Names lists the tasks that have volumes.
func (v *Volumes) Names() (tasks []string, err error) {
	entries, err := os.ReadDir(v.attached())
	for _, e := range entries {
		tasks = append(tasks, e.Name())
	}
	return tasks, err
}

// Attach makes a volume under a name, and mounts it. One that's there stays as it is.
func (v *Volumes) Attach(r Request, name string) error {
	if !filepath.IsLocal(name) || !filepath.IsLocal(r.ID) || filepath.Base(r.ID) != r.ID {
		return fmt.Errorf("no volume can be named %q", name)
	}
	dir := filepath.Join(v.attached(), name)
	if err := os.MkdirAll(v.Path(name), 0o700); err != nil {
		return err
	}
	if is, err := kernel.IsMountPoint(v.Path(name)); is || err != nil {
		return err
	}
	if r.FileSystem == "" {
		r.FileSystem = v.types[0]
	}
	if err := v.create(r, dir); err != nil {
		return err
	}
	kept, err := readRecord(dir)
	if err != nil {
		return err
	}
	return mount(filepath.Join(dir, imageFile), kept.FileSystem, v.Path(name))
}

// create makes the file of a volume, with its file system, unless it's there.
func (v *Volumes) create(r Request, dir string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	image := filepath.Join(dir, imageFile)
	if _, err := os.Stat(image); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	i := slices.Index(v.types, r.FileSystem)
	if i < 0 {
		return fmt.Errorf("this node makes no file systems of the type %s, but of %s", r.FileSystem, strings.Join(v.types, ", "))
	}
	if err := file.WriteJSON(filepath.Join(dir, recordFile), r, true); err != nil {
		return err
	}
	unfinished := filepath.Join(dir, file.Unfinished+imageFile)
	if err := v.fill(unfinished, r); err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return errors.Join(os.Rename(unfinished, image), file.SyncDir(dir))
}

// fill makes a file of a volume's size, and a file system in it.
func (v *Volumes) fill(path string, r Request) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // what matters is synced
	if r.ScratchMiB > 0 {
		err = f.Truncate(r.ScratchMiB * mebibyte)
	} else {
		err = allocate(f, v.dir, r.SizeGiB)
	}
	if err != nil {
		return err
	}
	command := commandFor(r.FileSystem)
	if out, err := exec.Command(command[0], append(command[1:], path)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, strings.TrimSpace(string(out)))
	}
	if r.ScratchMiB > 0 {
		return nil
	}
	return f.Sync()
}

// allocate takes a volume's room of the disk, so that nobody else can have it.
func allocate(f *os.File, dir string, sizeGiB int64) error {
	size := sizeGiB * gibibyte
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return err
	}
	free := int64(s.Bavail) * s.Bsize
	full := fmt.Errorf("there is no room for its %d GiB: the node's disk has %.1f GiB free, of which %d stay free", sizeGiB,
		float64(free)/gibibyte, spare/gibibyte)
	if free-spare < size {
		return full
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return full
	case err != nil:
		return fmt.Errorf("the node's disk can't reserve room for it: %w", err)
	}
	return nil
}

func commandFor(fileSystem string) []string {
	for _, p := range programs {
		if p.fileSystem == fileSystem {
			return slices.Clone(p.command)
		}
	}
	return nil
}

// Release takes a task's volumes from it. What isn't to be kept is deleted. What can't be told, since its record is damaged, is kept under another
// name than its own, as the error says.
func (v *Volumes) Release(task string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	dir := filepath.Join(v.attached(), task)
	volumes, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, volume := range volumes {
		err = errors.Join(err, v.release(filepath.Join(dir, volume.Name())))
	}
	if removeErr := os.Remove(dir); err == nil {
		return removeErr
	}
	return err
}

// release unmounts a volume before anything else, and removes its mount point as a directory: whatever goes wrong, nothing inside it is removed.
func (v *Volumes) release(dir string) error {
	at := filepath.Join(dir, mountPoint)
	if err := kernel.Unmount(at); err != nil {
		return err
	}
	if err := syscall.Rmdir(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: at, Err: err}
	}
	damage, err := v.keep(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{imageFile, file.Unfinished + imageFile, recordFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(damage, os.RemoveAll(dir))
}

// keep moves the file of a volume that is to be kept to the others. Damage is what is to be said of one that can't be told.
func (v *Volumes) keep(dir string) (damage, err error) {
	image := filepath.Join(dir, imageFile)
	if _, err := os.Stat(image); errors.Is(err, os.ErrNotExist) {
		return nil, nil // it was moved, or never made
	}
	r, damage := readRecord(dir)
	if damage == nil && !r.Keep {
		return nil, nil
	}
	to := r.ID
	if damage != nil {
		to = filepath.Base(filepath.Dir(dir)) + "." + filepath.Base(dir)
		damage = fmt.Errorf("%w: nobody knows whether the volume was to be kept, so it is: look at %s, and delete it if it's of no use", damage,
			filepath.Join(v.kept(), to))
	}
	return damage, errors.Join(os.Rename(image, filepath.Join(v.kept(), to)), file.SyncDir(v.kept()))
}

// readRecord reads the record of a volume whose image is there.
func readRecord(dir string) (r Request, err error) {
	path := filepath.Join(dir, recordFile)
	err = file.ReadJSON(path, &r)
	if err == nil && (!filepath.IsLocal(r.ID) || filepath.Base(r.ID) != r.ID) {
		err = errors.New("it names no volume")
	}
	if err != nil {
		return Request{}, fmt.Errorf("the record %s is damaged: %w", path, err)
	}
	return r, nil
}

// dontKeep has a volume that a task has deleted with the task. Damaged records are nobody's: what they are of is kept. The caller holds mu.
func (v *Volumes) dontKeep(id string) error {
	volumes, err := file.Glob(v.attached(), "*/*")
	for _, dir := range volumes {
		r, damage := readRecord(dir)
		if damage != nil || r.ID != id || !r.Keep {
			continue
		}
		r.Keep = false
		err = errors.Join(err, file.WriteJSON(filepath.Join(dir, recordFile), r, true))
	}
	return err
}

// Delete deletes a volume that was kept. One that a task still has goes with the task, and one that isn't there is no error.
func (v *Volumes) Delete(id string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return fmt.Errorf("no volume is named %q", id)
	}
	if err := v.dontKeep(id); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(v.kept(), id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return file.SyncDir(v.kept())
}

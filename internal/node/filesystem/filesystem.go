// Package filesystem mounts directories of shared file systems for tasks: those that EFS would have. Each file system is a directory of one
// root, which is the same on all nodes, such as an NFS export. Containers write there, so no link in it may lead out of the file system.
// The node's agent calls it.
package filesystem

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
)

// Mounts are the directories that this machine's tasks have of file systems. They outlive the agent.
type Mounts struct {
	root string // has a directory for each file system
	dir  string // has a directory for each mount: task/volume/container
}

// Request is what a container wants to see.
type Request struct {
	FileSystem string
	Directory  string // in the file system; it must be there unless it's to be created
	Create     *Creation
	User       *User // nil leaves users as they are
}

// Creation says whose a directory is that is made, and with which mode.
type Creation struct {
	UID, GID int
	Mode     fs.FileMode
}

// Mode reads permissions in octal. It takes what it can't read for those that let nobody in.
func Mode(octal string) fs.FileMode {
	n, err := strconv.ParseUint(octal, 8, 12)
	if err != nil {
		return 0
	}
	mode := fs.FileMode(n) & fs.ModePerm
	for bit, special := range map[uint64]fs.FileMode{0o1000: fs.ModeSticky, 0o2000: fs.ModeSetgid, 0o4000: fs.ModeSetuid} {
		if n&bit != 0 {
			mode |= special
		}
	}
	return mode
}

// User is whose files those of a container's user are. Of all others the container sees that they are nobody's.
type User struct {
	UID, GID     int // in the file system
	AsUID, AsGID int // the container's user
}

// Open opens the mounts of a machine. The root must be there.
func Open(root, dir string) (*Mounts, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("the root of file systems, %s, is no directory", root), err)
	}
	return &Mounts{root, dir}, os.MkdirAll(dir, 0o700)
}

// Path returns where the mount of a name is: task/volume/container.
func (m *Mounts) Path(name string) string { return filepath.Join(m.dir, name) }

// Names lists the tasks that have mounts.
func (m *Mounts) Names() (tasks []string, err error) {
	entries, err := os.ReadDir(m.dir)
	for _, e := range entries {
		tasks = append(tasks, e.Name())
	}
	return tasks, err
}

// Mount mounts what is wanted under a name. One that's there stays as it is.
func (m *Mounts) Mount(r Request, name string) error {
	path := m.Path(name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if is, err := kernel.IsMountPoint(path); is || err != nil {
		return err
	}
	dir, err := m.open(r)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	return attach(dir, r.User, path)
}

// open opens a directory of a file system, which it makes if it's to be.
func (m *Mounts) open(r Request) (*os.File, error) {
	if !filepath.IsLocal(r.FileSystem) || filepath.Base(r.FileSystem) != r.FileSystem {
		return nil, fmt.Errorf("no file system is named %q", r.FileSystem)
	}
	system, err := os.OpenRoot(filepath.Join(m.root, r.FileSystem))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("this node has no file system %s in %s", r.FileSystem, m.root)
	}
	if err != nil {
		return nil, err
	}
	defer system.Close() //nolint:errcheck // the directory stays open
	at := strings.Trim(filepath.Clean("/"+r.Directory), "/")
	if at == "" {
		return system.Open(".")
	}
	if r.Create != nil {
		if err := create(system, at, *r.Create); err != nil {
			return nil, fmt.Errorf("create %s in %s: %w", r.Directory, r.FileSystem, err)
		}
	}
	dir, err := system.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", r.Directory, r.FileSystem, err)
	}
	return dir, nil
}

// create makes the directories of a path that aren't there yet, each at once with its owner and its mode.
func create(system *os.Root, path string, c Creation) error {
	at := "."
	for part := range strings.SplitSeq(path, "/") {
		parent := at
		at = filepath.Join(at, part)
		if _, err := system.Stat(at); !errors.Is(err, os.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		unfinished := filepath.Join(parent, file.Unfinished+rand.Text())
		if err := system.Mkdir(unfinished, 0o700); err != nil {
			return err
		}
		err := give(system, unfinished, c)
		if err == nil {
			err = system.Rename(unfinished, at)
		}
		if err == nil {
			continue
		}
		system.Remove(unfinished) //nolint:errcheck // it's nobody's
		if !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err // else another node has made it, and it's in use
		}
	}
	return nil
}

// give gives a new directory its owner and its mode. Tasks may write where it is, and put something else in its place: what is there is opened
// once, and must be as new.
func give(system *os.Root, path string, c Creation) error {
	dir, err := system.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid) // the agent, unless NFS makes all users one
	if _, err := dir.ReadDir(1); !errors.Is(err, io.EOF) || owner != os.Geteuid() && owner != c.UID || info.Mode().Perm() != 0o700 {
		return errors.New("something else was put in its place")
	}
	return errors.Join(dir.Chown(c.UID, c.GID), dir.Chmod(c.Mode))
}

// attach mounts an open directory at a path. Neither setuid programs nor devices count there.
func attach(dir *os.File, user *User, path string) error {
	tree, err := unix.OpenTree(int(dir.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mount it: %w", err)
	}
	defer unix.Close(tree) //nolint:errcheck // the mount stays
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if user != nil {
		users, err := namespace(user)
		if err != nil {
			return fmt.Errorf("map its users: %w", err)
		}
		defer users.Close() //nolint:errcheck // it was only read
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr)
	if user != nil && errors.Is(err, syscall.EINVAL) {
		return errors.New("its users can't be mapped to the access point's, as on NFS: have the export map all users (all_squash), and take an " +
			"access point without a POSIX user")
	}
	if err != nil {
		return fmt.Errorf("mount it: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount it: %w", err)
	}
	return nil
}

// namespace returns a user namespace that maps a user's files.
func namespace(u *User) (*os.File, error) {
	holder := exec.Command("cat") // a namespace is there while a process or a file is
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: u.UID, HostID: u.AsUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: u.GID, HostID: u.AsGID, Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	input, err := holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := holder.Start(); err != nil {
		return nil, err
	}
	defer holder.Wait() //nolint:errcheck // it ends with its input
	defer input.Close() //nolint:errcheck // nothing was written
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", holder.Process.Pid))
}

// Unmount removes a task's mounts. It removes empty directories alone, whatever goes wrong.
func (m *Mounts) Unmount(task string) error {
	mounts, err := file.Glob(m.Path(task), "*/*")
	if err != nil {
		return err
	}
	for _, path := range mounts {
		err = errors.Join(err, kernel.Unmount(path), removeEmpty(path))
	}
	volumes, globErr := file.Glob(m.Path(task), "*")
	err = errors.Join(err, globErr)
	for _, path := range append(volumes, m.Path(task)) {
		err = errors.Join(err, removeEmpty(path))
	}
	return err
}

func removeEmpty(dir string) error {
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

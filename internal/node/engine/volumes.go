package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/blockvolume"
	"github.com/pintle/pintle/internal/node/filesystem"
	"github.com/pintle/pintle/internal/node/runtime"
)

// FileSystems mounts directories of shared file systems on this machine. Names are of the form task/volume/container.
type FileSystems interface {
	// Mount mounts what is wanted under a name. One that's there stays as it is.
	Mount(r filesystem.Request, name string) error
	// Path returns where the mount of a name is.
	Path(name string) string
	// Names lists the tasks that have mounts.
	Names() ([]string, error)
	// Unmount removes all mounts of a task.
	Unmount(task string) error
}

// BlockVolumes makes volumes of a fixed size on this machine. Names are of the form task/volume.
type BlockVolumes interface {
	// Attach makes a volume under a name, and mounts it. One that's there stays as it is.
	Attach(r blockvolume.Request, name string) error
	// Path returns where the volume of a name is mounted.
	Path(name string) string
	// Names lists the tasks that have volumes.
	Names() ([]string, error)
	// Release takes a task's volumes from it, and deletes those that aren't to be kept.
	Release(task string) error
}

// Functions runs functions of AWS Lambda, whose code, layers and /tmp are volumes of Lambda's driver.
type Functions interface {
	// Prepare lays down what a volume shows. What's there is left as it is.
	Prepare(ctx context.Context, taskArn string, v acs.Volume) error
	// Path returns where that is.
	Path(taskArn string, v acs.Volume) string
	// Shape makes a task's container what runs the function here.
	Shape(spec *runtime.Spec, task *acs.Task) error
	// Release forgets a task.
	Release(task string)
}

// isFunction reports whether a volume is a function's.
func isFunction(v acs.Volume) bool {
	return v.DockerVolumeConfiguration != nil && v.DockerVolumeConfiguration.Driver == acs.FunctionDriver
}

func (t *task) prepareFunction(ctx context.Context, v acs.Volume) error {
	if t.engine.opts.Functions == nil {
		return fmt.Errorf("this node has no volumes of the driver %s: it doesn't run functions", acs.FunctionDriver)
	}
	return t.engine.opts.Functions.Prepare(ctx, t.arn(), v)
}

// prepare has the task's volumes that don't come with a container brought to this machine while its images are pulled, and its containers
// wait for both. If one can't be had, the task can't run.
func (t *task) prepare(ctx context.Context) {
	defer close(t.prepared)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.halted, cancel)()
	for _, v := range t.rec.Task.Volumes {
		err := t.prepareVolume(ctx, v)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			cause := strings.ReplaceAll(err.Error(), "\n", ": ") // joined errors have a line each
			t.update(func(r *Record) {
				r.Failure = fmt.Sprintf("ResourceInitializationError: failed to set up volume %s: %s", v.Name, cause)
			})
			return
		}
	}
}

func (t *task) prepareVolume(ctx context.Context, v acs.Volume) error {
	switch {
	case isDataSet(v):
		return t.provide(ctx, v)
	case isFunction(v):
		return t.prepareFunction(ctx, v)
	case v.EFSVolumeConfiguration != nil:
		return t.mountFileSystem(v)
	case v.EBSVolume != nil:
		return t.attachVolume(v)
	}
	return nil
}

// isPrepared reports whether a volume is brought to this machine before the containers that have it.
func isPrepared(v acs.Volume) bool {
	return isDataSet(v) || isFunction(v) || v.EFSVolumeConfiguration != nil || v.EBSVolume != nil
}

// blockVolume names a volume of a fixed size.
func (t *task) blockVolume(v acs.Volume) string { return filepath.Join(t.id(), v.Name) }

// attachVolume makes a volume of a fixed size.
func (t *task) attachVolume(v acs.Volume) error {
	if t.engine.opts.BlockVolumes == nil {
		return errors.New("this node makes no volumes (the agent says why when it starts)")
	}
	e := v.EBSVolume
	return t.engine.opts.BlockVolumes.Attach(blockvolume.Request{
		ID:         e.VolumeID,
		SizeGiB:    e.SizeGiB,
		FileSystem: e.FileSystem,
		Keep:       e.Keep,
	}, t.blockVolume(v))
}

// awaitPrepared waits until the task's volumes are here.
func (t *task) awaitPrepared(ctx context.Context) error {
	select {
	case <-t.prepared:
	case <-ctx.Done():
	}
	return errors.Join(ctx.Err(), t.halted.Err())
}

// fileSystem names a container's mount of a volume.
func (t *task) fileSystem(v acs.Volume, container string) string {
	return filepath.Join(t.id(), v.Name, container)
}

// mountFileSystem mounts a volume for each container that has it, since each may have a user of its own.
func (t *task) mountFileSystem(v acs.Volume) error {
	if t.engine.opts.FileSystems == nil {
		return errors.New("this node has no file systems (pintle agent --file-systems)")
	}
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		if !slices.ContainsFunc(c.MountPoints, func(m acs.MountPoint) bool { return m.SourceVolume == v.Name }) {
			continue
		}
		r, err := fileSystemRequest(v.EFSVolumeConfiguration, containerConfig(c).User)
		if err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
		if err := t.engine.opts.FileSystems.Mount(r, t.fileSystem(v, c.Name)); err != nil {
			return err
		}
	}
	return nil
}

// fileSystemRequest returns what a container with a user wants of a file system.
func fileSystemRequest(e *acs.EFSVolumeConfiguration, user string) (filesystem.Request, error) {
	r := filesystem.Request{FileSystem: e.FileSystemID, Directory: e.RootDirectory}
	if a := e.AuthorizationConfig; a == nil || a.AccessPointID == "" {
		return r, nil
	}
	p := e.AccessPoint
	if p == nil {
		return r, fmt.Errorf("the file system %s has no access point %s", e.FileSystemID, e.AuthorizationConfig.AccessPointID)
	}
	r.Directory = p.RootDirectory
	if c := p.CreationInfo; c != nil {
		r.Create = &filesystem.Creation{UID: int(c.UID), GID: int(c.GID), Mode: filesystem.Mode(c.Permissions)}
	}
	if p.PosixUser == nil {
		return r, nil
	}
	uid, gid, err := numbers(user)
	if err != nil {
		return r, err
	}
	r.User = &filesystem.User{UID: int(p.PosixUser.UID), GID: int(p.PosixUser.GID), AsUID: uid, AsGID: gid}
	return r, nil
}

// numbers reads a container's user: nobody, who is root, a number, or two.
func numbers(user string) (uid, gid int, err error) {
	if user == "" {
		return 0, 0, nil
	}
	first, second, hasGroup := strings.Cut(user, ":")
	uid, err = strconv.Atoi(first)
	if err == nil && hasGroup {
		gid, err = strconv.Atoi(second)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("an access point with a POSIX user needs a container's user to be a number, or uid:gid, not %q", user)
	}
	return uid, gid, nil
}

// releaseVolumes gives back what a task whose containers have ended had on this machine.
func (t *task) releaseVolumes() { t.engine.releaseVolumes(t.id()) }

func (e *Engine) releaseVolumes(task string) {
	var err error
	if e.opts.Functions != nil {
		e.opts.Functions.Release(task)
	}
	if e.opts.DataSets != nil {
		err = e.opts.DataSets.Remove(task)
	}
	if e.opts.FileSystems != nil {
		err = errors.Join(err, e.opts.FileSystems.Unmount(task))
	}
	if e.opts.BlockVolumes != nil {
		err = errors.Join(err, e.opts.BlockVolumes.Release(task))
	}
	if err != nil {
		e.opts.Log.Warn("cannot give back a task's volumes", "task", task, "error", err)
	}
}

// releaseOrphanVolumes gives back what tasks have that aren't known, or have stopped: an agent was killed before it could.
func (e *Engine) releaseOrphanVolumes() {
	names, err := e.volumeNames()
	if err != nil {
		e.opts.Log.Warn("cannot list tasks' volumes", "error", err)
	}
	running := map[string]bool{}
	for _, t := range e.all() {
		running[t.id()] = !t.stopped()
	}
	for _, task := range names {
		if !running[task] {
			e.releaseVolumes(task)
		}
	}
}

func (e *Engine) volumeNames() (tasks []string, err error) {
	if e.opts.DataSets != nil {
		tasks, err = e.opts.DataSets.Names()
	}
	if e.opts.FileSystems != nil {
		more, moreErr := e.opts.FileSystems.Names()
		tasks, err = append(tasks, more...), errors.Join(err, moreErr)
	}
	if e.opts.BlockVolumes != nil {
		more, moreErr := e.opts.BlockVolumes.Names()
		tasks, err = append(tasks, more...), errors.Join(err, moreErr)
	}
	return tasks, err
}

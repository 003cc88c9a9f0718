package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/acs"
)

// DataSets has what lies under prefixes in S3 as directories on this machine.
type DataSets interface {
	// Provide makes the directory of a name show a source, s3://bucket/prefix, with the rights of a role. One that's there is left as it is.
	Provide(ctx context.Context, role func() *acs.IAMRoleCredentials, source, name string) error
	// Path returns where the directory of a name is.
	Path(name string) string
	// Names lists the tasks that have directories: the first parts of their names.
	Names() ([]string, error)
	// Remove removes all directories of a task.
	Remove(task string) error
}

// isDataSet reports whether a volume is a prefix in S3.
func isDataSet(v acs.Volume) bool {
	return v.DockerVolumeConfiguration != nil && v.DockerVolumeConfiguration.Driver == acs.S3Driver
}

// dataSet names a volume's directory.
func (t *task) dataSet(v acs.Volume) string { return filepath.Join(t.id(), v.Name) }

// prepare has the task's data sets brought to this machine while its images are pulled, and its containers wait for both. If one can't be had,
// the task can't run.
func (t *task) prepare(ctx context.Context) {
	defer close(t.prepared)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.halted, cancel)()
	for _, v := range t.rec.Task.Volumes {
		if !isDataSet(v) {
			continue
		}
		err := t.provide(ctx, v)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.update(func(r *Record) {
				r.Failure = fmt.Sprintf("ResourceInitializationError: failed to set up volume %s: %v", v.Name, err)
			})
			return
		}
	}
}

func (t *task) provide(ctx context.Context, v acs.Volume) error {
	if t.engine.opts.DataSets == nil {
		return fmt.Errorf("this node has no volumes of the driver %s", acs.S3Driver)
	}
	role := func() *acs.IAMRoleCredentials { return t.payload().RoleCredentials }
	if role() == nil {
		return fmt.Errorf("the task has no task role, as which a volume of the driver %s is read", acs.S3Driver)
	}
	return t.engine.opts.DataSets.Provide(ctx, role, v.DockerVolumeConfiguration.DriverOpts[acs.S3Source], t.dataSet(v))
}

// awaitPrepared waits until the task's data sets are here.
func (t *task) awaitPrepared(ctx context.Context) error {
	select {
	case <-t.prepared:
	case <-ctx.Done():
	}
	return errors.Join(ctx.Err(), t.halted.Err())
}

// releaseDataSets removes the directories of a task whose containers have ended, so that the cache may make room.
func (t *task) releaseDataSets() {
	if t.engine.opts.DataSets == nil {
		return
	}
	if err := t.engine.opts.DataSets.Remove(t.id()); err != nil {
		t.engine.opts.Log.Warn("cannot remove the directories of a task's data sets", "task", t.arn(), "error", err)
	}
}

// removeOrphanDataSets removes the directories of tasks that aren't known, or have stopped: an agent was killed before it could.
func (e *Engine) removeOrphanDataSets() {
	if e.opts.DataSets == nil {
		return
	}
	names, err := e.opts.DataSets.Names()
	if err != nil && !os.IsNotExist(err) {
		e.opts.Log.Warn("cannot list the directories of data sets", "error", err)
	}
	running := map[string]bool{}
	for _, t := range e.all() {
		running[t.id()] = !t.stopped()
	}
	for _, task := range names {
		if running[task] {
			continue
		}
		if err := e.opts.DataSets.Remove(task); err != nil {
			e.opts.Log.Warn("cannot remove the directories of a task's data sets", "task", task, "error", err)
		}
	}
}

package engine

import (
	"context"
	"fmt"
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

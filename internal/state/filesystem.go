package state

import (
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of Amazon EFS. What the file systems hold is in directories.

// FileSystem is a file system. How many mount targets it has is counted when it's shown.
type FileSystem struct {
	types.FileSystemDescription
	Lifecycle []types.LifecyclePolicy `json:",omitempty"`
	Backup    types.Status            `json:",omitempty"`
}

// MountTarget is a file system's address in a subnet, which is kept for who asks: nodes have file systems as directories.
type MountTarget struct {
	types.MountTargetDescription
	SecurityGroups []string
}

// AccessPoint is as whom, and from where, tasks see a file system.
type AccessPoint struct{ types.AccessPointDescription }

var (
	fileSystems = &store.Definition[*FileSystem]{Name: "filesystems", Key: func(f *FileSystem) string { return *f.FileSystemId }}

	mountTargetsByFileSystem = Index[*MountTarget]{Name: "filesystem", Value: func(m *MountTarget) string { return *m.FileSystemId }}
	mountTargets             = &store.Definition[*MountTarget]{
		Name:    "mounttargets",
		Key:     func(m *MountTarget) string { return *m.MountTargetId },
		Indexes: []Index[*MountTarget]{mountTargetsByFileSystem},
	}

	accessPointsByFileSystem = Index[*AccessPoint]{Name: "filesystem", Value: func(a *AccessPoint) string { return *a.FileSystemId }}
	accessPoints             = &store.Definition[*AccessPoint]{
		Name:    "accesspoints",
		Key:     func(a *AccessPoint) string { return *a.AccessPointId },
		Indexes: []Index[*AccessPoint]{accessPointsByFileSystem},
	}
)

// MountTargetsOf returns the mount targets of a file system.
func (v *View) MountTargetsOf(fileSystem string) iter.Seq[*MountTarget] {
	return v.MountTargets.By(mountTargetsByFileSystem, fileSystem)
}

// AccessPointsOf returns the access points of a file system.
func (v *View) AccessPointsOf(fileSystem string) iter.Seq[*AccessPoint] {
	return v.AccessPoints.By(accessPointsByFileSystem, fileSystem)
}

// AccessPointOf returns a file system's access point, or nil.
func (v *View) AccessPointOf(fileSystem, id string) *AccessPoint {
	a := v.AccessPoints.Get(id)
	if a == nil || aws.ToString(a.FileSystemId) != fileSystem {
		return nil
	}
	return a
}

// fileSystemTables are the tables of Amazon EFS.
type fileSystemTables struct {
	AccessPoints Table[*AccessPoint]
	FileSystems  Table[*FileSystem]
	MountTargets Table[*MountTarget]
}

// newFileSystemTables binds the tables to a view.
func newFileSystemTables(v *store.View) fileSystemTables {
	return fileSystemTables{
		AccessPoints: accessPoints.In(v),
		FileSystems:  fileSystems.In(v),
		MountTargets: mountTargets.In(v),
	}
}

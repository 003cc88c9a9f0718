package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/blockvolume"
	"github.com/pintle/pintle/internal/node/filesystem"
)

// fakeFileSystems has mounts by name. The file system fs-broken can't be mounted.
type fakeFileSystems struct {
	fakeVolumes[filesystem.Request]
}

func (f *fakeFileSystems) Mount(r filesystem.Request, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.FileSystem == "fs-broken" {
		return errors.Join(errors.New("no"), errors.New("never"))
	}
	f.made[name] = r
	return nil
}

func (f *fakeFileSystems) Path(name string) string { return "/mounts/" + name }

func (f *fakeFileSystems) Unmount(task string) error { return f.remove(task) }

// fakeVolumes are what tasks were given, by names that begin with the task's.
type fakeVolumes[V any] struct {
	mu   sync.Mutex
	made map[string]V
}

func (f *fakeVolumes[V]) Names() (tasks []string, err error) {
	for _, name := range f.names() {
		task, _, _ := strings.Cut(name, "/")
		tasks = append(tasks, task)
	}
	return tasks, nil
}

func (f *fakeVolumes[V]) remove(task string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.made, func(name string, _ V) bool { return strings.HasPrefix(name, task+"/") })
	return nil
}

func (f *fakeVolumes[V]) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.made))
}

// withFileSystem is a task whose first container mounts a file system, which the second has from it.
func withFileSystem(id string, e acs.EFSVolumeConfiguration) acs.Task {
	t := newFakeTask(id, box("a", "run"), box("b", "run"))
	t.Volumes = []acs.Volume{{Name: "v", Type: "efs", EFSVolumeConfiguration: &e}}
	t.Containers[0].MountPoints = []acs.MountPoint{{SourceVolume: "v", ContainerPath: "/v"}}
	t.Containers[1].VolumesFrom = []acs.VolumeFrom{{SourceContainer: "a", ReadOnly: true}}
	return t
}

func TestFileSystems(t *testing.T) {
	systems := &fakeFileSystems{fakeVolumes[filesystem.Request]{made: map[string]filesystem.Request{"gone/v/c": {}}}}
	alone(t, func(t *testing.T, a *agent) {
		task := withFileSystem("t", acs.EFSVolumeConfiguration{FileSystemID: "fs-1", RootDirectory: "/d"})
		a.take(t, task)
		later(time.Second)
		if got := systems.names(); !slices.Equal(got, []string{"t/v/a"}) || systems.made["t/v/a"] != (filesystem.Request{FileSystem: "fs-1", Directory: "/d"}) {
			t.Errorf("mounted are %v", systems.made)
		}
		a.mu.Lock()
		for id, readonly := range map[string]bool{"t-a": false, "t-b": true} {
			m := a.containers[id].spec.Mounts
			if len(m) != 1 || m[0].Source != "/mounts/t/v/a" || m[0].ReadOnly != readonly || m[0].Volume {
				t.Errorf("%s has %+v", id, m)
			}
		}
		a.mu.Unlock()
		a.take(t, stopOf(task))
		later(time.Minute)
		if got := systems.names(); len(got) > 0 {
			t.Errorf("a stopped task has %v", got)
		}
	}, func(o *Options) { o.FileSystems = systems })
}

func TestFileSystemsThatFail(t *testing.T) {
	for want, systems := range map[string]FileSystems{
		"no: never": &fakeFileSystems{},
		"this node has no file systems (pintle agent --file-systems)": nil,
	} {
		alone(t, func(t *testing.T, a *agent) {
			task := withFileSystem("t", acs.EFSVolumeConfiguration{FileSystemID: "fs-broken"})
			a.take(t, task)
			later(time.Minute)
			want := "ResourceInitializationError: failed to set up volume v: " + want
			if r := a.last(task.Arn); r.Status != "STOPPED" || r.Reason != want || a.count() != 0 {
				t.Errorf("got %s, %q, and %d containers; want %q", r.Status, r.Reason, a.count(), want)
			}
		}, func(o *Options) { o.FileSystems = systems })
	}
}

func TestAccessPoints(t *testing.T) {
	e := acs.EFSVolumeConfiguration{FileSystemID: "fs-1", RootDirectory: "/", AuthorizationConfig: &acs.EFSAuthorizationConfig{AccessPointID: "fsap-1"}}
	if _, err := fileSystemRequest(&e, ""); err == nil || err.Error() != "the file system fs-1 has no access point fsap-1" {
		t.Errorf("one that isn't there: %v", err)
	}
	e.AccessPoint = &acs.EFSAccessPoint{
		RootDirectory: "/app",
		CreationInfo:  &acs.EFSCreationInfo{UID: 1, GID: 2, Permissions: "0750"},
		PosixUser:     &acs.EFSPosixUser{UID: 3, GID: 4},
	}
	for user, want := range map[string]*filesystem.User{
		"":      {UID: 3, GID: 4},
		"7":     {UID: 3, GID: 4, AsUID: 7},
		"7:8":   {UID: 3, GID: 4, AsUID: 7, AsGID: 8},
		"app":   nil,
		"7:app": nil,
	} {
		r, err := fileSystemRequest(&e, user)
		switch {
		case want == nil && (err == nil || !strings.Contains(err.Error(), user)):
			t.Errorf("%q: %v", user, err)
		case want != nil && (err != nil || *r.User != *want || r.Directory != "/app" || *r.Create != (filesystem.Creation{UID: 1, GID: 2, Mode: 0o750})):
			t.Errorf("%q: %+v, %v", user, r, err)
		}
	}
}

// fakeBlockVolumes are what tasks have, by names. The volume vol-full can't be had.
type fakeBlockVolumes struct {
	fakeVolumes[blockvolume.Request]
}

func (f *fakeBlockVolumes) Attach(r blockvolume.Request, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.ID == "vol-full" {
		return errors.New("there is no room for its 1 GiB")
	}
	f.made[name] = r
	return nil
}

func (f *fakeBlockVolumes) Path(name string) string { return "/volumes/" + name }

func (f *fakeBlockVolumes) Release(task string) error { return f.remove(task) }

// withBlockVolume is a task whose container has a volume of a fixed size.
func withBlockVolume(id string, e acs.EBSVolume) acs.Task {
	t := newFakeTask(id, box("a", "run"))
	t.Volumes = []acs.Volume{{Name: "v", Type: "ebs", EBSVolume: &e}}
	t.Containers[0].MountPoints = []acs.MountPoint{{SourceVolume: "v", ContainerPath: "/v"}}
	return t
}

func TestBlockVolumes(t *testing.T) {
	volumes := &fakeBlockVolumes{fakeVolumes[blockvolume.Request]{made: map[string]blockvolume.Request{"gone/v": {}}}}
	alone(t, func(t *testing.T, a *agent) {
		task := withBlockVolume("t", acs.EBSVolume{VolumeID: "vol-1", SizeGiB: 2, FileSystem: "ext4", Keep: true})
		a.take(t, task)
		later(time.Second)
		want := blockvolume.Request{ID: "vol-1", SizeGiB: 2, FileSystem: "ext4", Keep: true}
		if got := volumes.names(); !slices.Equal(got, []string{"t/v"}) || volumes.made["t/v"] != want {
			t.Errorf("there are %v", volumes.made)
		}
		a.mu.Lock()
		mounts := a.containers["t-a"].spec.Mounts
		a.mu.Unlock()
		if len(mounts) != 1 || mounts[0].Source != "/volumes/t/v" || mounts[0].Volume {
			t.Errorf("it mounts %+v", mounts)
		}
		a.take(t, stopOf(task))
		later(time.Minute)
		if got := volumes.names(); len(got) > 0 {
			t.Errorf("left are %v", got)
		}
	}, func(o *Options) { o.BlockVolumes = volumes })
}

func TestBlockVolumesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		id      string
		volumes BlockVolumes
		reason  string
	}{
		"full": {"vol-full", &fakeBlockVolumes{}, "there is no room for its 1 GiB"},
		"none": {"vol-1", nil, "this node makes no volumes (the agent says why when it starts)"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				task := withBlockVolume("t", acs.EBSVolume{VolumeID: c.id, SizeGiB: 1})
				a.take(t, task)
				later(time.Second)
				if r := a.last(task.Arn); r.Status != "STOPPED" || r.Reason != "ResourceInitializationError: failed to set up volume v: "+c.reason {
					t.Errorf("it reports %+v", r)
				}
			}, func(o *Options) { o.BlockVolumes = c.volumes })
		})
	}
}

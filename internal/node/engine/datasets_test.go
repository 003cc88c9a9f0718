package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// fakeDataSets has directories by name. A source is how long it takes, or "broken".
type fakeDataSets struct{ fakeVolumes[string] }

func (f *fakeDataSets) Provide(ctx context.Context, role func() *acs.IAMRoleCredentials, source, name string) error {
	if source == "broken" {
		return errors.New("AccessDenied: no")
	}
	after, _ := time.ParseDuration(source)
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[name] = source + " as " + role().AccessKeyID
	return nil
}

func (f *fakeDataSets) Path(name string) string { return "/cache/" + name }

func (f *fakeDataSets) Remove(task string) error { return f.remove(task) }

// withDataSet is a task that mounts a data set from a source.
func withDataSet(id, image, source string) acs.Task {
	t := newFakeTask(id, box("a", image), box("b", image))
	t.Volumes = []acs.Volume{{Name: "w", Type: "docker", DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{
		Scope: "task", Driver: acs.S3Driver, DriverOpts: map[string]string{acs.S3Source: source},
	}}}
	t.Containers[0].MountPoints = []acs.MountPoint{{SourceVolume: "w", ContainerPath: "/w"}}
	t.RoleCredentials = &acs.IAMRoleCredentials{AccessKeyID: "AK"}
	return t
}

func TestDataSets(t *testing.T) {
	sets := &fakeDataSets{fakeVolumes[string]{made: map[string]string{"gone/w": ""}}} // a task that nobody knows
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, withDataSet("t", "run", "10s"))
		later(5 * time.Second)
		if n := a.count(); n != 0 {
			t.Errorf("%d containers are made before the data set is here", n)
		}
		later(6 * time.Second)
		if got := sets.made["t/w"]; got != "10s as AK" || len(sets.made) != 1 {
			t.Errorf("the directories are %v", sets.made)
		}
		a.mu.Lock()
		mounts := a.containers["t-a"].spec.Mounts
		a.mu.Unlock()
		if len(mounts) != 1 || mounts[0].Source != "/cache/t/w" || !mounts[0].ReadOnly || mounts[0].Volume {
			t.Errorf("the container has %+v", mounts)
		}
		a.take(t, stopOf(newFakeTask("t", box("a", "run"), box("b", "run"))))
		later(time.Minute)
		if got := sets.names(); len(got) > 0 {
			t.Errorf("a stopped task has %v", got)
		}
		if strings.Contains(a.story(), "remove volume") {
			t.Errorf("the runtime was told of it: %s", a.story())
		}
	}, func(o *Options) { o.DataSets = sets })
}

func TestDataSetsThatFail(t *testing.T) {
	const failed = "ResourceInitializationError: failed to set up volume w: "
	for name, c := range map[string]struct {
		source string
		change func(*acs.Task)
		sets   DataSets
		reason string
	}{
		"refused": {"broken", func(*acs.Task) {}, &fakeDataSets{}, failed + "AccessDenied: no"},
		"no role": {
			"1s", func(t *acs.Task) { t.RoleCredentials = nil }, &fakeDataSets{},
			failed + "the task has no task role, as which a volume of the driver pintle-s3 is read",
		},
		"no cache": {"1s", func(*acs.Task) {}, nil, failed + "this node has no volumes of the driver pintle-s3"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				task := withDataSet("t", "slowpull@30s", c.source)
				c.change(&task)
				a.take(t, task)
				later(time.Minute)
				if r := a.last(task.Arn); r.Status != "STOPPED" || r.Reason != c.reason || a.count() != 0 {
					t.Errorf("got %s, %q, and %d containers; want %q", r.Status, r.Reason, a.count(), c.reason)
				}
			}, func(o *Options) { o.DataSets = c.sets })
		})
	}
}

// A task that is stopped while its data set comes waits for nothing, and one whose agent is killed has it fetched by the next one.
func TestDataSetsInterrupted(t *testing.T) {
	sets := &fakeDataSets{fakeVolumes[string]{made: map[string]string{}}}
	alone(t, func(t *testing.T, a *agent) {
		task := withDataSet("t", "run", "1h")
		a.take(t, task)
		later(time.Second)
		a.take(t, stopOf(task))
		later(time.Second)
		if r := a.last(task.Arn); r.Status != "STOPPED" || r.Reason != "" {
			t.Errorf("got %s, %q", r.Status, r.Reason)
		}
	}, func(o *Options) { o.DataSets = sets })
}

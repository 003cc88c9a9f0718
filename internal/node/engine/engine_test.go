package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/taskgroup"
)

// alone runs a test in a bubble of time of its own, with a world and an agent.
func alone(t *testing.T, test func(t *testing.T, a *agent), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newWorld().start(t, t.TempDir(), change...)
		defer a.kill()
		test(t, a)
	})
}

func (a *agent) take(t *testing.T, task acs.Task) {
	t.Helper()
	if err := a.engine.Take(task); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// later lets time pass.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOrderOfContainers(t *testing.T) {
	cases := []struct {
		name       string
		containers []acs.Container
		stopAfter  time.Duration // 0: it stops by itself
		want       string
	}{
		{"alone", []acs.Container{box("a", "exit:0@1s")}, 0, "start a, end a"},
		{"START", []acs.Container{box("b", "run", "a=START"), box("a", "run")}, time.Second, "start a, start b, end b, end a"},
		{
			"COMPLETE whatever the code",
			[]acs.Container{box("b", "exit:0@5s", "a=COMPLETE"), optional(box("a", "exit:3@2s"))},
			0,
			"start a, end a, start b, end b",
		},
		{
			"SUCCESS",
			[]acs.Container{box("b", "exit:0@5s", "a=SUCCESS"), optional(box("a", "exit:0@2s"))},
			0,
			"start a, end a, start b, end b",
		},
		{"SUCCESS that fails", []acs.Container{box("b", "run", "a=SUCCESS"), optional(box("a", "exit:1@2s"))}, 0, "start a, end a"},
		{
			"HEALTHY",
			[]acs.Container{box("b", "run", "a=HEALTHY"), checked(box("a", "healthy@3s"), acs.Healthcheck{Interval: 1e9})},
			10 * time.Second,
			"start a, start b, end b, end a",
		},
		{
			"a chain stops in reverse",
			[]acs.Container{box("c", "run", "b=START"), box("b", "stubborn", "a=START"), box("a", "run")},
			time.Second,
			"start a, start b, start c, end c, end b, end a",
		},
		{
			"an essential end stops the others",
			[]acs.Container{box("a", "run"), box("b", "exit:1@2s", "a=START")},
			0,
			"start a, start b, end b, end a",
		},
		{
			"another end does not",
			[]acs.Container{box("a", "run"), optional(box("b", "exit:1@2s", "a=START"))},
			time.Minute,
			"start a, start b, end b, end a",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				task := newFakeTask("t", c.containers...)
				a.take(t, task)
				if c.stopAfter > 0 {
					later(c.stopAfter)
					a.take(t, stopOf(task))
				}
				later(2 * time.Minute)
				if got := strings.Join(a.events, ", "); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if got := a.last(task.Arn).Status; got != "STOPPED" {
					t.Errorf("last reported %q", got)
				}
			})
		})
	}
}

func TestLinksAndVolumesFromImplyOrder(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		web, logs := box("web", "run"), box("logs", "run")
		web.Links, logs.VolumesFrom = []string{"db:database"}, []acs.VolumeFrom{{SourceContainer: "web"}}
		a.take(t, newFakeTask("t", logs, web, box("db", "run")))
		if got := strings.Join(a.events, ", "); got != "start db, start web, start logs" {
			t.Error(got)
		}
		if got := a.containers["t-web"].spec.Network.Links; !slices.Equal(got, []string{"t-db:database"}) {
			t.Error(got)
		}
	})
}

func TestFailures(t *testing.T) {
	failing := func(image string) acs.Task { return newFakeTask("t", box("a", image)) }
	late := failing("exit:0")
	late.Containers = append(late.Containers, box("b", "run", "c=HEALTHY"), checked(box("c", "run"), acs.Healthcheck{Interval: 1e9}))
	late.Containers[0] = box("a", "run")
	late.Containers[2].StartTimeout = 5
	cases := []struct {
		name   string
		task   acs.Task
		status string // the reports
		reason string // of the first container that has one
		code   int    // -1 is none
	}{
		{"pull", failing("pullfail"), "STOPPED", "CannotPullContainerError: cannot pull pullfail, tried 5 times: no such image", -1},
		{"create", failing("createfail"), "STOPPED", "CannotCreateContainerError: no", -1},
		{"start", failing("startfail"), "STOPPED", "CannotStartContainerError: no", -1},
		{"out of memory", failing("oom@1s"), "RUNNING STOPPED", "OutOfMemoryError: Container killed due to memory usage", 137},
		{"exit code", failing("exit:3@1s"), "RUNNING STOPPED", "", 3},
		{"at once", failing("exit:0"), "RUNNING STOPPED", "", 0},
		{
			"too late to be healthy",
			late,
			"STOPPED",
			"CannotStartContainerError: dependency graph: container b waits for c to be HEALTHY, which it can no longer be",
			-1,
		},
		{"no such GPU", pinned(failing("run"), "GPU-9"), "STOPPED", "", -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				a.take(t, c.task)
				later(time.Minute)
				if got := strings.Join(a.statuses(c.task.Arn), " "); got != c.status {
					t.Errorf("reported %s, want %s", got, c.status)
				}
				r := a.last(c.task.Arn)
				reason, code := "", -1
				for _, rc := range r.Containers {
					if rc.Reason != "" && reason == "" {
						reason = rc.Reason
					}
				}
				if rc := r.Containers[0]; rc.ExitCode != nil && len(r.Containers) == 1 {
					code = *rc.ExitCode
				}
				if reason != c.reason || code != c.code {
					t.Errorf("reason %q, code %d", reason, code)
				}
				if len(a.engine.ledger.holders) != 0 {
					t.Errorf("still held: %v", a.engine.ledger.holders)
				}
			}, func(o *Options) { o.GPUs = []string{"GPU-0"} })
		})
	}
}

func TestAContainerThatIsNotEssentialMayFail(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"), optional(box("b", "pullfail")))
		a.take(t, task)
		later(time.Minute)
		r := a.last(task.Arn)
		if r.Status != "RUNNING" || r.Containers[1].Status != Stopped || !strings.HasPrefix(r.Containers[1].Reason, "CannotPull") {
			t.Errorf("got %+v", r)
		}
	})
}

// TestPullsAreRetried: a pull is tried five times in some 13 seconds, as by Amazon's agent. A runtime that can't be reached is waited for.
func TestPullsAreRetried(t *testing.T) {
	for _, c := range []struct {
		image  string
		after  time.Duration
		status string
		pulls  int
	}{
		{"pullfail", 10 * time.Second, "", 4},
		{"pullfail", 16 * time.Second, "STOPPED", 5},
		{"flaky@3s", 6 * time.Second, "RUNNING", 3},
		{"misnamed", 0, "STOPPED", 1},
		{"down@1h", 59 * time.Minute, "", 0},
		{"down@1h", 61 * time.Minute, "RUNNING", 0},
	} {
		alone(t, func(t *testing.T, a *agent) {
			task := newFakeTask("t", box("a", c.image))
			a.take(t, task)
			later(c.after)
			if got := strings.Join(a.statuses(task.Arn), " "); got != c.status || int(a.pulls.Load()) != c.pulls {
				t.Errorf("%s: %q after %v and %d pulls", c.image, got, c.after, a.pulls.Load())
			}
		})
	}
}

// TestHungPull: a pull has a time limit.
func TestHungPull(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "slowpull@100h"))
		a.take(t, task)
		later(2*time.Hour + time.Minute)
		if r := a.last(task.Arn); r.Status != "STOPPED" || !strings.Contains(r.Containers[0].Reason, "DockerTimeoutError") {
			t.Errorf("got %+v", r)
		}
	})
}

// TestSlowStart: a container's startTimeout is how long others wait for its state. Its own start has the agent's time limit.
func TestSlowStart(t *testing.T) {
	for image, want := range map[string]string{"slowstart@1m": "RUNNING", "slowstart@1h": "STOPPED"} {
		alone(t, func(t *testing.T, a *agent) {
			task := newFakeTask("t", box("a", image))
			task.Containers[0].StartTimeout = 2
			a.take(t, task)
			later(4 * time.Minute)
			if r := a.last(task.Arn); r.Status != want || want == "STOPPED" && !strings.Contains(r.Containers[0].Reason, "after waiting 3m0s") {
				t.Errorf("%s: got %+v", image, r)
			}
		})
	}
}

func TestStopWhilePulling(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "slowpull@1h"))
		a.take(t, task)
		a.take(t, stopOf(task))
		if r := a.last(task.Arn); r.Status != "STOPPED" || r.Reason != "" || len(a.starts) != 0 {
			t.Errorf("got %+v, %v", r, a.starts)
		}
	})
}

func TestStopTimeout(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "stubborn"))
		task.Containers[0].StopTimeout = 7
		a.take(t, task)
		a.take(t, stopOf(task))
		later(6 * time.Second)
		if a.last(task.Arn).Status == "STOPPED" {
			t.Error("killed too early")
		}
		later(time.Second)
		if r := a.last(task.Arn); r.Status != "STOPPED" || *r.Containers[0].ExitCode != 137 {
			t.Errorf("got %+v", r)
		}
	})
}

func TestAStopForAnUnknownTask(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := stopOf(newFakeTask("t", box("a", "run")))
		a.take(t, task)
		if got := a.statuses(task.Arn); !slices.Equal(got, []string{"STOPPED"}) || len(a.starts) != 0 {
			t.Errorf("reported %v, started %v", got, a.starts)
		}
	})
}

func TestATaskIsTakenOnce(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "exit:0@1s"))
		for range 3 {
			a.take(t, task)
			later(time.Minute)
		}
		if a.starts["t-a"] != 1 {
			t.Errorf("started %d times", a.starts["t-a"])
		}
	})
}

func TestInvalidTasks(t *testing.T) {
	cases := map[string]acs.Task{
		"no containers":        newFakeTask("t"),
		"a name twice":         newFakeTask("t", box("a", "run"), box("a", "run")),
		"no name":              newFakeTask("t", box("", "run")),
		"waits for a stranger": newFakeTask("t", box("a", "run", "x=START")),
		"waits for itself":     newFakeTask("t", box("a", "run", "b=START"), box("b", "run", "a=START")),
	}
	alone(t, func(t *testing.T, a *agent) {
		for name, task := range cases {
			var invalid *Invalid
			if err := a.engine.Take(task); !errors.As(err, &invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestRestartPolicy(t *testing.T) {
	policy := func(image string, ignored ...int64) acs.Task {
		c := box("a", image)
		c.RestartPolicy = &acs.RestartPolicy{Enabled: true, RestartAttemptPeriod: 60, IgnoredExitCodes: ignored}
		return newFakeTask("t", c)
	}
	cases := []struct {
		name   string
		task   acs.Task
		starts int // in five minutes
	}{
		{"long enough", policy("exit:1@70s"), 5},
		{"too short", policy("exit:1@50s"), 1},
		{"ignored", policy("exit:1@70s", 1), 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				a.take(t, c.task)
				later(5 * time.Minute)
				if a.starts["t-a"] != c.starts || len(a.containers) != 1 {
					t.Errorf("%d starts, want %d, and %d containers", a.starts["t-a"], c.starts, len(a.containers))
				}
				if r, _ := a.engine.Task(arnPrefix + "t"); r.Containers["a"].Restarts != c.starts-1 {
					t.Errorf("%d restarts, want %d", r.Containers["a"].Restarts, c.starts-1)
				}
			})
		})
	}
}

// TestARestartWaitsForNobody: dependencies are for the start of a task (API_ContainerDependency).
func TestARestartWaitsForNobody(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		main := box("a", "exit:1@70s", "b=HEALTHY")
		main.RestartPolicy = &acs.RestartPolicy{Enabled: true, RestartAttemptPeriod: 60}
		a.take(t, newFakeTask("t", main, optional(checked(box("b", "healthy"), acs.Healthcheck{Interval: 1e9}))))
		later(30 * time.Second)
		a.exited("t-b", runtime.Exit{})
		later(time.Minute)
		if c := a.containers["t-a"]; c == nil || c.status != runtime.Running {
			t.Errorf("%s: %+v", a.story(), a.last(arnPrefix+"t"))
		}
	})
}

func TestAGPUIsNeverInTwoTasks(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		first := pinned(newFakeTask("first", box("a", "exit:0@10s")), "GPU-0", "GPU-1")
		second := pinned(newFakeTask("second", box("a", "run")), "GPU-1")
		third := pinned(newFakeTask("third", box("a", "run")), "GPU-2")
		a.take(t, first)
		a.take(t, second)
		a.take(t, third)
		if a.starts["second-a"] != 0 || a.starts["third-a"] != 0 {
			t.Error("started behind a task that waits, or on a GPU that is taken")
		}
		if pins := a.engine.Pinned(); pins["GPU-1"].TaskArn != first.Arn || len(pins) != 2 {
			t.Errorf("pins %v", pins)
		}
		later(11 * time.Second)
		if a.starts["second-a"] != 1 || a.starts["third-a"] != 1 || a.clash != "" {
			t.Errorf("starts %v, clash %q", a.starts, a.clash)
		}
	})
}

func TestATaskThatWaitsCanBeStopped(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, pinned(newFakeTask("first", box("a", "run")), "GPU-0"))
		second := pinned(newFakeTask("second", box("a", "run")), "GPU-0")
		a.take(t, second)
		a.take(t, stopOf(second))
		if a.last(second.Arn).Status != "STOPPED" || a.starts["second-a"] != 0 {
			t.Error("it did not stop")
		}
	})
}

func TestCPUMemoryAndPortsAreNotGivenTwice(t *testing.T) {
	big := newFakeTask("second", box("a", "run"))
	big.Containers[0].CPU = 1025
	heavy := newFakeTask("second", box("a", "run"))
	heavy.Memory = 600
	port := func(id string) acs.Task {
		c := newFakeTask(id, box("a", "run"))
		c.Containers[0].PortMappings = []acs.PortMapping{{ContainerPort: 80, HostPort: 8080}}
		return c
	}
	for name, second := range map[string]acs.Task{"cpu": big, "memory": heavy, "ports": port("second")} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				first := port("first")
				a.take(t, first)
				a.take(t, second)
				if a.starts["second-a"] != 0 {
					t.Error("started too early")
				}
				a.take(t, stopOf(first))
				if a.starts["second-a"] != 1 {
					t.Error("not started")
				}
			}, func(o *Options) { o.CPU, o.MemoryMiB = 2048, 1024 })
		})
	}
}

func TestDynamicPortsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		task := newFakeTask("t", box("a", "run"))
		task.Containers[0].PortMappings = []acs.PortMapping{{ContainerPort: 80}, {ContainerPort: 80, Protocol: "udp"}}
		a.take(t, task)
		ports := w.last(task.Arn).Containers[0].Ports
		for _, p := range ports {
			if p.Host < firstDynamicPort || p.Host > lastDynamicPort {
				t.Errorf("port %d", p.Host)
			}
		}
		if got := w.containers["t-a"].spec.Network.Ports; len(got) != 2 || int64(got[0].HostPort) != ports[0].Host {
			t.Errorf("published %v, reported %v", got, ports)
		}
		a.kill()
		b := w.start(t, dir)
		defer b.kill()
		if !b.engine.ledger.takenPorts[hostPort{false, ports[0].Host}] {
			t.Error("the next agent would give the port away")
		}
	})
}

func TestPortRanges(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"))
		task.Containers[0].PortMappings = []acs.PortMapping{{ContainerPortRange: "8000-8002"}, {ContainerPort: 80, HostPort: 8080}}
		a.take(t, task)
		ports := a.last(task.Arn).Containers[0].Ports
		first := ports[0].Host
		if first < firstDynamicPort || !slices.Equal(ports, []Port{
			{8000, first, "tcp", "8000-8002"}, {8001, first + 1, "tcp", "8000-8002"}, {8002, first + 2, "tcp", "8000-8002"}, {80, 8080, "tcp", ""},
		}) {
			t.Errorf("ports %v", ports)
		}
	})
}

// TestConsecutivePorts: ports of a range are next to each other, and free.
func TestConsecutivePorts(t *testing.T) {
	l := newLedger(0, 0)
	for port := int64(firstDynamicPort); port <= lastDynamicPort; port++ {
		isGap := port > lastDynamicPort-3 || port < firstDynamicPort+2
		l.takenPorts[hostPort{false, port}] = !isGap
	}
	if _, err := l.pick("t", false, 4); err == nil || err.Error() != "no 4 consecutive dynamic host ports are free" {
		t.Errorf("of three and two ports it gives four: %v", err)
	}
	for range 10 { // it starts anywhere
		if first, err := l.pick("t", false, 3); err != nil || first != lastDynamicPort-2 {
			t.Errorf("got %d, %v", first, err)
		}
		l.release("t")
	}
}

// TestSharedNamespaces: whoever holds the namespaces of a task isn't one that ends before the others, or whose end ends them.
func TestSharedNamespaces(t *testing.T) {
	for _, c := range []struct {
		name       string
		containers []acs.Container
		want       string // who started, and whose namespaces it has
	}{
		{"two", []acs.Container{box("a", "run"), box("b", "run")}, "a, b of a"},
		{"the essential one", []acs.Container{optional(box("side", "run")), box("main", "run")}, "main, side of main"},
		{
			"init", []acs.Container{optional(box("init", "exit:0@2s")), box("main", "run", "init=SUCCESS"), optional(box("side", "run"))},
			"init, main, side of main",
		},
		{
			"init of a sidecar", []acs.Container{optional(box("init", "exit:0@2s")), box("main", "run"), optional(box("side", "run", "init=COMPLETE"))},
			"main, init of main, side of main",
		},
		{"a sidecar before it", []acs.Container{box("main", "run", "side=START"), optional(box("side", "run"))}, "side, main of side"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				task := newFakeTask("t", c.containers...)
				task.PidMode, task.IpcMode = "task", "host"
				a.take(t, task)
				later(10 * time.Second)
				var got []string
				for _, e := range a.events {
					name, started := strings.CutPrefix(e, "start ")
					if !started {
						continue
					}
					s := a.containers["t-"+name].spec
					if other, joined := strings.CutPrefix(s.Pid, "container:t-"); joined {
						name += " of " + other
					}
					got = append(got, name)
					if s.IPC != "host" {
						t.Errorf("%s has the IPC namespace %q", name, s.IPC)
					}
				}
				if strings.Join(got, ", ") != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestWhatARuntimeIsTold(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		main, side := box("main", "run"), optional(box("side", "run"))
		main.Memory = 0
		main.Environment = map[string]string{"A": "own", "B": "own"}
		main.MountPoints = []acs.MountPoint{
			{SourceVolume: "host", ContainerPath: "/h", ReadOnly: true},
			{SourceVolume: "task", ContainerPath: "/t"},
			{SourceVolume: "shared", ContainerPath: "/s"},
		}
		main.DockerConfig.HostConfig = `{"Tmpfs":{"/tmp":"size=64m,noexec"},"ShmSize":1024,"Ulimits":[{"Name":"nofile","Soft":1,"Hard":2}],"LogConfig":{"Type":"json-file"}}`
		side.VolumesFrom = []acs.VolumeFrom{{SourceContainer: "main", ReadOnly: true}}
		side.MountPoints = []acs.MountPoint{{SourceVolume: "own", ContainerPath: "/h/"}} // which counts instead of main's
		task := pinned(newFakeTask("t", main, side), "GPU-0")
		task.Memory, task.CPU = 300, 0.25
		task.Volumes = []acs.Volume{
			{Name: "host", Host: &acs.HostVolume{SourcePath: "/srv"}},
			{Name: "task", Host: &acs.HostVolume{}},
			{Name: "shared", DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{Scope: "shared"}},
			{Name: "own", Host: &acs.HostVolume{SourcePath: "/own"}},
		}
		a.take(t, task)
		s := a.containers["t-main"].spec
		if s.MemoryBytes != 300<<20 || s.CPUQuotaMilli != 250 || s.ShmSizeBytes != 1024 || s.Ulimits[0].Hard != 2 ||
			!slices.Equal(s.GPUs, []string{"GPU-0"}) {
			t.Errorf("limits %+v", s)
		}
		if m := s.Tmpfs[0]; m.Path != "/tmp" || m.SizeBytes != 64<<20 || !slices.Equal(m.Options, []string{"noexec"}) {
			t.Errorf("tmpfs %+v", m)
		}
		if !slices.Equal(s.Env, []string{"A=own", "B=own", "C=node"}) {
			t.Errorf("environment %v", s.Env)
		}
		if m := s.Mounts; m[0].Source != "/srv" || m[0].Volume || !m[0].ReadOnly || m[1].Source != "ecs-t-task" || !m[1].Volume ||
			m[2].Source != "shared" {
			t.Errorf("mounts %+v", m)
		}
		if m := a.containers["t-side"].spec.Mounts; len(m) != 3 || m[0].Source != "/own" || !m[1].ReadOnly || !m[2].ReadOnly {
			t.Errorf("mounts from main %+v", m)
		}
	}, func(o *Options) {
		o.Environment = func(*acs.Task, string) map[string]string { return map[string]string{"A": "node", "C": "node"} }
	})
}

func TestHealth(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask(
			"t",
			checked(box("a", "healthy@5s"), acs.Healthcheck{Interval: 2e9, Retries: 2}),
			checked(box("b", "run"), acs.Healthcheck{Interval: 2e9, Retries: 3, StartPeriod: 9e9}),
		)
		a.take(t, task)
		health := func() string {
			r, _, _ := a.engine.ByToken(a.engine.tasks[task.Arn].rec.Containers["a"].Token)
			return string(r.Containers["a"].Health + " " + r.Containers["b"].Health)
		}
		for _, want := range []struct {
			at   time.Duration
			want string
		}{
			{time.Second, "UNKNOWN UNKNOWN"},
			{4 * time.Second, "UNHEALTHY UNKNOWN"}, // a failed at 2 and 4
			{7 * time.Second, "HEALTHY UNKNOWN"},
			{13 * time.Second, "HEALTHY UNKNOWN"}, // b has failed twice since its start period
			{15 * time.Second, "HEALTHY UNHEALTHY"},
		} {
			later(want.at - time.Since(a.containers["t-a"].started))
			if got := health(); got != want.want {
				t.Errorf("after %v: %s, want %s", want.at, got, want.want)
			}
			if news := a.engine.TakeHealthNews(); news != (want.at != 13*time.Second) || a.engine.TakeHealthNews() {
				t.Errorf("after %v: news %v, or twice", want.at, news)
			}
		}
		if got := a.engine.Health(); len(got) != 1 || len(got[0].Containers) != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTheNextAgentAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		running := pinned(newFakeTask("running", box("a", "run")), "GPU-0")
		waiting := pinned(newFakeTask("waiting", box("a", "run")), "GPU-0")
		ends := newFakeTask("ends", box("a", "exit:5@10s"))
		lost := newFakeTask("lost", box("a", "run"))
		for _, task := range []acs.Task{running, ends, lost, waiting} {
			a.take(t, task)
		}
		a.kill()
		later(time.Minute)
		delete(w.containers, "lost-a")
		w.containers["orphan"] = &fakeContainer{status: "RUNNING", done: make(chan struct{})}
		w.containers["orphan"].spec.Owner = "me"
		w.containers["stranger"] = &fakeContainer{status: "RUNNING"}

		b := w.start(t, dir)
		defer b.kill()
		if r := w.last(ends.Arn); r.Status != "STOPPED" || *r.Containers[0].ExitCode != 5 {
			t.Errorf("ended meanwhile: %+v", r)
		}
		if r := w.last(lost.Arn); r.Status != "STOPPED" || !strings.HasPrefix(r.Containers[0].Reason, "CannotInspectContainerError") {
			t.Errorf("lost meanwhile: %+v", r)
		}
		if w.starts["running-a"] != 1 || w.starts["waiting-a"] != 0 || w.clash != "" {
			t.Errorf("starts %v", w.starts)
		}
		if w.containers["orphan"] != nil || w.containers["stranger"] == nil {
			t.Error("an orphan must go, a stranger stay")
		}
		b.take(t, stopOf(running))
		if w.starts["waiting-a"] != 1 {
			t.Error("the waiting task was not started")
		}
	})
}

// watched is an agent at whose tasks others look while it takes them over.
type watched struct{ *agent }

func (w watched) List(ctx context.Context, owner string) ([]runtime.Container, error) {
	go func() {
		for range 1000 {
			w.engine.Tasks()
			w.engine.Pinned()
			w.engine.Credentials("c")
		}
	}()
	return w.agent.List(ctx, owner)
}

// TestLookingWhileItAdopts: the control plane and the containers may ask before an agent has taken its tasks over; the race
// detector looks on.
func TestLookingWhileItAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		for i := range 9 {
			a.take(t, newFakeTask(fmt.Sprint("t", i), box("a", "run")))
		}
		a.kill()
		b := w.start(t, dir, func(o *Options) { o.Runtime = watched{o.Runtime.(*agent)} })
		defer b.kill()
		if n := len(b.engine.Tasks()); n != 9 {
			t.Errorf("it has %d tasks", n)
		}
	})
}

func TestTheQueueOutlastsAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		first := pinned(newFakeTask("first", box("a", "run")), "GPU-0")
		a.take(t, first)
		for _, id := range []string{"b", "c", "d", "e"} {
			later(time.Millisecond)
			a.take(t, pinned(newFakeTask(id, box("a", "exit:0@1s")), "GPU-0"))
		}
		a.kill()
		b := w.start(t, dir)
		defer b.kill()
		b.take(t, stopOf(first))
		later(10 * time.Second)
		var order []string
		for _, r := range w.reports {
			if r.Status == "RUNNING" {
				order = append(order, strings.TrimPrefix(r.TaskArn, arnPrefix))
			}
		}
		if !slices.Equal(order, []string{"first", "b", "c", "d", "e"}) {
			t.Errorf("in order %v", order)
		}
	})
}

func TestAReportIsMadeUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		away := true
		w.refuse = func(r Report) error {
			if away {
				return errors.New("no route")
			}
			return nil
		}
		dir := t.TempDir()
		a := w.start(t, dir)
		task := newFakeTask("t", box("a", "exit:0@5s"))
		a.take(t, task)
		later(time.Hour)
		a.kill()
		w.mu.Lock()
		away = false
		w.mu.Unlock()
		b := w.start(t, dir)
		defer b.kill()
		if got := w.statuses(task.Arn); !slices.Equal(got, []string{"RUNNING", "STOPPED"}) {
			t.Errorf("reported %v", got)
		}
	})
}

func TestARefusedReportIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.refuse = func(r Report) error {
			if r.Status == "RUNNING" {
				return &Permanent{errors.New("no such task")}
			}
			return nil
		}
		a := w.start(t, t.TempDir())
		defer a.kill()
		task := newFakeTask("t", box("a", "exit:0@5s"))
		a.take(t, task)
		later(time.Minute)
		if got := w.statuses(task.Arn); !slices.Equal(got, []string{"STOPPED"}) {
			t.Errorf("reported %v", got)
		}
	})
}

func TestStoppedTasksAreForgottenInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		a := w.start(t, dir)
		defer a.kill()
		task := newFakeTask("t", box("a", "exit:0"))
		task.Volumes = []acs.Volume{
			{Name: "own"}, {Name: "scratch", DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{Scope: "task"}},
			{Name: "shared", DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{Scope: "shared"}},
			{Name: "machine", Host: &acs.HostVolume{SourcePath: "/data"}},
		}
		a.take(t, task)
		later(2 * time.Hour)
		if w.count() != 1 || strings.Contains(w.story(), "volume") {
			t.Error("its container was removed too early")
		}
		later(2 * time.Hour)
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if w.count() != 0 || !slices.Equal(left, []string{filepath.Join(dir, "images")}) || len(a.engine.tokens) != 0 {
			t.Errorf("left besides what is known of images: %d containers, %v", w.count(), left)
		}
		if got := w.story(); !strings.HasSuffix(got, "remove volume ecs-t-own, remove volume ecs-t-scratch") {
			t.Errorf("the task's own volumes: %s", got)
		}
	})
}

// TestAGPUIsHeldUntilItsContainerIsGone: a start that fails may have started something all the same.
func TestAGPUIsHeldUntilItsContainerIsGone(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		first := pinned(newFakeTask("first", box("a", "hung@10s")), "GPU-1")
		second := pinned(newFakeTask("second", box("a", "run")), "GPU-1")
		a.take(t, first)
		a.take(t, second)
		later(5 * time.Second)
		if got := a.statuses(second.Arn); len(got) != 0 || a.clash != "" {
			t.Errorf("while the first's container runs, the second reports %v: GPU %s is in both", got, a.clash)
		}
		later(30 * time.Second)
		if got := a.statuses(first.Arn); !slices.Equal(got, []string{"STOPPED"}) {
			t.Errorf("the first reports %v", got)
		}
		if got := a.statuses(second.Arn); !slices.Equal(got, []string{"RUNNING"}) || a.clash != "" {
			t.Errorf("then the second reports %v: GPU %s is in both", got, a.clash)
		}
	})
}

func TestAwsvpcTasksHaveANetwork(t *testing.T) {
	var told Network
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"))
		task.NetworkMode = "awsvpc"
		a.take(t, task)
		if n := a.containers["t-a"].spec.Network; n.Mode != "netns" || n.NetNS != "/run/netns/t" || told.IP != "10.0.0.2" {
			t.Errorf("network %+v, told %+v", n, told)
		}
		a.take(t, stopOf(task))
		if len(a.networks) != 0 {
			t.Errorf("left: %v", a.networks)
		}
	}, func(o *Options) { o.Connected = func(_ string, n Network) { told = n } })
}

func TestAwsvpcWithoutNetworksFails(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"))
		task.NetworkMode = "awsvpc"
		a.take(t, task)
		if r := a.last(task.Arn); r.Status != "STOPPED" || !strings.HasPrefix(r.Reason, "ResourceInitializationError") {
			t.Errorf("got %+v", r)
		}
	}, func(o *Options) { o.Networks = nil })
}

// shipper is a log driver that takes a while.
type shipper struct{ shipped chan string }

func (*shipper) Prepare(context.Context, *LogSource) (string, error) { return "by the way", nil }

func (s *shipper) Ship(ctx context.Context, c *LogSource, cursor string, saved func(string)) error {
	if !pause(ctx, 7*time.Second) {
		return ctx.Err()
	}
	saved("end")
	s.shipped <- c.ID + " from " + cursor
	return nil
}

func logged(c acs.Container) acs.Container {
	c.DockerConfig.HostConfig = `{"LogConfig":{"Type":"awslogs","Config":{"awslogs-group":"g"}}}`
	return c
}

func TestOutputIsShippedBeforeTheEndIsReported(t *testing.T) {
	s := &shipper{make(chan string, 10)}
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", logged(box("a", "exit:0")))
		a.take(t, task)
		later(6 * time.Second)
		if a.last(task.Arn).Status == "STOPPED" {
			t.Error("reported before its output was shipped")
		}
		later(time.Second)
		if a.last(task.Arn).Status != "STOPPED" || <-s.shipped != "t-a from " {
			t.Error("not reported, or not shipped")
		}
		if got := a.last(task.Arn).Containers[0].Reason; got != "by the way" {
			t.Errorf("noted %q", got)
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

// TestProxyLogIsPrepared: a container doesn't start beside a proxy for Service Connect whose log has nowhere to go.
func TestProxyLogIsPrepared(t *testing.T) {
	s := &strict{groups: map[string]bool{"there": true}}
	alone(t, func(t *testing.T, a *agent) {
		for group, want := range map[string]string{
			"there": "",
			"none":  "ResourceInitializationError: failed to initialize logging driver: no group none for ecs-service-connect-1",
		} {
			task := newFakeTask(group, box("a", "exit:0"))
			task.ServiceConnect = &acs.ServiceConnect{
				Container: "ecs-service-connect-1",
				Log:       &acs.LogConfig{Type: "awslogs", Config: map[string]string{"awslogs-group": group}},
			}
			a.take(t, task)
			later(time.Minute)
			if got := a.last(task.Arn); got.Status != "STOPPED" || got.Containers[0].Reason != want {
				t.Errorf("%s: %+v", group, got)
			}
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

// strict is a log driver that needs its group.
type strict struct {
	shipper
	groups map[string]bool
}

func (s *strict) Prepare(_ context.Context, c *LogSource) (string, error) {
	if group := c.Options["awslogs-group"]; !s.groups[group] {
		return "", fmt.Errorf("no group %s for %s", group, c.Container)
	}
	return "", nil
}

// troubled is a log driver that fails at first, as all do while a container engine restarts.
type troubled struct {
	shipper
	fail []error
}

func (s *troubled) Ship(ctx context.Context, c *LogSource, cursor string, saved func(string)) error {
	if len(s.fail) == 0 {
		return s.shipper.Ship(ctx, c, cursor, saved)
	}
	saved("line 3")
	err := s.fail[0]
	s.fail = s.fail[1:]
	return err
}

func TestOutputIsShippedOnAfterTrouble(t *testing.T) {
	s := &troubled{shipper{make(chan string, 10)}, []error{io.ErrUnexpectedEOF, runtime.ErrUnavailable}}
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", logged(box("a", "exit:0")))
		a.take(t, task)
		later(9 * time.Second)
		if a.last(task.Arn).Status == "STOPPED" {
			t.Error("reported before its output was shipped")
		}
		later(time.Second)
		if got := <-s.shipped; got != "t-a from line 3" || a.last(task.Arn).Status != "STOPPED" {
			t.Errorf("shipped %q, reported %v", got, a.statuses(task.Arn))
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

func TestOutputOfAContainerThatIsGoneIsGivenUp(t *testing.T) {
	s := &troubled{shipper{make(chan string, 10)}, []error{runtime.ErrNotFound}}
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", logged(box("a", "exit:0")))
		a.take(t, task)
		later(time.Second)
		if a.last(task.Arn).Status != "STOPPED" {
			t.Errorf("reported %v", a.statuses(task.Arn))
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

// TestWhatTheRuntimeIgnores: a container's reason says, while it runs and after, what it doesn't have, beside what its log driver says.
func TestWhatTheRuntimeIgnores(t *testing.T) {
	s := &shipper{make(chan string, 10)}
	alone(t, func(t *testing.T, a *agent) {
		c := logged(box("a", "exit:3@1m"))
		c.DockerConfig.Config = `{"User":"nobody"}`
		a.take(t, newFakeTask("t", c))
		const want = "by the way; the runtime fake ignores user, ulimits"
		if r := a.last(arnPrefix + "t"); r.Status != "RUNNING" || r.Containers[0].Reason != want {
			t.Errorf("reported %+v", r)
		}
		later(2 * time.Minute)
		if r := a.last(arnPrefix + "t"); r.Status != "STOPPED" || r.Containers[0].Reason != want || r.Reason != "" {
			t.Errorf("reported %+v", r)
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

// TestOutputGoesOnAfterARestart: what a container prints after its restart is shipped behind what it printed before, however long that took.
func TestOutputGoesOnAfterARestart(t *testing.T) {
	s := &troubled{shipper{make(chan string, 10)}, []error{io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF}}
	alone(t, func(t *testing.T, a *agent) {
		c := logged(box("a", "exit:0@61s"))
		c.RestartPolicy = &acs.RestartPolicy{Enabled: true, RestartAttemptPeriod: 60}
		a.take(t, newFakeTask("t", c))
		later(65 * time.Second)
		if a.starts["t-a"] != 2 || a.count() != 1 {
			t.Fatalf("%s, %d containers", a.story(), a.count())
		}
		later(time.Minute)
		close(s.shipped)
		var got []string
		for from := range s.shipped {
			got = append(got, from)
		}
		if !slices.Equal(got, []string{"t-a from line 3", "t-a from end"}) {
			t.Error(got)
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} })
}

func TestTheNextAgentShipsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shipper{make(chan string, 10)}
		w, dir := newWorld(), t.TempDir()
		ships := func(o *Options) { o.Shippers = map[string]Shipper{"awslogs": s} }
		a := w.start(t, dir, ships)
		a.take(t, newFakeTask("t", logged(box("a", "exit:0@1s"))))
		later(2 * time.Second)
		a.kill()
		if err := os.WriteFile(filepath.Join(dir, "t-a.cursor"), []byte("line 7"), 0o600); err != nil {
			t.Fatal(err)
		}
		b := w.start(t, dir, ships)
		defer b.kill()
		later(10 * time.Second)
		if got := <-s.shipped; got != "t-a from line 7" {
			t.Error(got)
		}
	})
}

func TestDrain(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "stubborn"))
		a.take(t, task)
		if err := a.engine.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.last(task.Arn).Status != "STOPPED" {
			t.Error("not reported")
		}
	})
}

func TestRemind(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "exit:0"))
		a.take(t, task)
		a.engine.Remind(task.Arn)
		a.engine.Remind("unknown")
		synctest.Wait()
		if got := a.statuses(task.Arn); !slices.Equal(got, []string{"RUNNING", "STOPPED", "STOPPED"}) {
			t.Error(got)
		}
	})
}

// TestLongNames: a task definition's names may be longer than the runtimes' can be, and still tell containers apart.
func TestLongNames(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		long := strings.Repeat("n", 254)
		a.take(t, newFakeTask(strings.Repeat("0", 32), box(long+"a", "run"), box(long+"b", "run")))
		later(time.Minute)
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.containers) != 2 {
			t.Errorf("there are %d containers", len(a.containers))
		}
		for id := range a.containers {
			if len(id) > 200 {
				t.Errorf("a runtime is asked for the name %s", id)
			}
		}
	})
}

// fakeGroups are control groups that only exist here.
type fakeGroups struct{ *agent }

func (g fakeGroups) Create(_ context.Context, id string, l taskgroup.Limits) (string, error) {
	return "/ecs/" + id, g.do(func() error { g.event("group %d %d %d", l.CPUShares, l.CPUQuotaMilli, l.MemoryBytes>>20); return nil })
}

func (g fakeGroups) Delete(context.Context, string) error {
	return g.do(func() error { g.event("no group"); return nil })
}

// TestTaskGroup: a task's own limits bind it as a whole, where the node can do that, else each of its containers.
func TestTaskGroup(t *testing.T) {
	for _, grouped := range []bool{true, false} {
		alone(t, func(t *testing.T, a *agent) {
			if grouped {
				a.engine.opts.Groups = fakeGroups{a}
			}
			task := newFakeTask("t", box("a", "exit:0@1s"), box("b", "exit:0@1s"))
			task.CPU, task.Memory = 0.5, 128
			a.take(t, task)
			synctest.Wait()
			parent, quota, story := "", int64(500), "start a, start b, end a, end b"
			if grouped {
				parent, quota, story = "/ecs/t", 0, "group 512 500 128, start a, start b, end a, end b, no group"
			}
			for id, c := range a.containers {
				if c.spec.CgroupParent != parent || c.spec.CPUQuotaMilli != quota {
					t.Errorf("%s is in %q, with %d", id, c.spec.CgroupParent, c.spec.CPUQuotaMilli)
				}
			}
			later(time.Minute)
			if got := strings.NewReplacer("start b, start a", "start a, start b", "end b, end a", "end a, end b").Replace(a.story()); got != story {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestAddressOfProcesses: a task of plain processes in mode awsvpc has the machine's address.
func TestAddressOfProcesses(t *testing.T) {
	var got []string
	alone(t, func(t *testing.T, a *agent) {
		a.engine.opts.Runtime = processes{a}
		task := newFakeTask("t", box("a", "run"))
		task.NetworkMode = "awsvpc"
		a.take(t, task)
		if a.last(task.Arn).Status != "RUNNING" || !slices.Equal(got, []string{task.Arn + " 10.0.0.1"}) {
			t.Errorf("told %q", got)
		}
		if n := a.engine.Networks()[task.Arn]; n.IP != "10.0.0.1" {
			t.Errorf("after a reconnect it tells %+v", n)
		}
	}, func(o *Options) {
		o.Address = "10.0.0.1"
		o.Connected = func(arn string, n Network) { got = append(got, arn+" "+n.IP) }
	})
}

// TestLoopbackOfProcesses: on a machine that knows itself by loopback alone each task in mode awsvpc has an address there that's its own and lasts,
// so tasks can listen on the same port.
func TestLoopbackOfProcesses(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		a.engine.opts.Runtime = processes{a}
		seen := map[string]bool{}
		for _, name := range []string{"t", "u"} {
			task := newFakeTask(name, box("a", "run"))
			task.NetworkMode = "awsvpc"
			a.take(t, task)
			ip := a.engine.Networks()[task.Arn].IP
			if addr, err := netip.ParseAddr(ip); err != nil || !addr.IsLoopback() || ip == "127.0.0.1" || seen[ip] {
				t.Errorf("%s has %q beside %v", name, ip, seen)
			}
			seen[ip] = true
		}
	}, func(o *Options) { o.Address = "127.0.0.1" })
}

// processes is the world's runtime under the name of plain processes.
type processes struct{ *agent }

func (processes) Name() string { return "process" }

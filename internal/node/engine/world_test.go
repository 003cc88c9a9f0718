package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// world is a machine, and what the control plane heard: all that outlives an agent. What a container
// does is its image: "run", "exit:1", "exit:0@5s", "oom@1s", "healthy@3s", "pullfail", "createfail",
// "startfail", "hung@10s" (the runtime hangs once it has started), "slowpull@5s", "slowstart@5s", "stubborn"
// (it does not stop), with options after a comma.
type world struct {
	mu         sync.Mutex
	containers map[string]*fakeContainer
	events     []string       // starts and stops, in order
	starts     map[string]int // by id
	clash      string         // a GPU that two tasks had at once
	reports    []Report
	refuse     func(Report) error
	networks   map[string]bool
	began      time.Time
	pulls      atomic.Int32
	pulledWith *runtime.RegistryAuth // by the last pull
	stored     map[string]bool       // images that are here
	stays      map[string]error      // those that don't go, and why
}

type fakeContainer struct {
	spec    runtime.Spec
	status  runtime.Status
	started time.Time
	exit    runtime.Exit
	done    chan struct{}
}

func newWorld() *world {
	return &world{
		containers: map[string]*fakeContainer{}, starts: map[string]int{}, networks: map[string]bool{}, began: time.Now(), stored: map[string]bool{},
	}
}

func (w *world) event(format string, args ...any) {
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

// story is what has happened, for tests that look more than once.
func (w *world) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.events, ", ")
}

// agent is one agent's hands on the world. When it dies nothing that it does has an effect any more.
type agent struct {
	*world
	engine *Engine
	cancel context.CancelFunc
	ended  chan struct{}
	left   int // steps until it dies; 0 is never
	dead   bool
}

var errDead = errors.New("the agent is dead")

// step counts a step, and reports whether the agent is still alive after it.
func (a *agent) step() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left > 0 {
		if a.left--; a.left == 0 {
			a.dead = true
			a.cancel()
		}
	}
	if a.dead {
		return errDead
	}
	return nil
}

// do is a step with an effect: an agent can die before it, or after it without learning of it.
func (a *agent) do(effect func() error) error {
	if err := a.step(); err != nil {
		return err
	}
	a.mu.Lock()
	err := effect()
	a.mu.Unlock()
	if dead := a.step(); dead != nil {
		return dead
	}
	return err
}

// start starts an agent on the world, with its records in dir.
func (w *world) start(t *testing.T, dir string, change ...func(*Options)) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{world: w, cancel: cancel, ended: make(chan struct{})}
	o := Options{Dir: dir, Owner: "me", Runtime: a, Reporter: a, Networks: networks{a}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(&o)
	}
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	e.write = func(path string, r *Record) error { return a.do(func() error { return writeLightly(path, r) }) }
	a.engine = e
	go func() {
		defer close(a.ended)
		e.Run(ctx) //nolint:errcheck // it ends with ctx
	}()
	synctest.Wait()
	return a
}

// writeLightly is Record.write without syncing the disk, which is slow and outlasts no test.
func writeLightly(path string, r *Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return file.Replace(path, b, false)
}

// kill ends the agent between two steps.
func (a *agent) kill() {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cancel()
	<-a.ended
}

func (a *agent) Name() string { return "fake" }

// Ignored says that containers have no users of their own.
func (a *agent) Ignored(spec *runtime.Spec) []string {
	if spec.User != "" {
		return []string{"user", "ulimits"}
	}
	return nil
}

func (a *agent) RemoveVolume(_ context.Context, name string) error {
	return a.do(func() error { a.event("remove volume %s", name); return nil })
}

func (a *agent) NetNS(context.Context, string) (string, error) { return "", nil }

// behaviour reads an image: what it does, its number, and after how long.
func behaviour(image string) (what string, code int, after time.Duration) {
	what, at, _ := strings.Cut(image, "@")
	after, _ = time.ParseDuration(at)
	what, number, _ := strings.Cut(what, ":")
	code, _ = strconv.Atoi(number)
	return what, code, after
}

func (a *agent) Pull(ctx context.Context, image string, auth *runtime.RegistryAuth) (string, error) {
	if err := a.step(); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.pulledWith = auth
	a.mu.Unlock()
	switch what, _, after := behaviour(image); what {
	case "pullfail":
		a.pulls.Add(1)
		return "", runtime.ErrImageNotFound
	case "misnamed":
		a.pulls.Add(1)
		return "", runtime.ErrImageName
	case "flaky": // until its time
		a.pulls.Add(1)
		if time.Since(a.began) < after {
			return "", errors.New("connection reset")
		}
	case "down": // the runtime itself is, until its time
		if time.Since(a.began) < after {
			return "", runtime.ErrUnavailable
		}
	case "slowpull":
		if !pause(ctx, after) {
			return "", ctx.Err()
		}
	}
	a.mu.Lock()
	a.stored[image] = true
	a.mu.Unlock()
	return "sha256:" + image, nil
}

func (a *agent) Stored(_ context.Context, image string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stored[image] {
		return "", runtime.ErrImageNotFound
	}
	return "sha256:" + image, nil
}

// ImagesSize counts the images.
func (a *agent) ImagesSize(context.Context) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(len(a.stored)), nil
}

func (a *agent) RemoveImage(_ context.Context, image string) error {
	return a.do(func() error {
		if err := a.stays[image]; err != nil {
			return err
		}
		delete(a.stored, image)
		return nil
	})
}

// Images knows two images that were used long ago.
func (a *agent) Images() (map[string]time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]time.Time{}
	for image, ago := range map[string]time.Duration{"old": 2 * time.Hour, "older": 3 * time.Hour} {
		if a.stored[image] {
			all[image] = time.Now().Add(-ago)
		}
	}
	return all, nil
}

func (a *agent) Create(_ context.Context, spec *runtime.Spec) error {
	return a.do(func() error {
		if strings.HasPrefix(spec.Image, "createfail") {
			return errors.New("no")
		}
		if a.containers[spec.ID] == nil {
			a.containers[spec.ID] = &fakeContainer{spec: *spec, status: runtime.Created, done: make(chan struct{})}
		}
		return nil
	})
}

func (a *agent) Start(ctx context.Context, id string) error {
	if what, _, after := behaviour(a.imageOf(id)); what == "slowstart" && !pause(ctx, after) {
		return ctx.Err()
	}
	return a.do(func() error {
		c := a.containers[id]
		if c == nil {
			return runtime.ErrNotFound
		}
		what, code, after := behaviour(c.spec.Image)
		if what == "startfail" {
			return errors.New("no")
		}
		if c.status != runtime.Created {
			return nil
		}
		a.checkGPUs(c)
		c.status, c.started = runtime.Running, time.Now()
		a.starts[id]++
		a.event("start %s", c.spec.Labels["com.amazonaws.ecs.container-name"])
		switch what {
		case "exit":
			time.AfterFunc(after, func() { a.exited(id, runtime.Exit{Code: code}) })
		case "hung": // a runtime that does what it is told and does not say so
			return context.DeadlineExceeded
		case "oom":
			time.AfterFunc(after, func() { a.exited(id, runtime.Exit{Code: 137, OOMKilled: true}) })
		}
		return nil
	})
}

func (w *world) imageOf(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.containers[id]; c != nil {
		return c.spec.Image
	}
	return ""
}

func (a *agent) Revive(_ context.Context, id string, ended time.Time) error {
	return a.do(func() error {
		c := a.containers[id]
		if c == nil {
			return runtime.ErrNotFound
		}
		if c.status == runtime.Exited && c.exit.FinishedAt.Equal(ended) {
			c.status, c.done = runtime.Created, make(chan struct{})
		}
		return nil
	})
}

// checkGPUs notes when a GPU comes to be in two tasks.
func (w *world) checkGPUs(c *fakeContainer) {
	for _, other := range w.containers {
		if other.status != runtime.Running || other.spec.Labels["com.amazonaws.ecs.task-arn"] == c.spec.Labels["com.amazonaws.ecs.task-arn"] {
			continue
		}
		for _, id := range c.spec.GPUs {
			if slices.Contains(other.spec.GPUs, id) {
				w.clash = id
			}
		}
	}
}

func (w *world) exited(id string, e runtime.Exit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.containers[id]
	if c == nil || c.status != runtime.Running {
		return
	}
	e.FinishedAt = time.Now()
	c.status, c.exit = runtime.Exited, e
	w.event("end %s", c.spec.Labels["com.amazonaws.ecs.container-name"])
	close(c.done)
}

func (a *agent) get(id string) (*fakeContainer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.containers[id]; c != nil {
		return c, nil
	}
	return nil, runtime.ErrNotFound
}

func (a *agent) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	c, err := a.get(id)
	if err != nil {
		return runtime.Exit{}, err
	}
	select {
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	case <-c.done:
		return c.exit, a.step()
	}
}

func (a *agent) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := a.step(); err != nil {
		return err
	}
	c, err := a.get(id)
	if err != nil {
		return err
	}
	if what, _, after := behaviour(c.spec.Image); what == "hung" && time.Since(c.started) < after {
		return errors.New("the runtime hangs")
	}
	code := 143
	if strings.HasPrefix(c.spec.Image, "stubborn") {
		code = 137
		select {
		case <-time.After(grace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.exited(id, runtime.Exit{Code: code})
	return a.step()
}

func (a *agent) Remove(_ context.Context, id string) error {
	return a.do(func() error {
		if c := a.containers[id]; c != nil && c.status == runtime.Running {
			return errors.New("it runs")
		}
		delete(a.containers, id)
		return nil
	})
}

func (a *agent) List(_ context.Context, owner string) ([]runtime.Container, error) {
	if err := a.step(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []runtime.Container
	for id, c := range a.containers {
		if c.spec.Owner == owner {
			out = append(out, runtime.Container{ID: id, Status: c.status, StartedAt: c.started, Exit: c.exit})
		}
	}
	return out, nil
}

func (a *agent) Exec(_ context.Context, id string, _ runtime.Exec) (int, error) {
	c, err := a.get(id)
	if err != nil {
		return 0, err
	}
	if what, _, after := behaviour(c.spec.Image); what == "healthy" && time.Since(c.started) >= after {
		return 0, nil
	}
	return 1, nil
}

func (a *agent) Stats(context.Context, string) (runtime.Stats, error) { return runtime.Stats{}, nil }

func (a *agent) Logs(context.Context, string, string, bool, func(runtime.Line) error) error {
	return nil
}

func (a *agent) Report(_ context.Context, r Report) error {
	return a.do(func() error {
		if a.refuse != nil {
			if err := a.refuse(r); err != nil {
				return err
			}
		}
		a.reports = append(a.reports, r)
		return nil
	})
}

// networks are the same hands, as Networks has them.
type networks struct{ *agent }

func (n networks) Create(_ context.Context, id string) (string, string, string, error) {
	err := n.do(func() error { n.networks[id] = true; return nil })
	return "/run/netns/" + id, "10.0.0.2", "02:00:00:00:00:02", err
}

func (n networks) Delete(_ context.Context, id string) error {
	return n.do(func() error { delete(n.networks, id); return nil })
}

// statuses lists what was reported of a task.
func (w *world) statuses(arn string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.reports {
		if r.TaskArn == arn {
			out = append(out, r.Status)
		}
	}
	return out
}

// last is the last report of a task.
func (w *world) last(arn string) Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range slices.Backward(w.reports) {
		if r.TaskArn == arn {
			return r
		}
	}
	return Report{}
}

// count is how many containers there are.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.containers)
}

// Builders of tasks.

const arnPrefix = "arn:aws:ecs:us-east-1:000000000000:task/default/"

func newFakeTask(id string, containers ...acs.Container) acs.Task {
	return acs.Task{
		Arn: arnPrefix + id, Family: "f", Version: "1", DesiredStatus: "RUNNING", NetworkMode: "bridge",
		TaskClusterArn: "arn:aws:ecs:us-east-1:000000000000:cluster/default", Containers: containers,
	}
}

func stopOf(t acs.Task) acs.Task {
	t.DesiredStatus = "STOPPED"
	return t
}

// box is a container: its name, its image, and names that it waits for as name=CONDITION.
func box(name, image string, after ...string) acs.Container {
	c := acs.Container{Name: name, Image: image, Essential: true, CPU: 1024, Memory: 512}
	for _, d := range after {
		on, condition, _ := strings.Cut(d, "=")
		c.DependsOn = append(c.DependsOn, acs.ContainerDependency{ContainerName: on, Condition: condition})
	}
	return c
}

func optional(c acs.Container) acs.Container {
	c.Essential = false
	return c
}

func checked(c acs.Container, h acs.Healthcheck) acs.Container {
	h.Test = []string{"CMD", "true"}
	b, _ := json.Marshal(acs.Config{Healthcheck: &h})
	c.DockerConfig.Config = string(b)
	return c
}

func pinned(t acs.Task, ids ...string) acs.Task {
	for _, id := range ids {
		t.Associations = append(t.Associations, acs.Association{Type: "gpu", Name: id, Containers: []string{t.Containers[0].Name}})
	}
	return t
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/runtime"
)

const defaultStopTimeout = 30 * time.Second

// bringUp pulls, creates and starts a container.
func (t *task) bringUp(ctx context.Context, c *acs.Container) {
	if c.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.StartTimeout)*time.Second)
		defer cancel()
	}
	err := t.tryUp(ctx, c)
	if err == nil || ctx.Err() != nil && c.StartTimeout == 0 {
		return // it runs, or the agent ends and the next one goes on
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		rc.Status, rc.Reason = Stopped, err.Error()
		r.Failure = err.Error()
	})
}

func (t *task) tryUp(ctx context.Context, c *acs.Container) error {
	rt := t.engine.opts.Runtime
	t.update(func(r *Record) {
		if r.PullStartedAt.IsZero() {
			r.PullStartedAt = time.Now().UTC()
		}
	})
	digest, err := rt.Pull(ctx, c.Image, nil)
	t.update(func(r *Record) { r.PullStoppedAt = time.Now().UTC() })
	if err != nil {
		return fmt.Errorf("CannotPullContainerError: %w", err)
	}
	spec, ports, err := t.spec(c)
	if err != nil {
		return fmt.Errorf("CannotCreateContainerError: %w", err)
	}
	if source := t.logSource(c); source != nil {
		if err := t.engine.opts.Shipper.Prepare(ctx, source); err != nil {
			return fmt.Errorf("ResourceInitializationError: %w", err)
		}
	}
	if err := rt.Create(ctx, spec); err != nil {
		return fmt.Errorf("CannotCreateContainerError: %w", err)
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		rc.Status, rc.Digest, rc.Ports = Created, digest, ports
	})
	if err := rt.Start(ctx, spec.ID); err != nil {
		return fmt.Errorf("CannotStartContainerError: %w", err)
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		rc.Status, rc.Ran, rc.StartedAt = Running, true, time.Now().UTC()
	})
	return nil
}

// watch follows a running container to its end: its health, its output, its exit.
func (t *task) watch(ctx context.Context, c *acs.Container) {
	id := t.containerID(c.Name)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	if check := healthCheck(c); check != nil {
		t.work.Go(func() { t.checkHealth(watching, c, check) })
	}
	shipped := make(chan struct{})
	t.work.Go(func() {
		defer close(shipped)
		t.ship(ctx, c)
	})
	exit, err := t.engine.opts.Runtime.Wait(ctx, id)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		exit = runtime.Exit{Code: 137, FinishedAt: time.Now().UTC(), Error: err.Error()}
	}
	cancel()
	select { // the output is there before the end is reported, unless that takes too long
	case <-shipped:
	case <-time.After(shipGrace):
	}
	t.ended(ctx, c, exit)
}

// shipGrace is how long a container's end waits for its last lines to be taken.
const shipGrace = 10 * time.Second

// ended notes a container's end, or starts it again where its policy says so.
func (t *task) ended(ctx context.Context, c *acs.Container, exit runtime.Exit) {
	t.mu.Lock()
	again := t.restarts(c, exit)
	t.mu.Unlock()
	if again {
		if err := t.engine.opts.Runtime.Remove(ctx, t.containerID(c.Name)); err == nil {
			t.update(func(r *Record) {
				rc := r.Containers[c.Name]
				*rc = Container{Ran: true, Restarts: rc.Restarts + 1}
			})
			return
		}
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		code := exit.Code
		rc.Status, rc.ExitCode, rc.FinishedAt = Stopped, &code, exit.FinishedAt
		switch {
		case exit.OOMKilled:
			rc.Reason = "OutOfMemoryError: Container killed due to memory usage"
		case exit.Error != "":
			rc.Reason = exit.Error
		}
		if c.Essential && r.ExecutionStoppedAt.IsZero() || r.stopped() {
			r.ExecutionStoppedAt = time.Now().UTC()
		}
	})
}

// restarts says whether a container's restart policy starts it again: it has run for the policy's
// period, a minute where it names none, and its exit code is not one that the policy ignores.
func (t *task) restarts(c *acs.Container, exit runtime.Exit) bool {
	p := c.RestartPolicy
	if p == nil || !p.Enabled || t.rec.Stop || t.rec.doomed() || slices.Contains(p.IgnoredExitCodes, int64(exit.Code)) {
		return false
	}
	period := time.Duration(p.RestartAttemptPeriod) * time.Second
	if period == 0 {
		period = time.Minute
	}
	return exit.FinishedAt.Sub(t.rec.Containers[c.Name].StartedAt) >= period
}

// bringDown stops a container; watch notes its end.
func (t *task) bringDown(ctx context.Context, c *acs.Container) {
	grace := defaultStopTimeout
	if c.StopTimeout > 0 {
		grace = time.Duration(c.StopTimeout) * time.Second
	}
	err := t.engine.opts.Runtime.Stop(ctx, t.containerID(c.Name), grace)
	if err != nil && ctx.Err() == nil && !errors.Is(err, runtime.ErrNotFound) {
		t.engine.opts.Log.Error("cannot stop a container", "container", t.containerID(c.Name), "error", err)
		select { // run comes back to it
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return
	}
	t.waitStopped(ctx, c.Name)
}

// waitStopped returns once watch has noted the container's end, so that it isn't stopped again.
func (t *task) waitStopped(ctx context.Context, name string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		st := t.rec.Containers[name].Status
		t.mu.Unlock()
		if st == Stopped {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// logSource is where a container's output goes, or nil where it stays here.
func (t *task) logSource(c *acs.Container) *LogSource {
	host := hostConfig(c)
	if t.engine.opts.Shipper == nil || host.LogConfig == nil || host.LogConfig.Type != "awslogs" {
		return nil
	}
	return &LogSource{
		Driver: host.LogConfig.Type, Options: host.LogConfig.Config, TaskArn: t.rec.Task.Arn,
		Container: c.Name, ID: t.containerID(c.Name), Runtime: t.engine.opts.Runtime,
	}
}

// ship sends a container's output where it goes, from where it was left.
func (t *task) ship(ctx context.Context, c *acs.Container) {
	source := t.logSource(c)
	if source == nil {
		return
	}
	t.mu.Lock()
	rc := *t.rec.Containers[c.Name]
	t.mu.Unlock()
	if rc.Shipped {
		return
	}
	err := t.engine.opts.Shipper.Ship(ctx, source, rc.LogCursor, func(cursor string) {
		t.update(func(r *Record) { r.Containers[c.Name].LogCursor = cursor })
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		t.engine.opts.Log.Error("cannot ship a container's output", "container", source.ID, "error", err)
	}
	t.update(func(r *Record) { r.Containers[c.Name].Shipped = true })
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Time limits for stopping, creating and starting a container, as in Amazon's agent.
const (
	defaultStopTimeout = 30 * time.Second
	startLimit         = 3 * time.Minute // not startTimeout, which is how long others wait for a container's state
	createTimeout      = 4 * time.Minute
	pullTimeout        = 2 * time.Hour
)

// How pulls are retried, as in Amazon's agent.
const (
	pullTries    = 5
	minPullPause = 1100 * time.Millisecond
	maxPullPause = 5 * time.Second
)

// runContainer takes a container from its present state to its end, step by step. Each step can be repeated.
func (t *task) runContainer(ctx context.Context, c *acs.Container) {
	for ctx.Err() == nil {
		switch now, _ := t.container(c.Name); now.Status {
		case Stopped:
			return
		case Running:
			t.watch(ctx, c)
		default:
			t.bringUp(ctx, c)
		}
	}
}

// neverStarted is the exit code of a container whose dependencies can't be met any more, as with Amazon's agent: as if it had got SIGTERM.
const neverStarted = 143

// bringUp starts a container once its dependencies allow, or gives it up.
func (t *task) bringUp(ctx context.Context, c *acs.Container) {
	var never string
	err := t.await(ctx, func() (ready bool) {
		ready, never = t.ready(c)
		return ready || never != "" || t.rec.Halting()
	})
	if err != nil {
		return
	}
	if never != "" {
		t.giveUp(ctx, c, "CannotStartContainerError: "+never, new(neverStarted))
		return
	}
	if t.halted.Err() != nil {
		t.giveUp(ctx, c, "", nil)
		return
	}
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.halted, cancel)()
	err = t.start(ctx, starting, c)
	switch {
	case err == nil || ctx.Err() != nil: // it runs, or this agent ends and the next one continues
	case t.halted.Err() != nil:
		t.giveUp(ctx, c, "", nil)
	default:
		t.giveUp(ctx, c, err.Error(), nil)
	}
}

// start pulls, creates and starts a container, or starts one again that has ended. starting limits everything before the start itself.
func (t *task) start(ctx, starting context.Context, c *acs.Container) error {
	id, err := t.create(starting, c)
	if err != nil {
		return err
	}
	if err := t.attendContainer(starting, c, id); err != nil {
		return fmt.Errorf("ResourceInitializationError: %w", err)
	}
	if t.halted.Err() != nil {
		return t.halted.Err()
	}
	began := time.Now()
	err = whenUp(starting, func() error {
		return within(ctx, startLimit, "started", func(ctx context.Context) error { return t.engine.opts.Runtime.Start(ctx, id) })
	})
	t.engine.starts.observe(began, err)
	if err != nil {
		return failure("CannotStartContainerError", err)
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		rc.Status, rc.Ran, rc.StartedAt = Running, true, time.Now().UTC()
	})
	return nil
}

// revive makes a container that its policy restarts ready to start again, with what it wrote.
func (t *task) revive(ctx context.Context, c *acs.Container) (id string, err error) {
	rc, id := t.container(c.Name)
	err = whenUp(ctx, func() error {
		return within(ctx, startLimit, "started", func(ctx context.Context) error { return t.engine.opts.Runtime.Revive(ctx, id, rc.EndedAt) })
	})
	if err != nil {
		return "", failure("CannotStartContainerError", err)
	}
	return id, nil
}

// create prepares everything a container needs and creates it.
func (t *task) create(ctx context.Context, c *acs.Container) (id string, err error) {
	if rc, _ := t.container(c.Name); rc.isRestart() {
		return t.revive(ctx, c)
	}
	auth, err := t.registryAuth(ctx, c)
	if err != nil && c.RegistryAuthentication.Type == "ecr" {
		return "", failure("CannotPullECRContainerError", err)
	}
	if err != nil {
		return "", fmt.Errorf("ResourceInitializationError: unable to pull secrets or registry auth: %w", err)
	}
	digest, err := t.pull(ctx, c, auth)
	if err != nil {
		return "", failure("CannotPullContainerError", err)
	}
	if err := t.awaitPrepared(ctx); err != nil {
		return "", err
	}
	spec, ports, err := t.spec(c)
	if err != nil {
		return "", fmt.Errorf("CannotCreateContainerError: %w", err)
	}
	if err := t.addRouting(ctx, c, spec); err != nil {
		return "", fmt.Errorf("ResourceInitializationError: %w", err)
	}
	if err := t.addFiles(ctx, c, spec); err != nil {
		return "", fmt.Errorf("ResourceInitializationError: failed to download env files: %w", err)
	}
	if err := t.addSecrets(ctx, c, spec); err != nil {
		return "", fmt.Errorf("ResourceInitializationError: unable to pull secrets or registry auth: %w", err)
	}
	if err := checkLogSecrets(c); err != nil {
		return "", fmt.Errorf("ResourceInitializationError: failed to initialize logging driver: %w", err)
	}
	note, err := t.prepareLogs(ctx, c)
	if err != nil {
		return "", fmt.Errorf("ResourceInitializationError: failed to initialize logging driver: %w", err)
	}
	note = joinNotes(note, t.engine.ignored(spec))
	t.update(func(r *Record) { // before creating it: a second attempt must use the same ports
		rc := r.Containers[c.Name]
		rc.Status, rc.Digest, rc.Ports, rc.Reason, rc.CreatedAt = Created, digest, ports, note, time.Now().UTC()
	})
	err = whenUp(ctx, func() error {
		return within(ctx, createTimeout, "created", func(ctx context.Context) error { return t.engine.opts.Runtime.Create(ctx, spec) })
	})
	if err != nil {
		return "", failure("CannotCreateContainerError", err)
	}
	t.identify(ctx, c, spec.ID)
	return spec.ID, nil
}

// partial is a runtime that can't do all that a container may be asked to have.
type partial interface {
	// Ignored lists what a container won't have, in a container definition's words.
	Ignored(*runtime.Spec) []string
}

// ignored says what a container won't have, or "".
func (e *Engine) ignored(spec *runtime.Spec) string {
	rt, ok := e.opts.Runtime.(partial)
	if !ok {
		return ""
	}
	names := rt.Ignored(spec)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the runtime %s ignores %s", e.opts.Runtime.Name(), strings.Join(names, ", "))
}

// joinNotes joins what users should know of a container.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// pull pulls the image. A task's pull times span those of all its containers.
func (t *task) pull(ctx context.Context, c *acs.Container, auth *runtime.RegistryAuth) (digest string, err error) {
	t.mu.Lock()
	if t.rec.PullStartedAt.IsZero() {
		t.rec.PullStartedAt = time.Now().UTC() // the next update saves it
	}
	t.mu.Unlock()
	err = within(ctx, pullTimeout, "pulled", func(ctx context.Context) error {
		digest, err = t.tryPull(ctx, c.Image, auth)
		return err
	})
	t.mu.Lock()
	t.rec.PullStoppedAt = time.Now().UTC()
	t.mu.Unlock()
	return digest, err
}

// tryPull pulls an image, unless it needn't be pulled, and tries again after failures.
func (t *task) tryPull(ctx context.Context, image string, auth *runtime.RegistryAuth) (digest string, err error) {
	if digest, ok := t.engine.needsNoPull(ctx, image); ok {
		return digest, nil
	}
	wait := minPullPause
	for try := 1; ; try++ {
		began := time.Now()
		err = whenUp(ctx, func() error {
			digest, err = t.engine.opts.Runtime.Pull(ctx, image, auth)
			return err
		})
		t.engine.pulls.observe(began, err)
		if err == nil {
			t.engine.images.grow()
			return digest, nil
		}
		if digest, ok := t.engine.standIn(ctx, image, err); ok && ctx.Err() == nil {
			return digest, nil
		}
		if errors.Is(err, runtime.ErrImageName) {
			return "", fmt.Errorf("cannot pull %s: %w", image, runtime.ErrImageName)
		}
		if try == pullTries || !pause(ctx, wait+rand.N(wait/5)) {
			cause := strings.ReplaceAll(err.Error(), "\n", ": ") // joined errors have a line each
			return "", fmt.Errorf("cannot pull %s, tried %d times: %s", image, try, cause)
		}
		t.engine.opts.Log.Warn("cannot pull an image; trying again", "image", image, "error", err)
		wait = min(2*wait, maxPullPause)
	}
}

// whenUp repeats a step while the runtime can't be reached. A container engine may be restarting, and its tasks wait for it.
func whenUp(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, runtime.ErrUnavailable) || !pause(ctx, time.Second) {
			return err
		}
	}
}

// timedOut is the error of a step that took too long.
type timedOut struct {
	step  string
	after time.Duration
}

// Error implements error.
func (e *timedOut) Error() string {
	return fmt.Sprintf("Could not transition to %s; timed out after waiting %v", e.step, e.after)
}

// within runs a step with a time limit.
func within(ctx context.Context, limit time.Duration, step string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return &timedOut{step, limit}
	}
	return err
}

// failure prefixes an error with ECS's name for it.
func failure(name string, err error) error {
	var late *timedOut
	switch {
	case errors.As(err, &late):
		name = "DockerTimeoutError"
	case errors.Is(err, runtime.ErrCannotStart):
		name = "CannotStartContainerError"
	}
	return fmt.Errorf("%s: %w", name, err)
}

// giveUp notes that a container won't start, and removes what there is of it. If it should have started and is essential, that's why the
// task fails.
func (t *task) giveUp(ctx context.Context, c *acs.Container, reason string, code *int) {
	t.leave(c.Name)
	t.awaitShipped(ctx, c.Name)
	_, id := t.container(c.Name)
	// This agent or an earlier one may have created it, or a slow start may still succeed. Until it's gone, nobody else may have
	// what the task holds.
	for {
		err := t.engine.remove(ctx, runtime.Container{ID: id, Status: runtime.Running})
		if err == nil {
			break
		}
		t.engine.opts.Log.Warn("cannot remove a container that did not start; trying again", "container", id, "error", err)
		if !pause(ctx, time.Second) {
			return // the next agent continues
		}
	}
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		rc.Status, rc.Reason, rc.ExitCode = Stopped, reason, code
		if c.Essential && r.Failure == "" {
			r.Failure = reason
		}
	})
}

// watch follows a running container to its end: its health, output, stop and exit.
func (t *task) watch(ctx context.Context, c *acs.Container) {
	rc, id := t.container(c.Name)
	if err := t.attendContainer(ctx, c, id); err != nil && t.hasNetwork(ctx, id) {
		t.engine.opts.Log.Warn("a running container cannot be served", "container", id, "error", err)
	}
	defer t.leave(c.Name)
	t.startShipping(ctx, c)
	watching, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { t.checkHealth(watching, c, id) })
	helpers.Go(func() { t.bringDown(watching, c, id) })
	if limit := startTimeout(c); limit > 0 { // then containers that depend on it may give up
		late := time.AfterFunc(limit-time.Since(rc.StartedAt), t.wake)
		defer late.Stop()
	}
	exit, err := t.wait(ctx, id)
	cancel()
	helpers.Wait()
	if err == nil {
		t.ended(c, exit)
	}
}

// wait waits for a container's exit. It retries a runtime that fails to answer, unless that says the container doesn't exist.
func (t *task) wait(ctx context.Context, id string) (runtime.Exit, error) {
	for {
		exit, err := t.engine.opts.Runtime.Wait(ctx, id)
		switch {
		case err == nil:
			return exit, nil
		case errors.Is(err, runtime.ErrNotFound):
			return runtime.Exit{Code: -1, FinishedAt: time.Now().UTC(), Error: "CannotInspectContainerError: the container is gone"}, nil
		case !pause(ctx, time.Second):
			return runtime.Exit{}, ctx.Err()
		}
		t.engine.opts.Log.Warn("cannot wait for a container; trying again", "container", id, "error", err)
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ended notes a container's end, or that its policy restarts it.
func (t *task) ended(c *acs.Container, exit runtime.Exit) {
	t.update(func(r *Record) {
		rc := r.Containers[c.Name]
		if restarts(r, c, exit) {
			*rc = Container{
				Status: Created, Token: rc.Token, Ran: true, Digest: rc.Digest, Ports: rc.Ports, CreatedAt: rc.CreatedAt,
				RuntimeID: rc.RuntimeID, ImageID: rc.ImageID,
				Restarts: rc.Restarts + 1, Remade: rc.Remade, EndedAt: exit.FinishedAt, Reason: rc.Reason,
			}
			return
		}
		rc.Status, rc.FinishedAt, rc.Reason = Stopped, exit.FinishedAt, cmp.Or(exit.Error, rc.Reason)
		if exit.Code >= 0 {
			rc.ExitCode = &exit.Code
		}
		if exit.OOMKilled {
			rc.Reason = "OutOfMemoryError: Container killed due to memory usage"
		}
		if r.Halting() && r.ExecutionStoppedAt.IsZero() {
			r.ExecutionStoppedAt = time.Now().UTC()
		}
	})
}

// restarts reports whether a container's restart policy starts it again: it is still there, has run for the policy's period (five minutes by
// default), and the policy doesn't ignore its exit code.
func restarts(r *Record, c *acs.Container, exit runtime.Exit) bool {
	p := c.RestartPolicy
	if p == nil || !p.Enabled || r.Halting() || exit.Code < 0 || slices.Contains(p.IgnoredExitCodes, int64(exit.Code)) {
		return false
	}
	period := time.Duration(p.RestartAttemptPeriod) * time.Second
	if period == 0 {
		period = 5 * time.Minute
	}
	return exit.FinishedAt.Sub(r.Containers[c.Name].StartedAt) >= period
}

// bringDown stops a container once the task is halting and no running container depends on it. watch notices the end and ends ctx.
func (t *task) bringDown(ctx context.Context, c *acs.Container, id string) {
	if t.await(ctx, func() bool { return t.rec.Halting() && !t.isNeeded(c.Name) }) != nil {
		return
	}
	grace := defaultStopTimeout
	if c.StopTimeout > 0 {
		grace = time.Duration(c.StopTimeout) * time.Second
	}
	for {
		err := t.engine.opts.Runtime.Stop(ctx, id, grace)
		if err == nil || ctx.Err() != nil || errors.Is(err, runtime.ErrNotFound) {
			return
		}
		t.engine.opts.Log.Error("cannot stop a container; trying again", "container", id, "error", err)
		if !pause(ctx, time.Second) {
			return
		}
	}
}

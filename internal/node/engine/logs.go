package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Shipper takes the output of containers whose log driver it serves.
type Shipper interface {
	// Prepare makes sure that the container's output can be taken; an error keeps it from starting. A
	// note is what users should know all the same.
	Prepare(ctx context.Context, c *LogSource) (note string, err error)
	// Ship takes the output to its end, from the cursor on; it calls saved with each cursor behind
	// which nothing needs to be sent again.
	Ship(ctx context.Context, c *LogSource, cursor string, saved func(cursor string)) error
}

// LogSource is a container whose output is shipped.
type LogSource struct {
	Driver    string
	Options   map[string]string
	TaskArn   string
	Container string
	ID        string // the runtime's
	Runtime   runtime.Runtime
}

// logSource is where a container's output goes, or nil where it stays here.
func (t *task) logSource(c *acs.Container) *LogSource {
	config := hostConfig(c).LogConfig
	if t.engine.opts.Shipper == nil || config == nil || config.Type != "awslogs" {
		return nil
	}
	_, id := t.container(c.Name)
	return &LogSource{
		Driver: config.Type, Options: config.Config, TaskArn: t.arn(),
		Container: c.Name, ID: id, Runtime: t.engine.opts.Runtime,
	}
}

// prepareLogs makes sure that the container's output has somewhere to go.
func (t *task) prepareLogs(ctx context.Context, c *acs.Container) (note string, err error) {
	source := t.logSource(c)
	if source == nil {
		return "", nil
	}
	return t.engine.opts.Shipper.Prepare(ctx, source)
}

// startShipping sends a container's output where it goes, from where it was left. The channel is closed
// when that is done.
func (t *task) startShipping(ctx context.Context, c *acs.Container) <-chan struct{} {
	done := make(chan struct{})
	source := t.logSource(c)
	if rc, _ := t.container(c.Name); source == nil || rc.Shipped {
		close(done)
		return done
	}
	t.shipping.Go(func() {
		defer close(done)
		t.ship(ctx, source)
	})
	return done
}

// shipRest sends what containers that have ended left behind when the agent before this one ended.
func (t *task) shipRest(ctx context.Context) {
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		if rc, _ := t.container(c.Name); rc.Status == Stopped && !rc.StartedAt.IsZero() {
			t.startShipping(ctx, c)
		}
	}
}

func (t *task) ship(ctx context.Context, source *LogSource) {
	ctx, cancel := t.whileKept(ctx)
	defer cancel()
	cursor := t.engine.readCursor(source.ID)
	err := t.engine.opts.Shipper.Ship(ctx, source, cursor, func(cursor string) { t.engine.saveCursor(source.ID, cursor) })
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		t.engine.opts.Log.Error("cannot ship a container's output", "container", source.ID, "error", err)
	}
	t.update(func(r *Record) {
		if t.containerID(source.Container) == source.ID {
			r.Containers[source.Container].Shipped = true
		}
	})
}

// whileKept ends when ctx does, or when the stopped task is to be forgotten.
func (t *task) whileKept(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		if t.await(ctx, func() bool { return t.over }) == nil && pause(ctx, t.engine.opts.Keep) {
			cancel()
		}
	}()
	return ctx, cancel
}

// A cursor lies in a file of its own, so that shipping a line does not write a record. It need not be
// durable: after a power failure more lines come twice, none is lost.

func (e *Engine) cursorPath(id string) string { return filepath.Join(e.opts.Dir, id+".cursor") }

func (e *Engine) readCursor(id string) string {
	b, err := os.ReadFile(e.cursorPath(id))
	if err != nil {
		return ""
	}
	return string(b)
}

func (e *Engine) saveCursor(id, cursor string) {
	if err := file.Replace(e.cursorPath(id), []byte(cursor), false); err != nil {
		e.opts.Log.Error("cannot note how far output is shipped", "container", id, "error", err)
	}
}

func (e *Engine) removeCursor(id string) {
	if err := os.Remove(e.cursorPath(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		e.opts.Log.Warn("cannot remove a cursor", "container", id, "error", err)
	}
}

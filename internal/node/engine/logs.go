package engine

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Shipper sends the output of containers to where their log driver says.
type Shipper interface {
	// Prepare checks that the container's output can be sent; an error keeps the container from starting. note is something that
	// users should know even so.
	Prepare(ctx context.Context, c *LogSource) (note string, err error)
	// Ship sends the output from the cursor to its end. It calls saved with each cursor before which nothing needs to be sent again.
	Ship(ctx context.Context, c *LogSource, cursor string, saved func(cursor string)) error
}

// LogSource is a container whose output is shipped.
type LogSource struct {
	Driver    string
	Options   map[string]string
	TaskArn   string
	Container string
	ID        string // the runtime's
	Output    Output
	Socket    string // of the task's log router
}

// Output has what containers have said, as each runtime.Runtime does.
type Output interface {
	Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error
}

// Follow reads the output from the cursor on, and up to most lines ahead of who takes them. lines is closed at the output's end, or when ctx
// ends; then read has the error, or nil.
func (s *LogSource) Follow(ctx context.Context, cursor string, most int) (lines <-chan runtime.Line, read <-chan error) {
	out := make(chan runtime.Line, most)
	ended := make(chan error, 1)
	go func() {
		defer close(out)
		ended <- s.Output.Logs(ctx, s.ID, cursor, true, func(l runtime.Line) error {
			select {
			case out <- l:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return out, ended
}

// logSource describes a container's output, or returns nil if the output stays on the node.
func (t *task) logSource(c *acs.Container) *LogSource {
	config := hostConfig(c).LogConfig
	if config == nil || t.engine.opts.Shippers[config.Type] == nil {
		return nil
	}
	_, id := t.container(c.Name)
	options := config.Config
	if stream := c.Environment[acs.FunctionStream]; stream != "" && slices.ContainsFunc(t.rec.Task.Volumes, isFunction) {
		options = maps.Clone(options)
		options["awslogs-stream"] = stream
	}
	return &LogSource{
		Driver: config.Type, Options: options, TaskArn: t.arn(),
		Container: c.Name, ID: id, Output: t.engine.opts.Runtime, Socket: filepath.Join(t.routerSocket(), "fluent.sock"),
	}
}

// ProxyLog describes what a task's proxy for Service Connect says, or returns nil if that stays on the node.
func ProxyLog(t *acs.Task) *LogSource {
	if t.ServiceConnect == nil || t.ServiceConnect.Log == nil {
		return nil
	}
	log, name := t.ServiceConnect.Log, t.ServiceConnect.Container
	id := t.Arn[strings.LastIndexByte(t.Arn, '/')+1:] + "-" + name
	return &LogSource{Driver: log.Type, Options: log.Config, TaskArn: t.Arn, Container: name, ID: id}
}

// prepareLogs checks that the output of the container, and of the proxy beside it, has somewhere to go.
func (t *task) prepareLogs(ctx context.Context, c *acs.Container) (note string, err error) {
	for _, source := range []*LogSource{t.logSource(c), ProxyLog(new(t.payload()))} {
		if source == nil || t.engine.opts.Shippers[source.Driver] == nil {
			continue
		}
		also, err := t.engine.opts.Shippers[source.Driver].Prepare(ctx, source)
		if err != nil {
			return "", err
		}
		note = joinNotes(note, also)
	}
	return note, nil
}

// startShipping ships a container's output from the saved cursor on, once what was begun before a restart has come to its end.
func (t *task) startShipping(ctx context.Context, c *acs.Container) {
	source := t.logSource(c)
	rc, _ := t.container(c.Name)
	if source == nil || rc.Shipped {
		return
	}
	done := make(chan struct{})
	t.mu.Lock()
	before := t.shipped[c.Name]
	t.shipped[c.Name] = done
	t.mu.Unlock()
	t.shipping.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		t.ship(ctx, source, rc.Restarts)
	})
}

// awaitShipped waits until a container's output so far is shipped, up to shipGrace.
func (t *task) awaitShipped(ctx context.Context, name string) {
	t.mu.Lock()
	done := t.shipped[name]
	t.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-done:
	case <-time.After(shipGrace):
	}
}

// shipRest ships what was left when the last agent ended of the output of containers that have ended.
func (t *task) shipRest(ctx context.Context) {
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		if rc, _ := t.container(c.Name); rc.Status == Stopped && !rc.StartedAt.IsZero() {
			t.startShipping(ctx, c)
		}
	}
}

// ship ships the output of a container's run, which came after so many restarts. It may go on into the next run's.
func (t *task) ship(ctx context.Context, source *LogSource, restarts int) {
	while := t.whileKept
	if source.Driver == routing {
		while = t.whileRouted
	}
	wanted, cancel := while(ctx, source)
	defer cancel()
	err := t.engine.shipToItsEnd(wanted, source)
	if ctx.Err() != nil || wanted.Err() != nil && source.Driver != routing {
		return
	}
	if err != nil {
		t.engine.opts.Log.Error("cannot ship a container's output", "container", source.ID, "error", err)
	}
	t.update(func(r *Record) {
		if rc := r.Containers[source.Container]; rc.Restarts == restarts {
			rc.Shipped = true
		}
	})
}

// shipToItsEnd ships output, and tries again where that fails, as it does while a container engine restarts. Output of a container that
// is gone is not to be had any more.
func (e *Engine) shipToItsEnd(ctx context.Context, source *LogSource) error {
	save := func(cursor string) { e.saveCursor(source.ID, cursor) }
	for wait := time.Second; ; wait = min(2*wait, longestShipPause) {
		err := e.opts.Shippers[source.Driver].Ship(ctx, source, e.readCursor(source.ID), save)
		if err == nil || errors.Is(err, runtime.ErrNotFound) || ctx.Err() != nil {
			return err
		}
		e.opts.Log.Warn("cannot ship a container's output now", "container", source.ID, "error", err, "again_in", wait)
		if !pause(ctx, wait) {
			return err
		}
	}
}

// whileKept returns a context that ends with ctx, or when the stopped task may be forgotten.
func (t *task) whileKept(ctx context.Context, _ *LogSource) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		if t.await(ctx, func() bool { return t.finished }) == nil && pause(ctx, t.engine.opts.Keep) {
			cancel()
		}
	}()
	return ctx, cancel
}

// longestShipPause is the longest time between two tries to ship output.
const longestShipPause = 30 * time.Second

// Each cursor has its own file, so that shipping a line doesn't write a record. It needn't be durable: after a power failure more lines
// come twice, and none is lost.

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

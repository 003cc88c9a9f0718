package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// errTooLong is the cause when work is aborted because SQS would hand out its message again.
var errTooLong = fmt.Errorf(
	"the work was not done within %s, and SQS keeps no message invisible for longer than %s", maxWork, maxVisibility,
)

// broken is the error of inputs that failed together, although just one of them may be the cause.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

// batch is the messages of one receive.
type batch struct {
	w      *Worker
	runner Runner
	lease  *lease
	dir    string // the worker's temporary directory
}

// work has the command process a batch, and settles each of its messages.
func (w *Worker) work(ctx context.Context, runner Runner, messages []*message, dir string) {
	ctx, cancel := context.WithDeadlineCause(ctx, messages[0].received.Add(maxWork), errTooLong)
	defer cancel()
	lease, release := w.hold(ctx, messages)
	defer release()
	w.guard.enter(ctx)
	defer w.guard.leave()
	b := &batch{w, runner, lease, dir}
	var inputs []*Input
	for _, m := range messages {
		inputs = append(inputs, b.inputs(ctx, m)...)
	}
	for len(inputs) > 0 {
		inputs = inputs[b.round(ctx, inputs):]
	}
}

// inputs returns a message's inputs. A message without any is settled.
func (b *batch) inputs(ctx context.Context, m *message) []*Input {
	if b.w.opts.Bodies {
		m.undone = 1
		return []*Input{m.body()}
	}
	inputs, err := m.objects(b.w.opts.Results)
	switch {
	case errors.Is(err, errNothing):
		b.w.opts.Log.Info("a message is deleted", "message_id", m.id(), "reason", err)
		b.lease.letGo(m)
		b.w.delete(ctx, m)
	case err != nil:
		m.failed = err
		b.finish(ctx, m)
	}
	m.undone = len(inputs)
	return inputs
}

// round fetches as many inputs as the command takes and as there is room for, has them processed, uploads the results, and returns how
// many it took. Its files are gone when it returns.
func (b *batch) round(ctx context.Context, inputs []*Input) (taken int) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		b.settle(ctx, inputs[0], err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the worker's own directory goes when it ends
	var fetched []*Input
	room := b.w.opts.MaxInput
	for _, in := range inputs {
		err := b.w.fetch(ctx, in, dir, strconv.Itoa(taken), room)
		if errors.Is(err, errNoRoom) && len(fetched) > 0 {
			break // the next round takes it
		}
		taken++
		if err != nil {
			b.settle(ctx, in, err)
			continue
		}
		fetched = append(fetched, in)
		if room -= in.Size; !b.runner.Batches() {
			break
		}
	}
	for i, err := range b.execute(ctx, dir, fetched) {
		if err == nil {
			err = b.w.upload(ctx, fetched[i])
		}
		b.settle(ctx, fetched[i], err)
	}
	return taken
}

// execute has the command process inputs. If it broke on several, each is tried once more alone, so that a bad one doesn't fail the others.
func (b *batch) execute(ctx context.Context, dir string, inputs []*Input) []error {
	if len(inputs) == 0 {
		return nil
	}
	errs := b.run(ctx, dir, inputs)
	if len(inputs) == 1 {
		return errs
	}
	for i, err := range errs {
		if !errors.As(err, new(broken)) || ctx.Err() != nil {
			continue
		}
		if errs[i] = inputs[i].clear(); errs[i] == nil {
			errs[i] = b.run(ctx, dir, inputs[i:i+1])[0]
		}
	}
	return errs
}

// run runs the command once, with limits on time and output.
func (b *batch) run(ctx context.Context, dir string, inputs []*Input) []error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit := b.w.opts.Timeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("the command was not done within %s", limit))
		defer stop()
	}
	watched := make(chan struct{})
	watching, stopWatching := context.WithCancel(ctx)
	go func() {
		defer close(watched)
		b.w.watch(watching, filepath.Join(dir, results), cancel)
	}()
	errs := b.runner.Run(ctx, inputs)
	stopWatching()
	<-watched
	if err := b.w.check(filepath.Join(dir, results)); err != nil {
		cancel(err)
		for i := range errs {
			errs[i] = err
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		for i, err := range errs {
			if err != nil {
				errs[i] = broken{cause}
			}
		}
	}
	return errs
}

// watchEvery is how often the size of the results is checked.
const watchEvery = time.Second

// watch aborts the command once its results are too large.
func (w *Worker) watch(ctx context.Context, dir string, abort context.CancelCauseFunc) {
	for {
		sleep(ctx, watchEvery)
		if ctx.Err() != nil {
			return
		}
		if err := w.check(dir); err != nil {
			abort(err)
			return
		}
	}
}

// check returns an error if the results are too large.
func (w *Worker) check(dir string) error {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the command may be removing files
		return err
	}
	if size > w.opts.MaxOutput {
		return fmt.Errorf("the command's results have more than %d bytes", w.opts.MaxOutput)
	}
	return nil
}

// settle records an input's outcome, and finishes the message after the last one.
func (b *batch) settle(ctx context.Context, in *Input, err error) {
	m := in.message
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil && m.failed == nil {
		m.failed = err
	}
	if m.undone--; m.undone == 0 {
		b.finish(ctx, m)
	}
}

// finish deletes a message if all its inputs are done. Otherwise it gives the message back, retries it later, or sends it to the
// dead-letter queue.
func (b *batch) finish(ctx context.Context, m *message) {
	b.lease.letGo(m)
	switch {
	case m.failed == nil:
		b.w.delete(ctx, m)
	case errors.Is(m.failed, errStopping):
		b.w.opts.Log.Warn("a message is given back", "message_id", m.id(), "reason", m.failed)
		b.w.givenBack.Add(1)
		b.w.show(ctx, m, 0)
	default:
		b.w.fail(ctx, m)
	}
}

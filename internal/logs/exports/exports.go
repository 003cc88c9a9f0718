// Package exports is the loop behind CreateExportTask: it copies a log group's events to a bucket, in gzip objects of one stream each. A
// task is a row of the control plane's state. Whoever was killed in the middle of one begins it again and overwrites its objects. It
// calls S3 as an SDK client would.
package exports

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
)

// S3 is the part of S3 that exports call.
type S3 interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Options are what the loop needs besides the two stores.
type Options struct {
	Now func() time.Time
	S3  S3
}

// Loop carries out export tasks.
type Loop struct {
	rows   *state.Store
	events *streams.Store
	opts   Options
	// maxObject is how many compressed bytes an object holds before the next one begins.
	maxObject int
}

// New returns a loop.
func New(rows *state.Store, events *streams.Store, opts Options) *Loop {
	return &Loop{rows, events, opts, maxObject}
}

// Run carries out tasks until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	for {
		v := l.rows.Watch()
		v.ExportTasks.Watch()
		if err := l.Step(ctx); err != nil {
			return err
		}
		if err := v.Changed(ctx); err != nil {
			return err
		}
	}
}

// Limits of what is held in memory.
const (
	maxObject = 8 << 20 // compressed bytes, beyond which the next object begins
	page      = 1000    // events that are read at once
)

// Step carries out the task that isn't over, if there is one.
func (l *Loop) Step(ctx context.Context) error {
	t := l.rows.View().ActiveExport()
	if t == nil {
		return nil
	}
	if running, err := l.move(ctx, t, types.ExportTaskStatusCodeRunning, "The export is running"); err != nil || !running {
		return err
	}
	var code types.ExportTaskStatusCode
	message := "Completed successfully"
	switch err := l.export(ctx, t); {
	case ctx.Err() != nil:
		return ctx.Err() // the next process begins it again
	case err != nil:
		code = types.ExportTaskStatusCodeFailed
		message = err.Error()
	default:
		code = types.ExportTaskStatusCodeCompleted
	}
	_, err := l.move(ctx, t, code, message)
	return err
}

var errCancelled = errors.New("the task was cancelled")

// move puts a task into its next state. A task that somebody cancels is cancelled instead. It reports whether the task is there.
func (l *Loop) move(ctx context.Context, t *state.ExportTask, code types.ExportTaskStatusCode, message string) (there bool, err error) {
	err = l.rows.Update(ctx, func(tx *state.Tx) error {
		there = false
		row := tx.ExportTasks.Get(*t.TaskId)
		if row == nil || !row.Active() {
			return nil
		}
		if row.Status.Code == types.ExportTaskStatusCodePendingCancel {
			tx.ExportTasks.Put(row.With(types.ExportTaskStatusCodeCancelled, "Cancelled", l.opts.Now()))
			return nil
		}
		there = true
		tx.ExportTasks.Put(row.With(code, message, l.opts.Now()))
		return nil
	})
	return there, err
}

// export copies the events of all of a task's streams.
func (l *Loop) export(ctx context.Context, t *state.ExportTask) error {
	group, err := l.events.Group(*t.LogGroupName)
	if err != nil {
		return err
	}
	list, err := l.events.Streams(group.Name)
	if err != nil {
		return err
	}
	numbers := map[string]int{}
	for _, st := range list {
		if !strings.HasPrefix(st.Name, t.StreamPrefix) {
			continue
		}
		o := &objects{loop: l, task: t, stream: st.Name, numbers: numbers}
		if err := l.exportStream(ctx, t, group, o); err != nil {
			return fmt.Errorf("export the stream %s: %w", st.Name, err)
		}
	}
	return nil
}

// exportStream copies one stream. A stream that was deleted meanwhile has no more events.
func (l *Loop) exportStream(ctx context.Context, t *state.ExportTask, group streams.Group, o *objects) error {
	r := streams.Range{Streams: []string{o.stream}, Start: *t.From, End: max(*t.To, 1), Limit: page}
	if group.RetentionDays > 0 {
		kept := time.Duration(group.RetentionDays) * 24 * time.Hour
		r.Start = max(r.Start, l.opts.Now().Add(-kept).UnixMilli())
	}
	for more := true; more; {
		if l.isCancelled(t) {
			return errCancelled
		}
		var events []streams.Event
		var err error
		events, more, err = l.events.Read(ctx, group.Name, r)
		if errors.Is(err, streams.ErrNoStream) {
			break
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := o.add(ctx, e); err != nil {
				return err
			}
		}
		if len(events) > 0 {
			r.After = &events[len(events)-1].ID
		}
	}
	return o.flush(ctx)
}

func (l *Loop) isCancelled(t *state.ExportTask) bool {
	row := l.rows.View().ExportTasks.Get(*t.TaskId)
	return row == nil || row.Status.Code == types.ExportTaskStatusCodePendingCancel
}

// objects writes a stream's events into as many objects as they need.
type objects struct {
	loop   *Loop
	task   *state.ExportTask
	stream string
	// numbers are those of the next objects, by the streams' names in keys: names that differ by a slash alone share one.
	numbers map[string]int
	buffer  bytes.Buffer
	zip     *gzip.Writer // nil if the next event begins an object
}

func (o *objects) add(ctx context.Context, e streams.Event) error {
	if o.zip == nil {
		o.buffer.Reset()
		o.zip = gzip.NewWriter(&o.buffer)
	}
	at := time.UnixMilli(e.Timestamp).UTC().Format("2006-01-02T15:04:05.000Z")
	if _, err := io.WriteString(o.zip, at+" "+e.Message+"\n"); err != nil {
		return err
	}
	if o.buffer.Len() < o.loop.maxObject {
		return nil
	}
	return o.flush(ctx)
}

// flush writes the object that was begun, if any.
func (o *objects) flush(ctx context.Context) error {
	if o.zip == nil {
		return nil
	}
	if err := o.zip.Close(); err != nil {
		return err
	}
	o.zip = nil
	stream := strings.ReplaceAll(o.stream, "/", "-")
	key := fmt.Sprintf("%s/%s/%s/%06d.gz", Prefix(o.task.DestinationPrefix), *o.task.TaskId, stream, o.numbers[stream])
	o.numbers[stream]++
	return Put(ctx, o.loop.opts.S3, *o.task.Destination, key, o.buffer.Bytes())
}

// Prefix returns the start of a task's keys: its own prefix, or AWS's default.
func Prefix(prefix *string) string { return cmp.Or(aws.ToString(prefix), "exportedlogs") }

// Put writes an object.
func Put(ctx context.Context, to S3, bucket, key string, body []byte) error {
	_, err := to.PutObject(ctx, &s3.PutObjectInput{
		Bucket:        &bucket,
		Key:           &key,
		Body:          bytes.NewReader(body),
		ContentLength: aws.Int64(int64(len(body))),
	})
	return err
}

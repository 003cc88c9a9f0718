package exports

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// bucket keeps objects, and does something else before each.
type bucket struct {
	objects map[string][]byte
	before  func() error
}

func (b *bucket) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if b.before != nil {
		if err := b.before(); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(in.Body)
	b.objects[*in.Key] = body
	return &s3.PutObjectOutput{}, err
}

// text returns all objects: their keys and what is in them.
func (b *bucket) text(t *testing.T) string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		z, err := gzip.NewReader(bytes.NewReader(b.objects[key]))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s:\n%s", key, lines)
	}
	return out.String()
}

// world is a loop over a group g with a few streams.
func world(t *testing.T) (*Loop, *bucket) {
	events, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close() }) //nolint:errcheck // the test is over
	if err := events.CreateGroup(streams.Group{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a-b", "a/b", "c", "empty"} {
		if err := events.CreateStream("g", name, 1); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if name == "empty" {
				continue
			}
			e := streams.Event{Timestamp: int64(1000 + i), Message: fmt.Sprint(name, " ", i)}
			if err := events.Append("g", name, 1, []streams.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	to := &bucket{objects: map[string][]byte{}}
	return New(statetest.Open(t), events, Options{Now: func() time.Time { return time.UnixMilli(5000) }, S3: to}), to
}

// create puts a task into the rows, and returns what reads it.
func create(t *testing.T, l *Loop, prefix string) func() *state.ExportTask {
	t.Helper()
	statetest.Update(t, l.rows, func(tx *state.Tx) {
		tx.ExportTasks.Put(&state.ExportTask{StreamPrefix: prefix, ExportTask: types.ExportTask{
			TaskId:        aws.String("task"),
			LogGroupName:  aws.String("g"),
			From:          aws.Int64(0),
			To:            aws.Int64(1001),
			Destination:   aws.String("bucket"),
			Status:        &types.ExportTaskStatus{Code: types.ExportTaskStatusCodePending},
			ExecutionInfo: &types.ExportTaskExecutionInfo{CreationTime: aws.Int64(1)},
		}})
	})
	return func() *state.ExportTask { return l.rows.View().ExportTasks.Get("task") }
}

const all = `exportedlogs/task/a-b/000000.gz:
1970-01-01T00:00:01.000Z a-b 0
1970-01-01T00:00:01.001Z a-b 1
exportedlogs/task/a-b/000001.gz:
1970-01-01T00:00:01.000Z a/b 0
1970-01-01T00:00:01.001Z a/b 1
exportedlogs/task/c/000000.gz:
1970-01-01T00:00:01.000Z c 0
1970-01-01T00:00:01.001Z c 1
`

func TestExport(t *testing.T) {
	l, to := world(t)
	task := create(t, l, "")
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := task(); got.Status.Code != types.ExportTaskStatusCodeCompleted || *got.ExecutionInfo.CompletionTime != 5000 {
		t.Errorf("%+v %+v", got.Status, got.ExecutionInfo)
	}
	if got := to.text(t); got != all {
		t.Errorf("%s", got)
	}
}

// TestObjectsAreBounded: what doesn't fit one object goes on in the next.
func TestObjectsAreBounded(t *testing.T) {
	l, to := world(t)
	l.maxObject = 1
	create(t, l, "c")
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `exportedlogs/task/c/000000.gz:
1970-01-01T00:00:01.000Z c 0
exportedlogs/task/c/000001.gz:
1970-01-01T00:00:01.001Z c 1
`
	if got := to.text(t); got != want {
		t.Errorf("%s", got)
	}
}

func TestCancel(t *testing.T) {
	l, to := world(t)
	task := create(t, l, "")
	to.before = func() error {
		return l.rows.Update(t.Context(), func(tx *state.Tx) error {
			tx.ExportTasks.Put(tx.ExportTasks.Get("task").With(types.ExportTaskStatusCodePendingCancel, "", time.Time{}))
			return nil
		})
	}
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := task(); got.Status.Code != types.ExportTaskStatusCodeCancelled || got.ExecutionInfo.CompletionTime == nil {
		t.Errorf("%+v", got.Status)
	}
	if len(to.objects) != 1 {
		t.Errorf("%d objects", len(to.objects))
	}
}

func TestFailure(t *testing.T) {
	l, to := world(t)
	task := create(t, l, "")
	to.before = func() error { return errors.New("no such bucket") }
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := task(); got.Status.Code != types.ExportTaskStatusCodeFailed || !strings.Contains(*got.Status.Message, "no such bucket") {
		t.Errorf("%+v", got.Status)
	}
}

// TestInterrupted: the next process begins a task again that the last one was carrying out.
func TestInterrupted(t *testing.T) {
	l, to := world(t)
	task := create(t, l, "")
	ctx, cancel := context.WithCancel(t.Context())
	to.before = func() error {
		cancel()
		return ctx.Err()
	}
	if err := l.Step(ctx); !errors.Is(err, context.Canceled) || task().Status.Code != types.ExportTaskStatusCodeRunning {
		t.Fatalf("%v, %+v", err, task().Status)
	}
	to.before = nil
	next := New(l.rows, l.events, l.opts)
	if err := next.Step(t.Context()); err != nil || task().Status.Code != types.ExportTaskStatusCodeCompleted {
		t.Fatalf("%v, %+v", err, task().Status)
	}
	if got := to.text(t); got != all {
		t.Errorf("%s", got)
	}
}

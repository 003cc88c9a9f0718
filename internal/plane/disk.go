package plane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/disk"
)

// admit refuses a call for which the disk has no room.
func (p *Plane) admit(_, operation string) error {
	if hasPrefix(operation, reads) {
		return nil
	}
	return p.space.Check(roomFor(operation))
}

// roomFor returns how much room an operation needs that changes something.
func roomFor(operation string) uint64 {
	switch {
	case hasPrefix(operation, stops):
		return disk.ForStops
	case hasPrefix(operation, ends):
		return disk.ForEnds
	}
	return disk.ForChanges
}

func hasPrefix(operation string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(operation, p) {
			return true
		}
	}
	return false
}

// reads are what operations that change nothing begin with.
var reads = []string{
	"Assume", "BatchCheck", "BatchGet", "Describe", "Discover", "Estimate", "Filter", "Get", "Head", "List", "Poll", "Select", "Simulate", "StartQuery",
	"Test", "Validate",
}

// ends are what operations begin with that end something, or are needed for that: workers empty queues, nodes come back and report, services
// and groups scale in.
var ends = []string{
	"Abort", "BatchDelete", "Cancel", "ChangeMessageVisibility", "Complete", "Delete", "Deregister", "Detach", "Disable", "Disassociate", "Exit",
	"Purge",
	"PutBucketLifecycle", "PutRetentionPolicy", "ReceiveMessage", "RegisterContainerInstance", "Remove", "SetDesiredCapacity", "Stop",
	"Suspend", "Terminate", "Untag", "UpdateAutoScalingGroup", "UpdateContainerAgent", "UpdateContainerInstancesState", "UpdateService",
}

// stops are what operations begin with that stop a task, or tell of its end.
var stops = []string{"StopTask", "Submit"}

// watchDisk watches the room for the data directory.
func (p *Plane) watchDisk(ctx context.Context) error {
	if p.space == nil {
		return nil
	}
	return p.space.Watch(ctx, p.options.Log)
}

// writable returns why changes are refused, or nil.
func (p *Plane) writable() error { return p.space.Check(disk.ForChanges) }

// database is a store whose commits stand in a log until they are moved into its file.
type database interface{ Failing() error }

// failing returns what fails of the databases that goes unseen otherwise, or nil.
func (p *Plane) failing() (err error) {
	for _, db := range p.databases {
		err = errors.Join(err, db.Failing())
	}
	return err
}

// putMetrics stores metrics that nobody waits for, which must not take the room that is kept for ends.
func (p *Plane) putMetrics(samples []metrics.Sample) error {
	if err := p.space.Check(disk.ForChanges); err != nil {
		return err
	}
	return p.Metrics.Put(samples)
}

// againAfter is the pause after a loop couldn't write.
const againAfter = 2 * time.Second

// persevere runs a loop, and runs it again after it couldn't write. A loop can begin anew at any time, as after a restart of the process.
func persevere(ctx context.Context, loop func(context.Context) error) error {
	for {
		err := loop(ctx)
		if !disk.IsUnwritable(err) || ctx.Err() != nil {
			return err
		}
		pause := time.NewTimer(againAfter)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// sparingly is a log that tells of a disk that can't be written once a minute, however many calls and loops fail meanwhile.
type sparingly struct {
	slog.Handler
	*lastTold
}

type lastTold struct {
	mu sync.Mutex
	at time.Time
}

func newSparingly(log *slog.Logger) *slog.Logger {
	return slog.New(sparingly{log.Handler(), &lastTold{}})
}

// Handle implements slog.Handler.
func (s sparingly) Handle(ctx context.Context, r slog.Record) error {
	unwritable := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		unwritable = unwritable || ok && disk.IsUnwritable(err)
		return !unwritable
	})
	if unwritable && !s.isDue(r.Time) {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

func (l *lastTold) isDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at) < time.Minute {
		return false
	}
	l.at = now
	return true
}

// WithAttrs implements slog.Handler.
func (s sparingly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparingly{s.Handler.WithAttrs(attrs), s.lastTold}
}

// WithGroup implements slog.Handler.
func (s sparingly) WithGroup(name string) slog.Handler {
	return sparingly{s.Handler.WithGroup(name), s.lastTold}
}

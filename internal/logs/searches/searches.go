// Package searches is the loop that runs the queries of CloudWatch Logs Insights: a few at a time over the events of the log store, each
// until it is done, stopped or out of time. Queries and their results are in memory, for a bounded time and up to a bounded size, and end
// with the process. The Logs service calls it; the language is package insights.
package searches

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/logs/insights"
	"github.com/pintle/pintle/internal/logs/streams"
)

// MaxActive is how many queries may be scheduled or running: the quota of AWS.
const MaxActive = 100

// The bounds of ours. AWS runs a query for up to an hour, and keeps results for seven days.
const (
	atOnce      = 4
	patience    = 15 * time.Minute
	memory      = 64 << 20 // that each query may hold
	keptFor     = 24 * time.Hour
	maxKept     = 1000      // queries that have ended
	maxKeptSize = 256 << 20 // bytes of their results
)

// ErrBusy says that too many queries haven't ended.
var ErrBusy = errors.New("too many queries are running")

// Store is where queries read events.
type Store interface {
	Group(name string) (streams.Group, error)
	Batches(ctx context.Context, group string, start, end int64) iter.Seq2[streams.Batch, error]
}

// Options say what the loop needs besides the store.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// Event returns an event as queries see it.
	Event func(group string, e streams.Event) insights.Event
}

// Query is a query and what came of it so far.
type Query struct {
	ID      string
	Text    string
	Groups  []string
	Start   int64 // milliseconds since 1970; both ends are included
	End     int64
	Status  types.QueryStatus
	Created time.Time
	Took    time.Duration
	Scanned Scanned
	Results [][]insights.Field

	parsed *insights.Query
	ended  time.Time
	size   int
	cancel context.CancelFunc
}

// Scanned counts what a query has read.
type Scanned struct{ Groups, Events, Bytes, Matched int }

// Loop runs queries.
type Loop struct {
	store Store
	opts  Options
	queue chan *Query

	mu     sync.Mutex
	all    []*Query // the oldest first
	active int
}

// New returns a loop. Its queries wait until Run is called.
func New(store Store, opts Options) *Loop {
	return &Loop{store: store, opts: opts, queue: make(chan *Query, 2*MaxActive)}
}

// Run runs queries until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range atOnce {
		g.Go(func() error {
			for {
				select {
				case q := <-l.queue:
					l.run(ctx, q)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
	}
	return g.Wait()
}

// Start schedules a query, and returns its id.
func (l *Loop) Start(q Query, parsed *insights.Query) (id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	q.ID = uuid.NewString()
	q.Status = types.QueryStatusScheduled
	q.Created = l.opts.Now()
	q.parsed = parsed
	if l.active == MaxActive {
		return "", ErrBusy
	}
	select {
	case l.queue <- &q:
	default: // full of queries that were stopped before they ran
		return "", ErrBusy
	}
	l.active++
	l.all = append(l.all, &q)
	return q.ID, nil
}

// Get returns a query.
func (l *Loop) Get(id string) (Query, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	if q := l.find(id); q != nil {
		return *q, true
	}
	return Query{}, false
}

// List returns the queries, the newest first.
func (l *Loop) List() []Query {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	var out []Query
	for _, q := range slices.Backward(l.all) {
		out = append(out, *q)
	}
	return out
}

// Stop stops a query. It reports whether there is such a query, and whether it had still to end.
func (l *Loop) Stop(id string) (found, stopped bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	q := l.find(id)
	if q == nil || !q.isActive() {
		return q != nil, false
	}
	l.endLocked(q, types.QueryStatusCancelled)
	return true, true
}

func (l *Loop) find(id string) *Query {
	if i := slices.IndexFunc(l.all, func(q *Query) bool { return q.ID == id }); i >= 0 {
		return l.all[i]
	}
	return nil
}

func (q *Query) isActive() bool {
	return q.Status == types.QueryStatusScheduled || q.Status == types.QueryStatusRunning
}

// forget drops the oldest queries that have ended if they are too old, too many or too large. The caller holds mu.
func (l *Loop) forget() {
	before := l.opts.Now().Add(-keptFor)
	kept := -l.active + len(l.all)
	size := 0
	for _, q := range l.all {
		size += q.size
	}
	l.all = slices.DeleteFunc(l.all, func(q *Query) bool {
		if q.isActive() || kept <= maxKept && size <= maxKeptSize && q.ended.After(before) {
			return false
		}
		kept--
		size -= q.size
		return true
	})
}

// run runs a query to its end.
func (l *Loop) run(ctx context.Context, q *Query) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !l.begin(q, cancel) {
		return
	}
	results, err := l.evaluate(ctx, q)
	status := types.QueryStatusComplete
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		status = types.QueryStatusTimeout
	case errors.Is(err, context.Canceled):
		status = types.QueryStatusCancelled
	case err != nil:
		status = types.QueryStatusFailed
		l.opts.Log.Warn("a query of logs failed", "query", q.ID, "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !q.isActive() { // stopped
		return
	}
	q.Results = results
	q.size = sizeOf(results)
	l.endLocked(q, status)
}

// begin reports whether a query still waits to run.
func (l *Loop) begin(q *Query, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Status != types.QueryStatusScheduled {
		return false
	}
	q.Status = types.QueryStatusRunning
	q.cancel = cancel
	return true
}

func (l *Loop) endLocked(q *Query, status types.QueryStatus) {
	if q.cancel != nil {
		q.cancel()
	}
	q.Status = status
	q.ended = l.opts.Now()
	q.Took = q.ended.Sub(q.Created)
	l.active--
}

// evaluate reads the events of a query's groups, and returns its results.
func (l *Loop) evaluate(ctx context.Context, q *Query) (results [][]insights.Field, err error) {
	defer func() {
		if p := recover(); p != nil { // a bug, which costs this query and no more
			err = fmt.Errorf("%v", p)
		}
	}()
	run := q.parsed.Run(l.opts.Now(), memory)
	for i, group := range q.Groups {
		if err := l.scan(ctx, q, run, i, group); err != nil {
			return nil, err
		}
	}
	return run.Results()
}

func (l *Loop) scan(ctx context.Context, q *Query, run *insights.Run, i int, group string) error {
	g, err := l.store.Group(group)
	if err != nil {
		return err
	}
	start := q.Start
	if g.RetentionDays > 0 {
		start = max(start, l.opts.Now().AddDate(0, 0, -int(g.RetentionDays)).UnixMilli())
	}
	for batch, err := range l.store.Batches(ctx, group, start, q.End) {
		if err != nil {
			return err
		}
		if run.Settled(batch.Newest) {
			break
		}
		bytes := 0
		for _, e := range batch.Events {
			if err := ctx.Err(); err != nil {
				return err
			}
			bytes += len(e.Message)
			event := l.opts.Event(group, e)
			event.Place = [4]int64{int64(i), int64(e.ID.Segment), e.ID.Offset, int64(e.ID.Index)}
			if err := run.Add(event); err != nil {
				return err
			}
		}
		l.progress(q, Scanned{Events: len(batch.Events), Bytes: bytes, Matched: run.Matched()})
	}
	l.progress(q, Scanned{Groups: 1, Matched: run.Matched()})
	return nil
}

// progress adds to what a query has read. Matched is the number of all so far.
func (l *Loop) progress(q *Query, more Scanned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.Scanned.Groups += more.Groups
	q.Scanned.Events += more.Events
	q.Scanned.Bytes += more.Bytes
	q.Scanned.Matched = more.Matched
}

// perField is what a field of a result costs besides its text.
const perField = 40

func sizeOf(results [][]insights.Field) (bytes int) {
	for _, row := range results {
		for _, f := range row {
			bytes += perField + len(f.Value)
		}
	}
	return bytes
}

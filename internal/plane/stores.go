package plane

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/lambda/zips"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/sqlite"
)

// openStores opens the stores, each in its own folder.
func (p *Plane) openStores(ctx context.Context) (err error) {
	if err := p.openState(ctx); err != nil {
		return err
	}
	if err := p.openVault(); err != nil {
		return err
	}
	folder := func(name string) string { return filepath.Join(p.options.Data, name) }
	if p.streams, err = streams.Open(folder("logs")); err != nil {
		return err
	}
	p.streams.Flushed = p.workings.Flushed("logs")
	p.open = append(p.open, p.streams)
	if p.Metrics, err = metrics.Open(folder("metrics"), p.metricOptions()); err != nil {
		return err
	}
	p.open = append(p.open, p.Metrics)
	if p.Queues, err = queues.Open(folder("queues"), queues.Options{
		Now:     p.now,
		NoSync:  p.options.Simulated != nil,
		Flushed: p.workings.Flushed("queues"),
		Recover: sqs.Recover,
	}); err != nil {
		return err
	}
	p.open = append(p.open, p.Queues)
	if p.objects, err = objects.Open(folder("objects"), p.now); err != nil {
		return err
	}
	p.objects.Flushed = p.workings.Flushed("objects")
	p.open = append(p.open, p.objects)
	p.databases = append(p.databases, p.objects)
	if p.zips, err = zips.Open(folder("functions")); err != nil {
		return err
	}
	return p.openImages(folder("images"))
}

// openState opens the store of all rows, with its observers.
func (p *Plane) openState(ctx context.Context) (err error) {
	p.scheduler = scheduler.New(rand.Uint64())
	options := rollout.Options{Now: p.now, Settle: p.options.Settle, Late: p.workings.Late("rollout"), Log: p.log}
	var journal store.Journal
	var others []state.Observer
	if s := p.options.Simulated; s != nil {
		p.scheduler = scheduler.New(1)
		p.scheduler.NewID = s.NewID
		options.After = s.After
		journal = s.Journal
		if s.Observer != nil {
			others = append(others, s.Observer)
		}
	} else {
		options.CarriedOut = func(v *state.View, arn string) bool { return p.balancers.IsCarriedOut(v, arn) }
		if journal, err = sqlite.Open(ctx, p.options.Data); err != nil {
			return err
		}
	}
	p.scheduler.Placed = p.workings.Placed
	if c := p.options.ServerlessCluster; c != "" {
		p.scheduler.Serverless = p.account().ARN("ecs", "cluster/"+c)
	}
	p.Rollout = rollout.New(p.scheduler, options)
	if p.State, err = state.Open(ctx, timed{journal, p.workings.Flushed("state")}, append([]state.Observer{p.scheduler, p.Rollout}, others...)...); err != nil {
		return errors.Join(err, journal.Close())
	}
	p.open = append(p.open, p.State)
	p.journal = journal
	if db, ok := journal.(database); ok {
		p.databases = append(p.databases, db)
	}
	return nil
}

// timed is a journal that tells how long each of its writes took.
type timed struct {
	store.Journal
	flushed func(took time.Duration)
}

// Write implements store.Journal.
func (t timed) Write(revision int64, changes []store.Change) error {
	began := time.Now()
	err := t.Journal.Write(revision, changes)
	t.flushed(time.Since(began))
	return err
}

// metricOptions lets a fast reaction notice metrics as they arrive.
func (p *Plane) metricOptions() metrics.Options {
	o := metrics.Options{Now: p.now, MaxMetrics: p.options.MaxMetrics, NoSync: p.options.Simulated != nil, Flushed: p.workings.Flushed("metrics")}
	if p.options.Reaction == scaling.Fast {
		p.Arrivals = alarms.NewArrivals()
		o.Note = p.Arrivals.Note
	}
	return o
}

// scaleIn returns how long managed scaling must need fewer instances before it gives them up, and the pause between its
// scale-in steps. On ECS the pause is a minute.
func (p *Plane) scaleIn() (after, pause time.Duration) {
	reaction := p.options.Reaction
	if reaction == scaling.Faithful {
		pause = reaction.Period
	}
	if p.options.ScaleIn > 0 {
		return p.options.ScaleIn, pause
	}
	return time.Duration(reaction.In) * reaction.Period, pause
}

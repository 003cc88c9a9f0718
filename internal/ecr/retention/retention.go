// Package retention is the loop that removes what ECR doesn't keep: images that lifecycle policies expire, layers that no image refers to, blobs
// that no repository has, and uploads that nobody goes on with. Which images expire says package lifecycle. A step can be repeated, and killed
// anywhere: the next one finishes the work.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/ecr/lifecycle"
	"github.com/pintle/pintle/internal/state"
)

const (
	every     = time.Minute
	evaluated = time.Hour // between two evaluations of a policy that doesn't change; ECR takes up to a day
	maxIdle   = 24 * time.Hour
)

// Options are a loop's clock and log.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
}

// Loop removes what isn't kept.
type Loop struct {
	store *state.Store
	blobs *blobs.Store
	opts  Options
}

// New returns a loop over the rows and the blobs.
func New(store *state.Store, b *blobs.Store, opts Options) *Loop { return &Loop{store, b, opts} }

// Run runs a step a minute until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := l.Step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Step removes what is due. Only the store's errors are returned: what the disk refuses is told and tried again.
func (l *Loop) Step(ctx context.Context) error {
	now := l.opts.Now().UTC().Truncate(time.Millisecond)
	v := l.store.View()
	for r := range v.Repositories.All() {
		if err := l.keep(ctx, v, r, now); err != nil {
			return err
		}
	}
	if err := l.blobs.CancelOld(maxIdle); err != nil {
		l.opts.Log.Error("cannot remove uploads of images", "error", err)
	}
	removed, err := l.blobs.Collect(func(digest string) bool { return l.store.View().HasBlob(digest) })
	if err != nil {
		l.opts.Log.Error("cannot remove blobs of images", "error", err)
	}
	if removed > 0 {
		l.opts.Log.Info("removed blobs that no repository has", "blobs", removed)
	}
	return nil
}

// keep does what is due in a repository, in one transaction.
func (l *Loop) keep(ctx context.Context, v *state.View, r *state.Repository, now time.Time) error {
	due := r.Lifecycle != "" && (r.Evaluated == nil || now.Sub(*r.Evaluated) >= evaluated)
	over := false
	for layer := range v.ImageLayersOf(r.Name) {
		over = over || layer.Over(now)
	}
	if !due && !over {
		return nil
	}
	return l.store.Update(ctx, func(tx *state.Tx) error {
		is := tx.Repositories.Get(r.Name)
		if is == nil {
			return nil
		}
		if due && is.Lifecycle != "" {
			l.expire(tx, is, now)
		}
		tx.SweepImageLayers(r.Name, now)
		return nil
	})
}

// expire deletes the images that a repository's policy expires.
func (l *Loop) expire(tx *state.Tx, r *state.Repository, now time.Time) {
	evaluated := *r
	evaluated.Evaluated = &now
	tx.Repositories.Put(&evaluated)
	policy, err := lifecycle.Parse(r.Lifecycle)
	if err != nil {
		l.opts.Log.Error("cannot read a repository's lifecycle policy", "repository", r.Name, "error", err)
		return
	}
	for _, e := range policy.Expired(images(tx.View, r.Name), now) {
		if i := tx.Images.Get(state.InRepository(r.Name, e.Digest)); i != nil {
			tx.DeleteImage(i, now.Add(ecr.UntilRemoved))
		}
	}
}

// images returns a repository's images as policies look at them.
func images(v *state.View, repository string) (all []lifecycle.Image) {
	listed := map[string]bool{}
	for i := range v.ImagesOf(repository) {
		for _, digest := range i.Images {
			listed[digest] = true
		}
	}
	for i := range v.ImagesOf(repository) {
		all = append(all, lifecycle.Image{Digest: i.Digest, Tags: v.TagsOf(i), Pushed: i.Pushed, Listed: listed[i.Digest]})
	}
	return all
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

const (
	// prefetchPause is how long an image isn't prefetched that couldn't be, or for which there's no room.
	prefetchPause = 10 * time.Minute
	// prefetchTimeout is how long an image may take. Meanwhile no image is removed, lest one go for what may itself go at the end.
	prefetchTimeout = 30 * time.Minute
	// prefetchSpare is how much of the disk stays free: an image may unpack to far more than it came as.
	prefetchSpare = 2 << 30
	// tooLargePause is how long one isn't that had to go again, for its bytes had come.
	tooLargePause = 24 * time.Hour
)

// prefetcher brings images here before tasks want them: one after the other, and only as long as no other image must go for it.
type prefetcher struct {
	news    chan struct{} // receives when there are others to prefetch
	fetched atomic.Int64
	pulling atomic.Bool

	mu     sync.Mutex
	wanted []acs.PrefetchImage
	later  map[string]time.Time // when to try an image again
}

func newPrefetcher() *prefetcher {
	return &prefetcher{news: make(chan struct{}, 1), later: map[string]time.Time{}}
}

// Prefetch tells which images tasks may want soon, the most urgent first, instead of those that it told before. They are pulled as the node.
func (e *Engine) Prefetch(images []acs.PrefetchImage) {
	p := e.prefetcher
	p.mu.Lock()
	p.wanted = slices.Clone(images)
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// Prefetched counts the images that were brought here before tasks wanted them.
func (e *Engine) Prefetched() int64 { return e.prefetcher.fetched.Load() }

// next returns the first image that is to be tried now, without those in done.
func (p *prefetcher) next(done map[string]bool) (acs.PrefetchImage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, image := range p.wanted {
		if !done[image.Image] && time.Now().After(p.later[image.Image]) {
			return image, true
		}
	}
	return acs.PrefetchImage{}, false
}

func (p *prefetcher) postpone(image string, why error) {
	pause := prefetchPause
	if errors.Is(why, errTooLarge) {
		pause = tooLargePause
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later[image] = time.Now().Add(pause)
}

// prefetch prefetches what is wanted until ctx ends.
func (e *Engine) prefetch(ctx context.Context) {
	for {
		done := map[string]bool{}
		for {
			image, ok := e.prefetcher.next(done)
			if !ok || ctx.Err() != nil {
				break
			}
			done[image.Image] = true
			if err := e.prefetchImage(ctx, image); err != nil && ctx.Err() == nil {
				e.prefetcher.postpone(image.Image, err)
				e.opts.Log.Info("an image isn't prefetched", "image", image.Image, "reason", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-e.prefetcher.news:
		case <-time.After(prefetchPause): // what had no room then may have some now
		}
	}
}

// What says why there's no room: what is here, or the image itself.
var (
	errNoRoom   = errors.New("images take as much as their budget is")
	errTooLarge = errors.New("with it, images take more than their budget is")
	errFills    = fmt.Errorf("%w: it fills the disk", errTooLarge)
)

// prefetchImage pulls an image that isn't here. If there's more than the budget then, it goes again: nothing else goes for it.
func (e *Engine) prefetchImage(ctx context.Context, image acs.PrefetchImage) error {
	if _, err := e.opts.Runtime.Stored(ctx, image.Image); err == nil {
		return nil
	}
	keeper, _ := e.opts.Runtime.(imageKeeper)
	fits := func() (bool, error) {
		if keeper == nil || e.opts.ImageBudget == 0 {
			return true, nil
		}
		size, err := keeper.ImagesSize(ctx)
		return size <= e.opts.ImageBudget, err
	}
	if ok, err := fits(); !ok || err != nil {
		return errors.Join(errNoRoom, err)
	}
	auth, err := e.nodeAuth(ctx, image.RegistryAuthentication)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := e.images.use(ctx, image.Image); err != nil {
		return err
	}
	used := e.images.lastUse(image.Image)
	e.prefetcher.pulling.Store(true)
	defer e.prefetcher.pulling.Store(false)
	err = within(ctx, prefetchTimeout, "prefetched", func(ctx context.Context) error {
		ctx, end := e.whileRoom(ctx)
		defer end()
		_, err := e.opts.Runtime.Pull(ctx, image.Image, auth)
		if err != nil && errors.Is(context.Cause(ctx), errFills) {
			return errFills
		}
		return err
	})
	if err != nil {
		return err
	}
	e.images.grow()
	if ok, err := fits(); err != nil || ok {
		e.prefetcher.fetched.Add(1)
		e.opts.Log.Info("prefetched an image", "image", image.Image, "took", time.Since(began).Round(time.Millisecond))
		return err
	}
	return errors.Join(errTooLarge, e.images.takeBack(image.Image, used, func() error { return keeper.RemoveImage(ctx, image.Image) }))
}

// whileRoom returns a context that ends when the disk fills.
func (e *Engine) whileRoom(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if e.opts.Free == nil {
		return ctx, func() { cancel(nil) }
	}
	go func() {
		look := time.NewTicker(time.Second)
		defer look.Stop()
		for {
			if free, err := e.opts.Free(); err == nil && free < prefetchSpare {
				cancel(errFills)
			}
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// nodeAuth returns the credentials that the node has for a registry.
func (e *Engine) nodeAuth(ctx context.Context, a *acs.RegistryAuthentication) (*runtime.RegistryAuth, error) {
	if a == nil || a.ECRAuthData == nil || e.opts.Registry == nil {
		return nil, nil
	}
	return e.opts.Registry(ctx, nil, *a.ECRAuthData)
}

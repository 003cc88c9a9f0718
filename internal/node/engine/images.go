package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// PullBehavior says when a task's images are pulled. The values are those of ECS_IMAGE_PULL_BEHAVIOR.
type PullBehavior string

// The pull behaviors.
const (
	PullDefault      PullBehavior = "default"       // for each task; if that fails, the image that is here will do
	PullAlways       PullBehavior = "always"        // for each task
	PullOnce         PullBehavior = "once"          // unless a task has pulled it before
	PullPreferCached PullBehavior = "prefer-cached" // unless it's here, whoever brought it; images then stay for good
)

// imageKeeper is a runtime that keeps images on this machine.
type imageKeeper interface {
	// ImagesSize is what images take on the disk, in bytes.
	ImagesSize(ctx context.Context) (int64, error)
	// RemoveImage removes an image. It's no error if the image has gone, and runtime.ErrImageInUse if something still has it.
	RemoveImage(ctx context.Context, ref string) error
}

// imageLister is an imageKeeper that knows which images it has, and when each was used last.
type imageLister interface {
	Images() (map[string]time.Time, error)
}

const (
	// minImageAge is how long an image stays after its last use, as with Amazon's agent.
	minImageAge = time.Hour
	// removeTimeout is how long an image may take to go. Tasks that want it wait meanwhile.
	removeTimeout = time.Minute
)

// images remembers which images tasks have used, and when.
type images struct {
	path string

	mu    sync.Mutex
	used  map[string]time.Time     // by reference
	going map[string]chan struct{} // images that are being removed; closed when that is over
	grown bool                     // whether they may take more than the budget
}

// openImages reads what the last agent remembered. Without that, images are the runtime's, if it knows them.
func openImages(dir string, rt runtime.Runtime, log *slog.Logger) (*images, error) {
	i := &images{
		path:  filepath.Join(dir, "images", "used.json"),
		used:  map[string]time.Time{},
		going: map[string]chan struct{}{},
		grown: true,
	}
	if err := os.MkdirAll(filepath.Dir(i.path), 0o700); err != nil {
		return nil, err
	}
	if err := file.ReadJSON(i.path, &i.used); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("it isn't known any more when images were used", "file", i.path, "error", err)
		i.used = map[string]time.Time{}
	}
	lister, ok := rt.(imageLister)
	if !ok {
		return i, nil
	}
	stored, err := lister.Images()
	for ref, used := range stored {
		if _, known := i.used[ref]; !known {
			i.used[ref] = used
		}
	}
	return i, err
}

// use notes that a task uses an image from now on, and reports whether one has used it before. While the image is being removed it waits.
func (i *images) use(ctx context.Context, ref string) (known bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.going[ref] != nil {
		gone := i.going[ref]
		i.mu.Unlock()
		select {
		case <-gone:
		case <-ctx.Done():
		}
		i.mu.Lock()
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	last, known := i.used[ref]
	i.used[ref] = time.Now().UTC()
	i.grown = true
	if time.Since(last) < minImageAge/10 { // which is precise enough on the disk
		return known, nil
	}
	return known, file.WriteJSON(i.path, i.used, false)
}

// unused lists the images that no task has used for a while, the one that is so for longest first.
func (i *images) unused(taken map[string]bool) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	old := maps.Clone(i.used)
	maps.DeleteFunc(old, func(ref string, last time.Time) bool { return taken[ref] || time.Since(last) < minImageAge })
	return slices.SortedFunc(maps.Keys(old), func(a, b string) int { return old[a].Compare(old[b]) })
}

// remove removes an image, unless a task has begun to use it.
func (i *images) remove(ref string, do func() error) error {
	i.mu.Lock()
	last, known := i.used[ref]
	if !known || time.Since(last) < minImageAge || i.going[ref] != nil {
		i.mu.Unlock()
		return nil
	}
	return i.removeLocked(ref, do)
}

// takeBack removes an image that was brought here at a time, unless a task has begun to use it since.
func (i *images) takeBack(ref string, at time.Time, do func() error) error {
	i.mu.Lock()
	if !i.used[ref].Equal(at) || i.going[ref] != nil {
		i.mu.Unlock()
		return nil
	}
	return i.removeLocked(ref, do)
}

// lastUse returns when an image was used last.
func (i *images) lastUse(ref string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.used[ref]
}

// removeLocked removes an image; who uses it waits for that. The caller holds mu, which it gives up.
func (i *images) removeLocked(ref string, do func() error) error {
	gone := make(chan struct{})
	i.going[ref] = gone
	i.mu.Unlock()
	err := do()
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.going, ref)
	close(gone)
	if err != nil {
		return err
	}
	delete(i.used, ref)
	return file.WriteJSON(i.path, i.used, false)
}

// grow notes that an image has come.
func (i *images) grow() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.grown = true
}

// mayExceed reports whether the images may take more than the budget, and settle notes that they don't.
func (i *images) mayExceed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.grown
}

func (i *images) settle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.grown = false
}

// tidyImages removes the images that were not used for longest until the others fit into the budget.
func (e *Engine) tidyImages(ctx context.Context) error {
	keeper, ok := e.opts.Runtime.(imageKeeper)
	if !ok || e.opts.ImageBudget == 0 || e.opts.Pull == PullPreferCached || !e.images.mayExceed() {
		return nil
	}
	var failed error
	unused := e.images.unused(e.imagesInUse())
	for {
		size, err := keeper.ImagesSize(ctx)
		if err != nil {
			return errors.Join(failed, err)
		}
		if size <= e.opts.ImageBudget {
			e.images.settle()
			return failed
		}
		if len(unused) == 0 {
			return failed
		}
		if err := e.removeImage(ctx, keeper, unused[0]); err != nil && !errors.Is(err, runtime.ErrImageInUse) {
			failed = errors.Join(failed, err)
		}
		unused = unused[1:]
	}
}

func (e *Engine) removeImage(ctx context.Context, keeper imageKeeper, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return e.images.remove(ref, func() error {
		err := keeper.RemoveImage(ctx, ref)
		if err == nil {
			e.opts.Log.Info("removed an image to make room", "image", ref)
		}
		return err
	})
}

// imagesInUse are the images of all containers that are still here.
func (e *Engine) imagesInUse() map[string]bool {
	taken := map[string]bool{}
	for _, t := range e.all() {
		for _, c := range t.rec.Task.Containers {
			taken[c.Image] = true
		}
	}
	return taken
}

// needsNoPull reports whether an image is here and needn't be pulled, and returns its digest.
func (e *Engine) needsNoPull(ctx context.Context, ref string) (digest string, ok bool) {
	known, err := e.images.use(ctx, ref)
	if err != nil { // of a full disk, say; then it's removed too soon at worst
		e.opts.Log.Warn("cannot note that an image is used", "image", ref, "error", err)
	}
	if e.opts.Pull != PullPreferCached && (e.opts.Pull != PullOnce || !known) {
		return "", false
	}
	digest, err = e.opts.Runtime.Stored(ctx, ref)
	return digest, err == nil
}

// standIn reports whether an image that can't be pulled is here and may be used all the same, and returns its digest.
func (e *Engine) standIn(ctx context.Context, ref string, cause error) (digest string, ok bool) {
	if e.opts.Pull != PullDefault {
		return "", false
	}
	digest, err := e.opts.Runtime.Stored(ctx, ref)
	if err != nil {
		return "", false
	}
	e.opts.Log.Warn("cannot pull an image; using the one that is here", "image", ref, "error", cause)
	return digest, true
}

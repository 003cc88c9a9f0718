package engine

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
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
	// RemoveImage removes an image that no container has. It's no error if the image has gone.
	RemoveImage(ctx context.Context, ref string) error
}

// minImageAge is how long an image stays after its last use, as with Amazon's agent.
const minImageAge = time.Hour

// images remembers which images tasks have used, and when.
type images struct {
	path string

	mu    sync.Mutex           // held while an image goes, so that no task starts with it meanwhile
	used  map[string]time.Time // by reference
	grown bool                 // whether they may take more than the budget
}

// openImages reads what the last agent remembered.
func openImages(dir string) (*images, error) {
	i := &images{path: filepath.Join(dir, "images", "used.json"), used: map[string]time.Time{}, grown: true}
	if err := os.MkdirAll(filepath.Dir(i.path), 0o700); err != nil {
		return nil, err
	}
	err := file.ReadJSON(i.path, &i.used)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return i, err
}

// use notes that a task uses an image from now on, and reports whether one has used it before.
func (i *images) use(ref string) (known bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
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
	defer i.mu.Unlock()
	if time.Since(i.used[ref]) < minImageAge {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	delete(i.used, ref)
	return file.WriteJSON(i.path, i.used, false)
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
	unused := e.images.unused(e.imagesInUse())
	for {
		size, err := keeper.ImagesSize(ctx)
		if err != nil {
			return err
		}
		if size <= e.opts.ImageBudget {
			e.images.settle()
			return nil
		}
		if len(unused) == 0 {
			return nil
		}
		ref := unused[0]
		unused = unused[1:]
		if err := e.images.remove(ref, func() error { return keeper.RemoveImage(ctx, ref) }); err != nil {
			return err
		}
		e.opts.Log.Info("removed an image to make room", "image", ref)
	}
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
	known, err := e.images.use(ref)
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

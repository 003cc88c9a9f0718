// Package dataset brings what lies under a prefix in S3 onto the machine as a directory, through a cache of objects that all directories
// share. A directory appears whole or not at all, and is never changed. Its files are hard links to the cache's, so that the links tell
// what is in use: an object that no directory has may go when room is needed. The node's agent and the verb mount call it.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/file"
)

// Client reads objects. It's S3.
type Client interface {
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Source is what a directory shows: the objects whose keys begin with Prefix, which is empty or ends with a slash.
type Source struct{ Bucket, Prefix string }

// Parse reads s3://bucket/prefix. The prefix is that of a directory, with or without a slash at its end.
func Parse(uri string) (Source, error) {
	rest, ok := strings.CutPrefix(uri, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return Source{}, fmt.Errorf("%q is not of the form s3://bucket/prefix", uri)
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return Source{bucket, prefix}, nil
}

// String is the source as Parse reads it.
func (s Source) String() string { return "s3://" + s.Bucket + "/" + s.Prefix }

// The cache's directories: objects by id, those that are on their way, and the directories that tasks have.
const (
	objectsDir = "objects"
	partialDir = "partial"
	viewsDir   = "views"
)

const (
	fetchesAtOnce = 16
	progressEvery = 10 * time.Second
	// maxListings is how often a source is listed that changes while it's fetched.
	maxListings = 3
)

// errChanged says that an object isn't any more what the listing said.
var errChanged = errors.New("it changed while it was fetched")

// Cache has the objects on this machine. Several processes may have the same one open.
type Cache struct {
	dir    string
	budget int64 // bytes; 0 means no limit
	root   *os.Root
	log    *slog.Logger

	fetched, reused atomic.Int64 // bytes

	mu      sync.Mutex
	pending map[string]*pending // objects that directories are being made of, by id
}

// pending is an object that some directories under way need.
type pending struct {
	size    int64
	waiting int // how many directories
}

// Open opens the cache in a directory, which it makes if there's none. Objects may take budget bytes; 0 means no limit.
func Open(dir string, budget int64, log *slog.Logger) (*Cache, error) {
	for _, d := range []string{objectsDir, partialDir, viewsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Cache{dir: dir, budget: budget, root: root, log: log, pending: map[string]*pending{}}, nil
}

// Path returns where the directory of a name is. A name is a path below that of an owner: owner/a/b.
func (c *Cache) Path(name string) string { return filepath.Join(c.dir, viewsDir, name) }

// Names lists what an owner has, one level deep.
func (c *Cache) Names(owner string) (names []string, err error) {
	entries, err := os.ReadDir(c.Path(owner))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Remove removes a name and all below it. The objects stay in the cache.
func (c *Cache) Remove(name string) error {
	return c.root.RemoveAll(filepath.Join(viewsDir, name))
}

// Provide makes the directory of a name show a source, with the rights of whom the client acts for, also where the cache has the objects.
// A directory that's there is left as it is.
func (c *Cache) Provide(ctx context.Context, client Client, s Source, name string) error {
	if _, err := os.Stat(c.Path(name)); err == nil {
		return nil
	}
	for try := 1; ; try++ {
		err := c.provide(ctx, client, s, name)
		if !errors.Is(err, errChanged) || try == maxListings {
			return err
		}
	}
}

func (c *Cache) provide(ctx context.Context, client Client, s Source, name string) error {
	objects, err := list(ctx, client, s)
	if err != nil {
		return err
	}
	dirs, err := layout(s, objects)
	if err != nil {
		return err
	}
	done, err := c.makeRoom(objects)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	defer done()
	view, err := c.newView(name, dirs)
	if err != nil {
		return err
	}
	defer c.root.RemoveAll(view) //nolint:errcheck // it's gone already when all went well
	p := c.startProgress(s, objects)
	defer p.stop()
	g, fetching := errgroup.WithContext(ctx)
	g.SetLimit(fetchesAtOnce)
	for _, o := range objects {
		if o.isDirectory() {
			continue
		}
		g.Go(func() error {
			err := c.bring(fetching, &fetch{client: client, object: o, progress: p}, filepath.Join(view, o.path))
			if err != nil {
				return fmt.Errorf("s3://%s/%s: %w", s.Bucket, o.key, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.publish(view, name)
}

// newView makes an unfinished directory for a name beside where it'll be, with all directories in it.
func (c *Cache) newView(name string, dirs []string) (view string, err error) {
	parent := filepath.Join(viewsDir, filepath.Dir(name))
	if err := c.root.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	view = filepath.Join(parent, file.Unfinished+filepath.Base(name))
	if err := c.root.RemoveAll(view); err != nil { // an agent that was killed has left it
		return "", err
	}
	for _, d := range append([]string{"."}, dirs...) {
		d = filepath.Join(view, d)
		if err := c.root.Mkdir(d, 0o755); err != nil {
			return "", err
		}
		if err := c.root.Chmod(d, 0o755); err != nil { // whatever the umask
			return "", err
		}
	}
	return view, nil
}

// publish gives an unfinished directory its name.
func (c *Cache) publish(view, name string) error {
	err := c.root.Rename(view, filepath.Join(viewsDir, name))
	if _, statErr := os.Stat(c.Path(name)); err != nil && statErr == nil {
		return nil // somebody else has made the same
	}
	return err
}

// bring has an object in the cache and links it to a place. An object that's there already is linked if the client may read it.
func (c *Cache) bring(ctx context.Context, f *fetch, place string) error {
	for {
		if c.has(&f.object) {
			if err := f.check(ctx); err != nil {
				return err
			}
			if c.link(&f.object, place) == nil {
				c.reused.Add(f.size)
				f.progress.add(f.size)
				return nil
			}
		}
		if err := c.fetch(ctx, f); err != nil {
			return err
		}
		err := c.link(&f.object, place)
		if !errors.Is(err, os.ErrNotExist) { // else another process has just made room
			return err
		}
	}
}

// has reports whether the cache has an object whole, and untouched as far as its size and time tell.
func (c *Cache) has(o *object) bool {
	i, err := c.root.Stat(o.stored())
	return err == nil && i.Mode().Perm() == stored && i.Size() == o.size && i.ModTime().Equal(o.modified)
}

// stored is the mode of objects in the cache.
const stored = 0o444

// link links an object to a place, and notes that it's used.
func (c *Cache) link(o *object, place string) error {
	if err := c.root.Link(o.stored(), place); err != nil {
		return err
	}
	return c.root.Chtimes(o.stored(), time.Now(), o.modified)
}

// Figures are what a cache has done, and what it has.
type Figures struct {
	Fetched, Reused, Size int64 // bytes
}

// Figures returns them now. What was fetched and reused counts from Open.
func (c *Cache) Figures() Figures {
	f := Figures{Fetched: c.fetched.Load(), Reused: c.reused.Load()}
	for _, e := range c.entries() {
		f.Size += e.size
	}
	return f
}

// layout returns the directories that objects need, parents first. It refuses keys that are no paths, and two that can't both be.
func layout(s Source, objects []object) ([]string, error) {
	files, dirs := map[string]string{}, map[string]string{} // and the keys that have them be
	for i := range objects {
		o := &objects[i]
		if err := o.locate(s); err != nil {
			return nil, err
		}
		dir := path.Dir(o.path)
		if o.isDirectory() {
			dir = o.path
		} else {
			files[o.path] = o.key
		}
		for ; dir != "."; dir = path.Dir(dir) {
			dirs[dir] = o.key
		}
	}
	for p, key := range files {
		if other, both := dirs[p]; both {
			return nil, fmt.Errorf("s3://%s: the keys %q and %q can't be a file and a directory of one name", s.Bucket, key, other)
		}
	}
	return slices.Sorted(maps.Keys(dirs)), nil
}

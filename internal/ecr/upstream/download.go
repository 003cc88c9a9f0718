package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pintle/pintle/internal/state"
)

// origin is where an image comes from.
type origin struct {
	repository name.Repository
	auth       authn.Authenticator
}

// download is a layer on its way into a repository.
type download struct {
	repository string
	digest     string
	size       int64
	upload     string // its id

	mu    sync.Mutex
	taken bool          // whether somebody fetches it
	grown chan struct{} // closed once more has come
	done  chan struct{} // closed once all has, or nothing more will
	err   error         // why it failed, once done is closed
}

// prepare begins the uploads of layers.
func (c *Cache) prepare(repository string, layers []v1.Descriptor) (all []*download, err error) {
	for _, layer := range layers {
		id, err := c.blobs.Begin(repository)
		if err != nil {
			return nil, errors.Join(err, c.drop(all))
		}
		all = append(all, &download{
			repository: repository,
			digest:     layer.Digest.String(),
			size:       layer.Size,
			upload:     id,
			grown:      make(chan struct{}),
			done:       make(chan struct{}),
		})
	}
	return all, nil
}

// drop cancels the uploads of downloads that nobody knows of.
func (c *Cache) drop(all []*download) (err error) {
	for _, d := range all {
		err = errors.Join(err, c.blobs.Cancel(d.repository, d.upload))
	}
	return err
}

// joinLocked makes downloads known. Where a layer is on its way already, that download takes the other's place, which is returned as spare.
// The caller holds mu.
func (c *Cache) joinLocked(prepared []*download) (all, spare []*download) {
	for _, d := range prepared {
		key := state.InRepository(d.repository, d.digest)
		if there := c.coming[key]; there != nil {
			all = append(all, there)
			spare = append(spare, d)
			continue
		}
		c.coming[key] = d
		all = append(all, d)
	}
	return all, spare
}

// fetch brings a layer, or waits for whoever does.
func (c *Cache) fetch(ctx context.Context, from *origin, d *download) error {
	if !d.take() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.done:
			return d.err
		}
	}
	err := c.copy(ctx, from, d)
	if err != nil {
		err = errors.Join(err, c.blobs.Cancel(d.repository, d.upload))
	}
	c.mu.Lock()
	delete(c.coming, state.InRepository(d.repository, d.digest))
	c.mu.Unlock()
	d.err = err
	close(d.done)
	return err
}

// take reports whether the caller is the one to fetch it.
func (d *download) take() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !d.taken
	d.taken = true
	return first
}

// copy copies a layer from its registry into its repository.
func (c *Cache) copy(ctx context.Context, from *origin, d *download) error {
	if err := c.receive(ctx, from, d); err != nil {
		return err
	}
	return c.ecr.FinishLayer(ctx, d.repository, d.upload, d.digest)
}

// receive takes in a layer's bytes.
func (c *Cache) receive(ctx context.Context, from *origin, d *download) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stall, func() { cancel(fmt.Errorf("the registry sent nothing for %v", stall)) })
	defer watchdog.Stop()
	layer, err := remote.Layer(
		from.repository.Digest(d.digest), remote.WithContext(ctx), remote.WithAuth(from.auth), remote.WithTransport(guarded),
	)
	if err != nil {
		return err
	}
	r, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was read only
	_, err = c.blobs.Append(d.repository, d.upload, 0, readerFunc(func(p []byte) (int, error) {
		d.grow() // what was read before is in the file by now, or soon
		watchdog.Reset(stall)
		return r.Read(p)
	}))
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// grow wakes those that wait for more.
func (d *download) grow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.grown)
	d.grown = make(chan struct{})
}

// more returns a channel that is closed once more has come than now.
func (d *download) more() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.grown
}

// Layer reads a layer while it comes.
type Layer struct {
	Size int64

	ctx  context.Context
	d    *download
	file *os.File
	at   int64
}

// Open returns a layer that is on its way into a repository, for the duration of a call, or nil if it isn't.
func (c *Cache) Open(ctx context.Context, repository, digest string) (*Layer, error) {
	c.mu.Lock()
	d := c.coming[state.InRepository(repository, digest)]
	c.mu.Unlock()
	if d == nil {
		return nil, nil
	}
	f, err := c.blobs.Follow(repository, d.upload)
	if errors.Is(err, os.ErrNotExist) { // all of it has come, or it has failed, and that is being noted
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.done:
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &Layer{d.size, ctx, d, f, 0}, nil
}

// Read implements io.Reader. It waits for what hasn't come yet.
func (l *Layer) Read(p []byte) (int, error) {
	for isDone := false; l.at < l.Size; {
		more := l.d.more()
		n, err := l.file.ReadAt(p[:min(int64(len(p)), l.Size-l.at)], l.at)
		if n > 0 {
			l.at += int64(n)
			return n, nil
		}
		if err != io.EOF {
			return 0, err
		}
		if isDone {
			return 0, errors.Join(io.ErrUnexpectedEOF, l.d.err)
		}
		select {
		case <-l.ctx.Done():
			return 0, l.ctx.Err()
		case <-more:
		case <-l.d.done:
			isDone = true
		}
	}
	return 0, io.EOF
}

// Close implements io.Closer.
func (l *Layer) Close() error { return l.file.Close() }

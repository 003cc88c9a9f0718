package peers

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// layer is a layer on its way into a file.
type layer struct {
	digest string
	path   string
	known  chan struct{} // closed once its size is known, or that it won't come

	mu    sync.Mutex
	total int64         // -1 if it won't come
	size  int64         // of what has come
	grown chan struct{} // closed once more has come, or it's over
	over  bool
	err   error

	readers int
	cancel  context.CancelFunc // ends what brings it
}

func newLayer(digest, path string) *layer {
	return &layer{digest: digest, path: path, known: make(chan struct{}), total: -1, grown: make(chan struct{})}
}

// begins tells its size.
func (l *layer) begins(total int64, cancel context.CancelFunc) {
	l.mu.Lock()
	l.total = total
	l.cancel = cancel
	l.mu.Unlock()
	close(l.known)
}

// grow notes that more has come.
func (l *layer) grow(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size += int64(n)
	close(l.grown)
	l.grown = make(chan struct{})
}

// end notes that all has come, or why the rest won't.
func (l *layer) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.err = err
	close(l.grown)
	if l.cancel != nil {
		l.cancel()
	}
}

// linger is how long a layer goes on coming that nobody reads: readers may not read what follows the last file, and others may come.
const linger = 20 * time.Second

// read counts readers. Once nobody has read it for a while, it's given up.
func (l *layer) read(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers += more
	if l.readers > 0 || l.over {
		return
	}
	time.AfterFunc(linger, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.readers == 0 {
			l.cancel()
		}
	})
}

// state returns how far it is.
func (l *layer) state() (size int64, grown <-chan struct{}, over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size, l.grown, l.over, l.err
}

// follower reads a layer while it comes.
type follower struct {
	ctx   context.Context
	layer *layer
	file  *os.File
	at    int64

	closed sync.Once
}

// follow opens a layer that is on its way. Its file may have its last name already.
func (p *Peers) follow(ctx context.Context, l *layer) (io.ReadCloser, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.Open(p.path(l.digest))
	}
	if err != nil {
		return nil, err
	}
	l.read(1)
	return &follower{ctx: ctx, layer: l, file: f}, nil
}

// Read implements io.Reader. It waits for what hasn't come yet.
func (f *follower) Read(b []byte) (int, error) {
	for {
		size, grown, over, err := f.layer.state()
		if f.at < size {
			n, err := f.file.ReadAt(b[:min(int64(len(b)), size-f.at)], f.at)
			f.at += int64(n)
			if n > 0 {
				err = nil
			}
			return n, err
		}
		if over && err == nil {
			return 0, io.EOF
		}
		if over {
			return 0, err
		}
		select {
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		case <-grown:
		}
	}
}

// Close implements io.Closer.
func (f *follower) Close() error {
	f.closed.Do(func() { f.layer.read(-1) })
	return f.file.Close()
}

package session

import (
	"io"
	"sync"
	"time"
)

// maxTyped is how many messages wait for a program that doesn't read, and mostTyped how many if its client is to be heard all the same. What
// comes then is lost, and comes again.
const (
	maxTyped  = 64
	mostTyped = 1024
	// deafAfter is after how long without reading a program counts as one that doesn't: its client is heard, who may have left.
	deafAfter = time.Second
)

// typist hands a program what was typed, at the program's pace.
type typist struct {
	keys  *io.PipeWriter
	mu    sync.Mutex
	queue [][]byte
	moved time.Time     // when the program was last ready for more
	more  chan struct{} // has a value when the queue has grown
	over  chan struct{} // closed in the end
	once  sync.Once
}

func newTypist(keys *io.PipeWriter) *typist {
	return &typist{keys: keys, more: make(chan struct{}, 1), over: make(chan struct{})}
}

// put has bytes typed.
func (t *typist) put(b []byte) {
	t.mu.Lock()
	t.queue = append(t.queue, b)
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// isDeaf reports whether the program hasn't been ready for more for a while.
func (t *typist) isDeaf() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.moved) > deafAfter
}

// waiting returns how many messages weren't typed yet.
func (t *typist) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// run types until the program or the session has ended.
func (t *typist) run() {
	for {
		select {
		case <-t.over:
			return
		case <-t.more:
		}
		for b := t.next(); b != nil; b = t.next() {
			if _, err := t.keys.Write(b); err != nil {
				return
			}
		}
	}
}

func (t *typist) next() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moved = time.Now()
	if len(t.queue) == 0 {
		return nil
	}
	b := t.queue[0]
	t.queue = t.queue[1:]
	return b
}

// close ends run.
func (t *typist) close() {
	t.once.Do(func() {
		close(t.over)
		t.keys.Close()
	})
}

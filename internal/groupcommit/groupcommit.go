// Package groupcommit has one goroutine run a store's changes, one at a time, while those that come meanwhile wait to
// share the next flush. What a change is, and how a group of them becomes durable, is the store's to know.
package groupcommit

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// ErrClosed is what a change gets once the writer has ended.
var ErrClosed = errors.New("the store is closed")

// Most is how many changes share one flush at most.
const Most = 256

// Writer runs changes.
type Writer[T any] struct {
	changes chan *Change[T]
	close   sync.Once
	closing chan struct{}
	done    chan struct{}
}

// Change is one change on its way through the writer.
type Change[T any] struct {
	Do   T
	done chan error
}

// Answer tells the change's Update what came of it. The writer's function answers each change once.
func (c *Change[T]) Answer(err error) { c.done <- err }

// Start starts a writer. commit runs a group of changes and answers them all; the group goes on for as long as changes
// wait. The writer ends with Close, or where commit returns false.
func Start[T any](commit func(group iter.Seq[*Change[T]]) bool) *Writer[T] {
	w := &Writer[T]{changes: make(chan *Change[T], Most), closing: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			select {
			case first := <-w.changes:
				if !commit(w.group(first)) {
					return
				}
			case <-w.closing:
				return
			}
		}
	}()
	return w
}

// group is a change and those that wait behind it.
func (w *Writer[T]) group(first *Change[T]) iter.Seq[*Change[T]] {
	return func(yield func(*Change[T]) bool) {
		c := first
		for taken := 1; yield(c) && taken < Most; taken++ {
			select {
			case c = <-w.changes:
			default:
				return
			}
		}
	}
}

// Update has the writer run a change, and returns what came of it. The context counts until the writer has taken the
// change; from then on Update waits for the outcome.
func (w *Writer[T]) Update(ctx context.Context, do T) error {
	c := &Change[T]{do, make(chan error, 1)}
	select {
	case <-w.closing:
		return ErrClosed
	case <-w.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case w.changes <- c:
	}
	select {
	case err := <-c.done:
		return err
	case <-w.done:
	}
	select { // the writer may have answered just before its end
	case err := <-c.done:
		return err
	default:
		return ErrClosed
	}
}

// Close ends the writer after the group that it has begun.
func (w *Writer[T]) Close() {
	w.close.Do(func() { close(w.closing) })
	<-w.done
}

// Done is closed when the writer has ended.
func (w *Writer[T]) Done() <-chan struct{} { return w.done }

// Package groupcommit runs a store's changes in one goroutine, one at a time. Changes that arrive meanwhile share the next flush. The store
// decides what a change is, and how a group of them becomes durable.
package groupcommit

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// ErrClosed is returned for changes after the writer has ended.
var ErrClosed = errors.New("the store is closed")

// Most is the maximum number of changes that share a flush.
const Most = 256

// Writer runs changes.
type Writer[T any] struct {
	changes chan *Change[T]
	close   sync.Once
	closing chan struct{}
	done    chan struct{}
}

// Change is one change in the writer.
type Change[T any] struct {
	Do   T
	done chan error
}

// Answer gives the change's Update its result. The writer's function answers each change once.
func (c *Change[T]) Answer(err error) { c.done <- err }

// Start starts a writer. commit runs a group of changes and answers them all. The group continues as long as changes are waiting. The
// writer ends on Close, or when commit returns false.
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

// group yields a change and those waiting behind it.
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

// Update lets the writer run a change and returns the result. The context can cancel it until the writer takes the change; after that Update
// waits for the result.
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
	select { // the writer may have answered just before it ended
	case err := <-c.done:
		return err
	default:
		return ErrClosed
	}
}

// Close ends the writer after the current group.
func (w *Writer[T]) Close() {
	w.close.Do(func() { close(w.closing) })
	<-w.done
}

// Waiting returns how many changes wait for the writer to take them.
func (w *Writer[T]) Waiting() int { return len(w.changes) }

// Done is closed when the writer has ended.
func (w *Writer[T]) Done() <-chan struct{} { return w.done }

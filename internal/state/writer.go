package state

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-memdb"
)

// maxGroup bounds how many transactions share one flush of the journal.
const maxGroup = 256

// writer runs the transactions one at a time, and flushes them in groups. While one group is on its
// way to the disk, the next one runs on top of it: nobody else sees a group's changes, and none of
// its transactions is answered, before it is durable. A group that fails takes along the one on top.
type writer struct {
	*Store
	open     *group // takes transactions; nil before the first
	flushing *group // is on its way to the disk; nil while none is
	flushed  chan error
	closed   bool
}

// group is transactions that share one flush.
type group struct {
	tx    *Tx
	taken []*commit
	after *memdb.MemDB // the tables with its changes
}

// run runs transactions until the store is closed, or its journal cannot tell what it holds.
func (w *writer) run() {
	defer close(w.done)
	for closing := w.closing; ; {
		if w.due() {
			w.flush()
		}
		if w.closed && w.flushing == nil {
			return
		}
		select {
		case c := <-w.waiting():
			w.take(c)
		case err := <-w.flushed:
			w.settle(err)
			// Only a restart, which reads what the disk really holds, can know the state again.
			if errors.Is(err, ErrInDoubt) {
				return
			}
		case <-closing:
			w.closed, closing = true, nil
		}
	}
}

// waiting is where transactions come from; nil while none is taken.
func (w *writer) waiting() <-chan *commit {
	if w.closed || w.open.full() {
		return nil
	}
	return w.commits
}

// due says whether the open group is to be flushed: the disk is free, and nobody waits to join.
func (w *writer) due() bool {
	if w.flushing != nil || w.open == nil || len(w.open.taken) == 0 {
		return false
	}
	return len(w.waiting()) == 0
}

func (g *group) full() bool { return g != nil && len(g.taken) >= maxGroup }

// take runs one transaction in the open group.
func (w *writer) take(c *commit) {
	w.begin()
	if err := w.open.tx.run(c.fn); err != nil {
		c.done <- err
		return
	}
	w.open.taken = append(w.open.taken, c)
}

// begin makes sure that there is an open group.
func (w *writer) begin() {
	if w.open == nil {
		w.open = &group{tx: newTx(w.db.Txn(true), w.Store)}
	}
}

// flush sends the open group to the disk.
func (w *writer) flush() {
	g := w.open
	w.open, w.flushing = nil, g
	g.tx.txn.Commit()
	g.after = w.db.Snapshot()
	revision := w.revision.Load() + 1
	go func() { w.flushed <- w.keep(g, revision) }()
}

// keep writes a group's changes to the journal.
func (w *writer) keep(g *group, revision int64) error {
	changes, err := g.tx.changes()
	if err != nil || len(changes) == 0 {
		return err
	}
	if err := w.journal.Write(revision, changes); err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	return nil
}

// settle ends the group that was on its way to the disk.
func (w *writer) settle(err error) {
	g := w.flushing
	w.flushing = nil
	if err != nil {
		w.unwind(g, err)
		return
	}
	if len(g.tx.log) > 0 {
		w.revision.Add(1)
		w.show(g.after)
	}
	g.answer(nil)
}

// unwind takes back the group that failed, and before it the one on top, whose transactions may have
// built on what is not there.
func (w *writer) unwind(failed *group, err error) {
	w.begin()
	top := w.open
	w.open = nil
	top.tx.undo(0)
	top.tx.log = failed.tx.log
	top.tx.undo(0)
	top.tx.txn.Commit()
	w.show(w.db.Snapshot())
	failed.answer(err)
	top.answer(err)
}

func (g *group) answer(err error) {
	for _, c := range g.taken {
		c.done <- err
	}
}

// run runs one transaction's function on the group, and undoes it alone where it fails.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	mark := len(tx.log)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("state: a transaction panicked: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			tx.undo(mark)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.check()
}

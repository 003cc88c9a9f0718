package state

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// slow is a journal whose writes wait for their outcome.
type slow struct {
	*memory
	outcome chan error
}

func (s *slow) Write(revision int64, changes []Change) error {
	if err := <-s.outcome; err != nil {
		return err
	}
	return s.memory.Write(revision, changes)
}

// flaky is a journal that fails now and then.
type flaky struct {
	*memory
	rnd *rand.Rand
}

func (f *flaky) Write(revision int64, changes []Change) error {
	if f.rnd.IntN(3) == 0 {
		return errors.New("disk full")
	}
	return f.memory.Write(revision, changes)
}

// mirror is an observer that keeps the clusters by name.
type mirror map[string]*Cluster

func (m mirror) Change(before, after any) {
	if c, ok := before.(*Cluster); ok {
		delete(m, *c.ClusterName)
	}
	if c, ok := after.(*Cluster); ok {
		m[*c.ClusterName] = c
	}
}

// TestWhatIsNotDurableIsNotThere follows a transaction while its write is under way, until it fails,
// and one that waits behind it.
func TestWhatIsNotDurableIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m := &slow{newMemory(), make(chan error, 1)}, mirror{}
		s := open(t, j, m)
		j.outcome <- nil
		update(t, s, func(tx *Tx) error {
			tx.Clusters.Put(cluster("kept"))
			tx.ContainerInstances.Put(instance("i", 1024, 1024))
			return nil
		})
		begin := func(fn func(*Tx) error) <-chan error {
			done := make(chan error, 1)
			go func() { done <- s.Update(context.Background(), fn) }()
			synctest.Wait()
			return done
		}
		watch := s.Watch()
		watch.Clusters.Get("arn:cluster/kept")
		woken := watch.ChangedCh(t.Context())
		first := begin(func(tx *Tx) error {
			tx.Clusters.Delete("arn:cluster/kept")
			tx.Tasks.Put(task("t", "i", "PENDING", Resources{}, "GPU-1"))
			return nil
		})
		second := begin(func(tx *Tx) error { // the GPU is free again
			tx.Tasks.Put(task("t2", "i", "PENDING", Resources{}, "GPU-1"))
			return nil
		})
		select {
		case err := <-first:
			t.Errorf("answered (%v) before it is durable", err)
		case <-woken:
			t.Error("a watch wakes before there is anything to see")
		default:
		}
		if v := s.View(); v.Clusters.Get("arn:cluster/kept") == nil || v.Tasks.Get("t") != nil {
			t.Error("seen before it is durable")
		}
		failure := errors.New("disk full")
		j.outcome <- failure
		if err := <-first; !errors.Is(err, failure) {
			t.Errorf("got %v, want the journal's error", err)
		}
		j.outcome <- nil
		if err := <-second; err != nil {
			t.Errorf("the transaction behind: %v", err)
		}
		v := s.View()
		if v.Clusters.Get("arn:cluster/kept") == nil || v.Tasks.Get("t") != nil || v.Tasks.Get("t2") == nil || s.Revision() != 2 {
			t.Errorf("the failed transaction left something behind, at revision %d", s.Revision())
		}
		if len(m) != 1 || m["kept"] == nil {
			t.Errorf("the observer has %v", slices.Collect(maps.Keys(m)))
		}
	})
}

// TestEveryAnswerIsTrue counts in one row from several goroutines while the journal fails now and
// then: the count is that of the transactions that were told yes, in the tables, with the observers,
// and in the journal.
func TestEveryAnswerIsTrue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		j, m := &flaky{newMemory(), rand.New(rand.NewPCG(seed, 1))}, mirror{}
		s, err := Open(context.Background(), j, m)
		if err != nil {
			r.Fatal(err)
		}
		count := func(c *Cluster) int32 {
			if c == nil {
				return 0
			}
			return c.RunningTasksCount
		}
		var yes atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					err := s.Update(context.Background(), func(tx *Tx) error {
						c := cluster("c")
						c.RunningTasksCount = 1 + count(tx.Clusters.Get(*c.ClusterArn))
						tx.Clusters.Put(c)
						return nil
					})
					if err == nil {
						yes.Add(1)
					}
				}
			})
		}
		wg.Wait()
		seen := count(s.View().Clusters.Get("arn:cluster/c"))
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
		again, err := Open(context.Background(), j.memory)
		if err != nil {
			r.Fatal(err)
		}
		defer again.Close()
		kept := count(again.View().Clusters.Get("arn:cluster/c"))
		if want := yes.Load(); seen != want || kept != want || count(m["c"]) != want {
			r.Fatalf("%d were told yes; seen %d, kept %d, observed %d", want, seen, kept, count(m["c"]))
		}
	})
}

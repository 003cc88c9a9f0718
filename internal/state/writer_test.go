package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
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

func clusterNames(v *View) (names []string) {
	for c := range v.Clusters.All() {
		names = append(names, *c.ClusterName)
	}
	return names
}

// begin starts an update in a goroutine, and lets the writer take it.
func begin(s *Store, fn func(*Tx) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Update(context.Background(), fn) }()
	synctest.Wait()
	return done
}

func TestATransactionRunsWhileTheOneBeforeIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &slow{newMemory(), make(chan error)}
		s := open(t, j)
		watch := s.Watch()
		for range watch.Clusters.All() {
		}
		woken := watch.ChangedCh(t.Context())
		first := begin(s, func(tx *Tx) error { tx.Clusters.Put(cluster("a")); return nil })
		second := begin(s, func(tx *Tx) error {
			if got := clusterNames(tx.View); !slices.Equal(got, []string{"a"}) {
				t.Errorf("the second transaction runs on %v", got)
			}
			tx.Clusters.Put(cluster("b"))
			return nil
		})
		if got := clusterNames(s.View()); len(got) != 0 {
			t.Errorf("%v is seen before it is durable", got)
		}
		select {
		case <-woken:
			t.Error("a watch wakes before there is anything to see")
		case err := <-first:
			t.Errorf("a transaction is answered (%v) before it is durable", err)
		default:
		}
		j.outcome <- nil
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := <-woken; err != nil {
			t.Error(err)
		}
		if got := clusterNames(s.View()); !slices.Equal(got, []string{"a"}) || s.Revision() != 1 {
			t.Errorf("after one flush, %v are seen at revision %d", got, s.Revision())
		}
		j.outcome <- nil
		if err := <-second; err != nil {
			t.Error(err)
		}
		if got := clusterNames(s.View()); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("after both, %v are seen", got)
		}
	})
}

func TestAFailedFlushTakesAlongWhatRanOnTop(t *testing.T) {
	for _, failure := range []error{errors.New("disk full"), fmt.Errorf("%w: fsync", ErrInDoubt)} {
		t.Run(failure.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, m := &slow{newMemory(), make(chan error, 1)}, mirror{}
				s := open(t, j, m)
				j.outcome <- nil
				update(t, s, func(tx *Tx) error {
					tx.Clusters.Put(cluster("kept"))
					tx.ContainerInstances.Put(instance("i", 1024, 1024))
					return nil
				})
				watch := s.Watch()
				watch.Clusters.Get("arn:cluster/kept")
				first := begin(s, func(tx *Tx) error {
					tx.Clusters.Delete("arn:cluster/kept")
					tx.Tasks.Put(task("t", "i", "PENDING", Resources{}, "GPU-1"))
					return nil
				})
				second := begin(s, func(tx *Tx) error { tx.Clusters.Put(cluster("on top")); return nil })
				j.outcome <- failure
				for _, done := range []<-chan error{first, second} {
					if err := <-done; !errors.Is(err, failure) {
						t.Errorf("got %v, want the journal's error", err)
					}
				}
				if got := clusterNames(s.View()); !slices.Equal(got, []string{"kept"}) || s.Revision() != 1 {
					t.Errorf("%v are seen at revision %d", got, s.Revision())
				}
				if len(m) != 1 || m["kept"] == nil {
					t.Errorf("the observer has %v", slices.Collect(maps.Keys(m)))
				}
				if errors.Is(failure, ErrInDoubt) {
					<-s.Done()
					return
				}
				j.outcome <- nil
				update(t, s, func(tx *Tx) error { // the GPU is free again
					tx.Tasks.Put(task("t2", "i", "PENDING", Resources{}, "GPU-1"))
					c := *tx.Clusters.Get("arn:cluster/kept")
					c.Status = aws.String("INACTIVE")
					tx.Clusters.Put(&c)
					return nil
				})
				if err := watch.Changed(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
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
		var yes atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					err := s.Update(context.Background(), func(tx *Tx) error {
						c := cluster("c")
						if old := tx.Clusters.Get(*c.ClusterArn); old != nil {
							c.RunningTasksCount = old.RunningTasksCount
						}
						c.RunningTasksCount++
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
		count := func(c *Cluster) int32 {
			if c == nil {
				return 0
			}
			return c.RunningTasksCount
		}
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

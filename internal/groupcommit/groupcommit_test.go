package groupcommit

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

var errOdd = errors.New("odd")

// store keeps numbers, and refuses odd ones. It ends at a negative one.
type store struct {
	kept   []int
	groups []int // how many changes each had
}

func (s *store) commit(group iter.Seq[*Change[int]]) bool {
	n := 0
	for c := range group {
		n++
		switch {
		case c.Do < 0:
			s.groups = append(s.groups, n)
			return false
		case c.Do%2 == 1:
			c.Answer(errOdd)
		default:
			s.kept = append(s.kept, c.Do)
			c.Answer(nil)
		}
	}
	s.groups = append(s.groups, n)
	return true
}

// TestUpdate: each change is run once and gets its own answer, from however many goroutines they come.
func TestUpdate(t *testing.T) {
	s := &store{}
	w := Start(s.commit)
	const n = 10_000
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for i := client; i < n; i += 8 {
				if err := w.Update(t.Context(), i); errors.Is(err, errOdd) != (i%2 == 1) {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	clients.Wait()
	w.Close()
	w.Close()
	slices.Sort(s.kept)
	for i, kept := range s.kept {
		if kept != 2*i {
			t.Fatalf("kept %d at %d", kept, i)
		}
	}
	if len(s.kept) != n/2 || slices.Max(s.groups) > Most {
		t.Errorf("%d are kept, in groups of up to %d", len(s.kept), slices.Max(s.groups))
	}
	if err := w.Update(t.Context(), 2); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestGroup: what waits while a group is made durable shares the next one, at most Most of them.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hold := &store{}, make(chan struct{})
		w := Start(func(group iter.Seq[*Change[int]]) bool {
			<-hold
			return s.commit(group)
		})
		cut, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for range Most + 3 { // one is being made durable, Most wait, and two have not been taken
			clients.Go(func() {
				if err := w.Update(cut, 2); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(hold)
		clients.Wait()
		w.Close()
		if want := []int{Most, 1}; !slices.Equal(s.groups, want) {
			t.Errorf("groups of %d, want %d", s.groups, want)
		}
	})
}

// TestBroken: a writer whose function gives up ends, and those who wait hear of it.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		w := Start(s.commit)
		if err := w.Update(t.Context(), -1); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		<-w.Done()
		if err := w.Update(t.Context(), 2); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		w.Close()
	})
}

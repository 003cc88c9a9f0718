package tally

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestAnswered: each request is in one class, the one whose bound its time doesn't pass.
func TestAnswered(t *testing.T) {
	var all Tally
	k := Kind{"ecs", "RunTask", ""}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for _, took := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 10 * time.Second, time.Minute} {
				all.Answered(k, took)
			}
		})
	}
	all.Answered(Kind{"ecs", "RunTask", "ClientException"}, time.Second)
	wait.Wait()
	var seen []Kind
	all.Each(func(k Kind, times Times) {
		seen = append(seen, k)
		if k.Code != "" {
			return
		}
		want := make([]uint64, len(Bounds)+1)
		want[0], want[1], want[12], want[13] = 16, 8, 8, 8
		if !slices.Equal(times.Classes, want) || times.Sum.Round(time.Second) != 8*70*time.Second {
			t.Errorf("%v in %v", times.Classes, times.Sum)
		}
	})
	if !slices.Equal(seen, []Kind{k, {"ecs", "RunTask", "ClientException"}}) {
		t.Errorf("seen are %v", seen)
	}
}

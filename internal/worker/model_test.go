package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestNothingIsLost: whatever fails, and whenever workers are stopped or killed, a message is deleted only once its results exist or it's
// in the dead-letter queue. Once failures stop, every message ends in one of these ways.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		messages := rapid.IntRange(1, 12).Draw(r, "messages")
		faults := rapid.SampledFrom([]float64{0, 0.1, 0.5}).Draw(r, "faults")
		parallel, batch := rapid.IntRange(1, 3).Draw(r, "parallel"), rapid.IntRange(1, 10).Draw(r, "batch")
		batches := rapid.Bool().Draw(r, "batches")
		stops := rapid.SliceOfN(rapid.IntRange(1, 600), 0, 5).Draw(r, "stops")
		var lost string
		synctest.Test(t, func(t *testing.T) {
			lost = runWorkers(t, rand.New(rand.NewPCG(seed, 1)), messages, faults, parallel, batch, batches, stops)
		})
		if lost != "" {
			r.Fatal(lost)
		}
	})
}

// runWorkers runs one worker after another on a queue, and describes what was lost, if anything.
func runWorkers(
	t *testing.T, rnd *rand.Rand, messages int, faults float64, parallel, batch int, batches bool, stops []int,
) (lost string) {
	cloud := newCloud()
	keys := map[string][]string{} // by message
	for i := range messages {
		id := "m" + strconv.Itoa(i)
		for j := range 1 + rnd.IntN(3) {
			key := fmt.Sprintf("%s/%d", id, j)
			keys[id] = append(keys[id], key)
			if rnd.IntN(20) > 0 { // otherwise the object doesn't exist
				cloud.objects["b/"+key] = []string{"good", "good", "good", "bad", "crash"}[rnd.IntN(5)]
			}
		}
		cloud.send(put(keys[id]...))
	}
	failing, killed := true, false
	cloud.fail = func(string) error { // calls are made one at a time
		if killed || failing && rnd.Float64() < faults {
			return errors.New("InternalError")
		}
		return nil
	}
	setKilled := func(is bool) {
		cloud.mu.Lock()
		defer cloud.mu.Unlock()
		killed = is
	}
	settled := func(id, body string) bool {
		for _, d := range cloud.dead {
			if *d.MessageBody == body {
				return true
			}
		}
		for _, k := range keys[id] {
			if cloud.objects["results/r/"+k+".out"] == "" {
				return false
			}
		}
		return true
	}
	cloud.deleting = func(s *stored) {
		if !settled(s.id, s.body) {
			lost = fmt.Sprintf("message %s was deleted though it was not done", s.id)
		}
	}
	for i := 0; i < len(stops)+100 && (i < len(stops) || len(cloud.queue) > 0); i++ {
		o := options(t, cloud, nil)
		o.Parallel = parallel
		o.Batch = batch
		o.Visibility = 20 * time.Second
		o.Runner = func() Runner {
			cloud.mu.Lock()
			defer cloud.mu.Unlock()
			takes := time.Duration(rnd.IntN(60)) * time.Second
			return &fakeCommand{batches: batches, takes: takes, do: func(_ context.Context, _ *Input, text string) error {
				if text == "bad" {
					return errors.New("exit status 1")
				}
				if text == "crash" {
					return broken{errors.New("signal: killed")}
				}
				return nil
			}}
		}
		during := time.Hour
		if i < len(stops) {
			during = time.Duration(stops[i]) * time.Second
		} else {
			failing = false
		}
		if failing && stops[i]%2 == 0 { // this worker is killed, so none of its calls arrive any more
			time.AfterFunc(during-time.Millisecond, func() { setKilled(true) })
		}
		work(t, o, during)
		setKilled(false)
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	if lost == "" && len(cloud.queue) > 0 {
		lost = fmt.Sprintf("%d messages are left: %s", len(cloud.queue), strings.Join(cloud.calls[max(0, len(cloud.calls)-20):], ", "))
	}
	return lost
}

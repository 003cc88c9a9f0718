package scaling

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steady returns the flows of a service that finishes a constant load at once.
func steady(seconds int, arrived, working float64, running int) []Flow {
	flows := make([]Flow, seconds)
	for i := range flows {
		flows[i] = Flow{Arrived: arrived, Finished: arrived, Working: working, Running: running, Wanted: 1}
	}
	return flows
}

func TestBacklog(t *testing.T) {
	policy := TargetTracking{TargetValue: 10, ScaleInCooldown: time.Minute}
	// Two messages arrive a second, and each takes two seconds. A task works on two at once, so it finishes one a second.
	now := func(waiting float64, change func(*Queue)) Queue {
		q := Queue{Flows: steady(300, 2, 4, 3), Slots: 2, Start: 30 * time.Second}
		q.Flows[len(q.Flows)-1].Waiting = waiting
		if change != nil {
			change(&q)
		}
		return q
	}
	for name, c := range map[string]struct {
		queue    Queue
		capacity int
		want     int
		drains   bool
	}{
		"one task more than needed":                 {now(0, nil), 3, 2, false},
		"as many tasks as needed":                   {now(0, nil), 2, 2, false},
		"too few tasks":                             {now(0, nil), 1, 2, false},
		"a backlog that drains before a start":      {now(31, nil), 3, 3, true},
		"a backlog that drains soon":                {now(31, nil), 6, 3, false},
		"a backlog above the target that drains":    {now(51, nil), 5, 4, true},
		"a backlog that stays":                      {now(200, nil), 3, 9, false},
		"a backlog that stays, with instant starts": {now(200, func(q *Queue) { q.Start = 0 }), 3, 102, false},
		"nothing known of tasks":                    {Queue{Flows: []Flow{{Waiting: 35}}}, 0, 4, false},
		"an empty queue":                            {Queue{Flows: []Flow{{}}}, 0, 0, false},
		"more wanted within the cool-down":          {now(0, func(q *Queue) { q.Flows[250].Wanted = 7 }), 7, 7, false},
		"more wanted before the cool-down":          {now(0, func(q *Queue) { q.Flows[239].Wanted = 7 }), 7, 2, false},
		"a burst in the past":                       {now(0, func(q *Queue) { q.Flows[100].Arrived = 100 }), 5, 19, false},
		"unknown slots, all quiet":                  {now(0, func(q *Queue) { q.Slots, q.Settled = 0, true }), 3, 2, false},
	} {
		got := policy.Backlog(c.queue, c.capacity)
		if got.Desired != c.want || got.Drains != c.drains {
			t.Errorf("%s: %+v, want %d, %t", name, got, c.want, c.drains)
		}
	}
}

// TestSlots: how much a task can do at once shows only while messages wait.
func TestSlots(t *testing.T) {
	idle, full := Flow{Working: 3, Running: 2}, Flow{Working: 8, Running: 2, Waiting: 1}
	if got := Slots([]Flow{idle, full, full}); got != 4 {
		t.Errorf("%v slots", got)
	}
	drained := Flow{Working: 7, Running: 2, Waiting: 4e-15}
	if got := Slots([]Flow{full, drained}); got != 4 {
		t.Errorf("%v slots: the rest of a sum counts as a message that waits", got)
	}
	if got := Slots([]Flow{idle, {Waiting: 9}}); got != 0 {
		t.Errorf("%v slots, though none waited while tasks ran", got)
	}
}

// TestBacklogConstantLoad: under a constant load, the capacity settles on enough, whatever it was before, and nothing waits
// longer than the target allows. In the last five minutes it changes at most once, to less: a backlog within its target may
// take long to drain, and then less is enough.
func TestBacklogConstantLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 8).Draw(t, "slots")
		takes := rapid.IntRange(1, 20).Draw(t, "seconds a message takes")
		busy := rapid.IntRange(1, 20).Draw(t, "messages worked on at once")
		start := rapid.IntRange(1, 90).Draw(t, "start")
		policy := TargetTracking{
			TargetValue:     float64(rapid.IntRange(1, 30).Draw(t, "target")),
			ScaleInCooldown: time.Duration(rapid.IntRange(10, 30).Draw(t, "cool-down")) * time.Second,
		}
		rate, arrived := float64(slots)/float64(takes), float64(busy)/float64(takes)
		enough := int(math.Ceil(arrived/rate - 1e-9))
		running, capacity := rapid.IntRange(1, 10).Draw(t, "before"), 0
		capacity = running
		var flows []Flow
		var starting []int // the second in which each starting task will run
		waiting, known, changed, late := 0.0, 0.0, 0, 0
		const seconds = 2 * Memory
		for second := range seconds {
			for len(starting) > 0 && starting[0] <= second {
				running++
				starting = starting[1:]
			}
			could := float64(running) * rate
			done := min(waiting+arrived, could)
			waiting += arrived - done
			flows = append(flows, Flow{
				Arrived:  arrived,
				Finished: done,
				Waiting:  waiting,
				Working:  done / rate * float64(slots),
				Running:  running,
			})
			flows = flows[max(0, len(flows)-Memory):]
			if s := Slots(flows); s > 0 {
				known = s
			}
			b := policy.Backlog(Queue{
				Flows:   flows,
				Slots:   known,
				Start:   time.Duration(start) * time.Second,
				Settled: second-changed > int(policy.ScaleInCooldown/time.Second),
			}, capacity)
			flows[len(flows)-1].Wanted = b.Wanted
			want := max(b.Desired, 1)
			if want != capacity {
				changed = second
			}
			if known > 0 && second > seconds-Memory/2 && want != capacity {
				late++
				if want > capacity || late > 1 {
					t.Fatalf("from %d tasks to %d, after %d s", capacity, want, second)
				}
			}
			for ; capacity < want; capacity++ {
				starting = append(starting, second+start)
			}
			for ; capacity > want; capacity-- {
				if len(starting) > 0 {
					starting = starting[:len(starting)-1]
				} else {
					running--
				}
			}
		}
		if capacity < enough {
			t.Fatalf("%d tasks, where %d are enough", capacity, enough)
		}
		if waiting > policy.TargetValue*float64(capacity) {
			t.Fatalf("%v wait with %d tasks", waiting, capacity)
		}
	})
}

package sim

import (
	"container/heap"
	"time"
)

// Yardstick is the cost of a service that knew the load in advance and let no request wait.
type Yardstick struct {
	// Tasks is its largest number of tasks.
	Tasks int
	// Held is how long its tasks hold their places, added up.
	Held time.Duration
}

// Clairvoyant is the least time that tasks must be held so that no request waits, if the future is known and a task's start
// time counts as held. At each level of concurrency, a task is kept through a gap that is shorter than starting another one.
func Clairvoyant(s Scenario) Yardstick {
	var y Yardstick
	var idle []time.Duration // since when each level has been idle
	changes := demand(s)
	level := 0
	for _, c := range changes {
		for ; level < c.tasks; level++ {
			if level == len(idle) {
				idle = append(idle, 0)
				y.Held += s.Start - c.at
				continue
			}
			y.Held += min(c.at-idle[level], s.Start) - c.at // c.at is added back when the level goes idle again
		}
		for ; level > c.tasks; level-- {
			idle[level-1] = c.at
			y.Held += c.at
		}
	}
	y.Held += time.Duration(level) * s.Length
	y.Tasks = len(idle)
	return y
}

// Static is the cost of running all the time as many tasks as the peak needs.
func Static(s Scenario) Yardstick {
	y := Clairvoyant(s)
	return Yardstick{Tasks: y.Tasks, Held: time.Duration(y.Tasks) * s.Length}
}

type demanded struct {
	at    time.Duration
	tasks int
}

// demand returns how many tasks are needed, from each time on, so that no request waits.
func demand(s Scenario) []demanded {
	var out []demanded
	var working finishes
	last := 0
	note := func(at time.Duration) {
		tasks := (len(working) + s.Slots - 1) / s.Slots
		if tasks == last || at > s.Length {
			return
		}
		last = tasks
		out = append(out, demanded{at, tasks})
	}
	for _, r := range s.Requests {
		for len(working) > 0 && working[0].at <= r.At {
			at := heap.Pop(&working).(finish).at
			note(at)
		}
		heap.Push(&working, finish{at: r.At + r.Work})
		note(r.At)
	}
	for len(working) > 0 {
		at := heap.Pop(&working).(finish).at
		note(at)
	}
	return out
}

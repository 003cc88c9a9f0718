package scaling

import (
	"math"
	"time"
)

// This file is Pintle's own: how a target tracking policy on a queue's backlog per task decides in the fast
// reaction. What AWS does with such a policy is to wait for alarms on the backlog; but a backlog alone says
// neither whether it would be gone before another task could start, nor what the next burst will need.

// Flow is what a queue and the service behind it did in one second.
type Flow struct {
	Arrived, Finished float64 // messages
	Waiting, Working  float64 // messages, at its end
	Running           int     // tasks
	// Wanted is what Backlog.Wanted came to; the caller keeps it here.
	Wanted int
}

// Memory is how many seconds of a queue's past are looked at.
const Memory = 600

// Queue is what is known of a queue, and of the service that works it off.
type Queue struct {
	// Flows are the last seconds, the newest last, at most Memory.
	Flows []Flow
	// Slots is how many messages a task works on at once, as Slots has found it of late; 0 where it has not.
	Slots float64
	// Start is how long a task takes to start.
	Start time.Duration
	// Settled says that the capacity has been the same for as long as a scale-in is held back.
	Settled bool
}

// Backlog is what a queue's flow asks for, and the figures that say why.
type Backlog struct {
	Desired int
	// Wanted is what is asked for now, while what was within the cool-down counts too.
	Wanted int
	// Hindsight is what the past minutes would have needed.
	Hindsight int
	// Rate is how many messages a task finishes a second when it has enough of them, Arrival how many come a
	// second now; 0 where it is not known yet.
	Rate, Arrival float64
	Waiting       float64
	// Drain is how long the waiting messages would take with the capacity that there is.
	Drain time.Duration
	// Drains says that the backlog is above its target, and that it will not be any more when another task
	// could have started.
	Drains bool
}

const (
	// attained is the part of the past's messages that the capacity must have been enough for.
	attained = 0.99
	// margin is the part of the wait that the target allows that the past's messages may have had: what
	// comes is not exactly what was.
	margin = 0.4
	// recent is the least seconds that arrivals are averaged over: else it is as far back as a task's start is ahead.
	recent = 10
)

// Backlog decides for a queue: the target is the backlog per task, so that a message may wait as long as a task
// needs for that many. The capacity is the least with which next to all messages of the last minutes would
// have waited no longer, and as much more as what waits now needs, if it would still wait when a new task
// has started. What it wants it wants for the scale-in cool-down.
func (t TargetTracking) Backlog(q Queue, capacity int) Backlog {
	now := q.Flows[len(q.Flows)-1]
	start := max(1, q.Start.Seconds())
	b := Backlog{Waiting: now.Waiting, Arrival: arrival(q.Flows, max(recent, int(start)))}
	slots, full := q.Slots, q.Slots > 0
	if !full {
		slots = atLeast(q.Flows)
	}
	b.Rate = finishing(q.Flows, slots)
	if b.Rate == 0 { // nothing is known of tasks
		b.Wanted = ceil(now.Waiting / t.TargetValue)
		b.Desired = max(b.Wanted, t.held(q.Flows))
		return b
	}
	// With so many tasks the backlog would be within its bounds by the time that a new one could have started.
	soon := ceil((now.Waiting + b.Arrival*start) / (margin*t.TargetValue + b.Rate*start))
	b.Drain = seconds(now.Waiting / (b.Rate * float64(max(1, capacity))))
	b.Wanted = max(ceil(now.Working/slots), soon)
	if soon > capacity {
		b.Wanted = max(b.Wanted, min(ceil((now.Waiting+now.Working)/slots), ceil((now.Waiting/start+b.Arrival)/b.Rate)))
	}
	b.Drains = soon <= capacity && now.Waiting > t.TargetValue*float64(capacity)
	b.Hindsight = hindsight(q.Flows, b.Rate, margin*t.TargetValue/b.Rate)
	b.Wanted = max(b.Wanted, b.Hindsight)
	b.Desired = max(b.Wanted, t.held(q.Flows))
	if t.DisableScaleIn {
		b.Desired = max(b.Desired, capacity)
	}
	if b.Desired >= capacity && !full && q.Settled && b.Arrival > 0 && b.Wanted <= capacity && quiet(q.Flows, t.ScaleInCooldown) {
		b.Desired = max(1, capacity-1) // one less shows whether a task can do more
	}
	return b
}

// finishing is how many messages a task finishes a second when all its slots work: by Little's law a message takes as
// long as there are messages worked on for each that is finished a second.
func finishing(flows []Flow, slots float64) float64 {
	var finished, worked float64
	for _, f := range flows {
		finished += f.Finished
		worked += f.Working
	}
	if finished == 0 || worked == 0 {
		return 0
	}
	return slots * finished / worked
}

// Slots is how many messages a task works on at once, which shows while others wait; 0 where none did.
func Slots(flows []Flow) float64 {
	var working, tasks float64
	for _, f := range flows {
		if f.Waiting > 0 && f.Running > 0 {
			working += f.Working
			tasks += float64(f.Running)
		}
	}
	if tasks == 0 {
		return 0
	}
	return working / tasks
}

// atLeast is the most messages that a task has worked on at once; it might have been able to do more.
func atLeast(flows []Flow) float64 {
	most := 0.0
	for _, f := range flows {
		if f.Running > 0 {
			most = max(most, f.Working/float64(f.Running))
		}
	}
	return most
}

// arrival is how many messages have come a second of late.
func arrival(flows []Flow, seconds int) float64 {
	flows = flows[max(0, len(flows)-seconds):]
	sum := 0.0
	for _, f := range flows {
		sum += f.Arrived
	}
	return sum / float64(len(flows))
}

// held is the most that was wanted within the scale-in cool-down.
func (t TargetTracking) held(flows []Flow) int {
	most := 0
	for _, f := range flows[max(0, len(flows)-int(t.ScaleInCooldown/time.Second)):] {
		most = max(most, f.Wanted)
	}
	return most
}

// quiet says that nothing has waited for so long.
func quiet(flows []Flow, d time.Duration) bool {
	n := max(recent, int(d/time.Second))
	if len(flows) < n {
		return false
	}
	for _, f := range flows[len(flows)-n:] {
		if f.Waiting > 0 {
			return false
		}
	}
	return true
}

// hindsight is the least capacity with which next to all messages of the past would have waited no longer than
// wait seconds, if each task finishes rate messages a second.
func hindsight(flows []Flow, rate, wait float64) int {
	low, high := 0, 1
	for !enough(flows, float64(high)*rate, wait) {
		if low, high = high, 2*high; high > maxHindsight {
			return maxHindsight
		}
	}
	for low+1 < high {
		if n := (low + high) / 2; enough(flows, float64(n)*rate, wait) {
			high = n
		} else {
			low = n
		}
	}
	if low == 0 && !came(flows) {
		return 0
	}
	return high
}

// maxHindsight bounds the search; ECS takes no more tasks for a service.
const maxHindsight = 5000

func came(flows []Flow) bool {
	for _, f := range flows {
		if f.Arrived > 0 {
			return true
		}
	}
	return false
}

// enough says whether next to all messages would have waited no longer than wait seconds if so many were finished a
// second, and whether those are as many as come on average: else the backlog would creep up.
func enough(flows []Flow, finished, wait float64) bool {
	backlog, in, all := 0.0, 0.0, 0.0
	limit := finished * wait // a message behind so many waits that long
	for _, f := range flows {
		before := backlog
		backlog = max(0, backlog+f.Arrived-finished)
		all += f.Arrived
		switch {
		case backlog <= limit:
			in += f.Arrived
		case before < limit:
			in += f.Arrived * (limit - before) / (backlog - before)
		}
	}
	return in >= attained*all && finished*float64(len(flows)) >= all-slack
}

func ceil(f float64) int { return whole(math.Ceil(f - slack)) }

func seconds(s float64) time.Duration {
	return time.Duration(min(s, math.MaxInt32) * float64(time.Second))
}

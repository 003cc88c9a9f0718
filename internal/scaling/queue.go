package scaling

import (
	"math"
	"time"
)

// This file is Pintle's own: how a target tracking policy on a queue's backlog per task decides in the fast
// reaction. AWS waits for alarms on the backlog. But a backlog alone doesn't say whether it would be gone before
// another task could start, nor what the next burst will need.

// Flow is what a queue and the service behind it did in one second.
type Flow struct {
	Arrived, Finished float64 // messages
	Waiting, Working  float64 // messages, at its end
	Running           int     // tasks
	// Wanted is the Backlog.Wanted of that second. The caller keeps it here.
	Wanted int
}

// Memory is how many seconds of a queue's past count.
const Memory = 600

// Queue is what we know of a queue, and of the service that works it off.
type Queue struct {
	// Flows are the last seconds, the newest last, at most Memory.
	Flows []Flow
	// Slots is how many messages a task works on at once, as func Slots last found it; 0 while unknown.
	Slots float64
	// Start is how long a task takes to start.
	Start time.Duration
	// Settled is set if the capacity has been the same for the scale-in cool-down.
	Settled bool
}

// Backlog is the capacity for a queue's flow, and the figures behind it.
type Backlog struct {
	Desired int
	// Wanted is the capacity needed now. Desired also counts what was wanted within the cool-down.
	Wanted int
	// Hindsight is the capacity that the past minutes would have needed.
	Hindsight int
	// Rate is how many messages a task finishes a second when it has enough of them; 0 while unknown.
	Rate float64
	// Arrival is how many messages come a second now.
	Arrival float64
	Waiting float64
	// Drain is how long the waiting messages would take with the current capacity.
	Drain time.Duration
	// Drains is set if the backlog is above its target, but won't be by the time another task could have started.
	Drains bool
}

const (
	// attained is the fraction of past messages that the capacity must have been enough for.
	attained = 0.99
	// margin is how much of the wait that the target allows past messages may have used. The rest is headroom:
	// the future isn't exactly like the past.
	margin = 0.4
	// recent is the least number of seconds to average arrivals over. A task that takes longer to start has a longer average.
	recent = 10
)

// Backlog decides for a queue. The target is the backlog per task: a message may wait as long as a task needs
// for that many. The capacity is the least with which nearly all messages of the last minutes would have
// waited no longer. What waits now may add to it, if it would still wait when a new task has started. A wish
// holds for the scale-in cool-down.
func (t TargetTracking) Backlog(q Queue, capacity int) Backlog {
	now := q.Flows[len(q.Flows)-1]
	start := max(1, q.Start.Seconds())
	b := Backlog{Waiting: now.Waiting, Arrival: arrival(q.Flows, max(recent, int(start)))}
	slots, full := q.Slots, q.Slots > 0
	if !full {
		slots = mostWorking(q.Flows)
	}
	b.Rate = finishing(q.Flows, slots)
	if b.Rate == 0 { // no task has finished anything yet
		b.Wanted = ceil(now.Waiting / t.TargetValue)
		b.Desired = max(b.Wanted, t.held(q.Flows))
		return b
	}
	// With this many tasks the backlog would be within bounds by the time a new one could have started.
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
	if b.Desired >= capacity && !full && q.Settled && b.Arrival > 0 && b.Wanted <= capacity && isQuiet(q.Flows, t.ScaleInCooldown) {
		b.Desired = max(1, capacity-1) // one less shows whether a task can do more
	}
	return b
}

// finishing returns how many messages a task finishes a second when all its slots work. By Little's law a message
// takes as long as the messages in work divided by those finished a second.
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

// Slots returns how many messages a task works on at once. It only shows while messages wait: 0 if none did.
func Slots(flows []Flow) float64 {
	var working, tasks float64
	for _, f := range flows {
		if f.Waiting > slack && f.Running > 0 {
			working += f.Working
			tasks += float64(f.Running)
		}
	}
	if tasks == 0 {
		return 0
	}
	return working / tasks
}

// mostWorking returns the most messages that a task has worked on at once. A task might be able to do more.
func mostWorking(flows []Flow) float64 {
	most := 0.0
	for _, f := range flows {
		if f.Running > 0 {
			most = max(most, f.Working/float64(f.Running))
		}
	}
	return most
}

// arrival returns how many messages came per second over the last seconds.
func arrival(flows []Flow, seconds int) float64 {
	flows = flows[max(0, len(flows)-seconds):]
	sum := 0.0
	for _, f := range flows {
		sum += f.Arrived
	}
	return sum / float64(len(flows))
}

// held returns the most that was wanted within the scale-in cool-down.
func (t TargetTracking) held(flows []Flow) int {
	most := 0
	for _, f := range flows[max(0, len(flows)-int(t.ScaleInCooldown/time.Second)):] {
		most = max(most, f.Wanted)
	}
	return most
}

// isQuiet reports whether no message has waited for d.
func isQuiet(flows []Flow, d time.Duration) bool {
	n := max(recent, int(d/time.Second))
	if len(flows) < n {
		return false
	}
	for _, f := range flows[len(flows)-n:] {
		if f.Waiting > slack {
			return false
		}
	}
	return true
}

// hindsight returns the least capacity with which nearly all past messages would have waited at most wait seconds,
// if each task finishes rate messages a second.
func hindsight(flows []Flow, rate, wait float64) int {
	low, high := 0, 1
	for !isEnough(flows, float64(high)*rate, wait) {
		if low, high = high, 2*high; high > maxHindsight {
			return maxHindsight
		}
	}
	for low+1 < high {
		if n := (low + high) / 2; isEnough(flows, float64(n)*rate, wait) {
			high = n
		} else {
			low = n
		}
	}
	if low == 0 && !anyArrived(flows) {
		return 0
	}
	return high
}

// maxHindsight bounds the search: ECS takes no more tasks for a service.
const maxHindsight = 5000

func anyArrived(flows []Flow) bool {
	for _, f := range flows {
		if f.Arrived > 0 {
			return true
		}
	}
	return false
}

// isEnough reports whether nearly all messages would have waited at most wait seconds if so many were finished a
// second. That must also match the average arrivals, or the backlog would creep up.
func isEnough(flows []Flow, finished, wait float64) bool {
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

func ceil(f float64) int { return toCapacity(math.Ceil(f - slack)) }

func seconds(s float64) time.Duration {
	return time.Duration(min(s, math.MaxInt32) * float64(time.Second))
}

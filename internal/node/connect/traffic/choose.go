package traffic

import "time"

// Which target is next, and which are left out for a while because they failed: decisions without a clock or a network of their own.

// The outlier detection: after so many failures in a row, a target is left out for a while, as long as not more than half of all are.
const (
	maxFailures = 5
	ejection    = 30 * time.Second
)

// record is what is remembered of a target.
type record struct {
	failures int       // in a row
	until    time.Time // when it's asked again; zero if it wasn't left out, or has not failed since
}

// after returns the record after one more request or connection.
func (r record) after(failed bool, now time.Time) record {
	if !failed {
		r.failures = 0
		if !now.Before(r.until) {
			r.until = time.Time{}
		}
		return r
	}
	if now.Before(r.until) {
		return r // what was under way fails, too
	}
	if r.failures++; r.failures >= maxFailures {
		r.failures = 0
		r.until = now.Add(ejection)
	}
	return r
}

// standing is what counts of a target when one is chosen.
type standing struct {
	unhealthy bool
	ejected   bool
	tried     bool // it has just failed this very request
}

// choose returns which target is next, or -1 if there is none. They take turns. Those that are unhealthy or left out come only if there are
// no others, or, of those left out, if they are more than half of all: then it's rather the network that fails.
func choose(all []standing, turn uint64) int {
	ejected := 0
	for _, s := range all {
		if s.ejected {
			ejected++
		}
	}
	ignore := 2*ejected > len(all)
	if len(all) == 0 {
		return -1
	}
	first := int(turn % uint64(len(all)))
	for _, may := range []func(standing) bool{
		func(s standing) bool { return !s.tried && !s.unhealthy && (!s.ejected || ignore) },
		func(s standing) bool { return !s.tried && !s.unhealthy },
		func(s standing) bool { return !s.tried },
	} {
		for i := range all {
			at := (first + i) % len(all)
			if may(all[at]) {
				return at
			}
		}
	}
	return -1
}

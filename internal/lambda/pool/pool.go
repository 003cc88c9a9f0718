// Package pool decides how many execution environments a version of a function has: which one an invocation gets, how many are started, and
// which end. It is pure.
package pool

import (
	"slices"
	"time"
)

// Idle is an environment that has nothing to do.
type Idle struct {
	ID    string
	Since time.Time
}

// Snapshot is what there is of one version's environments.
type Snapshot struct {
	Waiting  int    // invocations without an environment
	Starting int    // environments that aren't ready yet
	Idle     []Idle // in any order
	Retired  bool   // whether the version has other code or another configuration by now, or is gone
	Keep     time.Duration
	Now      time.Time
}

// Plan is what is to happen.
type Plan struct {
	Assign []string // the environments that get the invocations which have waited longest, in this order
	Start  int
	End    []string
	// Next is when an environment will have been idle for long enough; zero if none will.
	Next time.Time
}

// maxStarting is how many environments of a version may be on their way. More invocations wait for these, or for others to be free.
const maxStarting = 50

// Decide returns what is to happen. The environment that was busy last is the first to be used again, so that others end.
func Decide(s Snapshot) (p Plan) {
	idle := slices.Clone(s.Idle)
	slices.SortFunc(idle, func(a, b Idle) int { return b.Since.Compare(a.Since) })
	for _, e := range idle {
		over := e.Since.Add(s.Keep)
		switch {
		case s.Retired:
			p.End = append(p.End, e.ID)
		case len(p.Assign) < s.Waiting:
			p.Assign = append(p.Assign, e.ID)
		case !over.After(s.Now):
			p.End = append(p.End, e.ID)
		case p.Next.IsZero() || over.Before(p.Next):
			p.Next = over
		}
	}
	p.Start = max(0, min(s.Waiting-len(p.Assign), maxStarting)-s.Starting)
	return p
}

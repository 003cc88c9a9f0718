package balancers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// settled is what processes say together, at one moment.
type settled struct {
	now   time.Time
	heard map[string]bool // who is there
	// upToDate are the targets at those who carry out what they are to. The others speak of what was before.
	upToDate []map[report.Key]report.Target
	behind   bool // there are others
}

// picture looks at the processes. One that hasn't reported since the control plane began has a while to do so.
func (l *Loop) picture(v *state.View) settled {
	s := settled{now: l.opts.Now(), heard: map[string]bool{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	for row := range v.Balancers.All() {
		p := l.processes[row.ID]
		if p == nil && row.Lost != nil {
			continue
		}
		if p == nil {
			p = &process{heard: s.now, by: row.By}
			l.processes[row.ID] = p
		}
		if s.now.Sub(p.heard) > lost {
			continue
		}
		s.heard[row.ID] = true
		if p.targets == nil || p.version != l.current.Version {
			s.behind = true
			continue
		}
		s.upToDate = append(s.upToDate, p.targets)
	}
	maps.DeleteFunc(l.processes, func(id string, p *process) bool { // the rows of those have come to the end of their time
		return v.Balancers.Get(id) == nil && s.now.Sub(p.heard) > lost
	})
	return s
}

// opinions are what the processes say of a target.
func (s *settled) opinions(t *state.Target) (all []report.Target) {
	key := report.Key{Group: t.Group, TargetKey: routing.TargetKey{ID: t.ID, Port: int(t.Port)}}
	for _, targets := range s.upToDate {
		if o, ok := targets[key]; ok {
			all = append(all, o)
		}
	}
	return all
}

// cutTime is how long processes have to cut what is under way to a target whose time is over. They have heard of its end a little later, and
// if the target went first, what is cut would be lost without notice.
const cutTime = 5 * time.Second

// hasDrained reports whether a target's time is over, or nothing is under way to it at any process.
func (s *settled) hasDrained(t *state.Target) bool {
	switch over := s.now.Sub(*t.Draining); {
	case over >= cutTime:
		return true
	case len(s.upToDate) == 0 && !s.behind:
		return over >= 0 // nobody is there who could say more
	case s.behind:
		return false
	}
	for _, targets := range s.upToDate {
		key := report.Key{Group: t.Group, TargetKey: routing.TargetKey{ID: t.ID, Port: int(t.Port)}}
		if o, ok := targets[key]; ok && !o.Drained {
			return false
		}
	}
	return true
}

// health returns a target's health if it's another than its row has.
func (s *settled) health(t *state.Target) (types.TargetHealth, bool) {
	var all []routing.Health
	for _, o := range s.opinions(t) {
		all = append(all, o.Health)
	}
	verdict, ok := report.Verdict(all)
	if !ok {
		return types.TargetHealth{}, false
	}
	h := types.TargetHealth{State: types.TargetHealthStateEnum(verdict.State), Reason: types.TargetHealthReasonEnum(verdict.Reason)}
	if verdict.Description != "" {
		h.Description = &verdict.Description
	}
	before := t.Health
	same := before != nil && before.State == h.State && before.Reason == h.Reason &&
		(before.Description == nil) == (h.Description == nil) && (h.Description == nil || *before.Description == *h.Description)
	return h, !same
}

// settle writes down what has changed: who is lost, which load balancers are active, how targets are, and which have drained.
func (l *Loop) settle(ctx context.Context) error {
	v := l.store.View()
	if s := l.picture(v); !s.changes(v, nil) {
		return nil
	}
	return l.store.Update(ctx, func(tx *state.Tx) error {
		s := l.picture(tx.View)
		s.changes(tx.View, tx)
		return nil
	})
}

// changes reports whether there is something to change, and changes it if there is a transaction.
func (s *settled) changes(v *state.View, tx *state.Tx) (any bool) {
	for row := range v.Balancers.All() {
		if row.Lost == nil && !s.heard[row.ID] {
			any = true
			if tx != nil {
				c := *row
				c.Lost = &s.now
				tx.Balancers.Put(&c)
			}
		}
	}
	for row := range v.LoadBalancers.All() {
		if row.State.Code == types.LoadBalancerStateEnumProvisioning && len(s.upToDate) > 0 {
			any = true
			if tx != nil {
				tx.LoadBalancers.Put(row.Active())
			}
		}
	}
	return s.changeTargets(v, tx) || any
}

// isOver reports whether a target is a task that has ended, or is gone with its node.
func isOver(v *state.View, t *state.Target) bool {
	if t.Task == "" {
		return false
	}
	task := v.Tasks.Get(t.Task)
	return task == nil || *task.LastStatus == "STOPPED"
}

func (s *settled) changeTargets(v *state.View, tx *state.Tx) (any bool) {
	for _, row := range slices.Collect(v.Targets.All()) {
		if row.Draining != nil && s.hasDrained(row) || isOver(v, row) {
			any = true
			if tx != nil {
				tx.DeleteTarget(row)
			}
			continue
		}
		if row.Draining != nil {
			continue
		}
		if h, changed := s.health(row); changed {
			any = true
			if tx != nil {
				tx.Targets.Put(row.Checked(h, s.now))
			}
		}
	}
	return any
}

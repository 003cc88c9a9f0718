package metrics

import (
	"maps"
	"slices"
	"time"
)

// silent is how long nothing must have come of a metric before it may be forgotten.
const silent = 3 * time.Hour

// forget forgets the metrics of which nothing is kept any more, once they are many, and the ones reported longest ago where
// there are more than there may be: every task brings metrics of its own. What blocks still hold of them goes when those
// are merged or expire.
func (s *Store) forget(now int64) error {
	idle := s.idle(now)
	oldest := tiers[len(tiers)-1].oldest(now)
	expired, _ := slices.BinarySearchFunc(idle, oldest, func(m idleMetric, at int64) int { return int(m.heard - at) })
	s.mu.RLock()
	all := len(s.metrics)
	s.mu.RUnlock()
	n := 0
	if expired > all/16 {
		n = expired
	}
	if all > s.opts.MaxMetrics { // and somewhat more, so that it is not soon again
		n = max(n, all-s.opts.MaxMetrics/16*15)
	}
	if n = min(n, len(idle)); n == 0 {
		return nil
	}
	s.drop(idle[:n], now)
	return s.rewriteNames()
}

type idleMetric struct {
	*metricState
	heard int64 // last, when it was looked at
}

// idle are the metrics that may be forgotten, the longest silent first.
func (s *Store) idle(now int64) []idleMetric {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var idle []idleMetric
	for _, m := range s.metrics {
		if s.isIdle(m, now) {
			idle = append(idle, idleMetric{m, m.last})
		}
	}
	slices.SortFunc(idle, func(a, b idleMetric) int { return int(a.heard - b.heard) })
	return idle
}

// isIdle says whether a metric is in blocks alone, and nothing is on its way. The caller holds mu.
func (s *Store) isIdle(m *metricState, now int64) bool {
	if since := now - int64(silent/time.Second); m.last > since || m.put > since {
		return false
	}
	return !slices.ContainsFunc(m.series, func(one *series) bool {
		return len(s.head.bins[one.id]) > 0 || s.frozen != nil && len(s.frozen.bins[one.id]) > 0
	})
}

func (s *Store) drop(metrics []idleMetric, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range metrics {
		if !s.isIdle(m.metricState, now) { // any more
			continue
		}
		delete(s.metrics, m.key)
		for _, one := range m.series {
			delete(s.series, one.id)
		}
	}
	s.sorted = nil
}

// rewriteNames writes the series that are left in the place of all. No log and no head has any of the others.
func (s *Store) rewriteNames() error {
	number := s.names.Roll()
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.series))
	s.fresh = nil
	s.mu.Unlock()
	if err := s.writeSeries(left); err != nil {
		return err
	}
	return s.names.RemoveBefore(number)
}

// knows says whether a series was not forgotten.
func (s *Store) knows(id uint32) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.series[id] != nil
}

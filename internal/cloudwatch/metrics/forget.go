package metrics

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// idleAfter is how long a metric must have had no data before the store may forget it.
const idleAfter = 3 * time.Hour

// forget drops expired metrics once there are many, and the longest idle ones beyond MaxMetrics, since every task adds
// metrics. Their data stays in blocks until those are merged or expire.
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
	if all > s.opts.MaxMetrics { // drop a few more, so that this doesn't happen again soon
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
	heard int64 // the metric's last, read while idle held mu
}

// idle returns the metrics that the store may forget, longest idle first.
func (s *Store) idle(now int64) []idleMetric {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var idle []idleMetric
	for _, m := range s.metrics {
		if s.isIdle(m, now) {
			idle = append(idle, idleMetric{m, m.last})
		}
	}
	sort.Slice(idle, func(i, j int) bool { return idle[i].heard < idle[j].heard })
	return idle
}

// isIdle reports whether only blocks hold a metric, and no data for it is being put. The caller holds mu.
func (s *Store) isIdle(m *metricState, now int64) bool {
	if since := now - int64(idleAfter/time.Second); m.last > since || m.lastPut > since {
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
		if !s.isIdle(m.metricState, now) { // it got new data
			continue
		}
		delete(s.metrics, m.key)
		for _, one := range m.series {
			delete(s.series, one.id)
		}
	}
	s.sorted = nil
}

// rewriteNames rewrites the names log with the remaining series. Neither the log nor a head has data of the others.
func (s *Store) rewriteNames() error {
	number := s.names.Roll()
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.series))
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	if err := s.writeSeries(left, fresh); err != nil {
		return err
	}
	return s.names.RemoveBefore(number)
}

// hasSeries reports whether a series exists. A forgotten one doesn't.
func (s *Store) hasSeries(id uint32) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.series[id] != nil
}

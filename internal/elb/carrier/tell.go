package carrier

import (
	"cmp"
	"context"
	"maps"
	"net"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
)

const (
	// lookEach is how often the carrier looks for something to report at once.
	lookEach = 100 * time.Millisecond
	// reportEach is how often it reports even so.
	reportEach = 5 * time.Second
)

// tell reports what changes as it does, and everything now and then.
func (f *Carrier) tell(ctx context.Context) error {
	look := time.NewTicker(lookEach)
	defer look.Stop()
	var last report.Report
	var at time.Time
	var owed []report.Count // they were not taken yet
	number := time.Now().UnixNano()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		r := f.report()
		due := time.Since(at) >= reportEach
		if !due && (failed || reflect.DeepEqual(r, last)) {
			continue
		}
		last = r
		if due && owed == nil {
			owed = f.counter.Take()
			number++
		}
		r.Number = number
		r.Counts = owed
		err := f.send(ctx, r)
		if err != nil && !failed && ctx.Err() == nil {
			f.opts.Log.Warn("a report isn't taken; it's made again", "error", err)
		}
		failed = err != nil
		switch {
		case failed:
			at = time.Now().Add(time.Second - reportEach) // once more in a second
			continue
		case due:
			at = time.Now()
		}
		owed = nil
	}
}

func (f *Carrier) send(ctx context.Context, r report.Report) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return f.post(ctx, report.ReportPath, r, nil)
}

// report says how everything is, without counts.
func (f *Carrier) report() report.Report {
	f.mu.Lock()
	r := report.Report{
		Balancer:  f.opts.ID,
		Started:   f.started,
		Version:   f.version,
		Addresses: map[string]string{},
		Problems:  maps.Clone(f.problems),
	}
	for arn, port := range f.ports {
		r.Addresses[arn] = net.JoinHostPort(f.opts.Host, strconv.Itoa(port))
	}
	f.mu.Unlock()
	for _, t := range f.proxy.Health() {
		r.Targets = append(r.Targets, report.Target{
			Group:   t.Group,
			ID:      t.Target.ID,
			Port:    t.Target.Port,
			Health:  routing.Health{State: t.Health.State, Reason: t.Health.Reason, Description: t.Health.Description},
			Drained: t.Drained,
		})
	}
	sort.Slice(r.Targets, func(i, j int) bool {
		a, b := &r.Targets[i], &r.Targets[j]
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.ID, b.ID), a.Port-b.Port) < 0
	})
	return r
}

package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// Reporter tells the control plane about tasks. The engine doesn't retry after a Permanent error.
type Reporter interface {
	Report(ctx context.Context, r Report) error
}

// Permanent is an error that retrying won't cure.
type Permanent struct{ Err error }

// Error implements error.
func (p *Permanent) Error() string { return p.Err.Error() }

// Unwrap returns the cause.
func (p *Permanent) Unwrap() error { return p.Err }

// Report is what the control plane is told about a task.
type Report struct {
	TaskArn string
	Cluster string
	Status  string // RUNNING or STOPPED
	Reason  string // why the task could not run

	PullStartedAt      time.Time
	PullStoppedAt      time.Time
	ExecutionStoppedAt time.Time
	Containers         []ContainerReport
}

// ContainerReport is what it is told about a container.
type ContainerReport struct {
	Name      string
	Status    Status
	RuntimeID string
	ExitCode  *int
	Reason    string
	Digest    string
	Ports     []Port
	Agents    []string // managed agents that its task asks for
}

const (
	minRetry = 100 * time.Millisecond
	maxRetry = 30 * time.Second
)

// report tells the control plane that the task runs, what its containers do, and that it has stopped. It repeats each report until it
// is accepted. The next report always follows from the record, so a restart loses none and none is out of order.
func (t *task) report(ctx context.Context) {
	for {
		var r Report
		err := t.await(ctx, func() (due bool) {
			r, due = t.nextReport()
			return due
		})
		if err != nil || !t.engine.submit(ctx, r) {
			return
		}
		t.update(func(rec *Record) {
			rec.Reported = r.Status
			for _, c := range r.Containers {
				rec.Containers[c.Name].Reported = c.Status
			}
		})
		if r.Status == "STOPPED" {
			return
		}
	}
}

// submit sends a report until it is accepted, or refused for good. It returns false if ctx ended first.
func (e *Engine) submit(ctx context.Context, r Report) bool {
	log := e.opts.Log.With("task", r.TaskArn, "status", r.Status)
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := e.opts.Reporter.Report(ctx, r)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		if permanent := (*Permanent)(nil); errors.As(err, &permanent) {
			log.Error("the control plane does not take a task's state", "error", err)
			return true
		}
		log.Warn("cannot report a task's state; trying again", "error", err)
		if !pause(ctx, wait/2+rand.N(wait/2)) {
			return false
		}
	}
}

// nextReport returns the next report, if one is due. A task that ran is reported RUNNING before STOPPED, however short it was. The
// caller holds mu.
func (t *task) nextReport() (Report, bool) {
	rec := t.rec
	switch {
	case rec.Reported == "STOPPED":
		return Report{}, false
	case rec.Reported == "" && rec.ran():
		return t.reportOf("RUNNING"), true
	case t.finished:
		return t.reportOf("STOPPED"), true
	case rec.Reported == "RUNNING" && !rec.stopped() && t.hasNews():
		return t.reportOf("RUNNING"), true
	}
	return Report{}, false
}

// hasNews reports whether a container has restarted or stopped since the last report.
func (t *task) hasNews() bool {
	for _, c := range t.rec.Containers {
		if c.Status != c.Reported && (c.Status == Running || c.Status == Stopped) {
			return true
		}
	}
	return false
}

func (t *task) reportOf(status string) Report {
	r := Report{
		TaskArn: t.arn(), Cluster: t.rec.Task.TaskClusterArn, Status: status, Reason: t.rec.Failure,
		PullStartedAt: t.rec.PullStartedAt, PullStoppedAt: t.rec.PullStoppedAt, ExecutionStoppedAt: t.rec.ExecutionStoppedAt,
	}
	for _, d := range t.rec.Task.Containers {
		c := t.rec.Containers[d.Name]
		r.Containers = append(r.Containers, ContainerReport{
			Name:      d.Name,
			Status:    c.Status,
			RuntimeID: t.rec.RuntimeID(d.Name),
			ExitCode:  c.ExitCode,
			Reason:    c.Reason,
			Digest:    c.Digest,
			Ports:     c.Ports,
			Agents:    agentsOf(d),
		})
	}
	return r
}

// agentsOf returns the names of a container's managed agents.
func agentsOf(c acs.Container) (names []string) {
	for _, a := range c.ManagedAgents {
		names = append(names, a.Name)
	}
	return names
}

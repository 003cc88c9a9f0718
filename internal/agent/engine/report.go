package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Report is what the control plane hears of a task.
type Report struct {
	TaskArn string
	Cluster string
	Status  string // RUNNING or STOPPED
	Reason  string // why the task could not run

	PullStartedAt, PullStoppedAt, ExecutionStoppedAt time.Time
	Containers                                       []ContainerReport
}

// ContainerReport is what it hears of a container.
type ContainerReport struct {
	Name      string
	Status    Status
	RuntimeID string
	ExitCode  *int
	Reason    string
	Digest    string
	Ports     []Port
}

// report tells the control plane that the task runs, and then that it has stopped, each until it is
// taken. What is worth telling next is always read off the record, so nothing is lost by a restart.
func (t *task) report(ctx context.Context) {
	wait := minRetry
	for {
		r, due := t.due()
		if !due {
			select {
			case <-ctx.Done():
				return
			case <-t.tell:
				continue
			}
		}
		err := t.engine.opts.Reporter.Report(ctx, r)
		var permanent *Permanent
		switch {
		case ctx.Err() != nil:
			return
		case err == nil || errors.As(err, &permanent):
			if err != nil {
				t.engine.opts.Log.Error("the control plane does not take a task's state", "task", r.TaskArn, "status", r.Status, "error", err)
			}
			wait = minRetry
			t.update(func(rec *Record) { rec.Reported = r.Status })
			if r.Status == "STOPPED" {
				close(t.done)
				return
			}
		default:
			t.engine.opts.Log.Warn("cannot report a task's state; trying again", "task", r.TaskArn, "status", r.Status, "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait/2 + rand.N(wait/2)):
			}
			wait = min(2*wait, maxRetry)
		}
	}
}

const (
	minRetry = 100 * time.Millisecond
	maxRetry = 30 * time.Second
)

// due is what is to be told next, if anything is.
func (t *task) due() (Report, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	status := ""
	switch {
	case t.rec.stopped():
		status = "STOPPED"
	case t.rec.allRunning() && t.rec.Reported == "":
		status = "RUNNING"
	}
	if status == "" || status == t.rec.Reported {
		return Report{}, false
	}
	r := Report{
		TaskArn: t.rec.Task.Arn, Cluster: t.rec.Task.TaskClusterArn, Status: status, Reason: t.rec.Failure,
		PullStartedAt: t.rec.PullStartedAt, PullStoppedAt: t.rec.PullStoppedAt, ExecutionStoppedAt: t.rec.ExecutionStoppedAt,
	}
	for _, d := range t.rec.Task.Containers {
		c := t.rec.Containers[d.Name]
		r.Containers = append(r.Containers, ContainerReport{
			Name: d.Name, Status: c.Status, RuntimeID: t.containerID(d.Name), ExitCode: c.ExitCode, Reason: c.Reason, Digest: c.Digest, Ports: c.Ports,
		})
	}
	return r, true
}

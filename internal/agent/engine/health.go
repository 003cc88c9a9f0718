package engine

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// Health is a container's, as ECS says it.
type Health string

// The states of health.
const (
	Unknown   Health = "UNKNOWN"
	Healthy   Health = "HEALTHY"
	Unhealthy Health = "UNHEALTHY"
)

type health struct {
	status Health
	since  time.Time
}

// healthCheck is a container's check with Docker's defaults, or nil.
func healthCheck(c *acs.Container) *acs.Healthcheck {
	h := containerConfig(c).Healthcheck
	if h == nil || len(h.Test) < 2 {
		return nil
	}
	check := *h
	if check.Interval == 0 {
		check.Interval = int64(30 * time.Second)
	}
	if check.Timeout == 0 {
		check.Timeout = int64(5 * time.Second)
	}
	if check.Retries == 0 {
		check.Retries = 3
	}
	return &check
}

// checkHealth runs the check again and again. As Docker has it, failures within the start period do
// not count, one success ends that period, and it takes retries failures in a row to be unhealthy.
func (t *task) checkHealth(ctx context.Context, c *acs.Container, check *acs.Healthcheck) {
	t.setHealth(c.Name, Unknown)
	began, failures, starting := time.Now(), 0, check.StartPeriod > 0
	tick := time.NewTicker(time.Duration(check.Interval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ok := t.probe(ctx, c, check)
		if ctx.Err() != nil {
			return
		}
		starting = starting && !ok && time.Since(began) < time.Duration(check.StartPeriod)
		switch {
		case ok:
			failures = 0
			t.setHealth(c.Name, Healthy)
		case starting:
		default:
			if failures++; failures >= check.Retries {
				t.setHealth(c.Name, Unhealthy)
			}
		}
	}
}

func (t *task) probe(ctx context.Context, c *acs.Container, check *acs.Healthcheck) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(check.Timeout))
	defer cancel()
	command := check.Test[1:]
	if check.Test[0] == "CMD-SHELL" {
		command = []string{"/bin/sh", "-c", check.Test[1]}
	}
	code, err := t.engine.opts.Runtime.Exec(ctx, t.containerID(c.Name), runtime.Exec{Command: command})
	return err == nil && code == 0
}

func (t *task) setHealth(name string, h Health) {
	t.mu.Lock()
	if t.health[name].status != h {
		t.health[name] = health{h, time.Now()}
	}
	t.mu.Unlock()
	t.changed()
}

func (t *task) healthReport() acs.TaskHealth {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := acs.TaskHealth{TaskArn: t.rec.Task.Arn}
	for name, h := range t.health {
		if t.rec.Containers[name].Status == Running {
			out.Containers = append(out.Containers, acs.ContainerHealth{
				ContainerName: name, HealthStatus: string(h.status), StatusSince: float64(h.since.UnixMilli()) / 1000,
			})
		}
	}
	return out
}

package engine

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Health is a container's health, in ECS's words. A container without a check has none.
type Health string

// The values of Health.
const (
	Unknown   Health = "UNKNOWN"
	Healthy   Health = "HEALTHY"
	Unhealthy Health = "UNHEALTHY"
)

// healthCheck returns a container's check with Docker's defaults filled in, or nil.
func healthCheck(c *acs.Container) *acs.Healthcheck {
	h := containerConfig(c).Healthcheck
	if h == nil || len(h.Test) < 2 || h.Test[0] == "NONE" {
		return nil
	}
	check := *h
	if check.Interval <= 0 {
		check.Interval = int64(30 * time.Second)
	}
	if check.Timeout <= 0 {
		check.Timeout = int64(5 * time.Second)
	}
	if check.Retries <= 0 {
		check.Retries = 3
	}
	return &check
}

// checkHealth repeats the check until ctx ends. The rules are Docker's: failures within the start period don't count, one success
// ends that period, and a container is unhealthy after retries failures in a row.
func (t *task) checkHealth(ctx context.Context, c *acs.Container, id string) {
	check := healthCheck(c)
	if check == nil {
		return
	}
	now, _ := t.container(c.Name)
	starting := now.Health == "" || now.Health == Unknown
	if now.Health == "" {
		t.setHealth(c.Name, Unknown)
	}
	failures := 0
	for pause(ctx, time.Duration(check.Interval)) {
		ok := t.probe(ctx, id, check)
		if ctx.Err() != nil {
			return
		}
		starting = starting && !ok && time.Since(now.StartedAt) < time.Duration(check.StartPeriod)
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

func (t *task) probe(ctx context.Context, id string, check *acs.Healthcheck) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(check.Timeout))
	defer cancel()
	command := check.Test // a test without CMD is run as a command
	switch check.Test[0] {
	case "CMD":
		command = check.Test[1:]
	case "CMD-SHELL":
		command = []string{"/bin/sh", "-c", check.Test[1]}
	}
	code, err := t.engine.opts.Runtime.Exec(ctx, id, runtime.Exec{Command: command})
	return err == nil && code == 0
}

func (t *task) setHealth(name string, h Health) {
	if now, _ := t.container(name); now.Health == h {
		return
	}
	t.update(func(r *Record) {
		c := r.Containers[name]
		c.Health, c.HealthSince = h, time.Now().UTC()
	})
	t.engine.healthNews.Store(true)
}

// TakeHealthNews reports whether the health of any container has changed since the last call.
func (e *Engine) TakeHealthNews() bool { return e.healthNews.Swap(false) }

package engine

import (
	"github.com/pintle/pintle/internal/acs"
)

// What others may see of the tasks. Everything returned is a copy.

// Running lists the ARNs of the tasks that haven't stopped.
func (e *Engine) Running() []string {
	var out []string
	for _, t := range e.all() {
		if !t.stopped() {
			out = append(out, t.arn())
		}
	}
	return out
}

// Tasks lists the records of the tasks that haven't stopped.
func (e *Engine) Tasks() []*Record {
	var out []*Record
	for _, t := range e.all() {
		t.mu.Lock()
		if !t.rec.stopped() {
			out = append(out, t.rec.clone())
		}
		t.mu.Unlock()
	}
	return out
}

// ByToken finds the container with this metadata token.
func (e *Engine) ByToken(token string) (rec *Record, container string, ok bool) {
	e.mu.Lock()
	t := e.tokens[token]
	e.mu.Unlock()
	if t == nil {
		return nil, "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.rec.Containers {
		if c.Token == token {
			return t.rec.clone(), name, true
		}
	}
	return nil, "", false
}

// Task returns a task's record.
func (e *Engine) Task(arn string) (rec *Record, ok bool) {
	t := e.task(arn)
	if t == nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.clone(), true
}

// Credentials finds a running task's role credentials by their id, and the task.
func (e *Engine) Credentials(id string) (c acs.IAMRoleCredentials, taskArn string, ok bool) {
	for _, t := range e.all() {
		t.mu.Lock()
		for _, role := range []*acs.IAMRoleCredentials{t.rec.Task.RoleCredentials, t.rec.Task.ExecutionRoleCredentials} {
			if role != nil && role.CredentialsID == id && !t.rec.stopped() {
				c, taskArn, ok = *role, t.rec.Task.Arn, true
			}
		}
		t.mu.Unlock()
	}
	return c, taskArn, ok
}

// ContainerID returns the id by which the agent finds a record's container in the runtime.
func (r *Record) ContainerID(name string) string { return (&task{rec: r}).containerID(name) }

// Networks lists the networks of awsvpc tasks, by task ARN.
func (e *Engine) Networks() map[string]Network {
	out := map[string]Network{}
	for _, r := range e.Tasks() {
		if r.Network != nil {
			out[r.Task.Arn] = *r.Network
		}
	}
	return out
}

// Bridged lists the addresses of containers in mode bridge that were told, by task ARN.
func (e *Engine) Bridged() map[string][]string {
	out := map[string][]string{}
	for _, t := range e.all() {
		if all := t.bridgeAddresses(); len(all) > 0 {
			out[t.arn()] = all
		}
	}
	return out
}

// Pin says which container uses a GPU.
type Pin struct {
	TaskArn   string
	Container string
	ID        string // the runtime's
	CPU       int64  // shares, 1,024 a core
}

// Pinned returns who uses each GPU that is in use, by GPU id.
func (e *Engine) Pinned() map[string]Pin {
	out := map[string]Pin{}
	for _, t := range e.all() {
		t.mu.Lock()
		for _, a := range t.rec.Task.Associations {
			if a.Type != "gpu" || len(a.Containers) == 0 {
				continue
			}
			name := a.Containers[0]
			if c := t.rec.Containers[name]; c != nil && c.Status == Running {
				out[a.Name] = Pin{TaskArn: t.arn(), Container: name, ID: t.containerID(name), CPU: t.definition(name).CPU}
			}
		}
		t.mu.Unlock()
	}
	return out
}

// Health lists the health of running containers that have a health check.
func (e *Engine) Health() []acs.TaskHealth {
	var out []acs.TaskHealth
	for _, t := range e.all() {
		if h := t.healthReport(); len(h.Containers) > 0 {
			out = append(out, h)
		}
	}
	return out
}

func (t *task) healthReport() acs.TaskHealth {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := acs.TaskHealth{TaskArn: t.arn()}
	for name, c := range t.rec.Containers {
		if c.Status == Running && c.Health != "" {
			out.Containers = append(out.Containers, acs.ContainerHealth{
				ContainerName: name, HealthStatus: string(c.Health), StatusSince: float64(c.HealthSince.UnixMilli()) / 1000,
			})
		}
	}
	return out
}

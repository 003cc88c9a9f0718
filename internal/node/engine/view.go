package engine

import (
	"github.com/pintle/pintle/internal/acs"
)

// What others may see of the tasks. All of it is copies.

// Running lists the ARNs of the tasks that have not stopped.
func (e *Engine) Running() []string {
	var out []string
	for _, t := range e.all() {
		if !t.stopped() {
			out = append(out, t.arn())
		}
	}
	return out
}

// Tasks lists the records of the tasks that have not stopped.
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

// ByToken finds the container that asks for its metadata by this token.
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

// Credentials finds a running task's role credentials by their id, and the task.
func (e *Engine) Credentials(id string) (c acs.IAMRoleCredentials, ok bool) {
	for _, t := range e.all() {
		t.mu.Lock()
		for _, role := range []*acs.IAMRoleCredentials{t.rec.Task.RoleCredentials, t.rec.Task.ExecutionRoleCredentials} {
			if role != nil && role.CredentialsID == id && !t.rec.stopped() {
				c, ok = *role, true
			}
		}
		t.mu.Unlock()
	}
	return c, ok
}

// ContainerID is the runtime's id of a record's container.
func (r *Record) ContainerID(name string) string { return (&task{rec: r}).containerID(name) }

// Networks lists the networks of the tasks that have one of their own, by task ARN.
func (e *Engine) Networks() map[string]Network {
	out := map[string]Network{}
	for _, r := range e.Tasks() {
		if r.Network != nil {
			out[r.Task.Arn] = *r.Network
		}
	}
	return out
}

// Pin is who uses a GPU.
type Pin struct {
	TaskArn, Container, ID string
	CPU                    int64 // shares, 1,024 a core
}

// Pinned tells, for each GPU that is in use, the task and the container's id and CPU shares.
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

// Health lists the health of running containers that have a check.
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

package node

import (
	"context"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/session"
)

// beginSession has a process begin a session in a task's container. It finds out by itself if that doesn't run.
func (a *Agent) beginSession(ctx context.Context, m *acs.PintleExecute) {
	start := &session.Assignment{
		Execute:   m,
		Cluster:   a.config.Cluster,
		Instance:  a.Instance(),
		Endpoint:  a.config.Endpoint,
		Region:    a.config.Region,
		Authority: a.config.Authority.Path,
	}
	if rec, ok := a.engine.Task(m.TaskArn); ok && rec.Containers[m.ContainerName] != nil {
		start.Container = rec.ContainerID(m.ContainerName)
		start.Role = rec.Task.RoleCredentials
	}
	if a.config.Credentials != nil {
		var err error
		if start.Key, err = a.config.Credentials.Retrieve(ctx); err != nil {
			a.log.Error("cannot begin a session without the node's credentials", "session", m.SessionID, "error", err)
			return
		}
	}
	a.sessions.Begin(start)
}

package nodelink

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// grant names the credentials of one role of a task.
type grant struct {
	task     string
	roleType string
}

const (
	minRenewalWait = time.Minute // the least time until credentials are renewed, however short they live
	idleRecheck    = time.Hour   // when a session that has granted none looks again, to be sure
)

// grant makes credentials for a task's role and notes when to renew them: half-way to their expiry. It returns nil if
// the task has no such role, or if nobody issues credentials.
func (s *session) grant(t *state.Task, td *state.TaskDefinition, roleType string) *acs.IAMRoleCredentials {
	role := roleOf(t, td, roleType)
	if role == "" || s.link.opts.Credentials == nil {
		return nil
	}
	c := s.link.opts.Credentials(t, role, roleType)
	if c == nil {
		return nil
	}
	now := s.link.opts.Now()
	wait := minRenewalWait
	if end, err := time.Parse(time.RFC3339, c.Expiration); err == nil {
		wait = max(minRenewalWait, end.Sub(now)/2)
	}
	s.noteGrant(grant{*t.TaskArn, roleType}, now.Add(wait))
	return c
}

func (s *session) noteGrant(g grant, renewAt time.Time) {
	s.granted[g] = renewAt
	if renewAt.Before(s.renewAt) {
		s.renewAt = renewAt
	}
}

// roleOf returns the ARN of a task's role.
func roleOf(t *state.Task, td *state.TaskDefinition, roleType string) string {
	if roleType == acs.ExecutionRole {
		return t.ExecutionRole(td)
	}
	return t.TaskRole(td)
}

// renewCredentials sends running tasks new credentials before the old ones expire. A node that has just connected gets
// all of them: it may have restarted, and this session can't know what it still has.
func (s *session) renewCredentials(ctx context.Context, v *state.View) error {
	now := s.link.opts.Now()
	if s.link.opts.Credentials == nil || now.Before(s.renewAt) {
		return nil
	}
	old := s.granted
	s.granted = make(map[grant]time.Time, len(old))
	s.renewAt = now.Add(idleRecheck)
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
		if td == nil || !shouldRun(t) {
			continue
		}
		for _, roleType := range []string{acs.TaskRole, acs.ExecutionRole} {
			g := grant{*t.TaskArn, roleType}
			if at, ok := old[g]; ok && now.Before(at) {
				s.noteGrant(g, at)
				continue
			}
			if err := s.sendCredentials(ctx, t, td, roleType); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) sendCredentials(ctx context.Context, t *state.Task, td *state.TaskDefinition, roleType string) error {
	c := s.grant(t, td, roleType)
	if c == nil {
		return nil
	}
	return s.send(ctx, &acs.IAMRoleCredentialsMessage{
		MessageID:       s.messageID(),
		TaskArn:         *t.TaskArn,
		RoleType:        roleType,
		RoleCredentials: c,
	})
}

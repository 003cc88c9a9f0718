package nodelink

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// grant names the credentials of one role of a task.
type grant struct{ task, roleType string }

// soonest is how soon credentials are renewed, however short they live.
const soonest = time.Minute

// grant makes credentials of a task's role and notes when to renew them: half-way to their end. It
// returns nil where the task has no such role, or nobody issues credentials.
func (s *session) grant(t *state.Task, td *state.TaskDefinition, roleType string) *acs.IAMRoleCredentials {
	role := roleOf(t, td, roleType)
	if role == "" || s.link.opts.Credentials == nil {
		return nil
	}
	c := s.link.opts.Credentials(*t.TaskArn, role, roleType)
	if c == nil {
		return nil
	}
	now := s.link.opts.Now()
	wait := soonest
	if end, err := time.Parse(time.RFC3339, c.Expiration); err == nil {
		wait = max(soonest, end.Sub(now)/2)
	}
	s.granted[grant{*t.TaskArn, roleType}] = now.Add(wait)
	return c
}

// roleOf is the ARN of a task's role, as RunTask or else the task definition names it.
func roleOf(t *state.Task, td *state.TaskDefinition, roleType string) string {
	o := overrideOf(t)
	own, defined := o.TaskRoleArn, td.TaskRoleArn
	if roleType == acs.ExecutionRole {
		own, defined = o.ExecutionRoleArn, td.ExecutionRoleArn
	}
	if aws.ToString(own) != "" {
		return *own
	}
	return aws.ToString(defined)
}

// renewCredentials sends running tasks new credentials before the old ones end. A node that has just
// connected gets them all anew: it may have restarted, and this session cannot know what it has.
func (s *session) renewCredentials(ctx context.Context, v *state.View) error {
	if s.link.opts.Credentials == nil {
		return nil
	}
	kept := map[grant]time.Time{}
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
		if td == nil || !shouldRun(t) {
			continue
		}
		for _, roleType := range []string{acs.TaskRole, acs.ExecutionRole} {
			if err := s.renew(ctx, t, td, roleType); err != nil {
				return err
			}
			if at, ok := s.granted[grant{*t.TaskArn, roleType}]; ok {
				kept[grant{*t.TaskArn, roleType}] = at
			}
		}
	}
	s.granted = kept
	return nil
}

func (s *session) renew(ctx context.Context, t *state.Task, td *state.TaskDefinition, roleType string) error {
	if at, ok := s.granted[grant{*t.TaskArn, roleType}]; ok && s.link.opts.Now().Before(at) {
		return nil
	}
	c := s.grant(t, td, roleType)
	if c == nil {
		return nil
	}
	return s.send(ctx, &acs.IAMRoleCredentialsMessage{MessageID: s.messageID(), TaskArn: *t.TaskArn, RoleType: roleType, RoleCredentials: c})
}

// Package schedules is Amazon EventBridge Scheduler: a Service whose methods are those of the SDK's client, over the store's schedules. A loop
// owes each occurrence to the schedule's target; Tell delivers it when the outbox asks it to. It decides nothing about who may call it.
package schedules

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// Options are the account of the service, and what it sends with.
type Options struct {
	account.Account
	Targets *targets.Sender
	// Chance returns a number from 0 to less than 1: where in its flexible time window a schedule is told.
	Chance func() float64
}

// Service is Amazon EventBridge Scheduler for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

func refuse(status int, code, format string, args ...any) error {
	return account.RefuseWith(status, code, format, args...)
}

func invalid(format string, args ...any) error {
	return refuse(400, "ValidationException", format, args...)
}

// defaultGroup is the group that every account has.
const defaultGroup = "default"

func groupOf(name *string) string {
	if aws.ToString(name) == "" {
		return defaultGroup
	}
	return *name
}

func (s *Service) groupARN(name string) string {
	return s.opts.ARN("scheduler", "schedule-group/"+name)
}

// group returns a group.
func (s *Service) group(v *state.View, name string) (*state.ScheduleGroup, error) {
	if g := v.ScheduleGroups.Get(name); g != nil {
		return g, nil
	}
	if name == defaultGroup {
		return &state.ScheduleGroup{Name: name, ARN: s.groupARN(name)}, nil
	}
	return nil, refuse(404, "ResourceNotFoundException", "Schedule group %s does not exist.", name)
}

// schedule returns the schedule that a call names.
func (s *Service) schedule(v *state.View, group, name *string) (*state.Schedule, error) {
	row := v.Schedules.Get(state.ScheduleKey(groupOf(group), aws.ToString(name)))
	if row == nil {
		return nil, refuse(404, "ResourceNotFoundException", "Schedule %s does not exist.", aws.ToString(name))
	}
	return row, nil
}

func listing(operation string) account.List {
	return account.List{
		Kind:     "scheduler:" + operation,
		Most:     100,
		BadLimit: func(int) error { return invalid("MaxResults must be from 1 to 100.") },
		BadToken: func() error { return invalid("Invalid NextToken.") },
	}
}

func hasPrefix(text string, prefix *string) bool {
	return strings.HasPrefix(text, aws.ToString(prefix))
}

package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// ARNPrefix begins the ARNs of schedules, whatever their region.
const ARNPrefix = "arn:aws:scheduler:"

// Run owes the occurrences of schedules to their targets when they are due, until ctx ends. An occurrence is moved on in the transaction that
// owes it, so that it's told once, whatever is killed. Of those that came while nothing ran, the first is told, late, and the others are left out.
func (s *Service) Run(ctx context.Context) error {
	due := func(v *state.View) *time.Time {
		if row := v.NextSchedule(); row != nil {
			return row.Due
		}
		return nil
	}
	return s.store.RunDue(ctx, s.opts.Now, due, s.fire)
}

// occurrence is what a debt to a schedule's target has as its body: the schedule may be gone by the time it's told.
type occurrence struct {
	Name   string
	At     time.Time
	Target types.Target
}

// fire owes the occurrence of the schedule that is due first.
func (s *Service) fire(tx *state.Tx, now time.Time) {
	row := tx.NextSchedule()
	if row == nil || row.Due.After(now) {
		return
	}
	body, err := json.Marshal(occurrence{row.Name, *row.Next, row.Target})
	if err != nil {
		panic(err) // the row was stored alike
	}
	age := time.Duration(*row.Target.RetryPolicy.MaximumEventAgeInSeconds) * time.Second
	tx.Owe(state.Delivery{
		Debt: delivery.Debt{Destination: row.ARN, Body: string(body), Until: now.Add(age)},
		Size: len(body),
	}, now)
	after := *row
	s.plan(&after, *row.Next)
	if window := time.Duration(aws.ToInt32(row.Window.MaximumWindowInMinutes)) * time.Minute; after.Next != nil && after.Next.Add(window).Before(now) {
		s.plan(&after, now)
	}
	if after.Next == nil && row.AfterCompletion == types.ActionAfterCompletionDelete {
		tx.Schedules.Delete(row.Key())
		return
	}
	tx.Schedules.Put(&after)
}

// Tell delivers an occurrence to its target.
func (s *Service) Tell(ctx context.Context, d delivery.Debt) error {
	var o occurrence
	if err := json.Unmarshal([]byte(d.Body), &o); err != nil {
		return fmt.Errorf("%w: %w", delivery.ErrGone, err)
	}
	letter := targets.Letter{
		Target:  target(&o.Target),
		Input:   s.input(d, o),
		Service: targets.Scheduler,
		Source:  d.Destination,
		Name:    "chronos-schedule/" + o.Name,
		Token:   d.ID,
		Tries:   d.Tries,
		Most:    int(*o.Target.RetryPolicy.MaximumRetryAttempts),
		Until:   d.Until,
		Names:   targets.Names{Source: "SCHEDULE_ARN", Target: "TARGET_ARN"},
		By:      targets.Dimensions{{"ScheduleGroup", groupIn(d.Destination)}},
	}
	if o.Target.DeadLetterConfig != nil {
		letter.DeadLetters = aws.ToString(o.Target.DeadLetterConfig.Arn)
	}
	return s.opts.Targets.Send(ctx, letter)
}

// groupIn returns the group in a schedule's ARN.
func groupIn(arn string) string {
	parts := strings.Split(arn, "/")
	return parts[min(1, len(parts)-1)]
}

// defaultEvent is what a target without an input gets:
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html
type defaultEvent struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     string   `json:"detail"`
}

const seconds = "2006-01-02T15:04:05Z"

// input returns what a target gets, with the context's attributes filled in:
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
func (s *Service) input(d delivery.Debt, o occurrence) string {
	at := o.At.UTC().Format(seconds)
	if o.Target.Input == nil {
		b, err := json.Marshal(defaultEvent{
			Version:    "0",
			ID:         d.ID,
			DetailType: "Scheduled Event",
			Source:     "aws.scheduler",
			Account:    s.opts.ID,
			Time:       at,
			Region:     s.opts.Region,
			Resources:  []string{d.Destination},
			Detail:     "{}",
		})
		if err != nil {
			panic(err) // it has texts only
		}
		return string(b)
	}
	return strings.NewReplacer(
		"<aws.scheduler.schedule-arn>", d.Destination,
		"<aws.scheduler.scheduled-time>", at,
		"<aws.scheduler.execution-id>", d.ID,
		"<aws.scheduler.attempt-number>", strconv.Itoa(d.Tries+1),
	).Replace(*o.Target.Input)
}

// target returns a target as both rules and schedules have it.
func target(t *types.Target) targets.Target {
	to := targets.Target{ARN: aws.ToString(t.Arn), Role: aws.ToString(t.RoleArn)}
	if t.SqsParameters != nil {
		to.Group = aws.ToString(t.SqsParameters.MessageGroupId)
	}
	if e := t.EventBridgeParameters; e != nil {
		to.Source, to.DetailType = aws.ToString(e.Source), aws.ToString(e.DetailType)
	}
	e := t.EcsParameters
	if e == nil {
		return to
	}
	to.ECS = &ecs.RunTaskInput{
		Cluster:              t.Arn,
		TaskDefinition:       e.TaskDefinitionArn,
		Count:                e.TaskCount,
		EnableECSManagedTags: aws.ToBool(e.EnableECSManagedTags),
		EnableExecuteCommand: aws.ToBool(e.EnableExecuteCommand),
		Group:                e.Group,
		LaunchType:           ecstypes.LaunchType(e.LaunchType),
		PlatformVersion:      e.PlatformVersion,
		PropagateTags:        ecstypes.PropagateTags(e.PropagateTags),
	}
	for _, c := range e.CapacityProviderStrategy {
		to.ECS.CapacityProviderStrategy = append(to.ECS.CapacityProviderStrategy,
			ecstypes.CapacityProviderStrategyItem{CapacityProvider: c.CapacityProvider, Base: c.Base, Weight: c.Weight})
	}
	if n := e.NetworkConfiguration; n != nil && n.AwsvpcConfiguration != nil {
		v := n.AwsvpcConfiguration
		to.ECS.NetworkConfiguration = &ecstypes.NetworkConfiguration{AwsvpcConfiguration: &ecstypes.AwsVpcConfiguration{
			Subnets:        v.Subnets,
			SecurityGroups: v.SecurityGroups,
			AssignPublicIp: ecstypes.AssignPublicIp(v.AssignPublicIp),
		}}
	}
	for _, c := range e.PlacementConstraints {
		to.ECS.PlacementConstraints = append(to.ECS.PlacementConstraints,
			ecstypes.PlacementConstraint{Type: ecstypes.PlacementConstraintType(c.Type), Expression: c.Expression})
	}
	for _, c := range e.PlacementStrategy {
		to.ECS.PlacementStrategy = append(to.ECS.PlacementStrategy,
			ecstypes.PlacementStrategy{Type: ecstypes.PlacementStrategyType(c.Type), Field: c.Field})
	}
	for _, tags := range e.Tags {
		for key, value := range tags { // AWS's model has each tag as a map
			to.ECS.Tags = append(to.ECS.Tags, ecstypes.Tag{Key: &key, Value: &value})
		}
	}
	return to
}

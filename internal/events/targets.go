package events

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// maxTargets is the most targets of a rule: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
const maxTargets = 5

var targetARN = regexp.MustCompile(`^arn:aws:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:.+$`)

// PutTargets adds targets to a rule, or replaces those with the same ids.
func (s *Service) PutTargets(ctx context.Context, in *eventbridge.PutTargetsInput) (*eventbridge.PutTargetsOutput, error) {
	for i := range in.Targets {
		if d := in.Targets[i].DeadLetterConfig; d != nil && d.Arn == nil {
			in.Targets[i].DeadLetterConfig = nil
		}
		if err := s.checkTarget(&in.Targets[i]); err != nil {
			return nil, err
		}
	}
	err := s.updateRule(ctx, in.Rule, in.EventBusName, func(r *state.EventRule) error {
		all := slices.Clone(r.Targets)
		for _, t := range in.Targets {
			if *t.Arn == s.busARN(*r.EventBusName) {
				return unsupported("Arn", "a rule can't send its bus's events to the same bus.")
			}
			all = slices.DeleteFunc(all, func(old types.Target) bool { return *old.Id == *t.Id })
			all = append(all, t)
		}
		if len(all) > maxTargets {
			return errTooMany
		}
		account.SortBy(all, func(t types.Target) string { return *t.Id })
		r.Targets = all
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &eventbridge.PutTargetsOutput{FailedEntries: []types.PutTargetsResultEntry{}}, nil
}

// checkTarget refuses a target that nothing could be sent to.
func (s *Service) checkTarget(t *types.Target) error {
	arn := aws.ToString(t.Arn)
	if !targetARN.MatchString(arn) {
		return unsupported("Arn", "Provided Arn is not in correct format.")
	}
	if err := checkParameters(t); err != nil {
		return err
	}
	if err := checkInput(t); err != nil {
		return err
	}
	if d := t.DeadLetterConfig; d != nil && !strings.HasPrefix(aws.ToString(d.Arn), "arn:aws:sqs:") {
		return unsupported("DeadLetterConfig", "Provided Arn is not that of a queue.")
	} else if d != nil && s.opts.Targets.Foreign(*d.Arn) != "" {
		return unsupported("DeadLetterConfig", s.opts.Targets.Foreign(*d.Arn))
	}
	to := s.target(t)
	if why := s.opts.Targets.Refused(to); why != "" {
		return unsupported("Arn", why)
	}
	if to.Role == "" && t.EcsParameters != nil {
		return invalid("RoleArn is required for target %s.", arn)
	}
	return s.opts.Targets.CheckRole(targets.Events, to.Role)
}

// checkParameters refuses what kinds of targets have that Pintle doesn't have, and parameters of another kind than the target's.
func checkParameters(t *types.Target) error {
	for name, given := range map[string]bool{
		"AppSyncParameters":           t.AppSyncParameters != nil,
		"BatchParameters":             t.BatchParameters != nil,
		"HttpParameters":              t.HttpParameters != nil,
		"KinesisParameters":           t.KinesisParameters != nil,
		"RedshiftDataParameters":      t.RedshiftDataParameters != nil,
		"RunCommandParameters":        t.RunCommandParameters != nil,
		"SageMakerPipelineParameters": t.SageMakerPipelineParameters != nil,
	} {
		if given {
			return unsupported(name, "Pintle has no such targets.")
		}
	}
	arn := aws.ToString(t.Arn)
	isFIFO := strings.HasPrefix(arn, "arn:aws:sqs:") && strings.HasSuffix(arn, ".fifo")
	group := ""
	if t.SqsParameters != nil {
		group = aws.ToString(t.SqsParameters.MessageGroupId)
	}
	isECS := strings.HasPrefix(arn, "arn:aws:ecs:")
	switch e := t.EcsParameters; {
	case isFIFO && group == "":
		return invalid("Parameter(s) SqsParameters must be specified for target: %s.", aws.ToString(t.Id))
	case isECS && e == nil:
		return invalid("Parameter(s) EcsParameters must be specified for target: %s.", aws.ToString(t.Id))
	case !isECS && e != nil:
		return unsupported("EcsParameters", "the target is no cluster.")
	case isECS && e.ReferenceId != nil:
		return unsupported("EcsParameters.ReferenceId", "ECS uses no reference ids.")
	}
	return nil
}

// target returns a target as both rules and schedules have it.
func (s *Service) target(t *types.Target) targets.Target {
	to := targets.Target{ARN: aws.ToString(t.Arn), Role: aws.ToString(t.RoleArn)}
	if t.SqsParameters != nil {
		to.Group = aws.ToString(t.SqsParameters.MessageGroupId)
	}
	e := t.EcsParameters
	if e == nil {
		return to
	}
	to.ECS = &ecs.RunTaskInput{
		Cluster:              t.Arn,
		TaskDefinition:       e.TaskDefinitionArn,
		Count:                e.TaskCount,
		EnableECSManagedTags: e.EnableECSManagedTags,
		EnableExecuteCommand: e.EnableExecuteCommand,
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
	for _, tag := range e.Tags {
		to.ECS.Tags = append(to.ECS.Tags, ecstypes.Tag{Key: tag.Key, Value: tag.Value})
	}
	return to
}

// RemoveTargets removes targets from a rule. No rule here is managed by a service, so Force changes nothing.
func (s *Service) RemoveTargets(ctx context.Context, in *eventbridge.RemoveTargetsInput) (*eventbridge.RemoveTargetsOutput, error) {
	out := &eventbridge.RemoveTargetsOutput{FailedEntries: []types.RemoveTargetsResultEntry{}}
	err := s.updateRule(ctx, in.Rule, in.EventBusName, func(r *state.EventRule) error {
		out.FailedEntries = out.FailedEntries[:0]
		for _, id := range in.Ids {
			if r.Target(id) == nil {
				out.FailedEntries = append(out.FailedEntries, types.RemoveTargetsResultEntry{
					TargetId:     &id,
					ErrorCode:    aws.String("ResourceNotFoundException"),
					ErrorMessage: aws.String("Rule " + *r.Name + " does not have target(s) [" + id + "]."),
				})
			}
		}
		r.Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(t types.Target) bool { return slices.Contains(in.Ids, *t.Id) })
		return nil
	})
	out.FailedEntryCount = int32(len(out.FailedEntries))
	return out, err
}

// ListTargetsByRule lists a rule's targets.
func (s *Service) ListTargetsByRule(_ context.Context, in *eventbridge.ListTargetsByRuleInput) (*eventbridge.ListTargetsByRuleOutput, error) {
	r, err := s.rule(s.store.View(), in.Rule, in.EventBusName)
	if err != nil {
		return nil, err
	}
	page, next, err := account.Sorted(listing("ListTargetsByRule"), r.Targets, in.Limit, in.NextToken, func(t types.Target) string { return *t.Id })
	if err != nil {
		return nil, err
	}
	return &eventbridge.ListTargetsByRuleOutput{Targets: append([]types.Target{}, page...), NextToken: next}, nil
}

package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// eventRule has the properties of AWS::Events::Rule. Its physical ID is the rule's name, behind that of its bus unless it's on the default one.
type eventRule struct {
	Name               *string `cfn:"create"`
	EventBusName       *string `cfn:"create"`
	Description        *string
	EventPattern       any
	RoleArn            *string
	ScheduleExpression *string
	State              types.RuleState
	Tags               []Tag
	Targets            []ruleTarget
}

// ruleTarget is a target of a rule, of a kind that Pintle has.
type ruleTarget struct {
	Arn              *string `cfn:"required"`
	Id               *string `cfn:"required"`
	DeadLetterConfig *types.DeadLetterConfig
	EcsParameters    *ruleTask
	Input            *string
	InputPath        *string
	InputTransformer *types.InputTransformer
	RetryPolicy      *types.RetryPolicy
	RoleArn          *string
	SqsParameters    *types.SqsParameters
}

// ruleTask is the task that a rule runs. Some of its properties have other names than those that PutTargets has.
type ruleTask struct {
	CapacityProviderStrategy []types.CapacityProviderStrategyItem
	EnableECSManagedTags     *bool
	EnableExecuteCommand     *bool
	Group                    *string
	LaunchType               types.LaunchType
	NetworkConfiguration     *struct{ AwsVpcConfiguration *types.AwsVpcConfiguration }
	PlacementConstraints     []types.PlacementConstraint
	PlacementStrategies      []types.PlacementStrategy
	PlatformVersion          *string
	PropagateTags            types.PropagateTags
	TagList                  []Tag
	TaskCount                *int32
	TaskDefinitionArn        *string `cfn:"required"`
}

// target returns the target as PutTargets takes it.
func (t ruleTarget) target() types.Target {
	out := types.Target{
		Arn:              t.Arn,
		Id:               t.Id,
		DeadLetterConfig: t.DeadLetterConfig,
		Input:            t.Input,
		InputPath:        t.InputPath,
		InputTransformer: t.InputTransformer,
		RetryPolicy:      t.RetryPolicy,
		RoleArn:          t.RoleArn,
		SqsParameters:    t.SqsParameters,
	}
	e := t.EcsParameters
	if e == nil {
		return out
	}
	out.EcsParameters = &types.EcsParameters{
		CapacityProviderStrategy: e.CapacityProviderStrategy,
		EnableECSManagedTags:     aws.ToBool(e.EnableECSManagedTags),
		EnableExecuteCommand:     aws.ToBool(e.EnableExecuteCommand),
		Group:                    e.Group,
		LaunchType:               e.LaunchType,
		PlacementConstraints:     e.PlacementConstraints,
		PlacementStrategy:        e.PlacementStrategies,
		PlatformVersion:          e.PlatformVersion,
		PropagateTags:            e.PropagateTags,
		Tags:                     tagList(e.TagList, eventsTag),
		TaskCount:                e.TaskCount,
		TaskDefinitionArn:        e.TaskDefinitionArn,
	}
	if e.NetworkConfiguration != nil {
		out.EcsParameters.NetworkConfiguration = &types.NetworkConfiguration{AwsvpcConfiguration: e.NetworkConfiguration.AwsVpcConfiguration}
	}
	return out
}

// ruleTargetOf returns a target as templates have it.
func ruleTargetOf(t types.Target) ruleTarget {
	out := ruleTarget{
		Arn:              t.Arn,
		Id:               t.Id,
		DeadLetterConfig: t.DeadLetterConfig,
		Input:            t.Input,
		InputPath:        t.InputPath,
		InputTransformer: t.InputTransformer,
		RetryPolicy:      t.RetryPolicy,
		RoleArn:          t.RoleArn,
		SqsParameters:    t.SqsParameters,
	}
	e := t.EcsParameters
	if e == nil {
		return out
	}
	out.EcsParameters = &ruleTask{
		CapacityProviderStrategy: e.CapacityProviderStrategy,
		EnableECSManagedTags:     &e.EnableECSManagedTags,
		EnableExecuteCommand:     &e.EnableExecuteCommand,
		Group:                    e.Group,
		LaunchType:               e.LaunchType,
		PlacementConstraints:     e.PlacementConstraints,
		PlacementStrategies:      e.PlacementStrategy,
		PlatformVersion:          e.PlatformVersion,
		PropagateTags:            e.PropagateTags,
		TagList:                  ownTags(e.Tags, eventsTagParts),
		TaskCount:                e.TaskCount,
		TaskDefinitionArn:        e.TaskDefinitionArn,
	}
	if e.NetworkConfiguration != nil {
		out.EcsParameters.NetworkConfiguration = &struct{ AwsVpcConfiguration *types.AwsVpcConfiguration }{e.NetworkConfiguration.AwsvpcConfiguration}
	}
	return out
}

var _ = add(&kind[*eventRule]{
	name:       "AWS::Events::Rule",
	live:       liveEventRule,
	list:       listEventRules,
	identifier: []string{"Arn"},
	ofARN:      eventRuleOf,
	attributes: []string{"Arn"},
	after:      []string{"AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy", "AWS::Events::EventBusPolicy"},
	id:         eventRuleID,
	create: func(ctx context.Context, s Step, r *eventRule) (string, error) {
		id := eventRuleID(s, r)
		return id, putEventRule(ctx, s, id, r)
	},
	update: func(ctx context.Context, s Step, id string, before, after *eventRule) error {
		if err := putEventRule(ctx, s, id, after); err != nil {
			return err
		}
		if err := removeTargets(ctx, s, id, before.Targets, after.Targets); err != nil {
			return err
		}
		made, err := readEventRule(ctx, s, id, after)
		if err != nil {
			return err
		}
		return retagEvents(ctx, s, made.Attributes["Arn"].(string), before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, r *eventRule) error {
		live, err := liveEventRule(ctx, s, id, r)
		if err != nil {
			return err
		}
		if err := removeTargets(ctx, s, id, live.Targets, nil); err != nil {
			return err
		}
		bus, name := ruleAt(id)
		return did[eventbridge.DeleteRuleOutput](ctx, s, &eventbridge.DeleteRuleInput{Name: name, EventBusName: bus})
	},
	read: readEventRule,
})

func eventRuleID(s Step, r *eventRule) string {
	name := aws.ToString(r.Name)
	if name == "" {
		name = s.generated(64)
	}
	if bus := busOf(r.EventBusName); bus != "default" {
		return bus + "|" + name
	}
	return name
}

// eventRuleOf returns the physical ID of the rule with an ARN, which ends in rule/NAME or rule/BUS/NAME.
func eventRuleOf(arn string) string {
	_, rest, _ := strings.Cut(arn, ":rule/")
	return strings.Replace(rest, "/", "|", 1)
}

func listEventRules(ctx context.Context, s Step, asked *eventRule) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		in := &eventbridge.ListRulesInput{EventBusName: asked.EventBusName, NextToken: token}
		out, err := call.Do[eventbridge.ListRulesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range out.Rules {
			ids = append(ids, eventRuleOf(*r.Arn))
		}
		return ids, out.NextToken, nil
	})
}

// busOf returns the name of a bus, which may be given by its ARN.
func busOf(bus *string) string {
	text := aws.ToString(bus)
	if text == "" {
		return "default"
	}
	return text[strings.LastIndexByte(text, '/')+1:]
}

// ruleAt returns the bus and the name of the rule with a physical ID.
func ruleAt(id string) (bus, name *string) {
	if on, rest, found := strings.Cut(id, "|"); found {
		return &on, &rest
	}
	return nil, &id
}

// putEventRule gives a rule what it has, and its targets.
func putEventRule(ctx context.Context, s Step, id string, r *eventRule) error {
	bus, name := ruleAt(id)
	err := did[eventbridge.PutRuleOutput](ctx, s, &eventbridge.PutRuleInput{
		Name:               name,
		EventBusName:       bus,
		Description:        r.Description,
		EventPattern:       document(r.EventPattern),
		RoleArn:            r.RoleArn,
		ScheduleExpression: r.ScheduleExpression,
		State:              r.State,
		Tags:               tagList(r.Tags, eventsTag),
	})
	if err != nil || len(r.Targets) == 0 {
		return err
	}
	in := &eventbridge.PutTargetsInput{Rule: name, EventBusName: bus}
	for _, t := range r.Targets {
		in.Targets = append(in.Targets, t.target())
	}
	return did[eventbridge.PutTargetsOutput](ctx, s, in)
}

// removeTargets removes the targets that a rule is to have no more.
func removeTargets(ctx context.Context, s Step, id string, before, after []ruleTarget) error {
	stays := map[string]bool{}
	for _, t := range after {
		stays[aws.ToString(t.Id)] = true
	}
	var gone []string
	for _, t := range before {
		if !stays[aws.ToString(t.Id)] {
			gone = append(gone, aws.ToString(t.Id))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	bus, name := ruleAt(id)
	return did[eventbridge.RemoveTargetsOutput](ctx, s, &eventbridge.RemoveTargetsInput{Rule: name, EventBusName: bus, Ids: gone})
}

func eventsTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func eventsTagParts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func retagEvents(ctx context.Context, s Step, arn string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		return did[eventbridge.UntagResourceOutput](ctx, s, &eventbridge.UntagResourceInput{ResourceARN: &arn, TagKeys: gone})
	}, func() error {
		return did[eventbridge.TagResourceOutput](ctx, s, &eventbridge.TagResourceInput{ResourceARN: &arn, Tags: tagList(after, eventsTag)})
	})
}

func liveEventsTags(ctx context.Context, s Step, arn *string) ([]Tag, error) {
	out, err := call.Do[eventbridge.ListTagsForResourceOutput](ctx, s.Services, &eventbridge.ListTagsForResourceInput{ResourceARN: arn})
	if err != nil {
		return nil, err
	}
	return ownTags(out.Tags, eventsTagParts), nil
}

func readEventRule(ctx context.Context, s Step, id string, _ *eventRule) (Made, error) {
	bus, name := ruleAt(id)
	out, err := call.Do[eventbridge.DescribeRuleOutput](ctx, s.Services, &eventbridge.DescribeRuleInput{Name: name, EventBusName: bus})
	if err != nil {
		return Made{}, err
	}
	return Made{Attributes: map[string]any{"Arn": *out.Arn}}, nil
}

func liveEventRule(ctx context.Context, s Step, id string, asked *eventRule) (*eventRule, error) {
	bus, name := ruleAt(id)
	out, err := call.Do[eventbridge.DescribeRuleOutput](ctx, s.Services, &eventbridge.DescribeRuleInput{Name: name, EventBusName: bus})
	if err != nil {
		return nil, err
	}
	targets, err := call.Do[eventbridge.ListTargetsByRuleOutput](ctx, s.Services, &eventbridge.ListTargetsByRuleInput{Rule: name, EventBusName: bus})
	if err != nil {
		return nil, err
	}
	live := &eventRule{
		Name:               out.Name,
		EventBusName:       out.EventBusName,
		Description:        out.Description,
		EventPattern:       parsed(out.EventPattern),
		RoleArn:            out.RoleArn,
		ScheduleExpression: out.ScheduleExpression,
		State:              out.State,
	}
	for _, t := range targets.Targets {
		live.Targets = append(live.Targets, ruleTargetOf(t))
	}
	if asked.EventBusName != nil && busOf(asked.EventBusName) == *out.EventBusName {
		live.EventBusName = asked.EventBusName
	}
	live.Tags, err = liveEventsTags(ctx, s, out.Arn)
	return live, err
}

package resources

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// eventBus has the properties of AWS::Events::EventBus. Its physical ID is the name.
type eventBus struct {
	Name             *string `cfn:"required,create"`
	EventSourceName  *string `cfn:"create"`
	Description      *string
	DeadLetterConfig *types.DeadLetterConfig
	KmsKeyIdentifier *string
	LogConfig        *types.LogConfig
	Policy           any
	Tags             []Tag
}

var _ = add(&kind[*eventBus]{
	name:       "AWS::Events::EventBus",
	live:       liveEventBus,
	list:       listEventBuses,
	identifier: []string{"Name"},
	attributes: []string{"Arn", "Name", "Policy"},
	id:         func(_ Step, b *eventBus) string { return aws.ToString(b.Name) },
	create: func(ctx context.Context, s Step, b *eventBus) (string, error) {
		err := did[eventbridge.CreateEventBusOutput](ctx, s, &eventbridge.CreateEventBusInput{
			Name:             b.Name,
			EventSourceName:  b.EventSourceName,
			Description:      b.Description,
			DeadLetterConfig: b.DeadLetterConfig,
			KmsKeyIdentifier: b.KmsKeyIdentifier,
			LogConfig:        b.LogConfig,
			Tags:             tagList(b.Tags, eventsTag),
		})
		if err != nil || b.Policy == nil {
			return *b.Name, err
		}
		return *b.Name, putBusPolicy(ctx, s, b.Name, *document(b.Policy))
	},
	update: func(ctx context.Context, s Step, name string, before, after *eventBus) error {
		in := &eventbridge.UpdateEventBusInput{
			Name:             &name,
			Description:      aws.String(aws.ToString(after.Description)),
			DeadLetterConfig: after.DeadLetterConfig,
			KmsKeyIdentifier: after.KmsKeyIdentifier,
			LogConfig:        after.LogConfig,
		}
		if err := did[eventbridge.UpdateEventBusOutput](ctx, s, in); err != nil {
			return err
		}
		policy := ""
		if after.Policy != nil {
			policy = *document(after.Policy)
		}
		if before.Policy != nil || after.Policy != nil {
			if err := putBusPolicy(ctx, s, &name, policy); err != nil {
				return err
			}
		}
		return retagEvents(ctx, s, s.Account.ARN("events", "event-bus/"+name), before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, name string, _ *eventBus) error {
		return did[eventbridge.DeleteEventBusOutput](ctx, s, &eventbridge.DeleteEventBusInput{Name: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *eventBus) (Made, error) {
		out, err := call.Do[eventbridge.DescribeEventBusOutput](ctx, s.Services, &eventbridge.DescribeEventBusInput{Name: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.Arn, "Name": *out.Name, "Policy": aws.ToString(out.Policy)}}, nil
	},
})

// putBusPolicy gives a bus a policy, or none.
func putBusPolicy(ctx context.Context, s Step, bus *string, policy string) error {
	if policy == "" {
		in := &eventbridge.RemovePermissionInput{EventBusName: bus, RemoveAllPermissions: true}
		return did[eventbridge.RemovePermissionOutput](ctx, s, in)
	}
	return did[eventbridge.PutPermissionOutput](ctx, s, &eventbridge.PutPermissionInput{EventBusName: bus, Policy: &policy})
}

func liveEventBus(ctx context.Context, s Step, name string, _ *eventBus) (*eventBus, error) {
	out, err := call.Do[eventbridge.DescribeEventBusOutput](ctx, s.Services, &eventbridge.DescribeEventBusInput{Name: &name})
	if err != nil {
		return nil, err
	}
	live := &eventBus{Name: out.Name, Description: out.Description, Policy: parsed(out.Policy)}
	live.Tags, err = liveEventsTags(ctx, s, out.Arn)
	return live, err
}

func listEventBuses(ctx context.Context, s Step, _ *eventBus) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[eventbridge.ListEventBusesOutput](ctx, s.Services, &eventbridge.ListEventBusesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, b := range out.EventBuses {
			ids = append(ids, *b.Name)
		}
		return ids, out.NextToken, nil
	})
}

// busPolicy has the properties of AWS::Events::EventBusPolicy: one statement of a bus's policy.
type busPolicy struct {
	StatementId  *string `cfn:"required,create"`
	EventBusName *string `cfn:"create"`
	Action       *string
	Condition    *types.Condition
	Principal    *string
	Statement    any
}

var _ = add(&kind[*busPolicy]{
	name:       "AWS::Events::EventBusPolicy",
	live:       liveBusPolicy,
	identifier: []string{"EventBusName", "StatementId"},
	check: func(p *busPolicy) []string {
		if p.Statement == nil && (p.Action == nil || p.Principal == nil) {
			return []string{"#: it needs a Statement, or an Action and a Principal"}
		}
		return nil
	},
	id: func(_ Step, p *busPolicy) string { return busOf(p.EventBusName) + "|" + aws.ToString(p.StatementId) },
	create: func(ctx context.Context, s Step, p *busPolicy) (string, error) {
		return busOf(p.EventBusName) + "|" + *p.StatementId, putBusStatement(ctx, s, p)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *busPolicy) error {
		return putBusStatement(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, _ string, p *busPolicy) error {
		in := &eventbridge.RemovePermissionInput{EventBusName: aws.String(busOf(p.EventBusName)), StatementId: p.StatementId}
		return did[eventbridge.RemovePermissionOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, p *busPolicy) (Made, error) {
		_, err := liveBusPolicy(ctx, s, id, p)
		return Made{}, err
	},
})

// statementsOf returns the statements of a bus's policy.
func statementsOf(ctx context.Context, s Step, bus *string) ([]map[string]any, error) {
	out, err := call.Do[eventbridge.DescribeEventBusOutput](ctx, s.Services, &eventbridge.DescribeEventBusInput{Name: aws.String(busOf(bus))})
	if err != nil || out.Policy == nil {
		return nil, err
	}
	var d struct{ Statement []map[string]any }
	err = json.Unmarshal([]byte(*out.Policy), &d)
	return d.Statement, err
}

// putBusStatement puts the statement into its bus's policy.
func putBusStatement(ctx context.Context, s Step, p *busPolicy) error {
	if p.Statement == nil {
		return did[eventbridge.PutPermissionOutput](ctx, s, &eventbridge.PutPermissionInput{
			EventBusName: aws.String(busOf(p.EventBusName)),
			StatementId:  p.StatementId,
			Action:       p.Action,
			Principal:    p.Principal,
			Condition:    p.Condition,
		})
	}
	all, err := statementsOf(ctx, s, p.EventBusName)
	if err != nil {
		return err
	}
	var own map[string]any
	if err := json.Unmarshal([]byte(*document(p.Statement)), &own); err != nil {
		return template.Errorf("Statement isn't an object: %s", err)
	}
	own["Sid"] = *p.StatementId
	all = slices.DeleteFunc(all, func(one map[string]any) bool { return one["Sid"] == *p.StatementId })
	text := document(map[string]any{"Version": "2012-10-17", "Statement": append(all, own)})
	return putBusPolicy(ctx, s, aws.String(busOf(p.EventBusName)), *text)
}

// liveBusPolicy reads the statement. What it was made of stays as it was asked, unless the statement is gone.
func liveBusPolicy(ctx context.Context, s Step, _ string, p *busPolicy) (*busPolicy, error) {
	all, err := statementsOf(ctx, s, p.EventBusName)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one["Sid"] != aws.ToString(p.StatementId) {
			continue
		}
		live := *p
		if p.Statement != nil || p.Action == nil {
			if asked, isObject := p.Statement.(map[string]any); isObject && asked["Sid"] == nil {
				delete(one, "Sid")
			}
			live.Statement = one
		}
		return &live, nil
	}
	return nil, errMissing
}

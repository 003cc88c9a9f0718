package resources

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// nestedStack has the properties of AWS::CloudFormation::Stack. Its physical ID is the stack's. It's a stack like any other, which its parent
// creates, updates and deletes.
type nestedStack struct {
	NotificationARNs []string
	Parameters       map[string]string
	Tags             []Tag
	TemplateURL      *string `cfn:"required"`
	TimeoutInMinutes *int32
}

// NestedStack is the type of stacks in stacks.
const NestedStack = "AWS::CloudFormation::Stack"

// MaxNested is how deep stacks may be in one another. A template that has itself for a resource would go on for ever.
const MaxNested = 8

// NestedName returns the name of a stack in a stack.
func (s Step) NestedName() string { return s.generated(128) }

var _ = add(&kind[*nestedStack]{
	name:       NestedStack,
	attributes: []string{"Outputs.*"},
	find:       findNested,
	create:     createNested,
	update:     updateNested,
	settled:    isNestedSettled,
	delete:     deleteNested,
	read: func(ctx context.Context, s Step, id string, _ *nestedStack) (Made, error) {
		found, err := describeNested(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		outputs := map[string]any{}
		for _, o := range found.Outputs {
			outputs["Outputs."+*o.OutputKey] = *o.OutputValue
		}
		return Made{Attributes: outputs}, nil
	},
})

// describeNested returns a stack by its name or its ID. Only by its ID one is found that was deleted.
func describeNested(ctx context.Context, s Step, nameOrID string) (*types.Stack, error) {
	out, err := call.Do[cloudformation.DescribeStacksOutput](ctx, s.Services, &cloudformation.DescribeStacksInput{StackName: &nameOrID})
	if hasCode(err, "ValidationError") {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return &out.Stacks[0], nil
}

func findNested(ctx context.Context, s Step, _ *nestedStack) (string, error) {
	found, err := describeNested(ctx, s, s.NestedName())
	if isMissing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if found.StackStatus == types.StackStatusReviewInProgress {
		return "", nil // a change set made it, and it has nothing yet
	}
	return *found.StackId, nil
}

func createNested(ctx context.Context, s Step, n *nestedStack) (string, error) {
	if s.Depth() > MaxNested {
		return "", template.Errorf("Stacks may be nested %d deep", MaxNested)
	}
	out, err := call.Do[cloudformation.CreateStackOutput](ctx, s.Services, &cloudformation.CreateStackInput{
		StackName:        aws.String(s.NestedName()),
		TemplateURL:      n.TemplateURL,
		Parameters:       n.parameters(),
		Tags:             n.tags(),
		NotificationARNs: n.NotificationARNs,
		TimeoutInMinutes: n.TimeoutInMinutes,
		Capabilities:     s.Capabilities,
		DisableRollback:  &s.NoRollback,
	})
	if err != nil {
		return "", err
	}
	return *out.StackId, nil
}

func (n *nestedStack) parameters() (list []types.Parameter) {
	for _, name := range slices.Sorted(maps.Keys(n.Parameters)) {
		list = append(list, types.Parameter{ParameterKey: &name, ParameterValue: aws.String(n.Parameters[name])})
	}
	return list
}

func (n *nestedStack) tags() []types.Tag {
	list := []types.Tag{} // without any, an update would keep the old ones
	for _, t := range n.Tags {
		list = append(list, types.Tag{Key: &t.Key, Value: &t.Value})
	}
	return list
}

// updateNested updates the stack. One that is being created, and was found again, needs no update.
func updateNested(ctx context.Context, s Step, id string, before, after *nestedStack) error {
	found, err := describeNested(ctx, s, id)
	switch {
	case err != nil:
		return err
	case before.TemplateURL == nil:
		return nil
	case isBusy(found):
		return ErrPending // it rolls an update back that its parent rolls back, too
	}
	err = did[cloudformation.UpdateStackOutput](ctx, s, &cloudformation.UpdateStackInput{
		StackName:        &id,
		TemplateURL:      after.TemplateURL,
		Parameters:       after.parameters(),
		Tags:             after.tags(),
		NotificationARNs: append([]string{}, after.NotificationARNs...), // without any, an update would keep the old ones
		Capabilities:     s.Capabilities,
		DisableRollback:  &s.NoRollback,
	})
	if err != nil && strings.Contains(err.Error(), "No updates are to be performed.") {
		return nil
	}
	return err
}

func isBusy(found *types.Stack) bool {
	return strings.HasSuffix(string(found.StackStatus), "_IN_PROGRESS")
}

// isNestedSettled reports whether the stack has become what it's to be. It has failed once it begins to roll back.
func isNestedSettled(ctx context.Context, s Step, id string, _ *nestedStack) (bool, error) {
	found, err := describeNested(ctx, s, id)
	if err != nil {
		return false, err
	}
	switch found.StackStatus {
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete:
		return true, nil
	case types.StackStatusCreateInProgress, types.StackStatusUpdateInProgress, types.StackStatusUpdateCompleteCleanupInProgress:
		return false, nil
	case types.StackStatusUpdateRollbackComplete, types.StackStatusImportComplete, types.StackStatusImportRollbackComplete:
		if s.Back {
			return true, nil
		}
	case types.StackStatusUpdateRollbackInProgress, types.StackStatusUpdateRollbackCompleteCleanupInProgress:
		if s.Back {
			return false, nil
		}
	}
	reason, err := whyNestedFailed(ctx, s, found)
	if err != nil {
		return false, err
	}
	if strings.HasPrefix(string(found.StackStatus), "UPDATE_") {
		return false, template.Errorf("Embedded stack %s was not successfully updated. Currently in %s with reason: %s", id, found.StackStatus, reason)
	}
	return false, template.Errorf("Embedded stack %s was not successfully created: %s", id, reason)
}

// whyNestedFailed returns why the stack has failed: its reason, or the one that it had before it was rolled back.
func whyNestedFailed(ctx context.Context, s Step, found *types.Stack) (string, error) {
	reason := aws.ToString(found.StackStatusReason)
	in := &cloudformation.DescribeStackEventsInput{StackName: found.StackId}
	for reason == "" {
		out, err := call.Do[cloudformation.DescribeStackEventsOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		for _, e := range out.StackEvents { // the latest first
			if reason == "" && aws.ToString(e.PhysicalResourceId) == *found.StackId {
				reason = aws.ToString(e.ResourceStatusReason)
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(reason, "Rollback requested by user.")), nil
}

// deleteNested deletes the stack, and is to be called again until that is gone.
func deleteNested(ctx context.Context, s Step, id string, _ *nestedStack) error {
	found, err := describeNested(ctx, s, id)
	if err != nil {
		return err
	}
	failed, err := hasFailed(ctx, s, found)
	if err != nil {
		return err
	}
	switch status := found.StackStatus; {
	case status == types.StackStatusDeleteComplete:
		return nil
	case failed:
		return template.Errorf("Embedded stack %s was not successfully deleted: %s", id, aws.ToString(found.StackStatusReason))
	case isBusy(found) && status != types.StackStatusCreateInProgress:
		return ErrPending
	}
	if err := did[cloudformation.DeleteStackOutput](ctx, s, &cloudformation.DeleteStackInput{StackName: &id}); err != nil {
		return err
	}
	return ErrPending
}

// hasFailed reports whether a deletion of the stack has failed since its parent's began.
func hasFailed(ctx context.Context, s Step, found *types.Stack) (bool, error) {
	if found.StackStatus != types.StackStatusDeleteFailed {
		return false, nil
	}
	in := &cloudformation.DescribeStackEventsInput{StackName: found.StackId}
	out, err := call.Do[cloudformation.DescribeStackEventsOutput](ctx, s.Services, in)
	return err == nil && out.StackEvents[0].Timestamp.After(s.Since), err
}

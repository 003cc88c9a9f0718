package cloudformation

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudformation/underway"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// maxStacks is how many stacks there may be, as in AWS's quotas.
const maxStacks = 2000

// maxStackName is how many characters a stack's name may have.
const maxStackName = 128

var stackName = regexp.MustCompile(`^[a-zA-Z][-a-zA-Z0-9]*$`)

// CreateStack begins to make a stack.
func (s *Service) CreateStack(ctx context.Context, in *cloudformation.CreateStackInput) (*cloudformation.CreateStackOutput, error) {
	if in.OnFailure != "" && in.DisableRollback != nil {
		return nil, invalid("You cannot specify both DisableRollback and OnFailure.")
	}
	v := s.store.View()
	if made, err := madeBefore(v, in); made != nil || err != nil {
		return made, err
	}
	stack, planned, err := s.toMake(ctx, v, *in.StackName)
	if err != nil {
		return nil, err
	}
	asTheCreationSays(stack, in)
	s.nest(ctx, stack)
	if stack.Policy, err = s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL); err != nil {
		return nil, err
	}
	if stack.RollbackConfiguration, err = rollback(nil, in.RollbackConfiguration); err != nil {
		return nil, err
	}
	ctx, unassumed := s.asRole(ctx, in.RoleARN, stack)
	if err := cmp.Or(unassumed, s.checkNotifications(in.NotificationARNs), refuseConfig(in.DeploymentConfig)); err != nil {
		return nil, err
	}
	stack.Target, err = s.source(ctx, stack, deployment{
		body:             in.TemplateBody,
		location:         in.TemplateURL,
		parameters:       in.Parameters,
		tags:             in.Tags,
		notificationARNs: in.NotificationARNs,
		capabilities:     in.Capabilities,
		resourceTypes:    in.ResourceTypes,
		planned:          sourceOf(planned),
	})
	if err != nil {
		return nil, err
	}
	_, err = s.loop.Changes(ctx, v, stack, stack.Target)
	if late := (*stacks.Late)(nil); err != nil && !errors.As(err, &late) {
		return nil, refused(err)
	}
	out := &cloudformation.CreateStackOutput{StackId: stack.StackId, OperationId: new(state.NewUUID())}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if made, err := madeBefore(tx.View, in); made != nil || err != nil {
			out = made // by a call that came at the same time
			return err
		}
		if planned != nil {
			s.executing(tx, stack, planned)
		} else if err := isFree(tx, *in.StackName); err != nil {
			return err
		}
		s.begin(ctx, tx, stack, types.StackStatusCreateInProgress)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// madeBefore returns the answer to a call whose stack was made by an earlier one with its token, or nil if there was none.
func madeBefore(v *state.View, in *cloudformation.CreateStackInput) (*cloudformation.CreateStackOutput, error) {
	made := v.StackNamed(*in.StackName)
	if made == nil {
		return nil, nil
	}
	if isAgain, err := repeats(made, "CreateStack", in.ClientRequestToken); !isAgain || err != nil {
		return nil, err
	}
	return &cloudformation.CreateStackOutput{StackId: made.StackId}, nil
}

// asTheCreationSays sets how a creation is carried out.
func asTheCreationSays(stack *state.Stack, in *cloudformation.CreateStackInput) {
	stack.OnFailure = in.OnFailure
	stack.RetainExceptOnCreate = aws.ToBool(in.RetainExceptOnCreate)
	stack.DisableRollback = in.DisableRollback
	stack.TimeoutInMinutes = in.TimeoutInMinutes
	stack.EnableTerminationProtection = in.EnableTerminationProtection
	stack.RoleARN = in.RoleARN
	stack.Tokened("CreateStack", aws.ToString(in.ClientRequestToken))
}

// errNoUpdates refuses updates without changes. Clients know the sentence.
var errNoUpdates = invalid("No updates are to be performed.")

// repeats reports whether a call that begins an operation on a stack is one that was answered before, by its token. The token of a call for
// something else is refused.
func repeats(stack *state.Stack, operation string, token *string) (bool, error) {
	for _, t := range stack.Tokens {
		switch {
		case t.Token != aws.ToString(token):
		case t.Operation == operation:
			return true, nil
		default:
			return false, &types.TokenAlreadyExistsException{Message: account.Message("A client request token already exists.")}
		}
	}
	return false, nil
}

// nest notes the stack that a new stack is a resource of, if it's one.
func (s *Service) nest(ctx context.Context, stack *state.Stack) {
	c := call.From(ctx)
	if c.Via != "cloudformation" {
		return
	}
	if parent := s.store.View().Stacks.Get(c.Stack); parent != nil {
		stack.ParentId, stack.RootId = parent.StackId, cmp.Or(parent.RootId, parent.StackId)
	}
}

// isFree refuses a name that a stack has, and a stack too many.
func isFree(tx *state.Tx, name string) error {
	if other := tx.StackNamed(name); other != nil {
		return &types.AlreadyExistsException{Message: account.Message("Stack [%s] already exists", name)}
	}
	n := 0
	for stack := range tx.Stacks.All() {
		if !stack.Gone() {
			n++
		}
	}
	if n >= maxStacks {
		return &types.LimitExceededException{Message: account.Message("Limit for stack has been exceeded: %d", maxStacks)}
	}
	return nil
}

// newStack returns a stack that isn't kept yet.
func (s *Service) newStack(name string) (*state.Stack, error) {
	if !stackName.MatchString(name) {
		return nil, invalid("1 validation error detected: Value '%s' at 'stackName' failed to satisfy constraint: "+
			"Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*|arn:[-a-zA-Z0-9:/._+]*", name)
	}
	if len(name) > maxStackName {
		return nil, invalid("1 validation error detected: Value '%s' at 'stackName' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", name, maxStackName)
	}
	now := s.opts.Account.Now()
	return &state.Stack{
		Stack: types.Stack{
			StackId:      new(s.stackARN(name, state.NewUUID())),
			StackName:    &name,
			CreationTime: &now,
		},
		Since: now,
	}, nil
}

// begin begins an operation on a stack.
func (s *Service) begin(ctx context.Context, tx *state.Tx, stack *state.Stack, status types.StackStatus) {
	stack.By = underway.CallerOf(ctx)
	stack.Since, stack.Built = s.opts.Account.Now(), time.Time{}
	if status != types.StackStatusUpdateRollbackInProgress {
		stack.BeginOperation(stack.HasFailed() || stack.FormerOf != "")
	}
	stacks.Forgive(tx, stack)
	s.loop.Move(tx, stack, status, "User Initiated")
	tx.Stacks.Put(stack)
}

// find returns a stack by its name or its ID. Only by its ID a stack is found that was deleted.
func find(v *state.View, nameOrID string) *state.Stack {
	if strings.HasPrefix(nameOrID, "arn:") {
		return v.Stacks.Get(nameOrID)
	}
	return v.StackNamed(nameOrID)
}

// live returns a stack that isn't deleted.
func live(v *state.View, nameOrID string) (*state.Stack, error) {
	stack := find(v, nameOrID)
	if stack == nil || stack.Gone() {
		return nil, invalid("Stack [%s] does not exist", nameOrID)
	}
	return stack, nil
}

// isUpdatable reports whether a stack's status allows an update.
func isUpdatable(stack *state.Stack) bool {
	switch stack.StackStatus {
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete, types.StackStatusUpdateRollbackComplete,
		types.StackStatusImportComplete, types.StackStatusImportRollbackComplete:
		return true
	}
	return false
}

func notNow(stack *state.Stack, verb string) error {
	return invalid("Stack:%s is in %s state and can not be %s.", *stack.StackId, stack.StackStatus, verb)
}

// UpdateStack begins to make something else of a stack.
func (s *Service) UpdateStack(ctx context.Context, in *cloudformation.UpdateStackInput) (*cloudformation.UpdateStackOutput, error) {
	v := s.store.View()
	stack, err := live(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	if isAgain, err := repeats(stack, "UpdateStack", in.ClientRequestToken); isAgain || err != nil {
		return &cloudformation.UpdateStackOutput{StackId: stack.StackId}, err
	}
	parent := parentOf(ctx, v, stack)
	if isOver, err := s.withParent(ctx, stack, parent); isOver || err != nil {
		return &cloudformation.UpdateStackOutput{StackId: stack.StackId}, err
	}
	if err := updatable(stack, in.DisableRollback, "update-stack"); err != nil {
		return nil, err
	}
	if ctx, err = s.asRole(ctx, in.RoleARN, stack); err != nil {
		return nil, err
	}
	during, next, err := s.updatesPolicies(ctx, in)
	if err != nil {
		return nil, err
	}
	watched, err := rollback(stack.RollbackConfiguration, in.RollbackConfiguration)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(s.checkNotifications(in.NotificationARNs), refuseConfig(in.DeploymentConfig)); err != nil {
		return nil, err
	}
	planned, err := plannedFor(v, parent, stack)
	if err != nil {
		return nil, err
	}
	target, err := s.target(ctx, stack, in, sourceOf(planned))
	if err != nil {
		return nil, err
	}
	changes, err := s.plan(ctx, v, stack, target)
	if err != nil {
		return nil, err
	}
	if isNone, err := s.isNone(ctx, v, stack, target, changes); err != nil || isNone && parent == nil {
		return nil, cmp.Or(err, errNoUpdates)
	}
	err = s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
		stack.Target = target
		asTheUpdateSays(stack, in)
		stack.RollbackConfiguration = watched
		stack.PolicyDuring, stack.PolicyNext = during, next
		stack.LastUpdatedTime = new(s.opts.Account.Now())
		s.pass(tx, stack, planned)
		s.begin(ctx, tx, stack, types.StackStatusUpdateInProgress)
		keepFormer(stack, parent)
	})
	if err != nil {
		return nil, err
	}
	return &cloudformation.UpdateStackOutput{StackId: stack.StackId, OperationId: new(state.NewUUID())}, nil
}

// asTheUpdateSays sets how an update is carried out.
func asTheUpdateSays(stack *state.Stack, in *cloudformation.UpdateStackInput) {
	stack.DisableRollback = in.DisableRollback
	stack.RetainExceptOnCreate = aws.ToBool(in.RetainExceptOnCreate)
	stack.Tokened("UpdateStack", aws.ToString(in.ClientRequestToken))
	stack.RoleARN = cmp.Or(in.RoleARN, stack.RoleARN)
}

// target checks what an update makes of a stack and returns it.
func (s *Service) target(
	ctx context.Context, stack *state.Stack, in *cloudformation.UpdateStackInput, planned *state.StackSource,
) (*state.StackSource, error) {
	return s.source(ctx, stack, deployment{
		body:             in.TemplateBody,
		location:         in.TemplateURL,
		previous:         aws.ToBool(in.UsePreviousTemplate),
		parameters:       in.Parameters,
		tags:             in.Tags,
		notificationARNs: in.NotificationARNs,
		capabilities:     in.Capabilities,
		resourceTypes:    in.ResourceTypes,
		planned:          planned,
	})
}

// isNone reports whether a source with some changes of resources changes nothing.
func (s *Service) isNone(
	ctx context.Context, v *state.View, stack *state.Stack, src *state.StackSource, changes []types.Change,
) (bool, error) {
	if len(changes) > 0 || stack.HasFailed() || stack.Source == nil || !isSame(stack.Source, src) {
		return false, nil
	}
	restates, err := s.loop.Restates(ctx, v, stack, src)
	return !restates, refused(err)
}

// isSame reports whether two sources have the same template and tags, and tell the same topics.
func isSame(a, b *state.StackSource) bool {
	return a.Template == b.Template && a.Expanded == b.Expanded && sameTags(a.Tags, b.Tags) &&
		slices.Equal(a.NotificationARNs, b.NotificationARNs)
}

func sameTags(a, b []types.Tag) bool {
	values := map[string]string{}
	for _, t := range a {
		values[*t.Key] = *t.Value
	}
	for _, t := range b {
		if value, there := values[*t.Key]; !there || value != *t.Value {
			return false
		}
	}
	return len(a) == len(b)
}

// update changes a stack, unless somebody has changed it since it was read.
func (s *Service) update(ctx context.Context, read *state.Stack, change func(*state.Tx, *state.Stack)) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.Stacks.Get(*read.StackId) != read {
			return invalid("Stack:%s changed while the call was answered. Try again.", *read.StackId)
		}
		next := *read
		change(tx, &next)
		tx.Stacks.Put(&next)
		return nil
	})
}

// DeleteStack begins to delete a stack. That there is none is success.
func (s *Service) DeleteStack(ctx context.Context, in *cloudformation.DeleteStackInput) (*cloudformation.DeleteStackOutput, error) {
	out := &cloudformation.DeleteStackOutput{}
	v := s.store.View()
	stack := find(v, *in.StackName)
	if stack == nil || stack.Gone() {
		return out, nil
	}
	if isAgain, err := repeats(stack, "DeleteStack", in.ClientRequestToken); isAgain || err != nil {
		return out, err
	}
	switch {
	case stack.StackStatus == types.StackStatusDeleteInProgress:
		return out, nil
	case aws.ToBool(stack.EnableTerminationProtection):
		return nil, invalid("Stack [%s] cannot be deleted while TerminationProtection is enabled", *stack.StackName)
	case len(in.RetainResources) > 0 && stack.StackStatus != types.StackStatusDeleteFailed:
		return nil, invalid("Invalid operation on stack [%s]. RetainResources can be specified only for stacks in DELETE_FAILED state", *stack.StackId)
	case in.DeletionMode == types.DeletionModeForceDeleteStack && stack.StackStatus != types.StackStatusDeleteFailed:
		return nil, invalid("Invalid operation on stack [%s]. FORCE_DELETE_STACK can be specified only for stacks in DELETE_FAILED state", *stack.StackId)
	case stack.Busy() && stack.StackStatus != types.StackStatusCreateInProgress:
		return nil, notNow(stack, "deleted")
	}
	if err := cmp.Or(refuseConfig(in.DeploymentConfig), unused(v, stack)); err != nil {
		return nil, err
	}
	ctx, err := s.asRole(ctx, in.RoleARN, stack)
	if err != nil {
		return nil, err
	}
	return out, s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
		stack.Tokened("DeleteStack", aws.ToString(in.ClientRequestToken))
		stack.Retain = in.RetainResources
		stack.ForceDelete = in.DeletionMode == types.DeletionModeForceDeleteStack
		if in.RoleARN != nil {
			stack.RoleARN = in.RoleARN
		}
		if stack.InReview() {
			for c := range tx.ChangeSets.By(state.ChangeSetsByStack, *stack.StackId) {
				s.loop.Drop(tx, c)
			}
			s.loop.Move(tx, stack, types.StackStatusDeleteComplete, "User Initiated")
			return
		}
		s.begin(ctx, tx, stack, types.StackStatusDeleteInProgress)
	})
}

// unused refuses to take away what other stacks import.
func unused(v *state.View, stack *state.Stack) error {
	for _, out := range stack.Outputs {
		if out.ExportName == nil {
			continue
		}
		if users := stacks.Importers(v, *out.ExportName); len(users) > 0 {
			return invalid("Export %s cannot be deleted as it is in use by %s", *out.ExportName, strings.Join(users, ", "))
		}
	}
	return nil
}

// CancelUpdateStack rolls an update back that is under way.
func (s *Service) CancelUpdateStack(
	ctx context.Context, in *cloudformation.CancelUpdateStackInput,
) (*cloudformation.CancelUpdateStackOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	if isAgain, err := repeats(stack, "CancelUpdateStack", in.ClientRequestToken); isAgain || err != nil {
		return &cloudformation.CancelUpdateStackOutput{}, err
	}
	if stack.StackStatus != types.StackStatusUpdateInProgress {
		return nil, invalid("CancelUpdateStack cannot be called from current stack status")
	}
	return &cloudformation.CancelUpdateStackOutput{}, s.loop.Cancel(ctx, *stack.StackId, aws.ToString(in.ClientRequestToken))
}

// ContinueUpdateRollback goes on with a rollback that has failed.
func (s *Service) ContinueUpdateRollback(
	ctx context.Context, in *cloudformation.ContinueUpdateRollbackInput,
) (*cloudformation.ContinueUpdateRollbackOutput, error) {
	v := s.store.View()
	stack, err := live(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	if isAgain, err := repeats(stack, "ContinueUpdateRollback", in.ClientRequestToken); isAgain || err != nil {
		return &cloudformation.ContinueUpdateRollbackOutput{}, err
	}
	if stack.StackStatus != types.StackStatusUpdateRollbackFailed {
		return nil, invalid("Stack [%s] is in %s state and can not continue update rollback.", *stack.StackId, stack.StackStatus)
	}
	skip, err := toSkip(v, stack, in)
	if err != nil {
		return nil, err
	}
	if ctx, err = s.asRole(ctx, in.RoleARN, stack); err != nil {
		return nil, err
	}
	return &cloudformation.ContinueUpdateRollbackOutput{}, s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
		stack.Skip = skip
		stack.RoleARN = cmp.Or(in.RoleARN, stack.RoleARN)
		stack.Tokened("ContinueUpdateRollback", aws.ToString(in.ClientRequestToken))
		s.begin(ctx, tx, stack, types.StackStatusUpdateRollbackInProgress)
	})
}

// toSkip returns the names of the resources that a rollback leaves as they are: those that the call names, or all that have failed.
func toSkip(v *state.View, stack *state.Stack, in *cloudformation.ContinueUpdateRollbackInput) ([]string, error) {
	var failed []string
	for r := range v.ResourcesOf(*stack.StackId) {
		if r.Status == types.ResourceStatusUpdateFailed {
			failed = append(failed, r.Name)
		}
	}
	if aws.ToBool(in.ForceRollback) {
		if len(in.ResourcesToSkip) > 0 {
			return nil, invalid("You cannot specify both ForceRollback and ResourcesToSkip.")
		}
		return failed, nil
	}
	for _, name := range in.ResourcesToSkip {
		if !slices.Contains(failed, name) {
			return nil, invalid("Resource [%s] does not exist in the stack, or has not failed.", name)
		}
	}
	return in.ResourcesToSkip, nil
}

// UpdateTerminationProtection protects a stack from deletion, or doesn't any more.
func (s *Service) UpdateTerminationProtection(
	ctx context.Context, in *cloudformation.UpdateTerminationProtectionInput,
) (*cloudformation.UpdateTerminationProtectionOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	err = s.update(ctx, stack, func(_ *state.Tx, stack *state.Stack) {
		stack.EnableTerminationProtection = in.EnableTerminationProtection
	})
	return &cloudformation.UpdateTerminationProtectionOutput{StackId: stack.StackId}, err
}

// SignalResource tells a resource that is being made or changed that there is a signal for it.
func (s *Service) SignalResource(
	ctx context.Context, in *cloudformation.SignalResourceInput,
) (*cloudformation.SignalResourceOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	return &cloudformation.SignalResourceOutput{}, s.loop.Signal(ctx, *stack.StackId, *in.LogicalResourceId, *in.UniqueId, in.Status)
}

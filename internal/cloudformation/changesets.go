package cloudformation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxChangeSets is how many change sets a stack may have.
const maxChangeSets = 1000

const noChanges = "The submitted information didn't contain changes. Submit different information to create a change set."

// CreateChangeSet finds out what would change. Clients wait for it, though it's done before the call answers.
func (s *Service) CreateChangeSet(
	ctx context.Context, in *cloudformation.CreateChangeSetInput,
) (*cloudformation.CreateChangeSetOutput, error) {
	if err := s.refuseUnknown(in); err != nil {
		return nil, err
	}
	kind := cmp.Or(in.ChangeSetType, types.ChangeSetTypeUpdate)
	v := s.store.View()
	if c := plannedBefore(v, in); c != nil {
		return &cloudformation.CreateChangeSetOutput{Id: &c.ID, StackId: &c.Stack}, nil
	}
	stack, isNew, err := s.subject(v, *in.StackName, *in.ChangeSetName, kind)
	if err != nil {
		return nil, err
	}
	watched, err := rollback(stack.RollbackConfiguration, in.RollbackConfiguration)
	if err != nil {
		return nil, err
	}
	if ctx, err = s.asRole(ctx, in.RoleARN, stack); err != nil {
		return nil, err
	}
	src, err := s.source(ctx, stack, deployment{
		body:             in.TemplateBody,
		location:         in.TemplateURL,
		previous:         aws.ToBool(in.UsePreviousTemplate),
		parameters:       in.Parameters,
		tags:             in.Tags,
		notificationARNs: in.NotificationARNs,
		capabilities:     in.Capabilities,
		resourceTypes:    in.ResourceTypes,
		isReviewed:       true,
	})
	if err != nil {
		return nil, err
	}
	c := &state.ChangeSet{
		ID:              s.opts.Account.ARN("cloudformation", "changeSet/"+*in.ChangeSetName+"/"+state.NewUUID()),
		Name:            *in.ChangeSetName,
		Token:           aws.ToString(in.ClientToken),
		Stack:           *stack.StackId,
		Type:            kind,
		Description:     aws.ToString(in.Description),
		Created:         s.opts.Account.Now(),
		Status:          types.ChangeSetStatusCreateComplete,
		ExecutionStatus: types.ExecutionStatusAvailable,
		Source:          *src,
		OnFailure:       in.OnStackFailure,
		RoleARN:         aws.ToString(in.RoleARN),
		IncludesNested:  aws.ToBool(in.IncludeNestedStacks),
		ImportsExisting: aws.ToBool(in.ImportExistingResources),
		Rollback:        watched,
	}
	h := &hierarchy{Service: s, view: v, in: in, root: c}
	if err := h.plan(ctx, stack, c); err != nil {
		return nil, err
	}
	if isNew {
		h.stacks = append(h.stacks, stack)
	}
	return &cloudformation.CreateChangeSetOutput{Id: &c.ID, StackId: stack.StackId}, s.keep(ctx, h)
}

// planned lists what a change set would change, by its type.
func (h *hierarchy) planned(ctx context.Context, stack *state.Stack, c *state.ChangeSet) ([]types.Change, error) {
	switch {
	case c.Type == types.ChangeSetTypeImport:
		return h.planImport(ctx, h.view, stack, &c.Source, h.in.ResourcesToImport)
	case !c.IncludesNested:
		return h.Service.plan(ctx, h.view, stack, &c.Source)
	}
	c.Source.IncludesNested, c.Source.Nested = true, map[string]state.NestedChangeSet{}
	changes, err := h.loop.ChangesWith(ctx, h.view, stack, &c.Source, h.nested(ctx, stack, c))
	return changes, refused(err)
}

// plannedBefore returns the change set that an earlier call with the same token made, or nil if there was none.
func plannedBefore(v *state.View, in *cloudformation.CreateChangeSetInput) *state.ChangeSet {
	c, err := findChangeSet(v, *in.ChangeSetName, in.StackName)
	if err != nil || c == nil || c.Token == "" || c.Token != aws.ToString(in.ClientToken) {
		return nil
	}
	return c
}

// refuseUnknown refuses what a change set can't do here.
func (s *Service) refuseUnknown(in *cloudformation.CreateChangeSetInput) error {
	if in.DeploymentMode != "" {
		return invalid("DeploymentMode: Pintle's change sets compare templates, and not what resources are by now: %s isn't there.",
			in.DeploymentMode)
	}
	return cmp.Or(checkImport(in), refuseConfig(in.DeploymentConfig), s.checkNotifications(in.NotificationARNs))
}

// refuseConfig refuses operations that don't wait for what they make.
func refuseConfig(c *types.DeploymentConfig) error {
	switch {
	case c == nil:
		return nil
	case c.Mode != "" && c.Mode != types.DeploymentConfigModeStandard:
		return invalid("DeploymentConfig.Mode: Pintle waits for resources to be ready, as STANDARD does: %s isn't there.", c.Mode)
	case aws.ToBool(c.DisableRollback):
		return invalid("DeploymentConfig.DisableRollback: use the parameter DisableRollback in its place.")
	}
	return nil
}

// checkNotifications refuses topics that aren't there, and FIFO ones: an event is in no group of messages.
func (s *Service) checkNotifications(arns []string) error {
	v := s.store.View()
	for _, arn := range arns {
		switch {
		case v.Topics.Get(arn) == nil:
			return invalid("Invalid SNS topic in NotificationARNs: %s does not exist", arn)
		case v.Topics.Get(arn).FIFO:
			return invalid("Invalid SNS topic in NotificationARNs: %s is a FIFO topic", arn)
		}
	}
	return nil
}

// subject returns the stack that a change set is for: for one that creates a stack, a new one that is in review.
func (s *Service) subject(v *state.View, name, changeSet string, kind types.ChangeSetType) (stack *state.Stack, isNew bool, err error) {
	stack = find(v, name)
	if stack != nil && stack.Gone() {
		stack = nil
	}
	switch {
	case kind != types.ChangeSetTypeUpdate && stack == nil:
		stack, err = s.newStack(name)
		return stack, true, err
	case kind == types.ChangeSetTypeCreate && !stack.InReview():
		return nil, false, invalid("Stack [%s] already exists and cannot be created again with the changeSet [%s].", name, changeSet)
	case stack == nil:
		return nil, false, invalid("Stack [%s] does not exist", name)
	case kind == types.ChangeSetTypeImport && stack.InReview():
	case kind == types.ChangeSetTypeUpdate:
		return stack, false, goesOnFrom(stack)
	case kind == types.ChangeSetTypeImport && !isUpdatable(stack):
		return nil, false, notNow(stack, "updated")
	}
	return stack, false, nil
}

// keep keeps change sets, and the stacks that are new.
func (s *Service) keep(ctx context.Context, h *hierarchy) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, stack := range h.stacks {
			if err := isFree(tx, *stack.StackName); err != nil {
				return err
			}
			row := *stack
			s.loop.Move(tx, &row, types.StackStatusReviewInProgress, "User Initiated")
			tx.Stacks.Put(&row)
		}
		for _, c := range append(h.made, h.root) {
			if err := isNewChangeSet(tx, c); err != nil {
				return err
			}
			tx.ChangeSets.Put(c)
		}
		return nil
	})
}

// isNewChangeSet refuses a name that a change set of the stack has, and a change set too many.
func isNewChangeSet(tx *state.Tx, c *state.ChangeSet) error {
	n := 0
	for other := range tx.ChangeSets.By(state.ChangeSetsByStack, c.Stack) {
		if other.Name == c.Name {
			return &types.AlreadyExistsException{Message: account.Message("ChangeSet %s already exists", c.Name)}
		}
		n++
	}
	if n >= maxChangeSets {
		return &types.LimitExceededException{Message: account.Message("ChangeSet limit exceeded: %d", maxChangeSets)}
	}
	return nil
}

// changeSet returns a change set by its ARN, or by its name and its stack's.
func (s *Service) changeSet(v *state.View, name string, stack *string) (*state.ChangeSet, error) {
	c, err := findChangeSet(v, name, stack)
	if c == nil && err == nil {
		err = &types.ChangeSetNotFoundException{Message: account.Message("ChangeSet [%s] does not exist", name)}
	}
	return c, err
}

// findChangeSet is changeSet that returns nil if there is no such change set.
func findChangeSet(v *state.View, name string, stack *string) (*state.ChangeSet, error) {
	if strings.HasPrefix(name, "arn:") {
		return v.ChangeSets.Get(name), nil
	}
	if stack == nil {
		return nil, invalid("StackName must be specified if ChangeSetName is not specified as an ARN.")
	}
	row := find(v, *stack)
	if row == nil {
		return nil, invalid("Stack [%s] does not exist", *stack)
	}
	for c := range v.ChangeSets.By(state.ChangeSetsByStack, *row.StackId) {
		if c.Name == name {
			return c, nil
		}
	}
	if executed := v.ChangeSets.Get(aws.ToString(row.ChangeSetId)); executed != nil && executed.Name == name {
		return executed, nil
	}
	return nil, nil
}

// DescribeChangeSet describes a change set, with a page of its changes.
func (s *Service) DescribeChangeSet(
	_ context.Context, in *cloudformation.DescribeChangeSetInput,
) (*cloudformation.DescribeChangeSetOutput, error) {
	v := s.store.View()
	c, err := s.changeSet(v, *in.ChangeSetName, in.StackName)
	if err != nil {
		return nil, err
	}
	list := listing("DescribeChangeSet "+c.ID, 100)
	changes, next, err := account.Sorted(list, numbered(c.Changes), nil, in.NextToken, func(n numberedChange) string { return n.key })
	if err != nil {
		return nil, err
	}
	out := &cloudformation.DescribeChangeSetOutput{
		ChangeSetId:             &c.ID,
		ChangeSetName:           &c.Name,
		StackId:                 &c.Stack,
		StackName:               v.Stacks.Get(c.Stack).StackName,
		Status:                  c.Status,
		StatusReason:            optional(c.Reason),
		ExecutionStatus:         c.ExecutionStatus,
		CreationTime:            &c.Created,
		Description:             optional(c.Description),
		Capabilities:            append([]types.Capability{}, c.Source.Capabilities...),
		NotificationARNs:        append([]string{}, c.Source.NotificationARNs...),
		Parameters:              c.Source.Parameters,
		Tags:                    c.Source.Tags,
		OnStackFailure:          c.OnFailure,
		IncludeNestedStacks:     &c.IncludesNested,
		ImportExistingResources: &c.ImportsExisting,
		ParentChangeSetId:       optional(c.Parent),
		RootChangeSetId:         optional(c.Root),
		RollbackConfiguration:   cmp.Or(c.Rollback, &types.RollbackConfiguration{}),
		Changes:                 []types.Change{},
		NextToken:               next,
	}
	for _, n := range changes {
		out.Changes = append(out.Changes, withValues(n.Change, aws.ToBool(in.IncludePropertyValues)))
	}
	return out, nil
}

// numberedChange is a change with a key by which its list is paged.
type numberedChange struct {
	types.Change
	key string
}

func numbered(changes []types.Change) (out []numberedChange) {
	for _, c := range changes {
		out = append(out, numberedChange{c, *c.ResourceChange.LogicalResourceId})
	}
	account.SortBy(out, func(c numberedChange) string { return c.key })
	return out
}

// ListChangeSets lists a stack's change sets.
func (s *Service) ListChangeSets(_ context.Context, in *cloudformation.ListChangeSetsInput) (*cloudformation.ListChangeSetsOutput, error) {
	v := s.store.View()
	stack, err := live(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	rows := slices.Collect(v.ChangeSets.By(state.ChangeSetsByStack, *stack.StackId))
	list := listing("ListChangeSets "+*stack.StackId, 100)
	page, next, err := account.Sorted(list, rows, nil, in.NextToken, func(c *state.ChangeSet) string { return c.ID })
	if err != nil {
		return nil, err
	}
	out := &cloudformation.ListChangeSetsOutput{Summaries: []types.ChangeSetSummary{}, NextToken: next}
	for _, c := range page {
		out.Summaries = append(out.Summaries, types.ChangeSetSummary{
			ChangeSetId:             &c.ID,
			ChangeSetName:           &c.Name,
			StackId:                 stack.StackId,
			StackName:               stack.StackName,
			Status:                  c.Status,
			StatusReason:            optional(c.Reason),
			ExecutionStatus:         c.ExecutionStatus,
			CreationTime:            &c.Created,
			Description:             optional(c.Description),
			IncludeNestedStacks:     &c.IncludesNested,
			ImportExistingResources: &c.ImportsExisting,
			ParentChangeSetId:       optional(c.Parent),
			RootChangeSetId:         optional(c.Root),
		})
	}
	return out, nil
}

// DeleteChangeSet deletes a change set. That there is none is success.
func (s *Service) DeleteChangeSet(
	ctx context.Context, in *cloudformation.DeleteChangeSetInput,
) (*cloudformation.DeleteChangeSetOutput, error) {
	out := &cloudformation.DeleteChangeSetOutput{}
	c, err := findChangeSet(s.store.View(), *in.ChangeSetName, in.StackName)
	if err != nil || c == nil {
		return out, err
	}
	if c.Root != "" {
		return nil, notAlone(c, "deleted")
	}
	return out, s.store.Update(ctx, func(tx *state.Tx) error {
		s.loop.Drop(tx, c)
		return nil
	})
}

// ExecuteChangeSet begins to make what a change set has found. The stack's other change sets are over with that. The one that is executed
// can still be described, and says how that ended, until the stack's next update. Another one may have its name then.
func (s *Service) ExecuteChangeSet(
	ctx context.Context, in *cloudformation.ExecuteChangeSetInput,
) (*cloudformation.ExecuteChangeSetOutput, error) {
	v := s.store.View()
	c, err := s.changeSet(v, *in.ChangeSetName, in.StackName)
	if err != nil {
		return nil, err
	}
	if isAgain, err := repeats(v.Stacks.Get(c.Stack), "ExecuteChangeSet", in.ClientRequestToken); isAgain || err != nil {
		return &cloudformation.ExecuteChangeSetOutput{}, err
	}
	if c.Root != "" {
		return nil, notAlone(c, "executed")
	}
	if err := available(c); err != nil {
		return nil, err
	}
	stack, err := live(v, c.Stack)
	if err != nil {
		return nil, err
	}
	if err := executable(stack, c, in); err != nil {
		return nil, err
	}
	if err := hasNested(v, &c.Source); err != nil {
		return nil, err
	}
	if ctx, err = s.asRole(ctx, optional(c.RoleARN), stack); err != nil {
		return nil, err
	}
	return &cloudformation.ExecuteChangeSetOutput{}, s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
		status := types.StackStatusUpdateInProgress
		if stack.InReview() {
			status = types.StackStatusCreateInProgress
		}
		if c.Type == types.ChangeSetTypeImport {
			status = types.StackStatusImportInProgress
		}
		stack.LastUpdatedTime = new(s.opts.Account.Now())
		stack.Target = &c.Source
		s.executing(tx, stack, c)
		stack.DisableRollback = in.DisableRollback
		stack.RetainExceptOnCreate = aws.ToBool(in.RetainExceptOnCreate)
		stack.RollbackConfiguration = c.Rollback
		stack.PolicyDuring, stack.PolicyNext = "", ""
		stack.Tokened("ExecuteChangeSet", aws.ToString(in.ClientRequestToken))
		onFailure(stack, c.OnFailure)
		if c.RoleARN != "" {
			stack.RoleARN = &c.RoleARN
		}
		s.begin(ctx, tx, stack, status)
	})
}

// available refuses the execution of a change set that has failed, was executed already, or isn't about the stack as it is by now.
func available(c *state.ChangeSet) error {
	switch {
	case c.ExecutionStatus == types.ExecutionStatusAvailable:
		return nil
	case c.Status != types.ChangeSetStatusCreateComplete:
		return &types.InvalidChangeSetStatusException{Message: account.Message(
			"ChangeSet [%s] cannot be executed in its current status of [%s]", c.ID, c.Status)}
	}
	return &types.InvalidChangeSetStatusException{Message: account.Message(
		"ChangeSet [%s] cannot be executed in its current execution status of [%s]", c.ID, c.ExecutionStatus)}
}

// pass settles what becomes of a stack's change sets with its update, which the planned one, if there is one, has planned.
func (s *Service) pass(tx *state.Tx, stack *state.Stack, planned *state.ChangeSet) {
	if planned != nil {
		s.executing(tx, stack, planned)
		return
	}
	forgetExecuted(tx, stack)
	outdate(tx, stack)
}

// outdate notes on a stack's change sets that they are about another one than the stack becomes. See ExecutionStatus of API_DescribeChangeSet.
func outdate(tx *state.Tx, stack *state.Stack) {
	for c := range tx.ChangeSets.By(state.ChangeSetsByStack, *stack.StackId) {
		if c.ExecutionStatus == types.ExecutionStatusAvailable {
			obsolete := *c
			obsolete.ExecutionStatus = types.ExecutionStatusObsolete
			tx.ChangeSets.Put(&obsolete)
		}
	}
}

// executable refuses the execution of a change set that can't be executed now, or not so.
func executable(stack *state.Stack, c *state.ChangeSet, in *cloudformation.ExecuteChangeSetInput) error {
	switch {
	case in.DisableRollback != nil && c.OnFailure != "":
		return invalid("You cannot specify both DisableRollback and OnStackFailure.")
	case stack.InReview():
		return nil
	}
	keepsFailures := aws.ToBool(in.DisableRollback) || c.OnFailure == types.OnStackFailureDoNothing
	return updatable(stack, &keepsFailures, "execute-change-set")
}

// executing notes that a stack's change set is being executed. The stack's others are over with that.
func (s *Service) executing(tx *state.Tx, stack *state.Stack, c *state.ChangeSet) {
	forgetExecuted(tx, stack)
	for other := range tx.ChangeSets.By(state.ChangeSetsByStack, c.Stack) {
		if other.ID != c.ID {
			s.loop.Drop(tx, other)
		}
	}
	executed := *c
	executed.ExecutionStatus = types.ExecutionStatusExecuteInProgress
	tx.ChangeSets.Put(&executed)
	stack.ChangeSetId = &executed.ID
}

// forgetExecuted deletes the change set that was executed before the stack's next operation.
func forgetExecuted(tx *state.Tx, stack *state.Stack) {
	if stack.ChangeSetId != nil {
		tx.ChangeSets.Delete(*stack.ChangeSetId)
		stack.ChangeSetId = nil
	}
}

// onFailure sets what becomes of a stack that can't be made as a change set says.
func onFailure(stack *state.Stack, say types.OnStackFailure) {
	switch say {
	case types.OnStackFailureDelete:
		stack.OnFailure = types.OnFailureDelete
	case types.OnStackFailureDoNothing:
		stack.OnFailure = types.OnFailureDoNothing
		stack.DisableRollback = aws.Bool(true)
	case types.OnStackFailureRollback:
		stack.OnFailure = types.OnFailureRollback
	}
}

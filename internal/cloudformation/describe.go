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
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/state"
)

// listing describes the pages of a list.
func listing(kind string, most int) account.List {
	return account.List{
		Kind:     "cloudformation:" + kind,
		Most:     most,
		BadLimit: func(int) error { return invalid("Invalid number of results.") },
		BadToken: func() error { return invalid("Invalid NextToken.") },
	}
}

// DescribeStacks describes a stack, or all that aren't deleted.
func (s *Service) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput) (*cloudformation.DescribeStacksOutput, error) {
	v := s.store.View()
	pages := listing("DescribeStacks", 100)
	if in.StackName != nil && *in.StackName != "" {
		if _, _, err := pages.Start(nil, in.NextToken); err != nil {
			return nil, err
		}
		stack, err := known(v, *in.StackName)
		if err != nil {
			return nil, err
		}
		return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{described(v, stack)}}, nil
	}
	rows := byName(v, func(stack *state.Stack) bool { return !stack.Gone() })
	page, next, err := account.Sorted(pages, rows, nil, in.NextToken, idOf)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{}, NextToken: next}
	for _, stack := range page {
		out.Stacks = append(out.Stacks, described(v, stack))
	}
	return out, nil
}

// known returns a stack, also one that was deleted if that is named by its ID.
func known(v *state.View, nameOrID string) (*state.Stack, error) {
	if stack := find(v, nameOrID); stack != nil {
		return stack, nil
	}
	return nil, invalid("Stack with id %s does not exist", nameOrID)
}

func idOf(stack *state.Stack) string { return *stack.StackId }

// byName returns the stacks that are wanted, sorted by their IDs, which begin with their names.
func byName(v *state.View, wanted func(*state.Stack) bool) (rows []*state.Stack) {
	for stack := range v.Stacks.All() {
		if wanted(stack) {
			rows = append(rows, stack)
		}
	}
	return rows
}

// described returns a stack as it's shown.
func described(v *state.View, stack *state.Stack) types.Stack {
	out := stack.Stack
	src := stack.Latest()
	if stack.Target != nil && (stack.StackStatus == types.StackStatusUpdateInProgress || stack.StackStatus == types.StackStatusImportInProgress) {
		src = stack.Target
	}
	out.Tags, out.NotificationARNs, out.Parameters = []types.Tag{}, []string{}, nil
	if src != nil {
		out.Tags, out.NotificationARNs = append(out.Tags, src.Tags...), append(out.NotificationARNs, src.NotificationARNs...)
		out.Parameters, out.Capabilities, out.Description = src.Parameters, src.Capabilities, optional(src.Description)
	}
	out.DisableRollback = aws.Bool(aws.ToBool(stack.DisableRollback) || stack.OnFailure == types.OnFailureDoNothing)
	out.EnableTerminationProtection = aws.Bool(aws.ToBool(stack.EnableTerminationProtection))
	out.DriftInformation = stackDrift(v, *stack.StackId)
	if out.RollbackConfiguration == nil {
		out.RollbackConfiguration = &types.RollbackConfiguration{}
	}
	return out
}

// ListStacks lists stacks, those too that were deleted in the last ninety days.
func (s *Service) ListStacks(_ context.Context, in *cloudformation.ListStacksInput) (*cloudformation.ListStacksOutput, error) {
	v := s.store.View()
	rows := byName(v, func(stack *state.Stack) bool {
		return len(in.StackStatusFilter) == 0 || slices.Contains(in.StackStatusFilter, stack.StackStatus)
	})
	page, next, err := account.Sorted(listing("ListStacks", 100), rows, nil, in.NextToken, idOf)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.ListStacksOutput{StackSummaries: []types.StackSummary{}, NextToken: next}
	for _, stack := range page {
		shown := described(v, stack)
		out.StackSummaries = append(out.StackSummaries, types.StackSummary{
			StackId:             shown.StackId,
			StackName:           shown.StackName,
			ParentId:            shown.ParentId,
			RootId:              shown.RootId,
			StackStatus:         shown.StackStatus,
			StackStatusReason:   shown.StackStatusReason,
			CreationTime:        shown.CreationTime,
			LastUpdatedTime:     shown.LastUpdatedTime,
			DeletionTime:        shown.DeletionTime,
			TemplateDescription: shown.Description,
			DriftInformation:    stackDriftSummary(v, *stack.StackId),
		})
	}
	return out, nil
}

// DescribeStackEvents lists what happened to a stack, the latest first.
func (s *Service) DescribeStackEvents(
	_ context.Context, in *cloudformation.DescribeStackEventsInput,
) (*cloudformation.DescribeStackEventsOutput, error) {
	v := s.store.View()
	stack := find(v, *in.StackName)
	if stack == nil {
		return nil, invalid("Stack [%s] does not exist", *in.StackName)
	}
	rows := slices.Collect(v.EventsOf(*stack.StackId))
	list := listing("DescribeStackEvents "+*stack.StackId, 100)
	page, next, err := account.Sorted(list, rows, nil, in.NextToken, (*state.StackEvent).Key)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.DescribeStackEventsOutput{StackEvents: []types.StackEvent{}, NextToken: next}
	for _, e := range page {
		out.StackEvents = append(out.StackEvents, e.StackEvent)
	}
	return out, nil
}

// resourcesOf returns the resources of a stack that it has, or had when it was deleted, by their names.
func resourcesOf(v *state.View, stack *state.Stack) (rows []*state.StackResource) {
	for r := range v.ResourcesOf(*stack.StackId) {
		gone := r.Status == types.ResourceStatusDeleteComplete
		if !r.Superseded && (!gone || stack.Gone() || !isUpdatable(stack)) {
			rows = append(rows, r)
		}
	}
	return rows
}

// DescribeStackResource describes a resource of a stack.
func (s *Service) DescribeStackResource(
	_ context.Context, in *cloudformation.DescribeStackResourceInput,
) (*cloudformation.DescribeStackResourceOutput, error) {
	v := s.store.View()
	stack := find(v, *in.StackName)
	if stack == nil {
		return nil, invalid("Stack '%s' does not exist", *in.StackName)
	}
	for _, r := range resourcesOf(v, stack) {
		if r.Name != *in.LogicalResourceId {
			continue
		}
		return &cloudformation.DescribeStackResourceOutput{StackResourceDetail: &types.StackResourceDetail{
			StackId:              stack.StackId,
			StackName:            stack.StackName,
			LogicalResourceId:    &r.Name,
			PhysicalResourceId:   &r.PhysicalID,
			ResourceType:         &r.Type,
			ResourceStatus:       r.Status,
			ResourceStatusReason: optional(r.Reason),
			LastUpdatedTimestamp: &r.At,
			Metadata:             aws.String(cmp.Or(r.Metadata, "{}")),
			DriftInformation:     resourceDrift(v, r),
		}}, nil
	}
	return nil, invalid("Resource %s does not exist for stack %s", *in.LogicalResourceId, *in.StackName)
}

// DescribeStackResources describes a stack's resources, at most a hundred.
func (s *Service) DescribeStackResources(
	_ context.Context, in *cloudformation.DescribeStackResourcesInput,
) (*cloudformation.DescribeStackResourcesOutput, error) {
	v := s.store.View()
	stack, err := asked(v, in.StackName, in.PhysicalResourceId)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.DescribeStackResourcesOutput{StackResources: []types.StackResource{}}
	for _, r := range resourcesOf(v, stack) {
		if in.LogicalResourceId != nil && *in.LogicalResourceId != r.Name || len(out.StackResources) == 100 {
			continue
		}
		out.StackResources = append(out.StackResources, types.StackResource{
			StackId:              stack.StackId,
			StackName:            stack.StackName,
			LogicalResourceId:    &r.Name,
			PhysicalResourceId:   &r.PhysicalID,
			ResourceType:         &r.Type,
			ResourceStatus:       r.Status,
			ResourceStatusReason: optional(r.Reason),
			Timestamp:            &r.At,
			DriftInformation:     resourceDrift(v, r),
		})
	}
	return out, nil
}

// asked returns the stack that a call names, or the one that has a resource.
func asked(v *state.View, name, physicalID *string) (*state.Stack, error) {
	switch {
	case name != nil && physicalID != nil:
		return nil, invalid("You cannot specify both StackName and PhysicalResourceId")
	case name != nil:
		return known(v, *name)
	case physicalID == nil:
		return nil, invalid("Either StackName or PhysicalResourceId must be specified")
	}
	for r := range v.StackResources.All() {
		if r.PhysicalID == *physicalID && !r.Superseded {
			if stack := v.Stacks.Get(r.Stack); stack != nil && !stack.Gone() {
				return stack, nil
			}
		}
	}
	return nil, invalid("Stack for %s does not exist", *physicalID)
}

// ListStackResources lists a stack's resources.
func (s *Service) ListStackResources(
	_ context.Context, in *cloudformation.ListStackResourcesInput,
) (*cloudformation.ListStackResourcesOutput, error) {
	v := s.store.View()
	stack, err := known(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	list := listing("ListStackResources "+*stack.StackId, 100)
	page, next, err := account.Sorted(list, resourcesOf(v, stack), nil, in.NextToken, (*state.StackResource).Key)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.ListStackResourcesOutput{StackResourceSummaries: []types.StackResourceSummary{}, NextToken: next}
	for _, r := range page {
		out.StackResourceSummaries = append(out.StackResourceSummaries, types.StackResourceSummary{
			LogicalResourceId:    &r.Name,
			PhysicalResourceId:   &r.PhysicalID,
			ResourceType:         &r.Type,
			ResourceStatus:       r.Status,
			ResourceStatusReason: optional(r.Reason),
			LastUpdatedTimestamp: &r.At,
			DriftInformation:     resourceDriftSummary(v, r),
		})
	}
	return out, nil
}

// GetTemplate returns the template of a stack, or of a change set: after its transform, unless it's asked for as it was sent.
func (s *Service) GetTemplate(ctx context.Context, in *cloudformation.GetTemplateInput) (*cloudformation.GetTemplateOutput, error) {
	v := s.store.View()
	stack, src, err := s.sourceAsked(v, in)
	if err != nil {
		return nil, err
	}
	text := src.Template
	if in.TemplateStage != types.TemplateStageOriginal && text != "" {
		if text, err = s.loop.Processed(ctx, v, stack, src); err != nil {
			return nil, refused(err)
		}
	}
	stages := []types.TemplateStage{types.TemplateStageOriginal, types.TemplateStageProcessed}
	return &cloudformation.GetTemplateOutput{TemplateBody: &text, StagesAvailable: stages}, nil
}

// sourceAsked returns the source that a call is about, and its stack.
func (s *Service) sourceAsked(v *state.View, in *cloudformation.GetTemplateInput) (*state.Stack, *state.StackSource, error) {
	if in.ChangeSetName != nil {
		if in.StackName == nil && !strings.HasPrefix(*in.ChangeSetName, "arn:") {
			return nil, nil, invalid("StackName is a required parameter.")
		}
		c, err := s.changeSet(v, *in.ChangeSetName, in.StackName)
		if err != nil {
			return nil, nil, err
		}
		return v.Stacks.Get(c.Stack), &c.Source, nil
	}
	if in.StackName == nil {
		return nil, nil, invalid("StackName is required if ChangeSetName is not specified.")
	}
	stack, err := known(v, *in.StackName)
	switch {
	case err != nil:
		return nil, nil, err
	case stack.Latest() != nil:
		return stack, stack.Latest(), nil
	}
	return stack, &state.StackSource{}, nil // a stack that has change sets alone has an empty template
}

// templateOf returns the template that a stack was made from, or is being made from for the first time.
func templateOf(v *state.View, name string) (*string, error) {
	stack, err := known(v, name)
	switch {
	case err != nil:
		return nil, err
	case stack.Latest() != nil:
		return &stack.Latest().Template, nil
	}
	return nil, invalid("Stack with id %s does not exist", name)
}

// ListExports lists what stacks export.
func (s *Service) ListExports(_ context.Context, in *cloudformation.ListExportsInput) (*cloudformation.ListExportsOutput, error) {
	var exports []types.Export
	for stack := range s.store.View().Stacks.All() {
		if stack.Gone() {
			continue
		}
		for i := range stack.Outputs {
			if o := &stack.Outputs[i]; o.ExportName != nil {
				exports = append(exports, types.Export{ExportingStackId: stack.StackId, Name: o.ExportName, Value: o.OutputValue})
			}
		}
	}
	account.SortBy(exports, func(e types.Export) string { return *e.Name })
	page, next, err := account.Sorted(listing("ListExports", 100), exports, nil, in.NextToken, func(e types.Export) string { return *e.Name })
	if err != nil {
		return nil, err
	}
	return &cloudformation.ListExportsOutput{Exports: append([]types.Export{}, page...), NextToken: next}, nil
}

// ListImports lists the stacks that import an export.
func (s *Service) ListImports(_ context.Context, in *cloudformation.ListImportsInput) (*cloudformation.ListImportsOutput, error) {
	if _, _, err := listing("ListImports", 100).Start(nil, in.NextToken); err != nil { // they are one page
		return nil, err
	}
	v := s.store.View()
	if stack, _ := stacks.Export(v, *in.ExportName); stack == nil {
		return nil, invalid("Export '%s' does not exist.", *in.ExportName)
	}
	users := stacks.Importers(v, *in.ExportName)
	if len(users) == 0 {
		return nil, invalid("Export '%s' is not imported by any stack.", *in.ExportName)
	}
	return &cloudformation.ListImportsOutput{Imports: users}, nil
}

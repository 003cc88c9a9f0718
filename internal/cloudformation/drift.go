package cloudformation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// DetectStackDrift looks for drift in a stack. Clients wait for it, though it's done before the call answers.
func (s *Service) DetectStackDrift(
	ctx context.Context, in *cloudformation.DetectStackDriftInput,
) (*cloudformation.DetectStackDriftOutput, error) {
	v := s.store.View()
	stack, err := comparable(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	rows := stacks.Stands(v, *stack.StackId)
	for _, name := range in.LogicalResourceIds {
		if !slices.ContainsFunc(rows, func(r *state.StackResource) bool { return r.Name == name }) {
			return nil, invalid("Resource %s does not exist for stack %s", name, *stack.StackName)
		}
	}
	if len(in.LogicalResourceIds) > 0 {
		rows = slices.DeleteFunc(rows, func(r *state.StackResource) bool { return !slices.Contains(in.LogicalResourceIds, r.Name) })
	}
	found, err := s.loop.CheckDrift(ctx, stack, rows)
	if err != nil {
		return nil, refused(err)
	}
	detection := &state.DriftDetection{ID: state.NewUUID(), Stack: *stack.StackId, At: s.opts.Account.Now()}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		noteDrift(tx, found)
		concluded(tx.View, detection, found)
		forgetDetections(tx, detection.Stack)
		tx.DriftDetections.Put(detection)
		return nil
	})
	return &cloudformation.DetectStackDriftOutput{StackDriftDetectionId: &detection.ID}, err
}

// comparable returns a stack in which drift can be looked for: one that isn't being changed.
func comparable(v *state.View, name string) (*state.Stack, error) {
	stack, err := live(v, name)
	if err != nil {
		return nil, err
	}
	if stack.Busy() || stack.InReview() || stack.Source == nil {
		return nil, invalid("Drift detection can't be performed on stack [%s] in its current status of [%s]", *stack.StackName, stack.StackStatus)
	}
	return stack, nil
}

// noteDrift keeps what a search found.
func noteDrift(tx *state.Tx, found []*state.ResourceDrift) {
	for _, d := range found {
		if tx.Stacks.Get(d.Stack) != nil {
			tx.ResourceDrifts.Put(d)
		}
	}
}

// concluded says what a search found of the whole stack. Resources that it left out count as they were found before.
func concluded(v *state.View, d *state.DriftDetection, found []*state.ResourceDrift) {
	var unknown []string
	for _, r := range found {
		if r.Status == types.StackResourceDriftStatusUnknown {
			unknown = append(unknown, r.Name)
		}
	}
	d.Status, d.Drift = types.StackDriftDetectionStatusDetectionComplete, types.StackDriftStatusInSync
	if len(unknown) > 0 {
		d.Status, d.Drift = types.StackDriftDetectionStatusDetectionFailed, types.StackDriftStatusUnknown
		d.Reason = "Failed to detect drift on resource [" + strings.Join(unknown, ", ") + "]"
	}
	for _, r := range stacks.Stands(v, d.Stack) {
		if was := v.DriftOf(r); was != nil && hasDrifted(was) {
			d.Drifted++
		}
	}
	if d.Drifted > 0 {
		d.Drift = types.StackDriftStatusDrifted
	}
}

func hasDrifted(d *state.ResourceDrift) bool {
	return d.Status == types.StackResourceDriftStatusModified || d.Status == types.StackResourceDriftStatusDeleted
}

// forgetDetections makes room for another search.
func forgetDetections(tx *state.Tx, stack string) {
	all := slices.Collect(tx.DriftDetections.By(state.DetectionsByStack, stack))
	slices.SortFunc(all, func(a, b *state.DriftDetection) int { return a.At.Compare(b.At) })
	for len(all) >= state.MaxDetections {
		tx.DriftDetections.Delete(all[0].ID)
		all = all[1:]
	}
}

// DetectStackResourceDrift looks for drift in one resource.
func (s *Service) DetectStackResourceDrift(
	ctx context.Context, in *cloudformation.DetectStackResourceDriftInput,
) (*cloudformation.DetectStackResourceDriftOutput, error) {
	v := s.store.View()
	stack, err := comparable(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	for _, r := range stacks.Stands(v, *stack.StackId) {
		if r.Name != *in.LogicalResourceId {
			continue
		}
		if kind := resources.Lookup(r.Type); kind == nil || !kind.IsReadable() {
			return nil, invalid("Resource type %s does not support drift detection", r.Type)
		}
		found, err := s.loop.CheckDrift(ctx, stack, []*state.StackResource{r})
		if err != nil {
			return nil, refused(err)
		}
		if err := s.store.Update(ctx, func(tx *state.Tx) error { noteDrift(tx, found); return nil }); err != nil {
			return nil, err
		}
		drift, err := s.drift(v, r, found[0])
		return &cloudformation.DetectStackResourceDriftOutput{StackResourceDrift: &drift}, err
	}
	return nil, invalid("Resource %s does not exist for stack %s", *in.LogicalResourceId, *in.StackName)
}

// drift returns what was found of a resource as it's shown.
func (s *Service) drift(v *state.View, r *state.StackResource, d *state.ResourceDrift) (types.StackResourceDrift, error) {
	out := types.StackResourceDrift{
		StackId:                  &r.Stack,
		LogicalResourceId:        &r.Name,
		PhysicalResourceId:       &r.PhysicalID,
		ResourceType:             &r.Type,
		StackResourceDriftStatus: d.Status,
		Timestamp:                &d.At,
	}
	if d.Found == nil {
		return out, nil
	}
	found, err := s.loop.FoundOf(d)
	if err != nil {
		return out, err
	}
	out.ExpectedProperties = new(asText(found.Expected))
	if d.Status == types.StackResourceDriftStatusDeleted {
		return out, nil
	}
	out.ActualProperties = new(asText(found.Actual))
	out.PropertyDifferences = []types.PropertyDifference{}
	for _, one := range found.Differences {
		out.PropertyDifferences = append(out.PropertyDifferences, types.PropertyDifference{
			PropertyPath:   &one.Path,
			ExpectedValue:  new(asText(one.Expected)),
			ActualValue:    new(asText(one.Actual)),
			DifferenceType: one.Type,
		})
	}
	return out, nil
}

// asText returns a value as AWS shows it in text: what isn't a number, a Boolean or text itself is JSON.
func asText(v any) string {
	if text, is := template.Text(v); is {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "" // it came from JSON
	}
	return string(text)
}

// DescribeStackDriftDetectionStatus tells how a search for drift went.
func (s *Service) DescribeStackDriftDetectionStatus(
	_ context.Context, in *cloudformation.DescribeStackDriftDetectionStatusInput,
) (*cloudformation.DescribeStackDriftDetectionStatusOutput, error) {
	d := s.store.View().DriftDetections.Get(*in.StackDriftDetectionId)
	if d == nil {
		return nil, invalid("Drift detection with id %s does not exist", *in.StackDriftDetectionId)
	}
	return &cloudformation.DescribeStackDriftDetectionStatusOutput{
		StackDriftDetectionId:     &d.ID,
		StackId:                   &d.Stack,
		DetectionStatus:           d.Status,
		DetectionStatusReason:     optional(d.Reason),
		DriftedStackResourceCount: &d.Drifted,
		StackDriftStatus:          d.Drift,
		Timestamp:                 &d.At,
	}, nil
}

// DescribeStackResourceDrifts lists what the last searches found of a stack's resources. Those that were never checked, and those of types
// that can't be, aren't in it.
func (s *Service) DescribeStackResourceDrifts(
	_ context.Context, in *cloudformation.DescribeStackResourceDriftsInput,
) (*cloudformation.DescribeStackResourceDriftsOutput, error) {
	v := s.store.View()
	stack, err := known(v, *in.StackName)
	if err != nil {
		return nil, err
	}
	var rows []*state.StackResource
	for _, r := range stacks.Stands(v, *stack.StackId) {
		d := v.DriftOf(r)
		if d == nil || d.Status == types.StackResourceDriftStatusNotChecked {
			continue
		}
		if f := in.StackResourceDriftStatusFilters; len(f) == 0 || slices.Contains(f, d.Status) {
			rows = append(rows, r)
		}
	}
	list := listing("DescribeStackResourceDrifts "+*stack.StackId, 100)
	page, next, err := account.Sorted(list, rows, in.MaxResults, in.NextToken, (*state.StackResource).Key)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.DescribeStackResourceDriftsOutput{StackResourceDrifts: []types.StackResourceDrift{}, NextToken: next}
	for _, r := range page {
		drift, err := s.drift(v, r, v.DriftOf(r))
		if err != nil {
			return nil, err
		}
		out.StackResourceDrifts = append(out.StackResourceDrifts, drift)
	}
	return out, nil
}

// stackDrift returns what is known of a stack's drift.
func stackDrift(v *state.View, stack string) *types.StackDriftInformation {
	d := v.LastDetection(stack)
	if d == nil {
		return &types.StackDriftInformation{StackDriftStatus: types.StackDriftStatusNotChecked}
	}
	return &types.StackDriftInformation{StackDriftStatus: d.Drift, LastCheckTimestamp: &d.At}
}

// stackDriftSummary is stackDrift in lists.
func stackDriftSummary(v *state.View, stack string) *types.StackDriftInformationSummary {
	d := stackDrift(v, stack)
	return &types.StackDriftInformationSummary{StackDriftStatus: d.StackDriftStatus, LastCheckTimestamp: d.LastCheckTimestamp}
}

// resourceDrift returns what is known of a resource's drift.
func resourceDrift(v *state.View, r *state.StackResource) *types.StackResourceDriftInformation {
	d := v.DriftOf(r)
	if d == nil || d.Status == types.StackResourceDriftStatusNotChecked {
		return &types.StackResourceDriftInformation{StackResourceDriftStatus: types.StackResourceDriftStatusNotChecked}
	}
	return &types.StackResourceDriftInformation{StackResourceDriftStatus: d.Status, LastCheckTimestamp: aws.Time(d.At)}
}

// resourceDriftSummary is resourceDrift in lists.
func resourceDriftSummary(v *state.View, r *state.StackResource) *types.StackResourceDriftInformationSummary {
	d := resourceDrift(v, r)
	return &types.StackResourceDriftInformationSummary{
		StackResourceDriftStatus: d.StackResourceDriftStatus,
		LastCheckTimestamp:       d.LastCheckTimestamp,
	}
}

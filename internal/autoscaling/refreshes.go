package autoscaling

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// The defaults of RefreshPreferences.
const (
	minHealthy = 90
	maxHealthy = 100
)

// StartInstanceRefresh starts replacing a group's instances, a few at a time. The loop does the work.
func (s *Service) StartInstanceRefresh(ctx context.Context, in *api.StartInstanceRefreshInput) (*api.StartInstanceRefreshOutput, error) {
	if in.Strategy != "" && in.Strategy != types.RefreshStrategyRolling {
		return nil, invalid("Strategy must be Rolling, not %q", in.Strategy)
	}
	if in.DesiredConfiguration != nil {
		return nil, invalid("DesiredConfiguration: update the group first. " +
			"Pintle's refreshes give instances the group's own configuration.")
	}
	p, err := preferences(in.Preferences)
	if err != nil {
		return nil, err
	}
	now := s.now()
	r := &state.GroupRefresh{Since: now, InstanceRefresh: types.InstanceRefresh{
		InstanceRefreshId:    new(uuid.Must(uuid.NewV7()).String()),
		AutoScalingGroupName: in.AutoScalingGroupName,
		Status:               types.InstanceRefreshStatusPending,
		StartTime:            &now,
		PercentageComplete:   aws.Int32(0),
		Preferences:          p,
		Strategy:             types.RefreshStrategyRolling,
	}}
	err = s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		if tx.ActiveRefresh(g.Name()) != nil {
			return &types.InstanceRefreshInProgressFault{
				Message: new("An Instance Refresh is already in progress and blocks the execution of this Instance Refresh."),
			}
		}
		r.Of = int32(len(tx.ActiveMembers(g.Name())))
		r.InstancesToUpdate = new(r.Of)
		tx.GroupRefreshes.Put(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.StartInstanceRefreshOutput{InstanceRefreshId: r.InstanceRefreshId}, nil
}

// preferences checks the preferences of a refresh, and fills in the defaults.
func preferences(given *types.RefreshPreferences) (*types.RefreshPreferences, error) {
	p := types.RefreshPreferences{}
	if given != nil {
		p = *given
	}
	err := unsupported(
		member{"CheckpointPercentages", len(p.CheckpointPercentages) > 0},
		member{"CheckpointDelay", aws.ToInt32(p.CheckpointDelay) != 0},
		member{"AutoRollback", aws.ToBool(p.AutoRollback)},
		member{"AlarmSpecification", p.AlarmSpecification != nil && len(p.AlarmSpecification.Alarms) > 0},
		member{"BakeTime", aws.ToInt32(p.BakeTime) != 0},
	)
	if err != nil {
		return nil, err
	}
	if p.MaxHealthyPercentage != nil && p.MinHealthyPercentage == nil {
		return nil, invalid("MinHealthyPercentage must be given with MaxHealthyPercentage")
	}
	p.MinHealthyPercentage = cmp.Or(p.MinHealthyPercentage, aws.Int32(minHealthy))
	p.MaxHealthyPercentage = cmp.Or(p.MaxHealthyPercentage, aws.Int32(maxHealthy))
	p.SkipMatching = new(aws.ToBool(p.SkipMatching))
	p.StandbyInstances = cmp.Or(p.StandbyInstances, types.StandbyInstancesWait)
	p.ScaleInProtectedInstances = cmp.Or(p.ScaleInProtectedInstances, types.ScaleInProtectedInstancesWait)
	low, high := *p.MinHealthyPercentage, *p.MaxHealthyPercentage
	switch {
	case low < 0 || low > 100:
		return nil, invalid("MinHealthyPercentage must be between 0 and 100, not %d", low)
	case high < 100 || high > 200:
		return nil, invalid("MaxHealthyPercentage must be between 100 and 200, not %d", high)
	case high-low > 100:
		return nil, invalid("MaxHealthyPercentage %d must not be more than 100 above MinHealthyPercentage %d", high, low)
	case aws.ToInt32(p.InstanceWarmup) < 0:
		return nil, invalid("InstanceWarmup must not be negative, but is %d", *p.InstanceWarmup)
	case !slices.Contains(p.StandbyInstances.Values(), p.StandbyInstances):
		return nil, invalid("StandbyInstances must be Terminate, Ignore or Wait, not %q", p.StandbyInstances)
	case !slices.Contains(p.ScaleInProtectedInstances.Values(), p.ScaleInProtectedInstances):
		return nil, invalid("ScaleInProtectedInstances must be Refresh, Ignore or Wait, not %q", p.ScaleInProtectedInstances)
	}
	return &p, nil
}

// CancelInstanceRefresh ends a refresh. Instances that it has replaced stay.
func (s *Service) CancelInstanceRefresh(ctx context.Context, in *api.CancelInstanceRefreshInput) (*api.CancelInstanceRefreshOutput, error) {
	out := &api.CancelInstanceRefreshOutput{}
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		old := tx.ActiveRefresh(g.Name())
		if old == nil {
			return &types.ActiveInstanceRefreshNotFoundFault{
				Message: new("No in progress or pending Instance Refresh found for Auto Scaling group " + g.Name()),
			}
		}
		row := *old
		row.Status = types.InstanceRefreshStatusCancelling
		out.InstanceRefreshId = row.InstanceRefreshId
		tx.GroupRefreshes.Put(&row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DescribeInstanceRefreshes lists a group's refreshes, newest first.
func (s *Service) DescribeInstanceRefreshes(
	_ context.Context, in *api.DescribeInstanceRefreshesInput,
) (*api.DescribeInstanceRefreshesOutput, error) {
	v := s.store.View()
	g, err := findGroup(v, in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	var rows []*state.GroupRefresh
	for r := range v.GroupRefreshes.By(state.GroupRefreshesByGroup, g.Name()) {
		if len(in.InstanceRefreshIds) == 0 || slices.Contains(in.InstanceRefreshIds, r.ID()) {
			rows = append(rows, r)
		}
	}
	slices.Reverse(rows)
	rows, next, err := account.Ordered(listing("DescribeInstanceRefreshes", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.GroupRefresh).ID)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeInstanceRefreshesOutput{InstanceRefreshes: []types.InstanceRefresh{}, NextToken: next}
	for _, row := range rows {
		out.InstanceRefreshes = append(out.InstanceRefreshes, row.InstanceRefresh)
	}
	return out, nil
}

package schedules

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxGroups is the most groups of an account: https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html
const maxGroups = 500

// CreateScheduleGroup makes a group. Another call with its client token returns it.
func (s *Service) CreateScheduleGroup(ctx context.Context, in *scheduler.CreateScheduleGroupInput) (*scheduler.CreateScheduleGroupOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	now := s.now()
	g := &state.ScheduleGroup{
		Name:    *in.Name,
		ARN:     s.groupARN(*in.Name),
		Tags:    in.Tags,
		Token:   aws.ToString(in.ClientToken),
		Created: &now,
		Changed: &now,
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ScheduleGroups.Get(g.Name)
		if old != nil && old.Token != "" && old.Token == g.Token {
			return nil
		}
		if old != nil || g.Name == defaultGroup {
			return refuse(409, "ConflictException", "Schedule group %s already exists.", g.Name)
		}
		if tx.ScheduleGroups.Len() >= maxGroups {
			return refuse(402, "ServiceQuotaExceededException", "There are already %d schedule groups, the maximum.", maxGroups)
		}
		tx.ScheduleGroups.Put(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &scheduler.CreateScheduleGroupOutput{ScheduleGroupArn: &g.ARN}, nil
}

// DeleteScheduleGroup removes a group with its schedules.
func (s *Service) DeleteScheduleGroup(ctx context.Context, in *scheduler.DeleteScheduleGroupInput) (*scheduler.DeleteScheduleGroupOutput, error) {
	if *in.Name == defaultGroup {
		return nil, invalid("Cannot delete the default schedule group.")
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.group(tx.View, *in.Name); err != nil {
			return err
		}
		tx.DeleteScheduleGroup(*in.Name)
		return nil
	})
	return &scheduler.DeleteScheduleGroupOutput{}, err
}

// GetScheduleGroup describes a group.
func (s *Service) GetScheduleGroup(_ context.Context, in *scheduler.GetScheduleGroupInput) (*scheduler.GetScheduleGroupOutput, error) {
	g, err := s.group(s.store.View(), *in.Name)
	if err != nil {
		return nil, err
	}
	return &scheduler.GetScheduleGroupOutput{
		Arn:                  &g.ARN,
		Name:                 &g.Name,
		State:                types.ScheduleGroupStateActive,
		CreationDate:         g.Created,
		LastModificationDate: g.Changed,
	}, nil
}

// ListScheduleGroups lists the groups, the default one too.
func (s *Service) ListScheduleGroups(_ context.Context, in *scheduler.ListScheduleGroupsInput) (*scheduler.ListScheduleGroupsOutput, error) {
	v := s.store.View()
	rows := []*state.ScheduleGroup{}
	if v.ScheduleGroups.Get(defaultGroup) == nil && hasPrefix(defaultGroup, in.NamePrefix) {
		rows = append(rows, &state.ScheduleGroup{Name: defaultGroup, ARN: s.groupARN(defaultGroup)})
	}
	for g := range v.ScheduleGroups.All() {
		if hasPrefix(g.Name, in.NamePrefix) {
			rows = append(rows, g)
		}
	}
	name := func(g *state.ScheduleGroup) string { return g.Name }
	account.SortBy(rows, name)
	page, next, err := account.Sorted(listing("ListScheduleGroups"), rows, in.MaxResults, in.NextToken, name)
	if err != nil {
		return nil, err
	}
	out := &scheduler.ListScheduleGroupsOutput{ScheduleGroups: []types.ScheduleGroupSummary{}, NextToken: next}
	for _, g := range page {
		out.ScheduleGroups = append(out.ScheduleGroups, types.ScheduleGroupSummary{
			Arn:                  &g.ARN,
			Name:                 &g.Name,
			State:                types.ScheduleGroupStateActive,
			CreationDate:         g.Created,
			LastModificationDate: g.Changed,
		})
	}
	return out, nil
}

func tagParts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	if fault := account.CheckTags(account.TagPairs(tags, tagParts), account.MaxTags); fault != nil {
		return invalid("Tags: the key %q is given twice, reserved or too long, its value is too long, or there are more than %d.", fault.Key, account.MaxTags)
	}
	return nil
}

// retag replaces the tags of a group.
func (s *Service) retag(ctx context.Context, arn string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.tagged(tx.View, arn)
		if err != nil {
			return err
		}
		row := *old
		row.Tags = change(old.Tags)
		if err := checkTags(row.Tags); err != nil {
			return err
		}
		tx.ScheduleGroups.Put(&row)
		return nil
	})
}

// tagged returns the group with an ARN. Schedules have no tags.
func (s *Service) tagged(v *state.View, arn string) (*state.ScheduleGroup, error) {
	name, ours := s.opts.ResourceOf("scheduler", "schedule-group/", arn)
	if !ours || strings.Contains(name, "/") {
		return nil, invalid("ResourceArn %s isn't that of a schedule group.", arn)
	}
	return s.group(v, name)
}

// TagResource adds tags to a group, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *scheduler.TagResourceInput) (*scheduler.TagResourceOutput, error) {
	err := s.retag(ctx, *in.ResourceArn, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, tagParts) })
	return &scheduler.TagResourceOutput{}, err
}

// UntagResource removes tags from a group.
func (s *Service) UntagResource(ctx context.Context, in *scheduler.UntagResourceInput) (*scheduler.UntagResourceOutput, error) {
	err := s.retag(ctx, *in.ResourceArn, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, tagParts) })
	return &scheduler.UntagResourceOutput{}, err
}

// ListTagsForResource lists a group's tags.
func (s *Service) ListTagsForResource(_ context.Context, in *scheduler.ListTagsForResourceInput) (*scheduler.ListTagsForResourceOutput, error) {
	g, err := s.tagged(s.store.View(), *in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return &scheduler.ListTagsForResourceOutput{Tags: append([]types.Tag{}, g.Tags...)}, nil
}

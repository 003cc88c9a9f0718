package ec2

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// The EC2 user guide's "Placement groups".
const (
	maxPlacementGroups = 500
	maxPartitions      = 7 // of a group in a zone
)

var placementGroups = kind[state.PlacementGroup]{
	name:   types.ResourceTypePlacementGroup,
	prefix: "pg",
	code:   "InvalidPlacementGroup.Unknown",
	text:   "The Placement Group Id '%s' is unknown",
	table:  func(v *state.View) state.Table[*state.PlacementGroup] { return v.PlacementGroups },
	of:     func(r *state.PlacementGroup) (*string, *[]types.Tag) { return r.GroupId, &r.Tags },
	fields: fields[state.PlacementGroup]{
		"group-arn":    func(r *state.PlacementGroup) []string { return optional(r.GroupArn) },
		"group-name":   func(r *state.PlacementGroup) []string { return optional(r.GroupName) },
		"spread-level": func(r *state.PlacementGroup) []string { return []string{string(r.SpreadLevel)} },
		"state":        func(r *state.PlacementGroup) []string { return []string{string(r.State)} },
		"strategy":     func(r *state.PlacementGroup) []string { return []string{string(r.Strategy)} },
	},
}

// findPlacementGroup returns the group with a name.
func findPlacementGroup(v *state.View, name string) (*state.PlacementGroup, error) {
	for g := range v.PlacementGroups.All() {
		if *g.GroupName == name {
			return g, nil
		}
	}
	return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown", name)
}

// CreatePlacementGroup creates a group. Pintle's instances can't be launched into one yet.
func (s *Service) CreatePlacementGroup(
	ctx context.Context, in *ec2.CreatePlacementGroupInput,
) (*ec2.CreatePlacementGroupOutput, error) {
	if err := checkMembers(in, "GroupName", "PartitionCount", "SpreadLevel", "Strategy", "TagSpecifications"); err != nil {
		return nil, err
	}
	row, err := s.newPlacementGroup(ctx, in)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if other, _ := findPlacementGroup(tx.View, *row.GroupName); other != nil {
			return refuse("InvalidPlacementGroup.Duplicate", "The Placement Group '%s' already exists", *row.GroupName)
		}
		tx.PlacementGroups.Put(row)
		return checkRoom(count(tx.PlacementGroups.All())-1, maxPlacementGroups, "PlacementGroupLimitExceeded", "placement groups")
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreatePlacementGroupOutput{PlacementGroup: &row.PlacementGroup}, nil
}

// newPlacementGroup checks what a call says of a group.
func (s *Service) newPlacementGroup(ctx context.Context, in *ec2.CreatePlacementGroupInput) (*state.PlacementGroup, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypePlacementGroup)
	if err != nil {
		return nil, err
	}
	strategy := cmp.Or(in.Strategy, types.PlacementStrategyCluster)
	partitions := in.PartitionCount
	level := in.SpreadLevel
	switch {
	case aws.ToString(in.GroupName) == "":
		return nil, missing("GroupName")
	case !isGroupText(*in.GroupName):
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter groupName is invalid.", *in.GroupName)
	case !slices.Contains(strategy.Values(), strategy):
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter strategy is invalid.", strategy)
	case strategy != types.PlacementStrategyPartition && partitions != nil:
		return nil, refuse("InvalidParameterCombination", "The parameter PartitionCount is only for the strategy partition")
	case partitions != nil && (*partitions < 1 || *partitions > maxPartitions):
		return nil, refuse("InvalidParameterValue", "Value (%d) for parameter partitionCount is invalid. It must be between 1 and %d.",
			*partitions, maxPartitions)
	case strategy != types.PlacementStrategySpread && level != "":
		return nil, refuse("InvalidParameterCombination", "The parameter SpreadLevel is only for the strategy spread")
	case level != "" && level != types.SpreadLevelRack:
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter spreadLevel is invalid: the region has racks only.", level)
	}
	if strategy == types.PlacementStrategyPartition {
		partitions = cmp.Or(partitions, aws.Int32(2))
	}
	if strategy == types.PlacementStrategySpread {
		level = types.SpreadLevelRack
	}
	return &state.PlacementGroup{PlacementGroup: types.PlacementGroup{
		GroupId:        new(state.NewEC2ID("pg")),
		GroupName:      in.GroupName,
		GroupArn:       new(s.opts.ARN("ec2", "placement-group/"+*in.GroupName)),
		PartitionCount: partitions,
		SpreadLevel:    level,
		State:          types.PlacementGroupStateAvailable,
		Strategy:       strategy,
		Tags:           tags,
	}}, nil
}

// DescribePlacementGroups describes placement groups.
func (s *Service) DescribePlacementGroups(
	_ context.Context, in *ec2.DescribePlacementGroupsInput,
) (*ec2.DescribePlacementGroupsOutput, error) {
	v := s.store.View()
	ids := slices.Clone(in.GroupIds)
	for _, name := range in.GroupNames {
		g, err := findPlacementGroup(v, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, *g.GroupId)
	}
	rows, _, err := placementGroups.describe(v, query{"DescribePlacementGroups", ids, in.Filters, nil, nil, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.PlacementGroup) types.PlacementGroup { return r.PlacementGroup })
	return &ec2.DescribePlacementGroupsOutput{PlacementGroups: all}, nil
}

// DeletePlacementGroup deletes a group.
func (s *Service) DeletePlacementGroup(
	ctx context.Context, in *ec2.DeletePlacementGroupInput,
) (*ec2.DeletePlacementGroupOutput, error) {
	if aws.ToString(in.GroupName) == "" {
		return nil, missing("GroupName")
	}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		g, err := findPlacementGroup(tx.View, *in.GroupName)
		if err == nil {
			tx.PlacementGroups.Delete(*g.GroupId)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeletePlacementGroupOutput{}, nil
}

package ec2

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/volumesize"
	"github.com/pintle/pintle/internal/state"
)

// ModifyVolume changes a volume's type, size and speed. There's no disk, so it's complete at once, and needs no rest before the next one.
func (s *Service) ModifyVolume(ctx context.Context, in *ec2.ModifyVolumeInput) (*ec2.ModifyVolumeOutput, error) {
	if err := checkVolumeMembers(in, "Iops", "Size", "Throughput", "VolumeId", "VolumeType"); err != nil {
		return nil, err
	}
	var done *types.VolumeModification
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		old, err := findFreeVolume(tx.View, in.VolumeId)
		if err != nil {
			return err
		}
		asked := volumesize.Size{
			Type:       cmp.Or(in.VolumeType, old.VolumeType),
			GiB:        cmp.Or(in.Size, old.Size),
			IOPS:       in.Iops,
			Throughput: in.Throughput,
		}
		if asked.Type == old.VolumeType && asked.Type != types.VolumeTypeGp2 { // whose IOPS follow from its size
			asked.IOPS, asked.Throughput = cmp.Or(asked.IOPS, old.Iops), cmp.Or(asked.Throughput, old.Throughput)
		}
		is, err := checkedSize(asked)
		if err != nil {
			return err
		}
		if *is.GiB < *old.Size {
			return refuse("InvalidParameterValue", "New size cannot be smaller than existing size")
		}
		row := new(*old)
		row.VolumeType, row.Size, row.Iops, row.Throughput = is.Type, is.GiB, is.IOPS, is.Throughput
		row.Modification = s.modification(old, row)
		done = row.Modification
		tx.Volumes.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifyVolumeOutput{VolumeModification: done}, nil
}

func (s *Service) modification(from, to *state.Volume) *types.VolumeModification {
	return &types.VolumeModification{
		VolumeId:                   to.VolumeId,
		ModificationState:          types.VolumeModificationStateCompleted,
		Progress:                   aws.Int64(100),
		StartTime:                  new(s.now()),
		EndTime:                    new(s.now()),
		OriginalIops:               from.Iops,
		OriginalMultiAttachEnabled: aws.Bool(false),
		OriginalSize:               from.Size,
		OriginalThroughput:         from.Throughput,
		OriginalVolumeType:         from.VolumeType,
		TargetIops:                 to.Iops,
		TargetMultiAttachEnabled:   aws.Bool(false),
		TargetSize:                 to.Size,
		TargetThroughput:           to.Throughput,
		TargetVolumeType:           to.VolumeType,
	}
}

// modificationFields holds the filters of API_DescribeVolumesModifications.
var modificationFields = fields[types.VolumeModification]{
	"modification-state":   func(m *types.VolumeModification) []string { return []string{string(m.ModificationState)} },
	"original-iops":        func(m *types.VolumeModification) []string { return numbers(m.OriginalIops) },
	"original-size":        func(m *types.VolumeModification) []string { return numbers(m.OriginalSize) },
	"original-volume-type": func(m *types.VolumeModification) []string { return []string{string(m.OriginalVolumeType)} },
	"start-time":           func(m *types.VolumeModification) []string { return []string{m.StartTime.UTC().Format(time.RFC3339)} },
	"target-iops":          func(m *types.VolumeModification) []string { return numbers(m.TargetIops) },
	"target-size":          func(m *types.VolumeModification) []string { return numbers(m.TargetSize) },
	"target-volume-type":   func(m *types.VolumeModification) []string { return []string{string(m.TargetVolumeType)} },
	"volume-id":            func(m *types.VolumeModification) []string { return optional(m.VolumeId) },
}

func numbers(n *int32) []string {
	if n == nil {
		return nil
	}
	return []string{strconv.Itoa(int(*n))}
}

// DescribeVolumesModifications describes the last modification of each volume that had one.
func (s *Service) DescribeVolumesModifications(
	_ context.Context, in *ec2.DescribeVolumesModificationsInput,
) (*ec2.DescribeVolumesModificationsOutput, error) {
	if err := checkVolumeIDs(in.VolumeIds...); err != nil {
		return nil, err
	}
	match, err := matcher(in.Filters, modificationFields, nil)
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	for _, id := range in.VolumeIds {
		switch row := v.Volumes.Get(id); {
		case row == nil:
			return nil, volumes.absent(id)
		case row.Modification == nil:
			return nil, refuse("InvalidVolumeModification.NotFound", "Modification for volume '%s' does not exist.", id)
		}
	}
	all := []types.VolumeModification{}
	for row := range v.Volumes.All() {
		isAsked := len(in.VolumeIds) == 0 || slices.Contains(in.VolumeIds, *row.VolumeId)
		if isAsked && row.Modification != nil && match(row.Modification) {
			all = append(all, *row.Modification)
		}
	}
	all, next, err := account.Sorted(listing("DescribeVolumesModifications", maxNetworkPage), all, in.MaxResults, in.NextToken,
		func(m types.VolumeModification) string { return *m.VolumeId })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeVolumesModificationsOutput{VolumesModifications: all, NextToken: next}, nil
}

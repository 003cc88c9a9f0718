package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/pattern"
)

var snapshotIDs = pattern.New(`^snap-[0-9a-f]{1,17}$`, 22)

// snapshotFields are the filters of API_DescribeSnapshots. There's nothing that they could look at.
var snapshotFields = func() fields[types.Snapshot] {
	all := fields[types.Snapshot]{}
	for _, name := range []string{
		"description", "encrypted", "owner-alias", "owner-id", "progress", "snapshot-id", "start-time", "status", "storage-tier", "transfer-type",
		"volume-id", "volume-size",
	} {
		all[name] = func(*types.Snapshot) []string { return nil }
	}
	return all
}()

// DescribeSnapshots describes none: volumes are records, of which there's nothing to copy.
func (s *Service) DescribeSnapshots(_ context.Context, in *ec2.DescribeSnapshotsInput) (*ec2.DescribeSnapshotsOutput, error) {
	if _, err := matcher(in.Filters, snapshotFields, func(*types.Snapshot) []types.Tag { return nil }); err != nil {
		return nil, err
	}
	for _, id := range in.SnapshotIds {
		if !snapshotIDs.MatchString(id) {
			return nil, refuse("InvalidParameterValue", "Value (%s) for parameter snapshotId is invalid. Expected: 'snap-...'.", id)
		}
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	if len(in.SnapshotIds) > 0 {
		return nil, refuse("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", in.SnapshotIds[0])
	}
	if _, _, err := listing("DescribeSnapshots", maxNetworkPage).Start(in.MaxResults, in.NextToken); err != nil {
		return nil, err
	}
	return &ec2.DescribeSnapshotsOutput{Snapshots: []types.Snapshot{}}, nil
}

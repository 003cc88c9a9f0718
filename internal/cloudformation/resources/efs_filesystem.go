package resources

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// efsFileSystem has those properties of AWS::EFS::FileSystem that Pintle's file systems can have.
type efsFileSystem struct {
	AvailabilityZoneName         *string               `cfn:"create"`
	Encrypted                    *bool                 `cfn:"create"`
	KmsKeyId                     *string               `cfn:"create"`
	PerformanceMode              types.PerformanceMode `cfn:"create"`
	BackupPolicy                 *efsBackupPolicy
	FileSystemTags               []Tag
	LifecyclePolicies            []types.LifecyclePolicy
	ProvisionedThroughputInMibps *float64
	ThroughputMode               types.ThroughputMode
}

type efsBackupPolicy struct {
	Status types.Status `cfn:"required"`
}

func (p *efsBackupPolicy) isEnabled() bool { return p != nil && p.Status == types.StatusEnabled }

var _ = add(&kind[*efsFileSystem]{
	name:       "AWS::EFS::FileSystem",
	live:       liveEFSFileSystem,
	identifier: []string{"FileSystemId"},
	attributes: []string{"Arn", "FileSystemId"},
	create: func(ctx context.Context, s Step, f *efsFileSystem) (string, error) {
		enabled := f.BackupPolicy.isEnabled()
		out, err := call.Do[efs.CreateFileSystemOutput](ctx, s.Services, &efs.CreateFileSystemInput{
			CreationToken:                new(s.random()),
			AvailabilityZoneName:         f.AvailabilityZoneName,
			Backup:                       &enabled,
			Encrypted:                    f.Encrypted,
			KmsKeyId:                     f.KmsKeyId,
			PerformanceMode:              f.PerformanceMode,
			ProvisionedThroughputInMibps: f.ProvisionedThroughputInMibps,
			Tags:                         tagList(f.FileSystemTags, efsTag),
			ThroughputMode:               f.ThroughputMode,
		})
		if err != nil {
			return "", err
		}
		if err := setEFSLifecycle(ctx, s, *out.FileSystemId, &efsFileSystem{}, f); err != nil {
			return "", undo(ctx, s, *out.FileSystemId, f, deleteEFSFileSystem, err)
		}
		return *out.FileSystemId, nil
	},
	update: updateEFSFileSystem,
	delete: deleteEFSFileSystem,
	read: func(ctx context.Context, s Step, id string, _ *efsFileSystem) (Made, error) {
		is, err := describeEFSFileSystem(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *is.FileSystemArn, "FileSystemId": id}}, nil
	},
})

func efsTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func efsTagPair(t types.Tag) (key, value *string) { return t.Key, t.Value }

func retagEFS(ctx context.Context, s Step, id string, before, after []Tag) error {
	return retag(before, after, func(keys []string) error {
		return did[efs.UntagResourceOutput](ctx, s, &efs.UntagResourceInput{ResourceId: &id, TagKeys: keys})
	}, func() error {
		return did[efs.TagResourceOutput](ctx, s, &efs.TagResourceInput{ResourceId: &id, Tags: tagList(after, efsTag)})
	})
}

func setEFSLifecycle(ctx context.Context, s Step, id string, before, after *efsFileSystem) error {
	if reflect.DeepEqual(before.LifecyclePolicies, after.LifecyclePolicies) {
		return nil
	}
	return did[efs.PutLifecycleConfigurationOutput](ctx, s, &efs.PutLifecycleConfigurationInput{
		FileSystemId:      &id,
		LifecyclePolicies: append([]types.LifecyclePolicy{}, after.LifecyclePolicies...),
	})
}

func updateEFSFileSystem(ctx context.Context, s Step, id string, before, after *efsFileSystem) error {
	if before.ThroughputMode != after.ThroughputMode || !reflect.DeepEqual(before.ProvisionedThroughputInMibps, after.ProvisionedThroughputInMibps) {
		mode := after.ThroughputMode
		if mode == "" {
			mode = types.ThroughputModeBursting
		}
		in := &efs.UpdateFileSystemInput{FileSystemId: &id, ThroughputMode: mode, ProvisionedThroughputInMibps: after.ProvisionedThroughputInMibps}
		if err := did[efs.UpdateFileSystemOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if before.BackupPolicy.isEnabled() != after.BackupPolicy.isEnabled() {
		policy := &types.BackupPolicy{Status: types.StatusDisabled}
		if after.BackupPolicy.isEnabled() {
			policy.Status = types.StatusEnabled
		}
		if err := did[efs.PutBackupPolicyOutput](ctx, s, &efs.PutBackupPolicyInput{FileSystemId: &id, BackupPolicy: policy}); err != nil {
			return err
		}
	}
	if err := setEFSLifecycle(ctx, s, id, before, after); err != nil {
		return err
	}
	return retagEFS(ctx, s, id, before.FileSystemTags, after.FileSystemTags)
}

func deleteEFSFileSystem(ctx context.Context, s Step, id string, _ *efsFileSystem) error {
	return did[efs.DeleteFileSystemOutput](ctx, s, &efs.DeleteFileSystemInput{FileSystemId: &id})
}

func describeEFSFileSystem(ctx context.Context, s Step, id string) (*types.FileSystemDescription, error) {
	out, err := call.Do[efs.DescribeFileSystemsOutput](ctx, s.Services, &efs.DescribeFileSystemsInput{FileSystemId: &id})
	if err != nil {
		return nil, err
	}
	return &out.FileSystems[0], nil
}

func liveEFSFileSystem(ctx context.Context, s Step, id string, _ *efsFileSystem) (*efsFileSystem, error) {
	is, err := describeEFSFileSystem(ctx, s, id)
	if err != nil {
		return nil, err
	}
	backup, err := call.Do[efs.DescribeBackupPolicyOutput](ctx, s.Services, &efs.DescribeBackupPolicyInput{FileSystemId: &id})
	if err != nil {
		return nil, err
	}
	lifecycle, err := call.Do[efs.DescribeLifecycleConfigurationOutput](ctx, s.Services, &efs.DescribeLifecycleConfigurationInput{FileSystemId: &id})
	if err != nil {
		return nil, err
	}
	return &efsFileSystem{
		AvailabilityZoneName:         is.AvailabilityZoneName,
		Encrypted:                    is.Encrypted,
		KmsKeyId:                     is.KmsKeyId,
		PerformanceMode:              is.PerformanceMode,
		BackupPolicy:                 &efsBackupPolicy{backup.BackupPolicy.Status},
		FileSystemTags:               ownTags(is.Tags, efsTagPair),
		LifecyclePolicies:            lifecycle.LifecyclePolicies,
		ProvisionedThroughputInMibps: is.ProvisionedThroughputInMibps,
		ThroughputMode:               is.ThroughputMode,
	}, nil
}

package efs

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// CreateFileSystem makes a directory for a file system. Encryption, performance and throughput are the disk's: what is asked for is kept
// and shown.
func (s *Service) CreateFileSystem(ctx context.Context, in *api.CreateFileSystemInput) (*api.CreateFileSystemOutput, error) {
	id := newID("fs-")
	f := state.FileSystem{
		FileSystemDescription: types.FileSystemDescription{
			CreationTime:                 s.now(),
			CreationToken:                in.CreationToken,
			FileSystemId:                 &id,
			FileSystemArn:                aws.String(s.opts.ARN("elasticfilesystem", "file-system/"+id)),
			FileSystemProtection:         &types.FileSystemProtectionDescription{ReplicationOverwriteProtection: types.ReplicationOverwriteProtectionEnabled},
			LifeCycleState:               types.LifeCycleStateAvailable,
			OwnerId:                      &s.opts.ID,
			Name:                         nameIn(in.Tags),
			Tags:                         append([]types.Tag{}, in.Tags...),
			SizeInBytes:                  &types.FileSystemSize{ValueInIA: aws.Int64(0), ValueInStandard: aws.Int64(0)},
			Encrypted:                    aws.Bool(aws.ToBool(in.Encrypted)),
			KmsKeyId:                     in.KmsKeyId,
			AvailabilityZoneName:         in.AvailabilityZoneName,
			PerformanceMode:              in.PerformanceMode,
			ThroughputMode:               in.ThroughputMode,
			ProvisionedThroughputInMibps: in.ProvisionedThroughputInMibps,
		},
		Backup: types.StatusDisabled,
	}
	if f.PerformanceMode == "" {
		f.PerformanceMode = types.PerformanceModeGeneralPurpose
	}
	if aws.ToBool(in.Backup) {
		f.Backup = types.StatusEnabled
	}
	if err := checkFileSystem(&f); err != nil {
		return nil, err
	}
	if err := s.create(ctx, &f); err != nil {
		return nil, err
	}
	d := f.FileSystemDescription
	return &api.CreateFileSystemOutput{
		CreationTime: d.CreationTime, CreationToken: d.CreationToken, FileSystemId: d.FileSystemId, LifeCycleState: d.LifeCycleState,
		OwnerId: d.OwnerId, PerformanceMode: d.PerformanceMode, SizeInBytes: d.SizeInBytes, Tags: d.Tags,
		AvailabilityZoneName: d.AvailabilityZoneName, Encrypted: d.Encrypted, FileSystemArn: d.FileSystemArn,
		FileSystemProtection: d.FileSystemProtection, KmsKeyId: d.KmsKeyId, Name: d.Name,
		ProvisionedThroughputInMibps: d.ProvisionedThroughputInMibps, ThroughputMode: d.ThroughputMode,
	}, nil
}

// checkFileSystem checks a file system's modes and tags, and sets the default of its throughput.
func checkFileSystem(f *state.FileSystem) error {
	if f.ThroughputMode == "" {
		f.ThroughputMode = types.ThroughputModeBursting
	}
	provisioned := f.ThroughputMode == types.ThroughputModeProvisioned
	switch {
	case !slices.Contains(f.PerformanceMode.Values(), f.PerformanceMode):
		return invalid("PerformanceMode must be one of %v, not %q.", f.PerformanceMode.Values(), f.PerformanceMode)
	case !slices.Contains(f.ThroughputMode.Values(), f.ThroughputMode):
		return invalid("ThroughputMode must be one of %v, not %q.", f.ThroughputMode.Values(), f.ThroughputMode)
	case provisioned != (f.ProvisionedThroughputInMibps != nil):
		return invalid("ProvisionedThroughputInMibps goes with the ThroughputMode provisioned, which needs it.")
	case f.KmsKeyId != nil && !*f.Encrypted:
		return invalid("KmsKeyId is for a file system that is Encrypted.")
	}
	return checkTags(f.Tags)
}

// create makes a file system's directory and its row. A directory that no row names stays empty.
func (s *Service) create(ctx context.Context, f *state.FileSystem) error {
	if old := withToken(s.store.View(), *f.CreationToken); old != nil {
		return exists(old)
	}
	if err := s.makeDirectory(*f.FileSystemId); err != nil {
		return err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if old := withToken(tx.View, *f.CreationToken); old != nil {
			return exists(old)
		}
		tx.FileSystems.Put(f)
		return nil
	})
	if err != nil {
		os.Remove(filepath.Join(s.opts.Root, *f.FileSystemId)) //nolint:errcheck // it's empty, and nobody's
	}
	return err
}

// withToken returns the file system that a token has created, or nil.
func withToken(v *state.View, token string) *state.FileSystem {
	for f := range v.FileSystems.All() {
		if *f.CreationToken == token {
			return f
		}
	}
	return nil
}

func exists(f *state.FileSystem) error {
	return account.RefuseWith(http.StatusConflict, "FileSystemAlreadyExists", "File system '%s' already exists with creation token '%s'",
		*f.FileSystemId, *f.CreationToken)
}

// DescribeFileSystems lists file systems: all, one, or that of a token.
func (s *Service) DescribeFileSystems(_ context.Context, in *api.DescribeFileSystemsInput) (*api.DescribeFileSystemsOutput, error) {
	v := s.store.View()
	rows := []types.FileSystemDescription{}
	if in.FileSystemId != nil {
		if _, err := s.fileSystem(v, in.FileSystemId); err != nil {
			return nil, err
		}
	}
	for f := range v.FileSystems.All() {
		if in.FileSystemId != nil && s.idOf("file-system", in.FileSystemId) != *f.FileSystemId ||
			in.CreationToken != nil && *in.CreationToken != *f.CreationToken {
			continue
		}
		d := f.FileSystemDescription
		d.NumberOfMountTargets = int32(count(v.MountTargetsOf(*f.FileSystemId)))
		rows = append(rows, d)
	}
	rows, next, err := page("file systems", rows, in.MaxItems, in.Marker, func(d types.FileSystemDescription) string { return *d.FileSystemId })
	if err != nil {
		return nil, err
	}
	return &api.DescribeFileSystemsOutput{FileSystems: rows, Marker: in.Marker, NextMarker: next}, nil
}

// UpdateFileSystem changes what is kept of a file system's throughput.
func (s *Service) UpdateFileSystem(ctx context.Context, in *api.UpdateFileSystemInput) (*api.UpdateFileSystemOutput, error) {
	f, err := s.change(ctx, in.FileSystemId, func(f *state.FileSystem) error {
		if in.ThroughputMode != "" {
			f.ThroughputMode = in.ThroughputMode
			f.ProvisionedThroughputInMibps = nil
		}
		if in.ProvisionedThroughputInMibps != nil {
			f.ProvisionedThroughputInMibps = in.ProvisionedThroughputInMibps
		}
		return checkFileSystem(f)
	})
	if err != nil {
		return nil, err
	}
	d := f.FileSystemDescription
	return &api.UpdateFileSystemOutput{
		CreationTime: d.CreationTime, CreationToken: d.CreationToken, FileSystemId: d.FileSystemId, LifeCycleState: d.LifeCycleState,
		NumberOfMountTargets: d.NumberOfMountTargets, OwnerId: d.OwnerId, PerformanceMode: d.PerformanceMode, SizeInBytes: d.SizeInBytes,
		Tags: d.Tags, AvailabilityZoneName: d.AvailabilityZoneName, Encrypted: d.Encrypted, FileSystemArn: d.FileSystemArn,
		FileSystemProtection: d.FileSystemProtection, KmsKeyId: d.KmsKeyId, Name: d.Name,
		ProvisionedThroughputInMibps: d.ProvisionedThroughputInMibps, ThroughputMode: d.ThroughputMode,
	}, nil
}

// DeleteFileSystem deletes a file system without mount targets, and its access points. Its directory is put aside.
func (s *Service) DeleteFileSystem(ctx context.Context, in *api.DeleteFileSystemInput) (*api.DeleteFileSystemOutput, error) {
	var id string
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		f, err := s.fileSystem(tx.View, in.FileSystemId)
		if err != nil {
			return err
		}
		id = *f.FileSystemId
		if count(tx.MountTargetsOf(id)) > 0 {
			return account.RefuseWith(http.StatusConflict, "FileSystemInUse", "File system %s has mount targets, which must be deleted first.", id)
		}
		for _, a := range slices.Collect(tx.AccessPointsOf(id)) {
			tx.AccessPoints.Delete(*a.AccessPointId)
		}
		tx.FileSystems.Delete(id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteFileSystemOutput{}, s.putAside(id)
}

// PutLifecycleConfiguration keeps a file system's lifecycle policies, which move nothing: there's one class of storage.
func (s *Service) PutLifecycleConfiguration(
	ctx context.Context, in *api.PutLifecycleConfigurationInput,
) (*api.PutLifecycleConfigurationOutput, error) {
	_, err := s.change(ctx, in.FileSystemId, func(f *state.FileSystem) error {
		f.Lifecycle = in.LifecyclePolicies
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutLifecycleConfigurationOutput{LifecyclePolicies: append([]types.LifecyclePolicy{}, in.LifecyclePolicies...)}, nil
}

// DescribeLifecycleConfiguration returns the lifecycle policies.
func (s *Service) DescribeLifecycleConfiguration(
	_ context.Context, in *api.DescribeLifecycleConfigurationInput,
) (*api.DescribeLifecycleConfigurationOutput, error) {
	f, err := s.fileSystem(s.store.View(), in.FileSystemId)
	if err != nil {
		return nil, err
	}
	return &api.DescribeLifecycleConfigurationOutput{LifecyclePolicies: append([]types.LifecyclePolicy{}, f.Lifecycle...)}, nil
}

// UpdateFileSystemProtection keeps whether replication may overwrite a file system. There is no replication.
func (s *Service) UpdateFileSystemProtection(
	ctx context.Context, in *api.UpdateFileSystemProtectionInput,
) (*api.UpdateFileSystemProtectionOutput, error) {
	to := in.ReplicationOverwriteProtection
	if to != types.ReplicationOverwriteProtectionEnabled && to != types.ReplicationOverwriteProtectionDisabled {
		return nil, invalid("ReplicationOverwriteProtection must be ENABLED or DISABLED, not %q.", to)
	}
	_, err := s.change(ctx, in.FileSystemId, func(f *state.FileSystem) error {
		f.FileSystemProtection = &types.FileSystemProtectionDescription{ReplicationOverwriteProtection: to}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateFileSystemProtectionOutput{ReplicationOverwriteProtection: to}, nil
}

// PutBackupPolicy keeps whether AWS Backup is to back a file system up. Pintle makes no backups.
func (s *Service) PutBackupPolicy(ctx context.Context, in *api.PutBackupPolicyInput) (*api.PutBackupPolicyOutput, error) {
	status := in.BackupPolicy.Status
	if status != types.StatusEnabled && status != types.StatusDisabled {
		return nil, invalid("BackupPolicy.Status must be ENABLED or DISABLED, not %q.", status)
	}
	_, err := s.change(ctx, in.FileSystemId, func(f *state.FileSystem) error {
		f.Backup = status
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutBackupPolicyOutput{BackupPolicy: in.BackupPolicy}, nil
}

// DescribeBackupPolicy returns the backup policy.
func (s *Service) DescribeBackupPolicy(_ context.Context, in *api.DescribeBackupPolicyInput) (*api.DescribeBackupPolicyOutput, error) {
	f, err := s.fileSystem(s.store.View(), in.FileSystemId)
	if err != nil {
		return nil, err
	}
	return &api.DescribeBackupPolicyOutput{BackupPolicy: &types.BackupPolicy{Status: f.Backup}}, nil
}

// DescribeFileSystemPolicy says that a file system has no policy, since none can be put.
func (s *Service) DescribeFileSystemPolicy(
	_ context.Context, in *api.DescribeFileSystemPolicyInput,
) (*api.DescribeFileSystemPolicyOutput, error) {
	f, err := s.fileSystem(s.store.View(), in.FileSystemId)
	if err != nil {
		return nil, err
	}
	return nil, account.RefuseWith(http.StatusNotFound, "PolicyNotFound", "No policy is set on the file system %s.", *f.FileSystemId)
}

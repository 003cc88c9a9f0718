package efs

import (
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// CreateAccessPoint creates an access point. Its directory is made when a task first mounts it.
func (s *Service) CreateAccessPoint(ctx context.Context, in *api.CreateAccessPointInput) (*api.CreateAccessPointOutput, error) {
	root, err := rootDirectory(in.RootDirectory)
	if err != nil {
		return nil, err
	}
	if in.PosixUser != nil && len(in.PosixUser.SecondaryGids) > 0 {
		return nil, invalid("PosixUser.SecondaryGids are not supported: a file system knows a container's user and its group.")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	id := newID("fsap-")
	row := &state.AccessPoint{AccessPointDescription: types.AccessPointDescription{
		AccessPointArn: aws.String(s.opts.ARN("elasticfilesystem", "access-point/"+id)),
		AccessPointId:  &id,
		ClientToken:    in.ClientToken,
		LifeCycleState: types.LifeCycleStateAvailable,
		Name:           nameIn(in.Tags),
		OwnerId:        &s.opts.ID,
		PosixUser:      in.PosixUser,
		RootDirectory:  root,
		Tags:           append([]types.Tag{}, in.Tags...),
	}}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		f, err := s.fileSystem(tx.View, in.FileSystemId)
		if err != nil {
			return err
		}
		row.FileSystemId = f.FileSystemId
		for a := range tx.AccessPoints.All() {
			if aws.ToString(a.ClientToken) == aws.ToString(in.ClientToken) {
				return account.RefuseWith(http.StatusConflict, "AccessPointAlreadyExists", "Access point %s already exists with this client token.",
					*a.AccessPointId)
			}
		}
		if count(tx.AccessPointsOf(*f.FileSystemId)) >= maxAccessPoints {
			return account.RefuseWith(http.StatusForbidden, "AccessPointLimitExceeded", "A file system can have %d access points.", maxAccessPoints)
		}
		tx.AccessPoints.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateAccessPointOutput{
		AccessPointArn: row.AccessPointArn, AccessPointId: row.AccessPointId, ClientToken: row.ClientToken, FileSystemId: row.FileSystemId,
		LifeCycleState: row.LifeCycleState, Name: row.Name, OwnerId: row.OwnerId, PosixUser: row.PosixUser, RootDirectory: row.RootDirectory,
		Tags: row.Tags,
	}, nil
}

// maxDepth is how many directories an access point's path may have: API_RootDirectory.
const maxDepth = 4

// rootDirectory checks an access point's root, and returns the whole file system's if there's none.
func rootDirectory(r *types.RootDirectory) (*types.RootDirectory, error) {
	out := types.RootDirectory{Path: aws.String("/")}
	if r == nil {
		return &out, nil
	}
	if r.Path != nil {
		out.Path = r.Path
	}
	out.CreationInfo = r.CreationInfo
	p := *out.Path
	switch {
	case p != "/" && p != path.Clean(p) || !strings.HasPrefix(p, "/"):
		return nil, invalid("RootDirectory.Path %q must be an absolute path without empty parts, . and ..", p)
	case strings.Count(p, "/") > maxDepth:
		return nil, invalid("RootDirectory.Path %q has more than %d directories.", p, maxDepth)
	}
	return &out, nil
}

// DescribeAccessPoints lists access points: all, those of a file system, or one.
func (s *Service) DescribeAccessPoints(_ context.Context, in *api.DescribeAccessPointsInput) (*api.DescribeAccessPointsOutput, error) {
	v := s.store.View()
	rows := []types.AccessPointDescription{}
	switch {
	case in.AccessPointId != nil && in.FileSystemId != nil:
		return nil, invalid("AccessPointId and FileSystemId can't both be given.")
	case in.AccessPointId != nil:
		a, err := s.accessPoint(v, in.AccessPointId)
		if err != nil {
			return nil, err
		}
		rows = append(rows, a.AccessPointDescription)
	case in.FileSystemId != nil:
		f, err := s.fileSystem(v, in.FileSystemId)
		if err != nil {
			return nil, err
		}
		for a := range v.AccessPointsOf(*f.FileSystemId) {
			rows = append(rows, a.AccessPointDescription)
		}
	default:
		for a := range v.AccessPoints.All() {
			rows = append(rows, a.AccessPointDescription)
		}
	}
	rows, next, err := page("access points", rows, in.MaxResults, in.NextToken, func(d types.AccessPointDescription) string { return *d.AccessPointId })
	if err != nil {
		return nil, err
	}
	return &api.DescribeAccessPointsOutput{AccessPoints: rows, NextToken: next}, nil
}

// DeleteAccessPoint deletes an access point. Running tasks keep what they have mounted.
func (s *Service) DeleteAccessPoint(ctx context.Context, in *api.DeleteAccessPointInput) (*api.DeleteAccessPointOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		a, err := s.accessPoint(tx.View, in.AccessPointId)
		if err != nil {
			return err
		}
		tx.AccessPoints.Delete(*a.AccessPointId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteAccessPointOutput{}, nil
}

// retag changes the tags of a file system or an access point.
func (s *Service) retag(ctx context.Context, given *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if a, err := s.accessPoint(tx.View, given); err == nil {
			row := *a
			row.Tags = change(row.Tags)
			row.Name = nameIn(row.Tags)
			tx.AccessPoints.Put(&row)
			return checkTags(row.Tags)
		}
		f, err := s.fileSystem(tx.View, given)
		if err != nil {
			return err
		}
		row := *f
		row.Tags = change(row.Tags)
		row.Name = nameIn(row.Tags)
		tx.FileSystems.Put(&row)
		return checkTags(row.Tags)
	})
}

// TagResource adds tags to a file system or an access point, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *api.TagResourceInput) (*api.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceId, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) })
	if err != nil {
		return nil, err
	}
	return &api.TagResourceOutput{}, nil
}

// UntagResource removes tags from a file system or an access point.
func (s *Service) UntagResource(ctx context.Context, in *api.UntagResourceInput) (*api.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceId, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, parts) })
	if err != nil {
		return nil, err
	}
	return &api.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a file system or an access point.
func (s *Service) ListTagsForResource(_ context.Context, in *api.ListTagsForResourceInput) (*api.ListTagsForResourceOutput, error) {
	v := s.store.View()
	var tags []types.Tag
	if a, err := s.accessPoint(v, in.ResourceId); err == nil {
		tags = a.Tags
	} else if f, err := s.fileSystem(v, in.ResourceId); err == nil {
		tags = f.Tags
	} else {
		return nil, err
	}
	tags, next, err := page("tags", tags, in.MaxResults, in.NextToken, func(t types.Tag) string { return *t.Key })
	if err != nil {
		return nil, err
	}
	return &api.ListTagsForResourceOutput{Tags: append([]types.Tag{}, tags...), NextToken: next}, nil
}

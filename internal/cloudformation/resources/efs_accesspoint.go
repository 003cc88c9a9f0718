package resources

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// efsAccessPoint has the properties of AWS::EFS::AccessPoint.
type efsAccessPoint struct {
	ClientToken     *string           `cfn:"create"`
	FileSystemId    *string           `cfn:"required,create"`
	PosixUser       *efsPosixUser     `cfn:"create"`
	RootDirectory   *efsRootDirectory `cfn:"create"`
	AccessPointTags []Tag
}

// In templates, ids are text.
type efsPosixUser struct {
	Gid           *string `cfn:"required"`
	Uid           *string `cfn:"required"`
	SecondaryGids []string
}

type efsRootDirectory struct {
	CreationInfo *efsCreationInfo
	Path         *string
}

type efsCreationInfo struct {
	OwnerGid    *string `cfn:"required"`
	OwnerUid    *string `cfn:"required"`
	Permissions *string `cfn:"required"`
}

// posixID reads an id. What is no number is refused by the service, as too small.
func posixID(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = -1
	}
	return &n
}

func (u *efsPosixUser) user() *types.PosixUser {
	if u == nil {
		return nil
	}
	out := &types.PosixUser{Gid: posixID(*u.Gid), Uid: posixID(*u.Uid)}
	for _, g := range u.SecondaryGids {
		out.SecondaryGids = append(out.SecondaryGids, *posixID(g))
	}
	return out
}

func (d *efsRootDirectory) directory() *types.RootDirectory {
	if d == nil {
		return nil
	}
	out := &types.RootDirectory{Path: d.Path}
	if c := d.CreationInfo; c != nil {
		out.CreationInfo = &types.CreationInfo{OwnerGid: posixID(*c.OwnerGid), OwnerUid: posixID(*c.OwnerUid), Permissions: c.Permissions}
	}
	return out
}

var _ = add(&kind[*efsAccessPoint]{
	name:       "AWS::EFS::AccessPoint",
	live:       liveEFSAccessPoint,
	identifier: []string{"AccessPointId"},
	attributes: []string{"AccessPointId", "Arn"},
	create: func(ctx context.Context, s Step, a *efsAccessPoint) (string, error) {
		token := aws.ToString(a.ClientToken)
		if token == "" {
			token = s.random()
		}
		out, err := call.Do[efs.CreateAccessPointOutput](ctx, s.Services, &efs.CreateAccessPointInput{
			ClientToken:   &token,
			FileSystemId:  a.FileSystemId,
			PosixUser:     a.PosixUser.user(),
			RootDirectory: a.RootDirectory.directory(),
			Tags:          tagList(a.AccessPointTags, efsTag),
		})
		if err != nil {
			return "", err
		}
		return *out.AccessPointId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *efsAccessPoint) error {
		return retagEFS(ctx, s, id, before.AccessPointTags, after.AccessPointTags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *efsAccessPoint) error {
		return did[efs.DeleteAccessPointOutput](ctx, s, &efs.DeleteAccessPointInput{AccessPointId: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *efsAccessPoint) (Made, error) {
		is, err := describeEFSAccessPoint(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"AccessPointId": id, "Arn": *is.AccessPointArn}}, nil
	},
})

func describeEFSAccessPoint(ctx context.Context, s Step, id string) (*types.AccessPointDescription, error) {
	out, err := call.Do[efs.DescribeAccessPointsOutput](ctx, s.Services, &efs.DescribeAccessPointsInput{AccessPointId: &id})
	if err != nil {
		return nil, err
	}
	return &out.AccessPoints[0], nil
}

func liveEFSAccessPoint(ctx context.Context, s Step, id string, _ *efsAccessPoint) (*efsAccessPoint, error) {
	is, err := describeEFSAccessPoint(ctx, s, id)
	if err != nil {
		return nil, err
	}
	text := func(n *int64) *string { return new(strconv.FormatInt(*n, 10)) }
	live := &efsAccessPoint{
		ClientToken:     is.ClientToken,
		FileSystemId:    is.FileSystemId,
		RootDirectory:   &efsRootDirectory{Path: is.RootDirectory.Path},
		AccessPointTags: ownTags(is.Tags, efsTagPair),
	}
	if u := is.PosixUser; u != nil {
		live.PosixUser = &efsPosixUser{Gid: text(u.Gid), Uid: text(u.Uid)}
	}
	if c := is.RootDirectory.CreationInfo; c != nil {
		live.RootDirectory.CreationInfo = &efsCreationInfo{OwnerGid: text(c.OwnerGid), OwnerUid: text(c.OwnerUid), Permissions: c.Permissions}
	}
	return live, nil
}

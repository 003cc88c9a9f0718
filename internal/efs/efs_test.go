package efs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	api "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// newTestService returns a service with a root and two subnets in one VPC.
func newTestService(t *testing.T) (*Service, *state.Store) {
	t.Helper()
	store := statetest.Open(t)
	s := New(store, Options{Account: account.New("000000000000", "us-east-1", time.Now), Root: t.TempDir()})
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for id, block := range map[string]string{"subnet-a": "10.0.0.0/28", "subnet-b": "10.0.1.0/24"} {
			tx.Subnets.Put(&state.Subnet{Subnet: ec2.Subnet{
				SubnetId: &id, VpcId: aws.String("vpc-1"), CidrBlock: &block, AvailabilityZone: aws.String("us-east-1" + id[7:]),
			}})
		}
		tx.SecurityGroups.Put(&state.SecurityGroup{SecurityGroup: ec2.SecurityGroup{GroupId: aws.String("sg-1"), VpcId: aws.String("vpc-1")}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, store
}

func (s *Service) newFileSystem(t *testing.T) string {
	t.Helper()
	out, err := s.CreateFileSystem(t.Context(), &api.CreateFileSystemInput{CreationToken: aws.String(t.Name())})
	if err != nil {
		t.Fatal(err)
	}
	return *out.FileSystemId
}

// expectRefused checks a refusal's code and words, and that it changed nothing.
func expectRefused(t *testing.T, store *state.Store, before int64, err error, code, says string) {
	t.Helper()
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != code || !strings.Contains(refused.ErrorMessage(), says) {
		t.Errorf("got %v, want %s that says %q", err, code, says)
	}
	if after := store.Revision(); after != before {
		t.Error("it changed something")
	}
}

func TestFileSystemsAreDirectories(t *testing.T) {
	s, store := newTestService(t)
	id := s.newFileSystem(t)
	path := filepath.Join(s.opts.Root, id)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	before := store.Revision()
	_, err := s.CreateFileSystem(t.Context(), &api.CreateFileSystemInput{CreationToken: aws.String(t.Name())})
	expectRefused(t, store, before, err, "FileSystemAlreadyExists", id)
	if entries, err := os.ReadDir(s.opts.Root); len(entries) != 1 || err != nil {
		t.Errorf("a refused call leaves %v, %v", entries, err)
	}
	if err := os.WriteFile(path+"/f", []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteFileSystem(t.Context(), &api.DeleteFileSystemInput{FileSystemId: &id}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(s.opts.Root, "deleted", id, "f")); string(b) != "dear" || err != nil {
		t.Errorf("put aside is %q, %v", b, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	without := New(store, Options{Account: s.opts.Account})
	before = store.Revision()
	_, err = without.CreateFileSystem(t.Context(), &api.CreateFileSystemInput{CreationToken: aws.String("x")})
	expectRefused(t, store, before, err, "BadRequest", "--file-systems DIRECTORY")
}

// TestEmptyLists: a list of nothing is empty, and not missing, which clients that count wouldn't understand.
func TestEmptyLists(t *testing.T) {
	s, _ := newTestService(t)
	systems, err := s.DescribeFileSystems(t.Context(), &api.DescribeFileSystemsInput{})
	id := s.newFileSystem(t)
	targets, targetsErr := s.DescribeMountTargets(t.Context(), &api.DescribeMountTargetsInput{FileSystemId: &id})
	points, pointsErr := s.DescribeAccessPoints(t.Context(), &api.DescribeAccessPointsInput{})
	tags, tagsErr := s.ListTagsForResource(t.Context(), &api.ListTagsForResourceInput{ResourceId: &id})
	if err := errors.Join(err, targetsErr, pointsErr, tagsErr); err != nil {
		t.Fatal(err)
	}
	if systems.FileSystems == nil || targets.MountTargets == nil || points.AccessPoints == nil || tags.Tags == nil {
		t.Errorf("got %v, %v, %v, %v", systems.FileSystems, targets.MountTargets, points.AccessPoints, tags.Tags)
	}
}

// TestProtection: whether replication may overwrite a file system is kept.
func TestProtection(t *testing.T) {
	s, store := newTestService(t)
	id := s.newFileSystem(t)
	before := store.Revision()
	_, err := s.UpdateFileSystemProtection(t.Context(), &api.UpdateFileSystemProtectionInput{FileSystemId: &id, ReplicationOverwriteProtection: "REPLICATING"})
	expectRefused(t, store, before, err, "BadRequest", "ReplicationOverwriteProtection")
	_, err = s.UpdateFileSystemProtection(t.Context(), &api.UpdateFileSystemProtectionInput{FileSystemId: &id, ReplicationOverwriteProtection: "DISABLED"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.DescribeFileSystems(t.Context(), &api.DescribeFileSystemsInput{FileSystemId: &id})
	if err != nil || out.FileSystems[0].FileSystemProtection.ReplicationOverwriteProtection != types.ReplicationOverwriteProtectionDisabled {
		t.Errorf("it is %+v, %v", out, err)
	}
}

func TestMountTargets(t *testing.T) {
	s, store := newTestService(t)
	id := s.newFileSystem(t)
	first, err := s.CreateMountTarget(t.Context(), &api.CreateMountTargetInput{FileSystemId: &id, SubnetId: aws.String("subnet-a")})
	if err != nil || *first.IpAddress != "10.0.0.14" || *first.VpcId != "vpc-1" {
		t.Fatalf("it is %+v, %v", first, err)
	}
	create := func(in api.CreateMountTargetInput) func() error {
		return func() error {
			in.FileSystemId = &id
			_, err := s.CreateMountTarget(t.Context(), &in)
			return err
		}
	}
	for code, call := range map[string]func() error{
		"MountTargetConflict":   create(api.CreateMountTargetInput{SubnetId: aws.String("subnet-a")}),
		"SubnetNotFound":        create(api.CreateMountTargetInput{SubnetId: aws.String("subnet-x")}),
		"SecurityGroupNotFound": create(api.CreateMountTargetInput{SubnetId: aws.String("subnet-b"), SecurityGroups: []string{"sg-x"}}),
		"BadRequest":            create(api.CreateMountTargetInput{SubnetId: aws.String("subnet-b"), IpAddress: aws.String("10.9.9.9")}),
		"FileSystemInUse": func() error {
			_, err := s.DeleteFileSystem(t.Context(), &api.DeleteFileSystemInput{FileSystemId: &id})
			return err
		},
		"MountTargetNotFound": func() error {
			_, err := s.DeleteMountTarget(t.Context(), &api.DeleteMountTargetInput{MountTargetId: aws.String("fsmt-x")})
			return err
		},
	} {
		before := store.Revision()
		expectRefused(t, store, before, call(), code, "")
	}
	second := create(api.CreateMountTargetInput{SubnetId: aws.String("subnet-b"), IpAddress: aws.String("10.0.1.9"), SecurityGroups: []string{"sg-1"}})
	if err := second(); err != nil {
		t.Error(err)
	}
	systems, err := s.DescribeFileSystems(t.Context(), &api.DescribeFileSystemsInput{FileSystemId: &id})
	if err != nil || systems.FileSystems[0].NumberOfMountTargets != 2 {
		t.Errorf("it has %+v, %v", systems, err)
	}
}

func TestAccessPointsAreRefused(t *testing.T) {
	s, store := newTestService(t)
	id := s.newFileSystem(t)
	point := func(change func(*api.CreateAccessPointInput)) *api.CreateAccessPointInput {
		in := &api.CreateAccessPointInput{FileSystemId: &id, ClientToken: aws.String("t")}
		change(in)
		return in
	}
	path := func(p string) func(*api.CreateAccessPointInput) {
		return func(in *api.CreateAccessPointInput) { in.RootDirectory = &types.RootDirectory{Path: &p} }
	}
	if _, err := s.CreateAccessPoint(t.Context(), point(path("/a/b"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change     func(*api.CreateAccessPointInput)
		code, says string
	}{
		"the same token":   {path("/c"), "AccessPointAlreadyExists", "fsap-"},
		"no file system":   {func(in *api.CreateAccessPointInput) { in.FileSystemId = aws.String("fs-x") }, "FileSystemNotFound", "fs-x"},
		"a way out":        {path("/a/../../etc"), "BadRequest", "RootDirectory.Path"},
		"a relative path":  {path("a"), "BadRequest", "RootDirectory.Path"},
		"too deep a path":  {path("/a/b/c/d/e"), "BadRequest", "4 directories"},
		"secondary groups": {func(in *api.CreateAccessPointInput) { in.PosixUser = &types.PosixUser{SecondaryGids: []int64{1}} }, "BadRequest", "SecondaryGids"},
	} {
		t.Run(name, func(t *testing.T) {
			before := store.Revision()
			_, err := s.CreateAccessPoint(context.Background(), point(c.change))
			expectRefused(t, store, before, err, c.code, c.says)
		})
	}
}

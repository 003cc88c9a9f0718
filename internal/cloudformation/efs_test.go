package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
)

// shared is a file system with a mount target and an access point.
const shared = `
Resources:
  VPC: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  Subnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref VPC, CidrBlock: 10.0.0.0/24}}
  Group: {Type: AWS::EC2::SecurityGroup, Properties: {VpcId: !Ref VPC, GroupDescription: g}}
  Files:
    Type: AWS::EFS::FileSystem
    Properties:
      Encrypted: true
      PerformanceMode: generalPurpose
      ThroughputMode: elastic
      BackupPolicy: {Status: ENABLED}
      LifecyclePolicies: [{TransitionToIA: AFTER_30_DAYS}]
      FileSystemTags: [{Key: Name, Value: shared}]
  Target:
    Type: AWS::EFS::MountTarget
    Properties: {FileSystemId: !Ref Files, SubnetId: !Ref Subnet, SecurityGroups: [!GetAtt Group.GroupId]}
  Point:
    Type: AWS::EFS::AccessPoint
    Properties:
      FileSystemId: !GetAtt Files.FileSystemId
      PosixUser: {Uid: '1000', Gid: '1001'}
      RootDirectory: {Path: /app, CreationInfo: {OwnerUid: '1000', OwnerGid: '1001', Permissions: '750'}}
Outputs:
  Arn: {Value: !GetAtt Files.Arn}
  Address: {Value: !GetAtt Target.IpAddress}
  Point: {Value: !GetAtt Point.Arn}
`

// TestShared: file systems, mount targets and access points are created, changed and deleted.
func TestShared(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", shared)
	w.expect(types.StackStatusCreateComplete)
	ids := physicalIDs(w.store.View())
	is := func() *state.FileSystem { return w.store.View().FileSystems.Get(ids["Files"]) }
	if f := is(); f == nil || !*f.Encrypted || f.ThroughputMode != "elastic" || f.Backup != "ENABLED" || len(f.Lifecycle) != 1 || *f.Name != "shared" {
		t.Errorf("the file system is %+v", f)
	}
	if m := w.store.View().MountTargets.Get(ids["Target"]); m == nil || len(m.SecurityGroups) != 1 || m.SecurityGroups[0] != ids["Group"] {
		t.Errorf("the mount target is %+v", m)
	}
	a := w.store.View().AccessPointOf(ids["Files"], ids["Point"])
	if a == nil || *a.PosixUser.Uid != 1000 || *a.PosixUser.Gid != 1001 || *a.RootDirectory.CreationInfo.Permissions != "750" {
		t.Errorf("the access point is %+v", a)
	}
	changed := strings.NewReplacer(
		"ThroughputMode: elastic", "ThroughputMode: provisioned\n      ProvisionedThroughputInMibps: 5", "Status: ENABLED", "Status: DISABLED",
		"[{TransitionToIA: AFTER_30_DAYS}]", "[]", "Value: shared", "Value: other",
	).Replace(shared)
	w.become("s", changed)
	w.expect(types.StackStatusUpdateComplete)
	f := is()
	if f == nil || *f.ProvisionedThroughputInMibps != 5 || f.Backup != "DISABLED" || len(f.Lifecycle) != 0 || *f.Name != "other" {
		t.Errorf("changed it is %+v", f)
	}
	w.become("s", strings.Replace(changed, "Path: /app", "Path: /a/../b", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	w.become("s", strings.Replace(changed, "Path: /app", "Path: /new", 1))
	w.expect(types.StackStatusUpdateComplete)
	if now := physicalIDs(w.store.View())["Point"]; now == ids["Point"] || w.store.View().AccessPoints.Get(ids["Point"]) != nil {
		t.Error("the access point was not replaced")
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if v := w.store.View(); v.FileSystems.Len()+v.MountTargets.Len()+v.AccessPoints.Len() > 0 {
		t.Error("something is left")
	}
}

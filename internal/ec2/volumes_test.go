package ec2

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// turned launches an instance in a zone, and puts it into a state.
func (w *world) turned(zone string, in types.InstanceStateName) string {
	w.t.Helper()
	all, err := w.run(1, ec2.RunInstancesInput{Placement: &types.Placement{AvailabilityZone: &zone}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.turn(*all[0].InstanceId, in)
	return *all[0].InstanceId
}

func (w *world) turn(id string, in types.InstanceStateName) {
	w.t.Helper()
	statetest.Update(w.t, w.s.store, func(tx *state.Tx) { tx.Instances.Put(tx.Instances.Get(id).In(in)) })
}

// volume creates a volume of 10 GiB in the zone a.
func (w *world) volume() string {
	w.t.Helper()
	out, err := w.s.CreateVolume(w.t.Context(), &ec2.CreateVolumeInput{AvailabilityZone: aws.String("us-east-1a"), Size: aws.Int32(10)})
	if err != nil {
		w.t.Fatal(err)
	}
	return *out.VolumeId
}

// filtered returns the ids of the volumes that a filter finds.
func (w *world) filtered(name, value string) (ids []string) {
	w.t.Helper()
	out, err := w.s.DescribeVolumes(w.t.Context(), &ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: &name, Values: []string{value}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range out.Volumes {
		ids = append(ids, *v.VolumeId)
	}
	return ids
}

// TestVolume: a volume is made, attached, modified, detached and deleted.
func TestVolume(t *testing.T) {
	s, w := networked(t)
	ctx := t.Context()
	id, at := w.volume(), w.turned("us-east-1a", types.InstanceStateNameRunning)
	if _, err := s.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &id, InstanceId: &at, Device: aws.String("/dev/sdf")}); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"attachment.instance-id": at, "status": "in-use", "availability-zone": "us-east-1a", "volume-type": "gp*", "attachment.status": "attached",
	} {
		if got := w.filtered(name, value); !slices.Contains(got, id) || len(got) != 2 {
			t.Errorf("%s=%s: %v", name, value, got)
		}
	}
	if got := w.filtered("attachment.device", "/dev/sdf"); !slices.Equal(got, []string{id}) {
		t.Errorf("at the device: %v", got)
	}
	out, err := s.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	i := out.Reservations[0].Instances[0]
	if len(i.BlockDeviceMappings) != 2 || *i.BlockDeviceMappings[0].DeviceName != *i.RootDeviceName || *i.BlockDeviceMappings[1].Ebs.VolumeId != id {
		t.Errorf("the instance has %+v", i.BlockDeviceMappings)
	}
	done, err := s.ModifyVolume(ctx, &ec2.ModifyVolumeInput{VolumeId: &id, Size: aws.Int32(100), VolumeType: types.VolumeTypeGp3})
	if err != nil || *done.VolumeModification.OriginalSize != 10 || *done.VolumeModification.TargetThroughput != 125 {
		t.Errorf("modified: %+v, %v", done, err)
	}
	if _, err := s.ModifyVolume(ctx, &ec2.ModifyVolumeInput{VolumeId: &id, Size: aws.Int32(99)}); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("made smaller: %v", err)
	}
	changed, err := s.DescribeVolumesModifications(ctx, &ec2.DescribeVolumesModificationsInput{VolumeIds: []string{id}})
	if err != nil || len(changed.VolumesModifications) != 1 {
		t.Errorf("modifications: %+v, %v", changed, err)
	}
	if _, err := s.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id}); codeOf(err) != "VolumeInUse" {
		t.Errorf("deleted while attached: %v", err)
	}
	if _, err := s.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &id, InstanceId: &at}); err != nil {
		t.Error(err)
	}
	if _, err := s.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &id}); codeOf(err) != "IncorrectState" {
		t.Errorf("detached again: %v", err)
	}
	if _, err := s.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id}); err != nil {
		t.Error(err)
	}
	if _, err := s.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{id}}); codeOf(err) != "InvalidVolume.NotFound" {
		t.Errorf("described afterwards: %v", err)
	}
}

// TestVolumeRefused: the errors of calls that can't be done, with EC2's codes.
func TestVolumeRefused(t *testing.T) {
	s, w := networked(t)
	ctx := t.Context()
	running, pending := w.turned("us-east-1a", types.InstanceStateNameRunning), w.turned("us-east-1a", types.InstanceStateNamePending)
	elsewhere := w.turned("us-east-1b", types.InstanceStateNameRunning)
	free, taken := w.volume(), w.volume()
	attach := func(volume, instance, device string) error {
		_, err := s.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &volume, InstanceId: &instance, Device: &device})
		return err
	}
	create := func(in ec2.CreateVolumeInput) error {
		_, err := s.CreateVolume(ctx, &in)
		return err
	}
	detach := func(in ec2.DetachVolumeInput) error {
		_, err := s.DetachVolume(ctx, &in)
		return err
	}
	if err := attach(taken, running, "/dev/sdg"); err != nil {
		t.Fatal(err)
	}
	root := state.VolumeOf(running, rootDevice)
	_, tagged := s.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{root}, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
	_, deleted := s.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &root})
	_, malformed := s.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{"v"}})
	_, unmodified := s.DescribeVolumesModifications(ctx, &ec2.DescribeVolumesModificationsInput{VolumeIds: []string{free}})
	zone := aws.String("us-east-1a")
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"attached twice", attach(taken, running, "/dev/sdh"), "VolumeInUse"},
		{"attached where another one is", attach(free, running, "/dev/sdg"), "InvalidParameterValue"},
		{"attached where the root is", attach(free, running, rootDevice), "InvalidParameterValue"},
		{"attached to what starts", attach(free, pending, "/dev/sdg"), "IncorrectState"},
		{"attached in another zone", attach(free, elsewhere, "/dev/sdg"), "InvalidVolume.ZoneMismatch"},
		{"attached to nothing", attach(free, "i-0123456789abcdef0", "/dev/sdg"), "InvalidInstanceID.NotFound"},
		{"nothing attached", attach("vol-0123456789abcdef0", running, "/dev/sdg"), "InvalidVolume.NotFound"},
		{"attached nowhere", attach(free, running, ""), "MissingParameter"},
		{"detached from another one", detach(ec2.DetachVolumeInput{VolumeId: &taken, InstanceId: &elsewhere}), "InvalidAttachment.NotFound"},
		{"the root detached", detach(ec2.DetachVolumeInput{VolumeId: &root}), "OperationNotPermitted"},
		{"the root deleted", deleted, "VolumeInUse"},
		{"the root tagged", tagged, "UnsupportedOperation"},
		{"nowhere", create(ec2.CreateVolumeInput{Size: aws.Int32(1)}), "MissingParameter"},
		{"in another region", create(ec2.CreateVolumeInput{Size: aws.Int32(1), AvailabilityZone: aws.String("eu-west-1a")}), "InvalidZone.NotFound"},
		{"of a snapshot", create(ec2.CreateVolumeInput{SnapshotId: aws.String("snap-1"), AvailabilityZone: zone}), "InvalidSnapshot.NotFound"},
		{"of several instances", create(ec2.CreateVolumeInput{Size: aws.Int32(1), AvailabilityZone: zone, MultiAttachEnabled: aws.Bool(true)}), "UnsupportedOperation"},
		{"with a key for nothing", create(ec2.CreateVolumeInput{Size: aws.Int32(1), AvailabilityZone: zone, KmsKeyId: aws.String("k")}), "InvalidParameterDependency"},
		{"described by something else", malformed, "InvalidParameterValue"},
		{"never modified", unmodified, "InvalidVolumeModification.NotFound"},
	} {
		if codeOf(c.err) != c.want {
			t.Errorf("%s: %v, want %s", c.what, c.err, c.want)
		}
	}
}

// TestVolumeOutlivesItsInstance: a volume that was attached is free once the instance ends, and the instance's own ones are gone.
func TestVolumeOutlivesItsInstance(t *testing.T) {
	s, w := networked(t)
	id, at := w.volume(), w.turned("us-east-1a", types.InstanceStateNameRunning)
	if _, err := s.AttachVolume(t.Context(), &ec2.AttachVolumeInput{VolumeId: &id, InstanceId: &at, Device: aws.String("/dev/sdf")}); err != nil {
		t.Fatal(err)
	}
	w.turn(at, types.InstanceStateNameTerminated)
	if got := w.filtered("status", "*"); !slices.Equal(got, []string{id}) || !slices.Equal(got, w.filtered("status", "available")) {
		t.Errorf("there are %v", got)
	}
	if _, err := s.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: &id}); err != nil {
		t.Error(err)
	}
}

// TestMappedVolumes: an instance has the volumes that its launch template or its call maps, and a root in any case.
func TestMappedVolumes(t *testing.T) {
	s, w := networked(t)
	_, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("disks"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String(rootDevice), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(100), Encrypted: aws.Bool(true)}},
			{DeviceName: aws.String("/dev/sdb"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(500), VolumeType: types.VolumeTypeSt1}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	disks := &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("disks")}
	device := func(size int32) ec2.RunInstancesInput {
		return ec2.RunInstancesInput{LaunchTemplate: disks, BlockDeviceMappings: []types.BlockDeviceMapping{
			{DeviceName: aws.String("/dev/sdb"), Ebs: &types.EbsBlockDevice{VolumeSize: &size}},
		}}
	}
	for _, in := range []ec2.RunInstancesInput{{LaunchTemplate: disks}, device(70)} {
		if _, err := w.run(1, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.run(1, device(1<<20)); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("got %v", err)
	}
	if _, err := s.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("disks")}); err != nil {
		t.Fatal(err) // which takes no volume away
	}
	if _, err := w.run(1, ec2.RunInstancesInput{}); err != nil {
		t.Fatal(err)
	}
	for size, n := range map[string]int{"100": 2, "500": 1, "70": 1, "30": 1} {
		if got := w.filtered("size", size); len(got) != n {
			t.Errorf("%d volumes of %s GiB", len(got), size)
		}
	}
	if got := w.filtered("encrypted", "true"); len(got) != 2 {
		t.Errorf("%d are encrypted", len(got))
	}
}

// TestVolumesNeverShareADevice: whatever is attached and detached in whatever order, a volume is at one instance at most and a device has one
// volume.
func TestVolumesNeverShareADevice(t *testing.T) {
	s, w := networked(t)
	instances := []string{w.turned("us-east-1a", types.InstanceStateNameRunning), w.turned("us-east-1a", types.InstanceStateNameRunning)}
	made := []string{w.volume(), w.volume(), w.volume()}
	attached := 0
	rapid.Check(t, func(r *rapid.T) {
		id, at := rapid.SampledFrom(made).Draw(r, "volume"), rapid.SampledFrom(instances).Draw(r, "instance")
		device := rapid.SampledFrom([]string{"/dev/sdf", "/dev/sdg"}).Draw(r, "device")
		if rapid.Bool().Draw(r, "attach") {
			if _, err := s.AttachVolume(t.Context(), &ec2.AttachVolumeInput{VolumeId: &id, InstanceId: &at, Device: &device}); err == nil {
				attached++
			}
		} else {
			s.DetachVolume(t.Context(), &ec2.DetachVolumeInput{VolumeId: &id}) //nolint:errcheck // it may be attached nowhere
		}
		at2 := map[string]bool{}
		for _, i := range instances {
			for _, m := range mappings(s.store.View(), s.store.View().Instances.Get(i)) {
				for _, key := range []string{i + *m.DeviceName, *m.Ebs.VolumeId} {
					if at2[key] {
						r.Fatalf("%s is there twice", key)
					}
					at2[key] = true
				}
			}
		}
	})
	if attached < 5 {
		t.Errorf("only %d were attached", attached)
	}
}

// TestSnapshots: there are none, so whoever names one is told so.
func TestSnapshots(t *testing.T) {
	s := service(t, 0)
	named := func(name string) []types.Filter { return []types.Filter{{Name: &name, Values: []string{"x"}}} }
	for _, c := range []struct {
		name string
		in   ec2.DescribeSnapshotsInput
		want string
	}{
		{"all", ec2.DescribeSnapshotsInput{OwnerIds: []string{"self"}}, ""},
		{"by a filter", ec2.DescribeSnapshotsInput{Filters: named("volume-id")}, ""},
		{"by a tag", ec2.DescribeSnapshotsInput{Filters: named("tag:a")}, ""},
		{"by another filter", ec2.DescribeSnapshotsInput{Filters: named("colour")}, "InvalidParameterValue"},
		{"one", ec2.DescribeSnapshotsInput{SnapshotIds: []string{"snap-1234"}}, "InvalidSnapshot.NotFound"},
		{"no id", ec2.DescribeSnapshotsInput{SnapshotIds: []string{"vol-1"}}, "InvalidParameterValue"},
		{"another's token", ec2.DescribeSnapshotsInput{NextToken: aws.String("x")}, "InvalidNextToken"},
		{"a dry run", ec2.DescribeSnapshotsInput{DryRun: aws.Bool(true)}, "DryRunOperation"},
	} {
		out, err := s.DescribeSnapshots(t.Context(), &c.in)
		if codeOf(err) != c.want || err == nil && len(out.Snapshots) != 0 {
			t.Errorf("%s: %v, %v, want %s", c.name, out, err, c.want)
		}
	}
}

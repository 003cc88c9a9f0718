package ec2

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// managed puts a task with a volume on a container instance, and returns the volume's id.
func (w *world) managed(task, node string, deletes bool) (id string) {
	w.t.Helper()
	statetest.Update(w.t, w.s.store, func(tx *state.Tx) {
		tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: ecstypes.ContainerInstance{
			ContainerInstanceArn: &node, Ec2InstanceId: aws.String("i-0123456789abcdef0"), Status: aws.String("ACTIVE"),
		}})
		t := &state.Task{
			Task: ecstypes.Task{
				TaskArn: &task, ContainerInstanceArn: &node, LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
				ClusterArn: aws.String("c"),
			},
			Volumes: []state.TaskVolume{{Name: "v", Type: types.VolumeTypeGp2, GiB: aws.Int32(1), DeleteOnTermination: deletes}},
		}
		t.Attachments = state.VolumeAttachments(t.Volumes)
		tx.CreateVolumes(t, time.Now())
		id = t.Volumes[0].VolumeID
		tx.Tasks.Put(t)
	})
	return id
}

func (w *world) stopTask(task string) {
	w.t.Helper()
	statetest.Update(w.t, w.s.store, func(tx *state.Tx) { tx.Tasks.Put(tx.Tasks.Get(task).Stopped("", "", time.Now())) })
}

// stateOf returns the state of a volume, or the error's code.
func (w *world) stateOf(id string) string {
	w.t.Helper()
	out, err := w.s.DescribeVolumes(w.t.Context(), &ec2.DescribeVolumesInput{VolumeIds: []string{id}})
	if err != nil {
		return codeOf(err)
	}
	if attached := len(out.Volumes[0].Attachments) > 0; attached != (out.Volumes[0].State == types.VolumeStateInUse) {
		w.t.Errorf("it is %s with %+v", out.Volumes[0].State, out.Volumes[0].Attachments)
	}
	return string(out.Volumes[0].State)
}

// TestManagedVolumes: what ECS makes for a task is the task's until that is STOPPED. What is kept is deleted by its node.
func TestManagedVolumes(t *testing.T) {
	s, w := networked(t)
	ctx := t.Context()
	gone, kept, lost := w.managed("t1", "n1", true), w.managed("t2", "n1", false), w.managed("t3", "n2", false)
	for _, id := range []string{gone, kept, lost} {
		if got := w.stateOf(id); got != "in-use" {
			t.Errorf("%s of a running task is %s", id, got)
		}
	}
	if a, b := w.device(gone), w.device(kept); a != "/dev/xvdba" || b != "/dev/xvdbb" {
		t.Errorf("they are at %s and %s", a, b)
	}
	_, err := s.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &kept})
	if codeOf(err) != "VolumeInUse" {
		t.Errorf("a running task's: %v", err)
	}
	for _, task := range []string{"t1", "t2", "t3"} {
		w.stopTask(task)
	}
	statetest.Update(t, s.store, func(tx *state.Tx) {
		tx.ContainerInstances.Put(tx.ContainerInstances.Get("n2").Deregistered(time.Now()))
	})
	for id, want := range map[string]string{gone: "InvalidVolume.NotFound", kept: "available", lost: "error"} {
		if got := w.stateOf(id); got != want {
			t.Errorf("%s of a stopped task is %s, want %s", id, got, want)
		}
	}
	_, attached := s.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &kept, InstanceId: aws.String("i-0123456789abcdef0"), Device: aws.String("/dev/sdf")})
	_, detached := s.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &kept})
	_, modified := s.ModifyVolume(ctx, &ec2.ModifyVolumeInput{VolumeId: &kept, Size: aws.Int32(2)})
	for what, err := range map[string]error{"attached": attached, "detached": detached, "modified": modified} {
		if codeOf(err) != "OperationNotPermitted" {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []string{kept, kept, lost} {
		if _, err := s.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id}); err != nil {
			t.Error(err)
		}
	}
	if got := w.stateOf(kept); got != "deleting" {
		t.Errorf("until its node says that it's gone it's %s", got)
	}
	if got := w.stateOf(lost); got != "InvalidVolume.NotFound" {
		t.Errorf("one whose node is gone is %s", got)
	}
	if err := s.store.Sweep(ctx, time.Now()); err != nil || s.store.View().Volumes.Get(gone) != nil || s.store.View().Volumes.Get(kept) == nil {
		t.Errorf("what is over isn't swept, or more: %v", err)
	}
}

func (w *world) device(id string) string {
	return *w.s.store.View().Volumes.Get(id).Attachments[0].Device
}

package nodelink

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

func keptVolume(id, node string) *state.Volume {
	return &state.Volume{
		Volume:  ec2.Volume{VolumeId: &id},
		Managed: &state.Management{TaskArn: taskArn("ended"), InstanceArn: node, Deleted: true},
	}
}

// TestDeletedVolumes: a node is told which volumes to delete until it says that they are gone, and of no other's.
func TestDeletedVolumes(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.Volumes.Put(keptVolume("vol-1", instanceArn))
		tx.Volumes.Put(keptVolume("vol-2", instanceArn+"0"))
	})
	a, _ := w.connectACS()
	if m := next[*acs.PintleDeleteVolumes](a); !slices.Equal(m.VolumeIDs, []string{"vol-1"}) {
		t.Errorf("it is told of %v", m.VolumeIDs)
	}
	w.update(func(tx *state.Tx) { tx.Volumes.Put(keptVolume("vol-3", instanceArn)) })
	if m := next[*acs.PintleDeleteVolumes](a); !slices.Equal(m.VolumeIDs, []string{"vol-3"}) {
		t.Errorf("it is told of %v", m.VolumeIDs)
	}
	a.conn.CloseNow() //nolint:errcheck // cut off
	w.untilConnected(false)
	back, _ := w.connectACS()
	if m := next[*acs.PintleDeleteVolumes](back); !slices.Equal(m.VolumeIDs, []string{"vol-1", "vol-3"}) {
		t.Errorf("once it is back, it is told of %v", m.VolumeIDs)
	}
	back.send(&acs.PintleVolumesDeleted{VolumeIDs: []string{"vol-1", "vol-2", "vol-3", "vol-4"}})
	w.until("its volumes are gone", func(v *state.View) bool { return v.Volumes.Get("vol-1") == nil && v.Volumes.Get("vol-3") == nil })
	if w.store.View().Volumes.Get("vol-2") == nil {
		t.Error("it has deleted another node's")
	}
}

// TestVolumeOfPayload: the node is told what to make.
func TestVolumeOfPayload(t *testing.T) {
	td, task := definitionRow(), taskRow("v", "RUNNING", "PENDING")
	td.Volumes = []types.Volume{{Name: aws.String("data"), ConfiguredAtLaunch: aws.Bool(true)}}
	task.Volumes = []state.TaskVolume{{Name: "data", VolumeID: "vol-1", GiB: aws.Int32(2), FileSystem: "ext4"}}
	p := Payload(task, td)
	want := acs.EBSVolume{VolumeID: "vol-1", SizeGiB: 2, FileSystem: "ext4", Keep: true}
	if v := p.Volumes[0]; v.Type != "ebs" || v.EBSVolume == nil || *v.EBSVolume != want || v.Host != nil {
		t.Errorf("it's told of %+v", v)
	}
}

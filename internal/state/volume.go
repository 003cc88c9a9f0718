package state

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/store"
)

// Volume is an EBS volume that was created by itself, or by ECS for a task. The former is a record: nothing has a disk for it. Those that
// instances come with have no rows: they follow from the instances. Its attachment counts as long as the instance is there.
type Volume struct {
	types.Volume
	// Modification is what the last ModifyVolume did.
	Modification *types.VolumeModification `json:",omitempty"`
	// Managed is set for volumes that ECS has made.
	Managed *Management `json:",omitempty"`
}

// AttachedTo returns the ID of the instance that the volume was attached to, or "".
func (v *Volume) AttachedTo() string {
	if len(v.Attachments) == 0 {
		return ""
	}
	return aws.ToString(v.Attachments[0].InstanceId)
}

// VolumeOf returns the ID of the volume that an instance came with at a device.
func VolumeOf(instanceID, device string) string {
	sum := sha256.Sum256([]byte(instanceID + " " + device))
	return "vol-" + hex.EncodeToString(sum[:])[:17]
}

// VolumesByInstance finds the volumes that were attached to an instance.
var VolumesByInstance = Index[*Volume]{Name: "instance", Value: (*Volume).AttachedTo}

var volumes = &store.Definition[*Volume]{
	Name:     "volumes",
	Key:      func(v *Volume) string { return aws.ToString(v.VolumeId) },
	Indexes:  []Index[*Volume]{VolumesByInstance, VolumesToDelete},
	Lifetime: overVolumes,
}

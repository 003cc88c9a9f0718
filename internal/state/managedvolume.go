package state

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TaskVolume is an EBS volume that ECS makes for a task. Sizes have been checked, and have what wasn't given.
type TaskVolume struct {
	Name                string
	RoleArn             string
	Type                ec2.VolumeType
	GiB                 *int32
	IOPS                *int32 `json:",omitempty"`
	Throughput          *int32 `json:",omitempty"`
	FileSystem          string `json:",omitzero"` // "" leaves it to the node
	DeleteOnTermination bool
	Tags                []ec2.Tag
	// VolumeID is set once the task has an instance.
	VolumeID string `json:",omitzero"`
}

// Management is what a volume is that ECS has made for a task. It lies on the task's container instance.
type Management struct {
	TaskArn             string
	InstanceArn         string
	DeleteOnTermination bool
	// Deleted means that DeleteVolume was called for it, and that its node hasn't said yet that it is gone.
	Deleted bool `json:",omitzero"`
}

// The types of a task's attachments.
const (
	networkInterface = "ElasticNetworkInterface"
	blockStorage     = "AmazonElasticBlockStorage"
)

// IsInterface reports whether an attachment is a task's network interface.
func IsInterface(a types.Attachment) bool { return aws.ToString(a.Type) == networkInterface }

func isBlockStorage(a types.Attachment) bool { return aws.ToString(a.Type) == blockStorage }

// VolumeAttachments returns the attachments of volumes that haven't been made yet.
func VolumeAttachments(volumes []TaskVolume) (out []types.Attachment) {
	for _, v := range volumes {
		out = append(out, types.Attachment{
			Id:     new(NewUUID()),
			Type:   aws.String(blockStorage),
			Status: aws.String("PRECREATED"),
			Details: []types.KeyValuePair{
				detail("roleArn", v.RoleArn),
				detail("volumeName", v.Name),
				detail("deleteOnTermination", strconv.FormatBool(v.DeleteOnTermination)),
			},
		})
	}
	return out
}

func detail(name, value string) types.KeyValuePair {
	return types.KeyValuePair{Name: &name, Value: &value}
}

func detailOf(a types.Attachment, name string) string {
	for _, d := range a.Details {
		if aws.ToString(d.Name) == name {
			return aws.ToString(d.Value)
		}
	}
	return ""
}

// CreateVolumes makes a task's volumes on the instance where it was placed. t is a copy that hasn't been put yet.
func (tx *Tx) CreateVolumes(t *Task, now time.Time) {
	if len(t.Volumes) == 0 {
		return
	}
	machine := ""
	if i := tx.ContainerInstances.Get(*t.ContainerInstanceArn); i != nil {
		machine = aws.ToString(i.Ec2InstanceId)
	}
	t.Volumes = slices.Clone(t.Volumes)
	t.Attachments = slices.Clone(t.Attachments)
	for i := range t.Volumes {
		v := &t.Volumes[i]
		v.VolumeID = NewEC2ID("vol")
		device := tx.freeDevice(machine)
		tx.Volumes.Put(newManaged(t, v, machine, device, now))
		t.noteVolume(v, device)
	}
}

// newManaged returns the row of a task's volume. Its task has it until the task is STOPPED.
func newManaged(t *Task, v *TaskVolume, machine, device string, now time.Time) *Volume {
	return &Volume{
		Managed: &Management{TaskArn: *t.TaskArn, InstanceArn: *t.ContainerInstanceArn, DeleteOnTermination: v.DeleteOnTermination},
		Volume: ec2.Volume{
			VolumeId:           &v.VolumeID,
			AvailabilityZone:   t.AvailabilityZone,
			CreateTime:         &now,
			Encrypted:          aws.Bool(false),
			MultiAttachEnabled: aws.Bool(false),
			SnapshotId:         aws.String(""),
			State:              ec2.VolumeStateInUse,
			VolumeType:         v.Type,
			Size:               v.GiB,
			Iops:               v.IOPS,
			Throughput:         v.Throughput,
			Tags: append(slices.Clone(v.Tags), ec2.Tag{Key: aws.String("AmazonECSCreated"), Value: t.TaskArn},
				ec2.Tag{Key: aws.String("AmazonECSManaged"), Value: aws.String("true")}),
			Attachments: []ec2.VolumeAttachment{{
				VolumeId:            &v.VolumeID,
				InstanceId:          &machine,
				Device:              &device,
				AttachTime:          &now,
				DeleteOnTermination: &v.DeleteOnTermination,
				State:               ec2.VolumeAttachmentStateAttached,
			}},
		},
	}
}

// noteVolume shows a volume that was made in the task's attachment.
func (t *Task) noteVolume(v *TaskVolume, device string) {
	for i, a := range t.Attachments {
		if isBlockStorage(a) && detailOf(a, "volumeName") == v.Name {
			t.Attachments[i].Status = aws.String("CREATED")
			t.Attachments[i].Details = append(slices.Clone(a.Details),
				detail("volumeId", v.VolumeID),
				detail("volumeType", string(v.Type)),
				detail("sizeInGiB", strconv.Itoa(int(aws.ToInt32(v.GiB)))),
				detail("deviceName", device),
			)
		}
	}
}

// freeDevice returns the first name of a device that none of a machine's volumes has, as the EBS user guide recommends them.
func (tx *Tx) freeDevice(machine string) string {
	taken := map[string]bool{}
	for v := range tx.Volumes.By(VolumesByInstance, machine) {
		if tx.HasVolume(v) {
			taken[*v.Attachments[0].Device] = true
		}
	}
	for first := 'b'; first <= 'd'; first++ {
		for second := 'a'; second <= 'z'; second++ {
			if name := "/dev/xvd" + string(first) + string(second); !taken[name] {
				return name
			}
		}
	}
	return "/dev/xvddz" // it has more than 78 already: a name is all that this is
}

// HasVolume reports whether what a volume was attached to still has it. An instance's end is EC2's to tell.
func (v *View) HasVolume(r *Volume) bool {
	if r.Managed == nil {
		return len(r.Attachments) > 0
	}
	t := v.Tasks.Get(r.Managed.TaskArn)
	return t != nil && t.Holds()
}

// IsVolumeOver reports whether a volume has gone with its task, or has nobody left who would delete it.
func (v *View) IsVolumeOver(r *Volume) bool {
	return r.Managed != nil && !v.HasVolume(r) && (r.Managed.DeleteOnTermination || r.Managed.Deleted && !v.HasNode(r))
}

// HasNode reports whether the container instance where a managed volume lies may still come back.
func (v *View) HasNode(r *Volume) bool {
	i := v.ContainerInstances.Get(r.Managed.InstanceArn)
	return i != nil && aws.ToString(i.Status) != InstanceInactive
}

// VolumesToDelete finds the volumes that a container instance has to delete.
var VolumesToDelete = Index[*Volume]{Name: "to_delete", Value: func(v *Volume) string {
	if v.Managed == nil || !v.Managed.Deleted {
		return ""
	}
	return v.Managed.InstanceArn
}}

// Deleted returns the volume to be deleted by its node.
func (v *Volume) Deleted() *Volume {
	row, m := *v, *v.Managed
	m.Deleted = true
	row.Managed = &m
	return &row
}

// overVolumes returns the volumes that have gone with their tasks.
func overVolumes(t Table[*Volume], _ time.Time) (over []string) {
	v := &View{
		Tasks:              tasks.In(t.View()),
		ContainerInstances: containerInstances.In(t.View()),
	}
	for row := range t.All() {
		if v.IsVolumeOver(row) {
			over = append(over, *row.VolumeId)
		}
	}
	return over
}

// withVolumes returns a task's attachments with its volumes in a status.
func withVolumes(attachments []types.Attachment, status string) []types.Attachment {
	if !slices.ContainsFunc(attachments, isBlockStorage) {
		return attachments
	}
	out := slices.Clone(attachments)
	for i, a := range out {
		if isBlockStorage(a) {
			out[i].Status = &status
		}
	}
	return out
}

// ended returns an attachment of a task that has stopped for a reason, which may be that its node couldn't make a volume.
func ended(a types.Attachment, reason string) types.Attachment {
	a.Status = aws.String("DELETED")
	if !isBlockStorage(a) {
		return a
	}
	why, failed := strings.CutPrefix(reason, "ResourceInitializationError: failed to set up volume "+detailOf(a, "volumeName")+": ")
	switch {
	case failed:
		a.Details = append(slices.Clone(a.Details), detail(statusReason, why))
	case detailOf(a, "deleteOnTermination") == "false" && detailOf(a, "volumeId") != "":
		a.Status = aws.String("DETACHED")
	}
	return a
}

// statusReason is the detail of an attachment that says why there's no volume.
const statusReason = "statusReason"

// ForgetUnmade deletes the rows of a stopped task's volumes that its node couldn't make.
func (tx *Tx) ForgetUnmade(t *Task) {
	for _, a := range t.Attachments {
		if isBlockStorage(a) && detailOf(a, statusReason) != "" {
			tx.Volumes.Delete(detailOf(a, "volumeId"))
		}
	}
}

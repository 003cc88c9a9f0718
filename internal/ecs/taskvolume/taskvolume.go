// Package taskvolume turns what calls say of volumes that are configured at launch into those that ECS makes for tasks. Calls check with it what
// they were given, and the rollout of services makes their tasks' volumes by it. It keeps nothing.
package taskvolume

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/volumesize"
	"github.com/pintle/pintle/internal/state"
)

// Configuration is what a call says of a volume.
type Configuration struct {
	Name string
	EBS  *types.TaskManagedEBSVolumeConfiguration
}

// OfTask returns what RunTask or StartTask says of volumes.
func OfTask(in []types.TaskVolumeConfiguration) (out []Configuration) {
	for _, c := range in {
		out = append(out, Configuration{aws.ToString(c.Name), c.ManagedEBSVolume})
	}
	return out
}

// OfService returns what a service says of volumes. Those of its tasks always end with them.
func OfService(in []types.ServiceVolumeConfiguration) (out []Configuration) {
	for _, c := range in {
		v := Configuration{Name: aws.ToString(c.Name)}
		if e := c.ManagedEBSVolume; e != nil {
			v.EBS = &types.TaskManagedEBSVolumeConfiguration{
				RoleArn:                  e.RoleArn,
				Encrypted:                e.Encrypted,
				FilesystemType:           e.FilesystemType,
				Iops:                     e.Iops,
				KmsKeyId:                 e.KmsKeyId,
				SizeInGiB:                e.SizeInGiB,
				SnapshotId:               e.SnapshotId,
				TagSpecifications:        e.TagSpecifications,
				Throughput:               e.Throughput,
				VolumeInitializationRate: e.VolumeInitializationRate,
				VolumeType:               e.VolumeType,
			}
		}
		out = append(out, v)
	}
	return out
}

// Size returns how large and how fast the volume is, with what wasn't given, or EC2's refusal.
func (c Configuration) Size() (volumesize.Size, error) {
	return volumesize.Size{
		Type:       ec2types.VolumeType(aws.ToString(c.EBS.VolumeType)),
		GiB:        c.EBS.SizeInGiB,
		IOPS:       c.EBS.Iops,
		Throughput: c.EBS.Throughput,
	}.Checked()
}

// Make returns the volumes that configurations ask for, which have been checked. Their tags may be those of the definition or of the service.
// managed are ECS's own, if the task has them.
func Make(configurations []Configuration, td *state.TaskDefinition, service, managed []types.Tag) (out []state.TaskVolume) {
	for _, c := range configurations {
		is, err := c.Size()
		if err != nil {
			continue // it was refused before
		}
		keep := c.EBS.TerminationPolicy != nil && !aws.ToBool(c.EBS.TerminationPolicy.DeleteOnTermination)
		out = append(out, state.TaskVolume{
			Name:                c.Name,
			RoleArn:             *c.EBS.RoleArn,
			Type:                is.Type,
			GiB:                 is.GiB,
			IOPS:                is.IOPS,
			Throughput:          is.Throughput,
			FileSystem:          string(c.EBS.FilesystemType),
			DeleteOnTermination: !keep,
			Tags:                tagsOf(c.EBS.TagSpecifications, td, service, managed),
		})
	}
	return out
}

// tagsOf returns a volume's tags: its own override those that it gets.
func tagsOf(specifications []types.EBSTagSpecification, td *state.TaskDefinition, service, managed []types.Tag) (out []ec2types.Tag) {
	var tags []types.Tag
	for _, t := range specifications {
		switch t.PropagateTags {
		case types.PropagateTagsTaskDefinition:
			tags = account.MergeTags(tags, td.Tags, keyAndValue)
		case types.PropagateTagsService:
			tags = account.MergeTags(tags, service, keyAndValue)
		}
		tags = account.MergeTags(tags, t.Tags, keyAndValue)
	}
	for _, t := range slices.Concat(tags, managed) {
		out = append(out, ec2types.Tag{Key: t.Key, Value: t.Value})
	}
	return out
}

func keyAndValue(t types.Tag) (key, value *string) { return t.Key, t.Value }

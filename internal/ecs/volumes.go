package ecs

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ec2/volumesize"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
)

// Volumes that are configured when a task starts, of Amazon EBS: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ebs-volumes.html

// managedVolume is how messages name what a call says of a volume.
const managedVolume = "volumeConfigurations.managedEBSVolume"

// checkVolumeConfigurations checks what a call says of volumes. propagation lists where their tags may come from.
func checkVolumeConfigurations(configurations []taskvolume.Configuration, propagation ...types.PropagateTags) error {
	if len(configurations) > 1 {
		return invalidParameter("volumeConfigurations must have at most one member, not %d.", len(configurations))
	}
	for _, c := range configurations {
		if c.Name == "" {
			return invalidParameter("volumeConfigurations.name must not be empty.")
		}
		if err := checkVolume(c, propagation); err != nil {
			return err
		}
	}
	return nil
}

func checkVolume(c taskvolume.Configuration, propagation []types.PropagateTags) error {
	e := c.EBS
	switch {
	case e == nil:
		return invalidParameter("%s must be given.", managedVolume)
	case !strings.HasPrefix(aws.ToString(e.RoleArn), "arn:"):
		return invalidParameter("%s.roleArn must be the ARN of a role, not %q.", managedVolume, aws.ToString(e.RoleArn))
	case aws.ToBool(e.Encrypted):
		return unsupported("%s.encrypted: Pintle does not encrypt volumes. Say false, and encrypt the disks of the nodes.", managedVolume)
	case e.KmsKeyId != nil:
		return unsupported("%s.kmsKeyId: Pintle has no AWS KMS, and does not encrypt volumes.", managedVolume)
	case e.SnapshotId != nil:
		return unsupported("%s.snapshotId: Pintle has no snapshots. Give sizeInGiB.", managedVolume)
	case e.VolumeInitializationRate != nil:
		return invalidParameter("%s.volumeInitializationRate is for volumes that are made from a snapshot.", managedVolume)
	case e.SizeInGiB == nil:
		return invalidParameter("%s must have a sizeInGiB.", managedVolume)
	case e.FilesystemType == types.TaskFilesystemTypeNtfs:
		return invalidParameter("%s.filesystemType ntfs is for Windows. Linux has ext3, ext4 and xfs.", managedVolume)
	case e.FilesystemType != "" && !slices.Contains(e.FilesystemType.Values(), e.FilesystemType):
		return invalidParameter("%s.filesystemType must be one of %v, not %q.", managedVolume, e.FilesystemType.Values(), e.FilesystemType)
	case e.TerminationPolicy != nil && e.TerminationPolicy.DeleteOnTermination == nil:
		return invalidParameter("%s.terminationPolicy.deleteOnTermination must be given.", managedVolume)
	}
	_, err := c.Size()
	if r, ok := errors.AsType[*volumesize.Refusal](err); ok {
		return invalidParameter("%s: %s", managedVolume, r.Text)
	}
	return checkVolumeTags(e, propagation)
}

// reservedVolumeTags are those that ECS sets itself: API_EBSTagSpecification.
var reservedVolumeTags = []string{"AmazonECSCreated", "AmazonECSManaged"}

func checkVolumeTags(e *types.TaskManagedEBSVolumeConfiguration, propagation []types.PropagateTags) error {
	for _, t := range e.TagSpecifications {
		if t.ResourceType != types.EBSResourceTypeVolume {
			return invalidParameter("%s.tagSpecifications.resourceType must be volume, not %q.", managedVolume, t.ResourceType)
		}
		if t.PropagateTags != "" && !slices.Contains(propagation, t.PropagateTags) {
			return invalidParameter("%s.tagSpecifications.propagateTags must be one of %v here, not %q.", managedVolume, propagation, t.PropagateTags)
		}
		if err := checkTags(t.Tags); err != nil {
			return err
		}
		for _, tag := range t.Tags {
			if slices.Contains(reservedVolumeTags, aws.ToString(tag.Key)) {
				return invalidParameter("%s.tagSpecifications.tags: %s is ECS's own.", managedVolume, *tag.Key)
			}
		}
	}
	return nil
}

// serviceVolumeTags lists where the tags of a service's volumes may come from.
var serviceVolumeTags = types.PropagateTags("").Values()

// volumeAtLaunch returns the name of a definition's volume that is configured at launch, or "". It has at most one.
func volumeAtLaunch(td *types.TaskDefinition) string {
	for _, v := range td.Volumes {
		if aws.ToBool(v.ConfiguredAtLaunch) {
			return aws.ToString(v.Name)
		}
	}
	return ""
}

// matchVolumes refuses configurations of volumes that a definition hasn't got, and none for one that it has.
func matchVolumes(td *types.TaskDefinition, configurations []taskvolume.Configuration) error {
	name := volumeAtLaunch(td)
	switch {
	case name == "" && len(configurations) > 0:
		return invalidParameter("Volume configuration provided but no matching configuredAtLaunch volume found in task definition")
	case name != "" && len(configurations) == 0:
		return invalidParameter("The volume %s of the task definition is configured at launch: volumeConfigurations must be given.", name)
	case name != "" && configurations[0].Name != name:
		return invalidParameter("volumeConfigurations.name: the task definition's volume that is configured at launch is %s, not %s.",
			name, configurations[0].Name)
	}
	return nil
}

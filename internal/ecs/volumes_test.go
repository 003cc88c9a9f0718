package ecs

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// volumesRole is with which ECS makes volumes.
const volumesRole = "arn:aws:iam::000000000000:role/ecsInfrastructureRole"

// withVolume registers the family "v", whose volume "data" is configured at launch, and a node that makes such volumes, of ext4 alone.
func withVolume(t *testing.T) (s *Service, store *state.Store, node string) {
	t.Helper()
	s, store = newTestService(t)
	_, err := s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family:  aws.String("v"),
		Volumes: []types.Volume{{Name: aws.String("data"), ConfiguredAtLaunch: aws.Bool(true)}},
		ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4),
			MountPoints: []types.MountPoint{{SourceVolume: aws.String("data"), ContainerPath: aws.String("/data")}},
		}},
		Tags: []types.Tag{{Key: aws.String("from"), Value: aws.String("definition")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	node = registerNode(t, s)
	statetest.Update(t, store, func(tx *state.Tx) {
		row := tx.ContainerInstances.Get(node).Clone()
		row.Attributes = slices.Clone(row.Attributes)
		for _, name := range []string{"ecs.capability.storage.ebs-task-volume-attach", acs.ManagedVolumes, acs.ManagedVolumes + ".ext4"} {
			row.Attributes = append(row.Attributes, types.Attribute{Name: aws.String(name)})
		}
		tx.ContainerInstances.Put(row)
	})
	return s, store, node
}

// configured is a call's volume of 2 GiB, with what change makes of it.
func configured(change func(*types.TaskManagedEBSVolumeConfiguration)) []types.TaskVolumeConfiguration {
	e := &types.TaskManagedEBSVolumeConfiguration{RoleArn: aws.String(volumesRole), SizeInGiB: aws.Int32(2)}
	if change != nil {
		change(e)
	}
	return []types.TaskVolumeConfiguration{{Name: aws.String("data"), ManagedEBSVolume: e}}
}

func details(a types.Attachment) map[string]string {
	out := map[string]string{}
	for _, d := range a.Details {
		out[*d.Name] = *d.Value
	}
	return out
}

// TestVolumeOfTask follows a task's volume from RunTask to its end.
func TestVolumeOfTask(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s, store, _ := withVolume(t)
		out, err := s.RunTask(t.Context(), &ecs.RunTaskInput{
			TaskDefinition: aws.String("v"), EnableECSManagedTags: true,
			VolumeConfigurations: configured(func(e *types.TaskManagedEBSVolumeConfiguration) {
				e.VolumeType, e.FilesystemType = aws.String("gp3"), types.TaskFilesystemTypeExt4
				e.TerminationPolicy = &types.TaskManagedEBSVolumeTerminationPolicy{DeleteOnTermination: aws.Bool(!keep)}
				e.TagSpecifications = []types.EBSTagSpecification{{
					ResourceType: types.EBSResourceTypeVolume, PropagateTags: types.PropagateTagsTaskDefinition,
					Tags: []types.Tag{{Key: aws.String("own"), Value: aws.String("yes")}},
				}}
			}),
		})
		if err != nil || len(out.Tasks) != 1 {
			t.Fatalf("it runs %+v, %v", out, err)
		}
		task := store.View().Tasks.Get(*out.Tasks[0].TaskArn)
		has := details(task.Attachments[0])
		id := has["volumeId"]
		want := map[string]string{
			"roleArn": volumesRole, "volumeName": "data", "deleteOnTermination": map[bool]string{true: "false", false: "true"}[keep],
			"volumeId": id, "volumeType": "gp3", "sizeInGiB": "2", "deviceName": "/dev/xvdba",
		}
		if a := task.Attachments[0]; *a.Type != "AmazonElasticBlockStorage" || *a.Status != "CREATED" || !maps.Equal(has, want) {
			t.Errorf("its attachment is %s, %s, %v", *a.Type, *a.Status, has)
		}
		v := store.View().Volumes.Get(id)
		tags := map[string]string{}
		for _, tag := range v.Tags {
			tags[*tag.Key] = *tag.Value
		}
		if v.State != ec2types.VolumeStateInUse || *v.Size != 2 || *v.Iops != 3000 || *v.Attachments[0].InstanceId != "i-node" || !maps.Equal(tags, map[string]string{
			"from": "definition", "own": "yes", "aws:ecs:clusterName": "default", "AmazonECSCreated": *task.TaskArn, "AmazonECSManaged": "true",
		}) {
			t.Errorf("the volume is %+v with %v", v.Volume, tags)
		}
		if ran := task.Running(time.Now()); *ran.Attachments[0].Status != "ATTACHED" {
			t.Errorf("it runs with %s", *ran.Attachments[0].Status)
		}
		statetest.Update(t, store, func(tx *state.Tx) { tx.Tasks.Put(task.Stopped("", "", time.Now())) })
		if err := store.Sweep(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		status := map[bool]string{true: "DETACHED", false: "DELETED"}[keep]
		if got := *store.View().Tasks.Get(*task.TaskArn).Attachments[0].Status; got != status {
			t.Errorf("it ended with %s, want %s", got, status)
		}
		if left := store.View().Volumes.Get(id) != nil; left != keep {
			t.Errorf("the volume is left: %t", left)
		}
	}
}

// TestVolumeThatIsNotMade: the attachment says why, and there's no volume, also none that was to be kept.
func TestVolumeThatIsNotMade(t *testing.T) {
	s, store, _ := withVolume(t)
	out, err := s.RunTask(t.Context(), &ecs.RunTaskInput{
		TaskDefinition: aws.String("v"), VolumeConfigurations: configured(func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.TerminationPolicy = &types.TaskManagedEBSVolumeTerminationPolicy{DeleteOnTermination: aws.Bool(false)}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
		Task: out.Tasks[0].TaskArn, Status: aws.String("STOPPED"),
		Reason: aws.String("ResourceInitializationError: failed to set up volume data: there is no room"),
	})
	if err != nil {
		t.Fatal(err)
	}
	task := store.View().Tasks.Get(*out.Tasks[0].TaskArn)
	if a := task.Attachments[0]; *a.Status != "DELETED" || details(a)["statusReason"] != "there is no room" || task.StopCode != types.TaskStopCodeTaskFailedToStart {
		t.Errorf("it is %s with %v, %s", *a.Status, details(a), task.StopCode)
	}
	if n := store.View().Volumes.Len(); n != 0 {
		t.Errorf("there are %d volumes", n)
	}
}

// TestVolumesOfService: a changed volume is a new deployment, whose tasks have it; an unchanged one isn't.
func TestVolumesOfService(t *testing.T) {
	s, store, _ := withVolume(t)
	sized := func(gib int32) []types.ServiceVolumeConfiguration {
		e := &types.ServiceManagedEBSVolumeConfiguration{RoleArn: aws.String(volumesRole), SizeInGiB: &gib}
		return []types.ServiceVolumeConfiguration{{Name: aws.String("data"), ManagedEBSVolume: e}}
	}
	made := create(t, s, func(in *ecs.CreateServiceInput) {
		in.TaskDefinition, in.VolumeConfigurations = aws.String("v"), sized(1)
	})
	if got := made.Deployments[0].VolumeConfigurations; len(got) != 1 || *got[0].ManagedEBSVolume.SizeInGiB != 1 {
		t.Errorf("it deploys %+v", got)
	}
	for _, c := range []struct {
		in          []types.ServiceVolumeConfiguration
		deployments int
	}{{nil, 1}, {sized(1), 1}, {sized(3), 2}} {
		complete(t, store)
		out, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), VolumeConfigurations: c.in})
		if err != nil || len(out.Service.Deployments) != c.deployments {
			t.Errorf("with %+v it has %d deployments, %v", c.in, len(out.Service.Deployments), err)
		}
	}
	row := store.View().Services.Get(*made.ServiceArn)
	r := store.View().ServiceRevisions.Get(row.Deployments[0].ServiceRevisionArn)
	if got := r.VolumeConfigurations; len(got) != 1 || *got[0].ManagedEBSVolume.SizeInGiB != 3 {
		t.Errorf("the revision has %+v", got)
	}
	before := store.Revision()
	for says, in := range map[string]*ecs.UpdateServiceInput{
		"The volume data of the task definition is configured at launch": {VolumeConfigurations: []types.ServiceVolumeConfiguration{}},
		"no matching configuredAtLaunch volume":                          {TaskDefinition: aws.String("f:1")},
	} {
		in.Service = aws.String("s")
		_, err := s.UpdateService(t.Context(), in)
		expectRefused(t, store, before, err, invalid, says)
	}
	in := &ecs.UpdateServiceInput{Service: aws.String("s"), TaskDefinition: aws.String("f:1"), VolumeConfigurations: []types.ServiceVolumeConfiguration{}}
	if _, err := s.UpdateService(t.Context(), in); err != nil {
		t.Error(err)
	}
}

func TestVolumesRefused(t *testing.T) {
	s, store, node := withVolume(t)
	for says, c := range map[string]struct {
		change func(*types.TaskManagedEBSVolumeConfiguration)
		code   string
	}{
		"roleArn must be the ARN of a role": {func(e *types.TaskManagedEBSVolumeConfiguration) { e.RoleArn = aws.String("r") }, invalid},
		"encrypted":                         {func(e *types.TaskManagedEBSVolumeConfiguration) { e.Encrypted = aws.Bool(true) }, "UnsupportedFeatureException"},
		"kmsKeyId":                          {func(e *types.TaskManagedEBSVolumeConfiguration) { e.KmsKeyId = aws.String("k") }, "UnsupportedFeatureException"},
		"snapshotId": {
			func(e *types.TaskManagedEBSVolumeConfiguration) { e.SnapshotId = aws.String("snap-0") }, "UnsupportedFeatureException",
		},
		"must have a sizeInGiB": {func(e *types.TaskManagedEBSVolumeConfiguration) { e.SizeInGiB = nil }, invalid},
		"volumeInitializationRate": {
			func(e *types.TaskManagedEBSVolumeConfiguration) { e.VolumeInitializationRate = aws.Int32(100) }, invalid,
		},
		"too small for volume type io1": {
			func(e *types.TaskManagedEBSVolumeConfiguration) {
				e.VolumeType, e.Iops = aws.String("io1"), aws.Int32(100)
			}, invalid,
		},
		"Unknown volume type 'x'": {func(e *types.TaskManagedEBSVolumeConfiguration) { e.VolumeType = aws.String("x") }, invalid},
		"throughput is not":       {func(e *types.TaskManagedEBSVolumeConfiguration) { e.Throughput = aws.Int32(125) }, invalid},
		"ntfs":                    {func(e *types.TaskManagedEBSVolumeConfiguration) { e.FilesystemType = types.TaskFilesystemTypeNtfs }, invalid},
		"filesystemType must be":  {func(e *types.TaskManagedEBSVolumeConfiguration) { e.FilesystemType = "zfs" }, invalid},
		"propagateTags": {func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.TagSpecifications = []types.EBSTagSpecification{{ResourceType: "volume", PropagateTags: types.PropagateTagsService}}
		}, invalid},
		"resourceType": {func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.TagSpecifications = []types.EBSTagSpecification{{}}
		}, invalid},
		"AmazonECSManaged is ECS's own": {func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.TagSpecifications = []types.EBSTagSpecification{{ResourceType: "volume", Tags: []types.Tag{{Key: aws.String("AmazonECSManaged")}}}}
		}, invalid},
		"deleteOnTermination must be given": {func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.TerminationPolicy = &types.TaskManagedEBSVolumeTerminationPolicy{}
		}, invalid},
	} {
		before := store.Revision()
		_, run := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("v"), VolumeConfigurations: configured(c.change)})
		expectRefused(t, store, before, run, c.code, says)
		_, start := s.StartTask(t.Context(), &ecs.StartTaskInput{
			TaskDefinition: aws.String("v"), VolumeConfigurations: configured(c.change), ContainerInstances: []string{node},
		})
		expectRefused(t, store, before, start, c.code, says)
	}
	other := configured(nil)
	other[0].Name = aws.String("other")
	for says, in := range map[string]*ecs.RunTaskInput{
		"volumeConfigurations must be given":                  {TaskDefinition: aws.String("v")},
		"no matching configuredAtLaunch volume":               {TaskDefinition: aws.String("f"), VolumeConfigurations: configured(nil)},
		"configured at launch is data, not other":             {TaskDefinition: aws.String("v"), VolumeConfigurations: other},
		"at most one member":                                  {TaskDefinition: aws.String("v"), VolumeConfigurations: append(other, configured(nil)...)},
		"volumeConfigurations.managedEBSVolume must be given": {TaskDefinition: aws.String("v"), VolumeConfigurations: []types.TaskVolumeConfiguration{{Name: aws.String("data")}}},
		"volumeConfigurations.name must not be empty":         {TaskDefinition: aws.String("v"), VolumeConfigurations: []types.TaskVolumeConfiguration{{}}},
	} {
		before := store.Revision()
		_, err := s.RunTask(t.Context(), in)
		expectRefused(t, store, before, err, invalid, says)
	}
}

// TestVolumeElsewhere: a task isn't placed on a node that can't make the file system.
func TestVolumeElsewhere(t *testing.T) {
	s, _, _ := withVolume(t)
	out, err := s.RunTask(t.Context(), &ecs.RunTaskInput{
		TaskDefinition: aws.String("v"), VolumeConfigurations: configured(func(e *types.TaskManagedEBSVolumeConfiguration) {
			e.FilesystemType = types.TaskFilesystemTypeXfs
		}),
	})
	if err != nil || len(out.Failures) != 1 || aws.ToString(out.Failures[0].Detail) != "Missing attribute: pintle.managed-volumes.xfs." {
		t.Errorf("got %+v, %v", out, err)
	}
}

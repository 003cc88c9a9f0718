package ecs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

const (
	testCluster  = "arn:aws:ecs:us-east-1:000000000000:cluster/default"
	testInstance = "arn:aws:ecs:us-east-1:000000000000:container-instance/default/one"
	testTask     = "arn:aws:ecs:us-east-1:000000000000:task/default/a"
	testRole     = "arn:aws:iam::000000000000:role/worker"
)

// as returns the context of a call by somebody.
func as(t *testing.T, who call.Identity) context.Context {
	return call.With(t.Context(), call.Call{Service: "ecs", Operation: "X", Identity: who})
}

// putTask puts an instance and a task on it that is stopping, with an attachment.
func putTask(t *testing.T, store *state.Store) {
	statetest.Update(t, store, func(tx *state.Tx) {
		tx.ContainerInstances.Put(&state.ContainerInstance{
			ContainerInstance: types.ContainerInstance{ContainerInstanceArn: aws.String(testInstance), Status: aws.String("ACTIVE")},
			ClusterArn:        testCluster,
		})
		tx.Tasks.Put(&state.Task{Task: types.Task{
			TaskArn:              aws.String(testTask),
			ClusterArn:           aws.String(testCluster),
			TaskDefinitionArn:    aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/f:1"),
			ContainerInstanceArn: aws.String(testInstance),
			LastStatus:           aws.String("RUNNING"),
			DesiredStatus:        aws.String("STOPPED"),
			Containers:           []types.Container{{Name: aws.String("main"), LastStatus: aws.String("RUNNING")}},
			Attachments:          []types.Attachment{{Id: aws.String("eni"), Status: aws.String("ATTACHED")}},
		}})
	})
}

// TestNodeActsForItself: what a node may do, another node may not do to the first one's instance and tasks.
func TestNodeActsForItself(t *testing.T) {
	s, store := newTestService(t)
	putTask(t, store)
	attachment := "arn:aws:ecs:us-east-1:000000000000:attachment/eni"
	for _, c := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"SubmitAttachmentStateChanges", func(ctx context.Context) error {
			_, err := s.SubmitAttachmentStateChanges(ctx, &ecs.SubmitAttachmentStateChangesInput{
				Attachments: []types.AttachmentStateChange{{AttachmentArn: &attachment, Status: aws.String("DETACHED")}},
			})
			return err
		}},
		{"SubmitContainerStateChange", func(ctx context.Context) error {
			_, err := s.SubmitContainerStateChange(ctx, &ecs.SubmitContainerStateChangeInput{
				Task:          aws.String(testTask),
				ContainerName: aws.String("main"),
				Status:        aws.String("STOPPED"),
			})
			return err
		}},
		{"ListTagsForResource of a task", func(ctx context.Context) error {
			_, err := s.ListTagsForResource(ctx, &ecs.ListTagsForResourceInput{ResourceArn: aws.String(testTask)})
			return err
		}},
		{"ListTagsForResource", func(ctx context.Context) error {
			_, err := s.ListTagsForResource(ctx, &ecs.ListTagsForResourceInput{ResourceArn: aws.String(testInstance)})
			return err
		}},
		{"SubmitTaskStateChange", func(ctx context.Context) error {
			_, err := s.SubmitTaskStateChange(ctx, &ecs.SubmitTaskStateChangeInput{
				Task:   aws.String(testTask),
				Status: aws.String("STOPPED"),
			})
			return err
		}},
		{"UpdateContainerInstancesState", func(ctx context.Context) error {
			_, err := s.UpdateContainerInstancesState(ctx, &ecs.UpdateContainerInstancesStateInput{
				ContainerInstances: []string{testInstance},
				Status:             types.ContainerInstanceStatusDraining,
			})
			return err
		}},
		{"DeregisterContainerInstance", func(ctx context.Context) error {
			_, err := s.DeregisterContainerInstance(ctx, &ecs.DeregisterContainerInstanceInput{ContainerInstance: aws.String(testInstance)})
			return err
		}},
	} {
		before := store.Revision()
		var denied *types.AccessDeniedException
		for _, other := range []string{"", testInstance + "f"} {
			if err := c.do(as(t, call.Identity{Node: true, Instance: other})); !errors.As(err, &denied) {
				t.Errorf("%s by the node %q: %v", c.name, other, err)
			}
		}
		if store.Revision() != before {
			t.Errorf("%s was refused, and changed something", c.name)
		}
		if err := c.do(as(t, call.Identity{Node: true, Instance: testInstance})); err != nil {
			t.Errorf("%s by the instance itself: %v", c.name, err)
		}
	}
}

// TestAttachmentOfStoppingTask: an attachment goes when its task stops, and that report counts.
func TestAttachmentOfStoppingTask(t *testing.T) {
	s, store := newTestService(t)
	putTask(t, store)
	arn := "arn:aws:ecs:us-east-1:000000000000:attachment/eni"
	_, err := s.SubmitAttachmentStateChanges(t.Context(), &ecs.SubmitAttachmentStateChangesInput{
		Attachments: []types.AttachmentStateChange{{AttachmentArn: &arn, Status: aws.String("DETACHED")}},
	})
	if a := store.View().Tasks.Get(testTask).Attachments[0]; err != nil || *a.Status != "DETACHED" {
		t.Errorf("a stopping task's attachment is %s, %v", *a.Status, err)
	}
}

// TestReportedStatuses: reports with a status that ECS doesn't have are refused, and name the member.
func TestReportedStatuses(t *testing.T) {
	s, store := newTestService(t)
	putTask(t, store)
	bad := aws.String("DANCING")
	attachments := []types.AttachmentStateChange{{AttachmentArn: aws.String("a"), Status: bad}}
	for want, do := range map[string]func() error{
		"status must": func() error {
			_, err := s.SubmitContainerStateChange(t.Context(), &ecs.SubmitContainerStateChangeInput{Task: aws.String(testTask), Status: bad})
			return err
		},
		"containers.status must": func() error {
			_, err := s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
				Task:       aws.String(testTask),
				Containers: []types.ContainerStateChange{{ContainerName: aws.String("main"), Status: bad}},
			})
			return err
		},
		"attachments.status must": func() error {
			_, err := s.SubmitAttachmentStateChanges(t.Context(), &ecs.SubmitAttachmentStateChangesInput{Attachments: attachments})
			return err
		},
	} {
		var invalid *types.InvalidParameterException
		if err := do(); !errors.As(err, &invalid) || !strings.HasPrefix(*invalid.Message, want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestTaskPassesNoMoreThanItHas: a task may register and run definitions, but with no other role than its own, and with nothing
// of the node's.
func TestTaskPassesNoMoreThanItHas(t *testing.T) {
	s, _ := newTestService(t)
	other := aws.String("arn:aws:iam::000000000000:role/admin")
	for _, c := range []struct {
		name    string
		change  func(*ecs.RegisterTaskDefinitionInput)
		allowed bool
	}{
		{"no role", func(*ecs.RegisterTaskDefinitionInput) {}, true},
		{"its own role", func(in *ecs.RegisterTaskDefinitionInput) { in.TaskRoleArn = aws.String(testRole) }, true},
		{"another role", func(in *ecs.RegisterTaskDefinitionInput) { in.TaskRoleArn = other }, false},
		{"another execution role", func(in *ecs.RegisterTaskDefinitionInput) { in.ExecutionRoleArn = other }, false},
		{"privileged", func(in *ecs.RegisterTaskDefinitionInput) { in.ContainerDefinitions[0].Privileged = aws.Bool(true) }, false},
		{"a device", func(in *ecs.RegisterTaskDefinitionInput) {
			in.ContainerDefinitions[0].LinuxParameters = &types.LinuxParameters{Devices: []types.Device{{HostPath: aws.String("/dev/sda")}}}
		}, false},
		{"the node's processes", func(in *ecs.RegisterTaskDefinitionInput) { in.PidMode = types.PidModeHost }, false},
		{"the node's files", func(in *ecs.RegisterTaskDefinitionInput) {
			in.Volumes = []types.Volume{{Name: aws.String("v"), Host: &types.HostVolumeProperties{SourcePath: aws.String("/")}}}
		}, false},
		{"a volume that is the node's files", func(in *ecs.RegisterTaskDefinitionInput) {
			in.Volumes = []types.Volume{{Name: aws.String("v"), DockerVolumeConfiguration: &types.DockerVolumeConfiguration{
				DriverOpts: map[string]string{"type": "none", "o": "bind", "device": "/"},
			}}}
		}, false},
		{"a volume of a driver that does as it likes", func(in *ecs.RegisterTaskDefinitionInput) {
			in.Volumes = []types.Volume{{Name: aws.String("v"), DockerVolumeConfiguration: &types.DockerVolumeConfiguration{
				Driver: aws.String("local-persist"),
			}}}
		}, false},
		{"a volume of its own", func(in *ecs.RegisterTaskDefinitionInput) {
			in.Volumes = []types.Volume{{Name: aws.String("v"), DockerVolumeConfiguration: &types.DockerVolumeConfiguration{
				Driver: aws.String("local"),
			}}}
		}, true},
		{"what its role may read in S3", func(in *ecs.RegisterTaskDefinitionInput) {
			in.TaskRoleArn = aws.String(testRole)
			in.Volumes = []types.Volume{{Name: aws.String("v"), DockerVolumeConfiguration: &types.DockerVolumeConfiguration{
				Driver: aws.String("pintle-s3"), DriverOpts: map[string]string{"source": "s3://b/p"},
			}}}
		}, true},
		{"the node's network", func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = types.NetworkModeHost }, false},
		{"no seccomp", func(in *ecs.RegisterTaskDefinitionInput) {
			in.ContainerDefinitions[0].DockerSecurityOptions = []string{"seccomp=unconfined"}
		}, false},
		{"fewer rights than usual", func(in *ecs.RegisterTaskDefinitionInput) {
			in.ContainerDefinitions[0].DockerSecurityOptions = []string{"no-new-privileges"}
		}, true},
	} {
		in := &ecs.RegisterTaskDefinitionInput{
			Family:               aws.String("x"),
			ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4)}},
		}
		c.change(in)
		task := as(t, call.Identity{Task: testTask, Role: testRole})
		var denied *types.AccessDeniedException
		if _, err := s.RegisterTaskDefinition(task, in); c.allowed && err != nil || !c.allowed && !errors.As(err, &denied) {
			t.Errorf("a task registers a definition with %s: %v", c.name, err)
		}
		out, err := s.RegisterTaskDefinition(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.RunTask(task, &ecs.RunTaskInput{TaskDefinition: out.TaskDefinition.TaskDefinitionArn})
		if got := errors.As(err, &denied); got == c.allowed {
			t.Errorf("a task runs a definition with %s: %v", c.name, err)
		}
		if !c.allowed && !errors.As(executeIn(task, t, s, out.TaskDefinition.TaskDefinitionArn), &denied) {
			t.Errorf("a task executes commands in one with %s: %v", c.name, err)
		}
	}
	task := as(t, call.Identity{Task: testTask, Role: testRole})
	_, err := s.RunTask(task, &ecs.RunTaskInput{TaskDefinition: aws.String("x"), Overrides: &types.TaskOverride{TaskRoleArn: other}})
	var denied *types.AccessDeniedException
	if !errors.As(err, &denied) {
		t.Errorf("a task runs another with the role of an override: %v", err)
	}
}

// executeIn executes a command in a running task of a definition.
func executeIn(ctx context.Context, t *testing.T, s *Service, definition *string) error {
	id := strings.Repeat("e", 32)
	statetest.Update(t, s.store, func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{Task: types.Task{
			TaskArn: aws.String("arn:aws:ecs:us-east-1:000000000000:task/default/" + id), ClusterArn: aws.String(testCluster), TaskDefinitionArn: definition,
			LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"), EnableExecuteCommand: true,
			Containers: []types.Container{{Name: aws.String("main"), ManagedAgents: []types.ManagedAgent{
				{Name: types.ManagedAgentNameExecuteCommandAgent, LastStatus: aws.String("RUNNING")},
			}}},
		}})
	})
	_, err := s.ExecuteCommand(ctx, &ecs.ExecuteCommandInput{Task: &id, Command: aws.String("sh"), Interactive: true})
	return err
}

// TestTaskRegistersNoImageOfNode: a node reads images in files as root, wherever they are.
func TestTaskRegistersNoImageOfNode(t *testing.T) {
	s, _ := newTestService(t)
	task := as(t, call.Identity{Task: testTask, Role: testRole})
	for _, image := range []string{"rootfs:/root/backup.tar", "oci-layout:/root/image"} {
		in := definition(ofContainer(func(c *types.ContainerDefinition) { c.Image = &image }))
		var denied *types.AccessDeniedException
		if _, err := s.RegisterTaskDefinition(task, in); !errors.As(err, &denied) {
			t.Errorf("a task registers %s: %v", image, err)
		}
		if _, err := s.RegisterTaskDefinition(t.Context(), in); err != nil {
			t.Errorf("the owner registers %s: %v", image, err)
		}
	}
}

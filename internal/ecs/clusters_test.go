package ecs

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// TestStatistics: a cluster's statistics are there where a call asks for them, by launch type.
func TestStatistics(t *testing.T) {
	s, _ := newTestService(t)
	registerNode(t, s)
	if _, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f")}); err != nil {
		t.Fatal(err)
	}
	create(t, s, nil)
	for _, include := range [][]types.ClusterField{nil, {types.ClusterFieldStatistics}} {
		out, err := s.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{Include: include})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, p := range out.Clusters[0].Statistics {
			got[*p.Name] = *p.Value
		}
		if include == nil {
			if len(got) > 0 {
				t.Errorf("nobody asked for %v", got)
			}
			continue
		}
		for name, want := range map[string]string{
			"runningEC2TasksCount": "0", "pendingEC2TasksCount": "1", "runningFargateTasksCount": "0", "pendingFargateTasksCount": "0",
			"activeEC2ServiceCount": "1", "drainingEC2ServiceCount": "0", "activeFargateServiceCount": "0", "drainingFargateServiceCount": "0",
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %s", name, got[name], want)
			}
		}
	}
}

// TestAttachments: a cluster's attachments tell what its capacity providers do, where a call asks for them and when they change.
func TestAttachments(t *testing.T) {
	s, store := newTestService(t)
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for name, is := range map[string]types.ManagedScalingStatus{
			"grows": types.ManagedScalingStatusEnabled,
			"stays": types.ManagedScalingStatusDisabled,
		} {
			tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: types.CapacityProvider{
				CapacityProviderArn: aws.String(s.arn("capacity-provider", name)),
				Name:                &name,
				AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
					AutoScalingGroupArn: aws.String(name),
					ManagedScaling:      &types.ManagedScaling{Status: is},
					ManagedDraining:     map[string]types.ManagedDraining{"grows": types.ManagedDrainingEnabled}[name],
				},
			}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	put, err := s.PutClusterCapacityProviders(t.Context(), &ecs.PutClusterCapacityProvidersInput{
		Cluster:                         aws.String("default"),
		CapacityProviders:               []string{"grows", "stays", "FARGATE"},
		DefaultCapacityProviderStrategy: []types.CapacityProviderStrategyItem{},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, include := range [][]types.ClusterField{nil, {types.ClusterFieldAttachments}} {
		out, err := s.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{Include: include})
		if err != nil {
			t.Fatal(err)
		}
		got := out.Clusters[0]
		if include == nil {
			if got.Attachments != nil || got.AttachmentsStatus != nil {
				t.Errorf("nobody asked for %v", got.Attachments)
			}
			continue
		}
		if aws.ToString(got.AttachmentsStatus) != "UPDATE_COMPLETE" || !reflect.DeepEqual(got.Attachments, put.Cluster.Attachments) {
			t.Errorf("%+v, and was %+v", got, put.Cluster)
		}
		var texts []string
		for _, a := range got.Attachments {
			text := *a.Type + " " + *a.Status
			for _, d := range a.Details {
				text += " " + *d.Name + "=" + *d.Value
			}
			texts = append(texts, text)
		}
		if want := []string{
			"as_policy CREATED capacityProviderName=grows",
			"managed_draining CREATED capacityProviderName=grows autoScalingLifecycleHookName=ecs-managed-draining-termination-hook",
		}; !slices.Equal(texts, want) {
			t.Errorf("%q", texts)
		}
	}
}

// TestEndOfATask: a task that ended by itself was stopping before it stopped, and a task on its node's network shows no bindings.
func TestEndOfATask(t *testing.T) {
	for mode, bindings := range map[types.NetworkMode]int{"": 1, types.NetworkModeBridge: 1, types.NetworkModeHost: 0} {
		t.Run(string(mode), func(t *testing.T) {
			s, store := newTestService(t)
			registerNode(t, s)
			_, err := s.RegisterTaskDefinition(t.Context(), definition(func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = mode }))
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("d")})
			if err != nil {
				t.Fatal(err)
			}
			ended := time.Now().Add(-time.Minute)
			_, err = s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
				Task:               run.Tasks[0].TaskArn,
				Status:             aws.String("STOPPED"),
				ExecutionStoppedAt: &ended,
				Containers: []types.ContainerStateChange{{
					ContainerName:   aws.String("main"),
					ExitCode:        aws.Int32(0),
					NetworkBindings: []types.NetworkBinding{{ContainerPort: aws.Int32(80), HostPort: aws.Int32(80)}},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			task := store.View().Tasks.Get(*run.Tasks[0].TaskArn)
			if !task.StoppingAt.Equal(ended) || !task.StoppedAt.After(ended) {
				t.Errorf("stopping at %v, stopped at %v, ended at %v", task.StoppingAt, task.StoppedAt, ended)
			}
			if n := len(task.Containers[0].NetworkBindings); n != bindings {
				t.Errorf("%d bindings, want %d", n, bindings)
			}
		})
	}
}

// TestWhyATaskStopped: a task has failed to start if its essential container never did, whatever containers before it have done.
func TestWhyATaskStopped(t *testing.T) {
	const pull = "CannotPullContainerError: no such image"
	ended := func(name string, code int32) types.ContainerStateChange {
		return types.ContainerStateChange{ContainerName: &name, Status: aws.String("STOPPED"), ExitCode: &code}
	}
	failed := func(name string) types.ContainerStateChange {
		return types.ContainerStateChange{ContainerName: &name, Status: aws.String("STOPPED"), Reason: aws.String(pull)}
	}
	for _, c := range []struct {
		name       string
		containers []types.ContainerStateChange
		reason     string // the node's
		code       types.TaskStopCode
		want       string
	}{
		{"main ends", []types.ContainerStateChange{ended("init", 0), ended("main", 3)}, "", types.TaskStopCodeEssentialContainerExited, "Essential container in task exited"},
		{"main cannot start", []types.ContainerStateChange{ended("init", 0), failed("main")}, pull, types.TaskStopCodeTaskFailedToStart, pull},
		{"an agent that gives no reason", []types.ContainerStateChange{ended("init", 0), failed("main")}, "", types.TaskStopCodeTaskFailedToStart, pull},
		{"main waits in vain", []types.ContainerStateChange{ended("init", 9), ended("main", 143)}, "x", types.TaskStopCodeEssentialContainerExited, "Essential container in task exited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store := newTestService(t)
			registerNode(t, s)
			_, err := s.RegisterTaskDefinition(t.Context(), definition(func(in *ecs.RegisterTaskDefinitionInput) {
				init := in.ContainerDefinitions[0]
				init.Name, init.Essential = aws.String("init"), aws.Bool(false)
				in.ContainerDefinitions = append(in.ContainerDefinitions, init)
			}))
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("d")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
				Task: run.Tasks[0].TaskArn, Status: aws.String("STOPPED"), Reason: &c.reason, Containers: c.containers,
			})
			if err != nil {
				t.Fatal(err)
			}
			task := store.View().Tasks.Get(*run.Tasks[0].TaskArn)
			if task.StopCode != c.code || *task.StoppedReason != c.want {
				t.Errorf("%s: %s", task.StopCode, *task.StoppedReason)
			}
		})
	}
}

// TestImagesOfAService: what the first task of a service found by an image's tag is what the service's revision runs.
func TestImagesOfAService(t *testing.T) {
	for _, c := range []struct {
		name, image string
		consistency types.VersionConsistency
		want        string
	}{
		{"by tag", "app:1", "", "sha256:1"},
		{"enabled", "app:1", types.VersionConsistencyEnabled, "sha256:1"},
		{"disabled", "app:1", types.VersionConsistencyDisabled, ""},
		{"by digest", "app@sha256:0", "", ""},
		{"in a file", "oci-layout:/images/app", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store := newTestService(t)
			_, err := s.RegisterTaskDefinition(t.Context(), definition(func(in *ecs.RegisterTaskDefinitionInput) {
				in.ContainerDefinitions[0].Image = &c.image
				in.ContainerDefinitions[0].VersionConsistency = c.consistency
			}))
			if err != nil {
				t.Fatal(err)
			}
			service := create(t, s, func(in *ecs.CreateServiceInput) { in.TaskDefinition = aws.String("d") })
			row := store.View().Services.Get(*service.ServiceArn)
			for _, digest := range []string{"sha256:1", "sha256:2"} {
				task := &state.Task{ServiceArn: *service.ServiceArn, Task: types.Task{
					TaskArn:           new("arn:aws:ecs:us-east-1:000000000000:task/default/" + digest[7:]),
					ClusterArn:        service.ClusterArn,
					TaskDefinitionArn: service.TaskDefinition,
					StartedBy:         row.Deployments[0].Id,
					LastStatus:        aws.String("PENDING"),
					DesiredStatus:     aws.String("RUNNING"),
					Containers:        []types.Container{{Name: aws.String("main"), LastStatus: aws.String("PENDING")}},
				}}
				if err := store.Update(t.Context(), func(tx *state.Tx) error { tx.Tasks.Put(task); return nil }); err != nil {
					t.Fatal(err)
				}
				_, err = s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
					Task: task.TaskArn, Status: aws.String("RUNNING"), Containers: []types.ContainerStateChange{
						{ContainerName: aws.String("main"), Status: aws.String("RUNNING"), ImageDigest: &digest},
					},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			revision := store.View().ServiceRevisions.Get(row.Deployments[0].ServiceRevisionArn)
			if got := aws.ToString(revision.ContainerImages[0].ImageDigest); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

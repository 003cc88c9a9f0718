package ecs

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestRunOnNoPlatform: versions of Fargate's platform are refused by name, and nothing runs.
func TestRunOnNoPlatform(t *testing.T) {
	s, store := newTestService(t)
	registerNode(t, s)
	_, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), PlatformVersion: aws.String("1.4.0")})
	if refused := (*types.UnsupportedFeatureException)(nil); !errors.As(err, &refused) || !strings.Contains(*refused.Message, "platformVersion") {
		t.Errorf("got %v", err)
	}
	for task := range store.View().Tasks.All() {
		t.Errorf("%s runs", *task.TaskArn)
	}
}

// TestMembersOfOtherKinds: daemons, and clusters that own a capacity provider, are refused by name. All tasks, or a provider that any
// cluster may have, would be the wrong answer.
func TestMembersOfOtherKinds(t *testing.T) {
	s, _ := newTestService(t)
	_, daemons := s.ListTasks(t.Context(), &ecs.ListTasksInput{DaemonName: aws.String("d")})
	cluster := aws.String("c")
	_, change := s.UpdateCapacityProvider(t.Context(), &ecs.UpdateCapacityProviderInput{Name: aws.String("p"), Cluster: cluster})
	_, remove := s.DeleteCapacityProvider(t.Context(), &ecs.DeleteCapacityProviderInput{CapacityProvider: aws.String("p"), Cluster: cluster})
	for err, member := range map[error]string{daemons: "daemonName", change: "cluster", remove: "cluster"} {
		refused := (*types.InvalidParameterException)(nil)
		if !errors.As(err, &refused) || !strings.HasPrefix(*refused.Message, member) {
			t.Errorf("%s: got %v", member, err)
		}
	}
}

// TestStartedByIsTheOnlyFilter: as on AWS, of all that tasks are listed by; a status isn't a filter.
func TestStartedByIsTheOnlyFilter(t *testing.T) {
	s, _ := newTestService(t)
	for name, in := range map[string]*ecs.ListTasksInput{
		"":                  {DesiredStatus: "STOPPED"},
		"family":            {Family: aws.String("f")},
		"serviceName":       {ServiceName: aws.String("s")},
		"containerInstance": {ContainerInstance: aws.String("i")},
		"launchType":        {LaunchType: "EC2"},
	} {
		in.StartedBy = aws.String("me")
		_, err := s.ListTasks(t.Context(), in)
		refused, ok := errors.AsType[*types.InvalidParameterException](err)
		if ok != (name != "") || ok && !strings.HasPrefix(*refused.Message, "startedBy ") {
			t.Errorf("with %q: %v", name, err)
		}
	}
}

// TestStorageThatIsNotThere: storage and accelerators that only Fargate and other instances have are refused, and not left out.
func TestStorageThatIsNotThere(t *testing.T) {
	s, store := newTestService(t)
	registerNode(t, s)
	run := func(o types.TaskOverride) error {
		_, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), Overrides: &o})
		return err
	}
	_, cluster := s.CreateCluster(t.Context(), &ecs.CreateClusterInput{ClusterName: aws.String("c"), Configuration: &types.ClusterConfiguration{
		ManagedStorageConfiguration: &types.ManagedStorageConfiguration{KmsKeyId: aws.String("k")},
	}})
	if err := (*types.InvalidParameterException)(nil); !errors.As(cluster, &err) || !strings.Contains(*err.Message, "managedStorageConfiguration") {
		t.Errorf("a cluster's storage: got %v", cluster)
	}
	for member, err := range map[string]error{
		"ephemeralStorage": run(types.TaskOverride{EphemeralStorage: &types.EphemeralStorage{SizeInGiB: 30}}),
		"inferenceAcceleratorOverrides": run(types.TaskOverride{
			InferenceAcceleratorOverrides: []types.InferenceAcceleratorOverride{{DeviceName: aws.String("d")}},
		}),
	} {
		if refused := (*types.UnsupportedFeatureException)(nil); !errors.As(err, &refused) || !strings.Contains(*refused.Message, member) {
			t.Errorf("%s: got %v", member, err)
		}
	}
	for task := range store.View().Tasks.All() {
		t.Errorf("%s runs", *task.TaskArn)
	}
}

package ecs

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

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

// TestCallsForGPUsAreTold: of a call that finds no GPU its cluster is told, so that idle functions give theirs up, and of one that lacks memory it isn't.
func TestCallsForGPUsAreTold(t *testing.T) {
	s, _ := newTestService(t)
	node := registerNode(t, s)
	told := 0
	s.opts.NoGPU = func(cluster, definition string, _ []types.PlacementConstraint) {
		if told++; !strings.HasSuffix(cluster, ":cluster/default") || !strings.Contains(definition, "task-definition/d:") {
			t.Errorf("told of %s in %s", definition, cluster)
		}
	}
	for lack, change := range map[string]func(*types.ContainerDefinition){
		"RESOURCE:GPU": func(c *types.ContainerDefinition) {
			c.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("90")}}
		},
		"RESOURCE:MEMORY": func(c *types.ContainerDefinition) { c.Memory = aws.Int32(1 << 24) },
	} {
		before := told
		if _, err := s.RegisterTaskDefinition(t.Context(), definition(ofContainer(change))); err != nil {
			t.Fatal(err)
		}
		run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("d")})
		if err != nil || len(run.Failures) != 1 || *run.Failures[0].Reason != lack {
			t.Fatalf("%+v, %v", run, err)
		}
		if _, err := s.StartTask(t.Context(), &ecs.StartTaskInput{TaskDefinition: aws.String("d"), ContainerInstances: []string{node}}); err != nil {
			t.Fatal(err)
		}
		if got := told - before; got != map[string]int{"RESOURCE:GPU": 2}[lack] {
			t.Errorf("%s is told %d times", lack, got)
		}
	}
}

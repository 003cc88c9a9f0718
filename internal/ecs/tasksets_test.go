package ecs

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// newECS returns ECS over an empty store, with the default cluster and the task definition "ec2", which can't run on Fargate.
func newECS(t *testing.T) (*Service, context.Context) {
	t.Helper()
	ctx := t.Context()
	scheduler := scheduler.New(1)
	store := statetest.Open(t, scheduler)
	s := New(store, scheduler, Options{Account: accounttest.New(time.Now)})
	if _, err := s.CreateCluster(ctx, &ecs.CreateClusterInput{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family:               aws.String("ec2"),
		ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, ctx
}

// newExternal creates the service "x" with a desired count of 4 and the deployment controller EXTERNAL.
func newExternal(t *testing.T, s *Service, ctx context.Context) {
	t.Helper()
	_, err := s.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:          aws.String("x"),
		DesiredCount:         aws.Int32(4),
		DeploymentController: &types.DeploymentController{Type: types.DeploymentControllerTypeExternal},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newSet(token *string, scale float64) *ecs.CreateTaskSetInput {
	return &ecs.CreateTaskSetInput{
		Cluster:        aws.String("default"),
		Service:        aws.String("x"),
		TaskDefinition: aws.String("ec2"),
		ClientToken:    token,
		Scale:          &types.Scale{Value: scale},
	}
}

// expectRefusal expects an error of the SDK's type E that contains says.
func expectRefusal[E error](t *testing.T, err error, says string) {
	t.Helper()
	var want E
	if !errors.As(err, &want) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %T naming %q", err, want, says)
	}
}

func TestTaskSetsOfAService(t *testing.T) {
	s, ctx := newECS(t)
	newExternal(t, s, ctx)
	first, err := s.CreateTaskSet(ctx, newSet(aws.String("a"), 30))
	if err != nil || first.TaskSet.ComputedDesiredCount != 2 || first.TaskSet.Scale.Unit != types.ScaleUnitPercent {
		t.Fatal(first, err)
	}
	again, err := s.CreateTaskSet(ctx, newSet(aws.String("a"), 30))
	if err != nil || *again.TaskSet.Id != *first.TaskSet.Id {
		t.Error("the same call again makes another task set", err)
	}
	_, err = s.CreateTaskSet(ctx, newSet(aws.String("a"), 31))
	expectRefusal[*types.InvalidParameterException](t, err, "clientToken")
	for range 4 {
		if _, err := s.CreateTaskSet(ctx, newSet(nil, 0)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.CreateTaskSet(ctx, newSet(nil, 0))
	expectRefusal[*types.InvalidParameterException](t, err, "5 task sets")

	in := newSet(nil, 0)
	in.Service = aws.String("rolling")
	_, err = s.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:    in.Service,
		TaskDefinition: aws.String("ec2"),
		DesiredCount:   aws.Int32(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateTaskSet(ctx, in)
	expectRefusal[*types.InvalidParameterException](t, err, "not EXTERNAL")
	_, err = s.DescribeTaskSets(ctx, &ecs.DescribeTaskSetsInput{Cluster: aws.String("default"), Service: in.Service})
	expectRefusal[*types.InvalidParameterException](t, err, "not EXTERNAL")
}

// TestUpdateOfExternalService: UpdateService changes what it may of an EXTERNAL service, and refuses the rest.
func TestUpdateOfExternalService(t *testing.T) {
	s, ctx := newECS(t)
	newExternal(t, s, ctx)
	for field, in := range map[string]*ecs.UpdateServiceInput{
		"taskDefinition":           {TaskDefinition: aws.String("ec2")},
		"capacityProviderStrategy": {CapacityProviderStrategy: []types.CapacityProviderStrategyItem{}},
		"networkConfiguration":     {NetworkConfiguration: &types.NetworkConfiguration{}},
		"deploymentConfiguration":  {DeploymentConfiguration: &types.DeploymentConfiguration{}},
		"enableExecuteCommand":     {EnableExecuteCommand: aws.Bool(true)},
		"forceNewDeployment":       {ForceNewDeployment: true},
	} {
		in.Service = aws.String("x")
		_, err := s.UpdateService(ctx, in)
		expectRefusal[*types.InvalidParameterException](t, err, field)
	}
	out, err := s.UpdateService(ctx, &ecs.UpdateServiceInput{
		Service:                       aws.String("x"),
		DesiredCount:                  aws.Int32(7),
		HealthCheckGracePeriodSeconds: aws.Int32(9),
		PropagateTags:                 types.PropagateTagsService,
		EnableECSManagedTags:          aws.Bool(true),
		PlacementStrategy:             []types.PlacementStrategy{{Type: types.PlacementStrategyTypeRandom}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := out.Service
	if got.DesiredCount != 7 || *got.HealthCheckGracePeriodSeconds != 9 || got.PropagateTags != types.PropagateTagsService ||
		!got.EnableECSManagedTags || len(got.PlacementStrategy) != 1 || len(got.Deployments) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestProvidersGroups: the group of a capacity provider that is given by its ARN must exist, with managed scaling or without.
func TestProvidersGroups(t *testing.T) {
	s, ctx := newECS(t)
	arn := aws.String("arn:aws:autoscaling:us-east-1:000000000000:autoScalingGroup:1:autoScalingGroupName/real")
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		tx.AutoScalingGroups.Put(&state.AutoScalingGroup{AutoScalingGroup: autoscalingtypes.AutoScalingGroup{
			AutoScalingGroupName: aws.String("real"), AutoScalingGroupARN: arn,
		}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	create := func(group string) error {
		_, err := s.CreateCapacityProvider(ctx, &ecs.CreateCapacityProviderInput{
			Name: aws.String("p"), AutoScalingGroupProvider: &types.AutoScalingGroupProvider{AutoScalingGroupArn: &group},
		})
		return err
	}
	for _, group := range []string{
		"arn:aws:sqs:us-east-1:000000000000:real", "arn:aws:sqs:us-east-1:000000000000:q:autoScalingGroupName/real",
		"arn:aws:autoscaling:us-east-1:000000000000:autoScalingGroup:2:autoScalingGroupName/real",
		"arn:aws:autoscaling:us-east-1:000000000000:autoScalingGroup:1:autoScalingGroupName/none",
	} {
		expectRefusal[*types.ClientException](t, create(group), "The specified Auto Scaling group does not exist")
	}
	if err := create(*arn); err != nil {
		t.Error(err)
	}
}

func TestStrategiesOfACluster(t *testing.T) {
	s, ctx := newECS(t)
	_, err := s.CreateCapacityProvider(ctx, &ecs.CreateCapacityProviderInput{
		Name:                     aws.String("p"),
		AutoScalingGroupProvider: &types.AutoScalingGroupProvider{AutoScalingGroupArn: aws.String("g")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.provider(s.store.View(), "p").AutoScalingGroupProvider; !reflect.DeepEqual(got, &types.AutoScalingGroupProvider{
		AutoScalingGroupArn:          aws.String("g"),
		ManagedScaling:               &types.ManagedScaling{Status: types.ManagedScalingStatusDisabled},
		ManagedTerminationProtection: types.ManagedTerminationProtectionDisabled,
		ManagedDraining:              types.ManagedDrainingEnabled,
	}) {
		t.Errorf("the defaults are %+v", got)
	}
	put := func(providers []string, defaults ...types.CapacityProviderStrategyItem) {
		t.Helper()
		_, err := s.PutClusterCapacityProviders(ctx, &ecs.PutClusterCapacityProvidersInput{
			Cluster:                         aws.String("default"),
			CapacityProviders:               providers,
			DefaultCapacityProviderStrategy: defaults,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	item := func(provider string, weight int32) types.CapacityProviderStrategyItem {
		return types.CapacityProviderStrategyItem{CapacityProvider: &provider, Weight: weight}
	}
	create := func(name string, strategy ...types.CapacityProviderStrategyItem) (*ecs.CreateServiceOutput, error) {
		return s.CreateService(ctx, &ecs.CreateServiceInput{
			ServiceName:              &name,
			TaskDefinition:           aws.String("ec2"),
			DesiredCount:             aws.Int32(0),
			CapacityProviderStrategy: strategy,
		})
	}
	_, err = create("s", item("p", 1))
	expectRefusal[*types.InvalidParameterException](t, err, "not associated with the cluster")
	put([]string{"p"}, item("p", 0))
	_, err = create("s")
	expectRefusal[*types.InvalidParameterException](t, err, "weight")
	put([]string{"p", "FARGATE"}, item("FARGATE", 1))
	_, err = create("s")
	expectRefusal[*types.InvalidParameterException](t, err, "FARGATE")
	out, err := create("s", item("p", 1))
	if err != nil || out.Service.LaunchType != "" {
		t.Fatal(out, err)
	}
	updated, err := s.UpdateService(ctx, &ecs.UpdateServiceInput{
		Service:                  aws.String("s"),
		CapacityProviderStrategy: []types.CapacityProviderStrategyItem{},
	})
	if err != nil || updated.Service.LaunchType != types.LaunchTypeEc2 || len(updated.Service.CapacityProviderStrategy) != 0 {
		t.Error("an empty strategy does not lead back to the launch type", updated, err)
	}
	put([]string{"FARGATE"})
}

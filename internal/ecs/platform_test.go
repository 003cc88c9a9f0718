package ecs

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// newFargateService returns ECS as newTestService does, with the family "net", which can run on Fargate, and nodes that take it.
func newFargateService(t *testing.T) (*Service, *types.NetworkConfiguration) {
	t.Helper()
	s, _ := newTestService(t)
	for range 2 { // of two tasks each
		registerNode(t, s, types.Attribute{Name: aws.String("ecs.capability.task-eni")})
	}
	_, err := s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("net"), Cpu: aws.String("256"), Memory: aws.String("512"), NetworkMode: types.NetworkModeAwsvpc,
		ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("i")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}}}
}

// TestPlatformVersion runs a task for each version of Fargate's platform that a call may ask for.
func TestPlatformVersion(t *testing.T) {
	s, network := newFargateService(t)
	for _, tt := range []struct {
		launchType types.LaunchType
		version    *string
		error      string // that it's refused with
		shown      string
	}{
		{types.LaunchTypeFargate, nil, "", "1.4.0"},
		{types.LaunchTypeFargate, aws.String("LATEST"), "", "1.4.0"},
		{types.LaunchTypeFargate, aws.String("1.4.0"), "", "1.4.0"},
		{types.LaunchTypeFargate, aws.String("1.0.0"), "PlatformUnknownException", ""},
		{types.LaunchTypeEc2, aws.String("LATEST"), "InvalidParameterException", ""},
		{types.LaunchTypeEc2, nil, "", ""},
		{"", aws.String("1.4.0"), "InvalidParameterException", ""},
	} {
		out, err := s.RunTask(t.Context(), &ecs.RunTaskInput{
			TaskDefinition: aws.String("net"), NetworkConfiguration: network, LaunchType: tt.launchType, PlatformVersion: tt.version,
		})
		if code := codeOf(err); code != tt.error {
			t.Errorf("%s, %q: got %v", tt.launchType, aws.ToString(tt.version), err)
		}
		if err != nil {
			continue
		}
		for _, task := range out.Tasks {
			if aws.ToString(task.PlatformVersion) != tt.shown || (task.PlatformFamily != nil) != (tt.shown != "") {
				t.Errorf("%s, %q: the task has %q", tt.launchType, aws.ToString(tt.version), aws.ToString(task.PlatformVersion))
			}
			if _, err := s.StopTask(t.Context(), &ecs.StopTaskInput{Task: task.TaskArn}); err != nil {
				t.Fatal(err)
			}
		}
		if len(out.Tasks) != 1 {
			t.Errorf("%s, %q: %d tasks, failures %+v", tt.launchType, aws.ToString(tt.version), len(out.Tasks), out.Failures)
		}
	}
}

// TestServicePlatform: a service on Fargate shows the version that it was given, or LATEST, and its deployments the one that this stands for.
// Another one has its tasks replaced, as any change of what they run on.
func TestServicePlatform(t *testing.T) {
	s, network := newFargateService(t)
	ctx := t.Context()
	onFargate := func(in *ecs.CreateServiceInput) {
		in.TaskDefinition, in.NetworkConfiguration, in.LaunchType = aws.String("net"), network, types.LaunchTypeFargate
	}
	row := create(t, s, onFargate)
	check := func(version string, deployments int) {
		t.Helper()
		if aws.ToString(row.PlatformVersion) != version || *row.PlatformFamily != "Linux" {
			t.Errorf("the service shows %q, %q, want %q", aws.ToString(row.PlatformVersion), *row.PlatformFamily, version)
		}
		if d := row.Deployments; len(d) != deployments || *d[0].PlatformVersion != "1.4.0" || *d[0].PlatformFamily != "Linux" {
			t.Errorf("its deployments are %+v", d)
		}
	}
	check("LATEST", 1)
	update := func(in ecs.UpdateServiceInput) error {
		in.Service = row.ServiceName
		out, err := s.UpdateService(ctx, &in)
		if err == nil {
			row = out.Service
		}
		return err
	}
	if err := update(ecs.UpdateServiceInput{DesiredCount: aws.Int32(2)}); err != nil {
		t.Fatal(err)
	}
	check("LATEST", 1)
	if err := update(ecs.UpdateServiceInput{PlatformVersion: aws.String("1.4.0")}); err != nil {
		t.Fatal(err)
	}
	check("1.4.0", 2)
	if code := codeOf(update(ecs.UpdateServiceInput{PlatformVersion: aws.String("9.9.9")})); code != "PlatformUnknownException" {
		t.Errorf("a version that there isn't: %s", code)
	}
	check("1.4.0", 2)

	onEC2 := create(t, s, func(in *ecs.CreateServiceInput) { in.ServiceName = aws.String("ec2") })
	if onEC2.PlatformVersion != nil || onEC2.PlatformFamily != nil || onEC2.Deployments[0].PlatformVersion != nil {
		t.Errorf("a service on EC2 has a platform: %+v", onEC2)
	}
	_, err := s.UpdateService(ctx, &ecs.UpdateServiceInput{Service: onEC2.ServiceName, PlatformVersion: aws.String("LATEST")})
	if codeOf(err) != "InvalidParameterException" {
		t.Errorf("a service on EC2 gets a platform: %v", err)
	}
}

// TestTaskSetPlatform: a task set on Fargate has a platform, which the service shows once it's the primary one.
func TestTaskSetPlatform(t *testing.T) {
	s, network := newFargateService(t)
	row := create(t, s, func(in *ecs.CreateServiceInput) {
		in.TaskDefinition, in.DeploymentController = nil, &types.DeploymentController{Type: types.DeploymentControllerTypeExternal}
	})
	set, err := s.CreateTaskSet(t.Context(), &ecs.CreateTaskSetInput{
		Cluster: row.ClusterArn, Service: row.ServiceName, TaskDefinition: aws.String("net"), NetworkConfiguration: network,
		LaunchType: types.LaunchTypeFargate, PlatformVersion: aws.String("LATEST"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if *set.TaskSet.PlatformVersion != "1.4.0" || *set.TaskSet.PlatformFamily != "Linux" {
		t.Errorf("the task set has %q, %q", *set.TaskSet.PlatformVersion, *set.TaskSet.PlatformFamily)
	}
	_, err = s.UpdateServicePrimaryTaskSet(t.Context(), &ecs.UpdateServicePrimaryTaskSetInput{
		Cluster: row.ClusterArn, Service: row.ServiceName, PrimaryTaskSet: set.TaskSet.TaskSetArn,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.DescribeServices(t.Context(), &ecs.DescribeServicesInput{Services: []string{*row.ServiceName}})
	if err != nil || !slices.ContainsFunc(out.Services, func(s types.Service) bool { return aws.ToString(s.PlatformVersion) == "1.4.0" }) {
		t.Errorf("the service shows %+v, %v", out, err)
	}
}

// codeOf returns an error's code, or "".
func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return ""
}

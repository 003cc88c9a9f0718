package ecs

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// fargateMemory has the range and step of memory, in MiB, for each CPU size on Fargate, in CPU units:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html
var fargateMemory = map[int64]struct{ min, max, step int64 }{
	256:   {512, 2048, 512},
	512:   {1024, 4096, 1024},
	1024:  {2048, 8192, 1024},
	2048:  {4096, 16384, 1024},
	4096:  {8192, 30720, 1024},
	8192:  {16384, 61440, 4096},
	16384: {32768, 122880, 8192},
}

// compatibilities returns where a definition could run: always on EC2, and on EXTERNAL and FARGATE if nothing in it rules
// them out.
func compatibilities(td *types.TaskDefinition) []types.Compatibility {
	out := []types.Compatibility{types.CompatibilityEc2}
	if td.NetworkMode != types.NetworkModeAwsvpc {
		out = append(out, types.CompatibilityExternal)
	}
	if fargateObstacle(td) == "" {
		out = append(out, types.CompatibilityFargate)
	}
	return out
}

// fargateObstacle returns why a definition can't run on Fargate, or "".
func fargateObstacle(td *types.TaskDefinition) string {
	if td.NetworkMode != types.NetworkModeAwsvpc {
		return "Fargate only supports network mode ‘awsvpc’."
	}
	if td.Cpu == nil {
		return "Fargate requires that 'cpu' be defined at the task level."
	}
	if td.Memory == nil {
		return "Fargate requires that 'memory' be defined at the task level."
	}
	m, ok := fargateMemory[sizeOf(td.Cpu)]
	if n := sizeOf(td.Memory); !ok || n < m.min || n > m.max || n%m.step != 0 && n != m.min {
		return "No Fargate configuration exists for given values: " + *td.Cpu + " CPU, " + *td.Memory + " memory."
	}
	for _, c := range td.ContainerDefinitions {
		if len(c.ResourceRequirements) > 0 {
			return "Fargate does not support GPUs: container '" + *c.Name + "'."
		}
		if aws.ToBool(c.Privileged) || len(c.Links) > 0 {
			return "Fargate does not support privileged containers or links: container '" + *c.Name + "'."
		}
	}
	return ""
}

// incompatible returns the error for a definition that can't run where it requires to.
func incompatible(td *types.TaskDefinition, c types.Compatibility) error {
	if c == types.CompatibilityFargate {
		return clientError("%s", fargateObstacle(td))
	}
	return clientError("The task definition is not compatible with %s: networkMode %q is not supported there.", c, td.NetworkMode)
}

// requiredAttributes returns the capabilities that an instance's agent must have, by the names that Amazon's agent registers:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-placement-constraints.html
func requiredAttributes(td *types.TaskDefinition) []types.Attribute {
	needs := map[string]bool{}
	if td.TaskRoleArn != nil && *td.TaskRoleArn != "" {
		needs["com.amazonaws.ecs.capability.task-iam-role"] = true
		if td.NetworkMode == types.NetworkModeHost {
			needs["com.amazonaws.ecs.capability.task-iam-role-network-host"] = true
		}
	}
	if td.NetworkMode == types.NetworkModeAwsvpc {
		needs["ecs.capability.task-eni"] = true
	}
	if td.PidMode != "" || td.IpcMode != "" {
		needs["ecs.capability.pid-ipc-namespace-sharing"] = true
	}
	for _, c := range td.ContainerDefinitions {
		addContainerNeeds(c, needs)
	}
	out := []types.Attribute{}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		out = append(out, types.Attribute{Name: aws.String(name)})
	}
	return out
}

// addContainerNeeds adds the capabilities that a container needs.
func addContainerNeeds(c types.ContainerDefinition, needs map[string]bool) {
	if aws.ToBool(c.Privileged) {
		needs["com.amazonaws.ecs.capability.privileged-container"] = true
	}
	if l := c.LogConfiguration; l != nil {
		needs["com.amazonaws.ecs.capability.logging-driver."+string(l.LogDriver)] = true
	}
	if c.HealthCheck != nil {
		needs["ecs.capability.container-health-check"] = true
	}
	if len(c.DependsOn) > 0 {
		needs["ecs.capability.container-ordering"] = true
	}
	for _, s := range c.Secrets {
		if strings.Contains(aws.ToString(s.ValueFrom), ":secretsmanager:") {
			needs["ecs.capability.secrets.asm.environment-variables"] = true
		} else {
			needs["ecs.capability.secrets.ssm.environment-variables"] = true
		}
	}
	if len(c.EnvironmentFiles) > 0 {
		needs["ecs.capability.env-files.s3"] = true
	}
}

package ecs

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// fargateMemory is the range of memory in MiB, and its step, for each CPU size of Fargate:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html
var fargateMemory = map[int64]struct{ min, max, step int64 }{
	256: {512, 2048, 512}, 512: {1024, 4096, 1024}, 1024: {2048, 8192, 1024}, 2048: {4096, 16384, 1024},
	4096: {8192, 30720, 1024}, 8192: {16384, 61440, 4096}, 16384: {32768, 122880, 8192},
}

// compatibilities is where a definition could run: EC2 always, EXTERNAL and FARGATE where nothing
// in it stands against that.
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

// fargateObstacle is why a definition cannot run on Fargate, or "".
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
	m, ok := fargateMemory[number(td.Cpu)]
	if n := number(td.Memory); !ok || n < m.min || n > m.max || n%m.step != 0 && n != m.min {
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

func incompatible(td *types.TaskDefinition, c types.Compatibility) error {
	if c == types.CompatibilityFargate {
		return clientError("%s", fargateObstacle(td))
	}
	return clientError("The task definition is not compatible with %s: networkMode %q is not supported there.", c, td.NetworkMode)
}

// requiredAttributes is what an instance's agent must be capable of. The names are those that
// Amazon's agent registers; https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-placement-constraints.html
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
		containerNeeds(c, needs)
	}
	out := []types.Attribute{}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		out = append(out, types.Attribute{Name: aws.String(name)})
	}
	return out
}

func containerNeeds(c types.ContainerDefinition, needs map[string]bool) {
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

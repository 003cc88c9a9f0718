package ecs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// fargateMemory has the range and step of memory, in MiB, for each CPU size on Fargate, in CPU units:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html
var fargateMemory = map[int64]struct{ min, max, step int64 }{
	256:   {512, 2048, 1024}, // 1,536 isn't there
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
		return "No Fargate configuration exists for given values: " + *td.Cpu + " CPU, " + *td.Memory + " memory. " +
			"See the Amazon ECS documentation for the valid values."
	}
	if td.IpcMode != "" {
		return "Tasks using the Fargate launch type do not support ipcMode."
	}
	if td.PidMode == types.PidModeHost {
		return "Tasks using the Fargate launch type do not support pidMode 'host'. The supported value for pidMode is 'task'."
	}
	for _, v := range td.Volumes {
		if v.Host != nil && aws.ToString(v.Host.SourcePath) != "" {
			return "Fargate compatible task definitions do not support sourcePath"
		}
		if v.DockerVolumeConfiguration != nil {
			return "Fargate compatible task definitions do not support dockerVolumeConfiguration"
		}
	}
	for _, c := range td.ContainerDefinitions {
		if why := fargateObstacleOf(c); why != "" {
			return why
		}
	}
	return ""
}

// fargateObstacleOf returns why a container can't run on Fargate, or "".
func fargateObstacleOf(c types.ContainerDefinition) string {
	if len(c.ResourceRequirements) > 0 {
		return "Fargate does not support GPUs: container '" + *c.Name + "'."
	}
	if aws.ToBool(c.Privileged) || len(c.Links) > 0 {
		return "Fargate does not support privileged containers or links: container '" + *c.Name + "'."
	}
	if p := c.LinuxParameters; p != nil {
		for _, f := range []field{
			{"devices", len(p.Devices) > 0},
			{"sharedMemorySize", p.SharedMemorySize != nil},
			{"tmpfs", len(p.Tmpfs) > 0},
		} {
			if f.given {
				return "Fargate compatible task definitions do not support " + f.name
			}
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

// The prefixes of capabilities' names: Docker's own, and those that came later.
const (
	dockerCapability = "com.amazonaws.ecs.capability."
	capability       = "ecs.capability."
)

// needs are the names of the capabilities that an instance's agent must have.
type needs map[string]bool

// addIf adds a capability under a condition.
func (n needs) addIf(condition bool, name string) {
	if condition {
		n[name] = true
	}
}

// requiredAttributes returns the capabilities that an instance's agent must have, by the names that Amazon's agent registers and ECS
// shows as requiresAttributes: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-placement-constraints.html
func requiredAttributes(td *types.TaskDefinition) []types.Attribute {
	n := needs{}
	hasRole := aws.ToString(td.TaskRoleArn) != ""
	n.addIf(hasRole, dockerCapability+"task-iam-role")
	n.addIf(hasRole && td.NetworkMode == types.NetworkModeHost, dockerCapability+"task-iam-role-network-host")
	n.addIf(td.NetworkMode == types.NetworkModeAwsvpc, capability+"task-eni")
	n.addIf(td.PidMode != "" || td.IpcMode != "", capability+"pid-ipc-namespace-sharing")
	n.addIf(td.EphemeralStorage != nil, capability+"extensible-ephemeral-storage") // only Fargate has it
	n.addIf(td.ProxyConfiguration != nil, capability+"aws-appmesh")
	n.addIf(aws.ToBool(td.EnableFaultInjection), capability+"fault-injection")
	for _, v := range td.Volumes {
		n.addVolume(v)
	}
	for _, c := range td.ContainerDefinitions {
		n.addContainer(c)
		n.addLogs(c.LogConfiguration, td)
		n.addRouter(c)
	}
	out := []types.Attribute{}
	for _, name := range slices.Sorted(maps.Keys(n)) {
		out = append(out, types.Attribute{Name: aws.String(name)})
	}
	return out
}

func (n needs) addVolume(v types.Volume) {
	if d := v.DockerVolumeConfiguration; d != nil {
		driver := cmp.Or(aws.ToString(d.Driver), "local")
		n[capability+"docker-plugin."+strings.ReplaceAll(driver, ":", ".")] = true // attributes' names have no colons
	}
	n.addIf(aws.ToBool(v.ConfiguredAtLaunch), capability+"storage.ebs-task-volume-attach")
	if e := v.EfsVolumeConfiguration; e != nil {
		n[capability+"efs"] = true
		n.addIf(e.AuthorizationConfig != nil || e.TransitEncryption == types.EFSTransitEncryptionEnabled, capability+"efsAuth")
	}
	n.addIf(v.FsxWindowsFileServerVolumeConfiguration != nil, capability+"fsxWindowsFileServer")
}

// addContainer adds what a container needs, except for its logs.
func (n needs) addContainer(c types.ContainerDefinition) {
	n.addIf(aws.ToBool(c.Privileged), dockerCapability+"privileged-container")
	n.addIf(slices.ContainsFunc(c.PortMappings, func(p types.PortMapping) bool { return p.ContainerPortRange != nil }),
		capability+"network.container-port-range")
	n.addIf(c.HealthCheck != nil, capability+"container-health-check")
	n.addIf(len(c.DependsOn) > 0, capability+"container-ordering")
	n.addIf(c.RestartPolicy != nil && aws.ToBool(c.RestartPolicy.Enabled), capability+"container-restart-policy")
	n.addIf(c.RepositoryCredentials != nil, capability+"private-registry-authentication.secretsmanager")
	n.addIf(len(c.EnvironmentFiles) > 0, capability+"env-files.s3")
	for _, s := range c.Secrets {
		n[capability+"secrets."+secretStore(s)+".environment-variables"] = true
	}
	for _, o := range c.DockerSecurityOptions {
		n.addIf(strings.HasPrefix(o, "label:"), dockerCapability+"selinux")
		n.addIf(strings.HasPrefix(o, "apparmor:"), dockerCapability+"apparmor")
	}
	for _, s := range slices.Concat(c.CredentialSpecs, c.DockerSecurityOptions) {
		n.addIf(strings.HasPrefix(s, "credentialspec:"), capability+"gmsa")
		n.addIf(strings.HasPrefix(s, "credentialspecdomainless:"), capability+"gmsa-domainless")
	}
}

// secretStore returns where a secret is, as capabilities name it: Secrets Manager (asm), or Systems Manager's parameters (ssm).
func secretStore(s types.Secret) string {
	if strings.Contains(aws.ToString(s.ValueFrom), ":secretsmanager:") {
		return "asm"
	}
	return "ssm"
}

// addLogs adds what the logs of a container need, or those of the proxy of Service Connect.
func (n needs) addLogs(l *types.LogConfiguration, td *types.TaskDefinition) {
	if l == nil {
		return
	}
	n[dockerCapability+"logging-driver."+string(l.LogDriver)] = true
	hasRole := aws.ToString(td.ExecutionRoleArn) != ""
	n.addIf(l.LogDriver == types.LogDriverAwslogs && hasRole, capability+"execution-role-awslogs")
	_, buffer := l.Options["log-driver-buffer-limit"]
	n.addIf(l.LogDriver == types.LogDriverAwsfirelens && buffer, capability+"logging-driver.awsfirelens.log-driver-buffer-limit")
	for _, s := range l.SecretOptions {
		n[capability+"secrets."+secretStore(s)+".bootstrap.log-driver"] = true
	}
}

// addRouter adds what a container needs as a log router.
func (n needs) addRouter(c types.ContainerDefinition) {
	if f := c.FirelensConfiguration; f != nil {
		n[capability+"firelens."+string(f.Type)] = true
		from := f.Options["config-file-type"]
		n.addIf(from != "", capability+"firelens.options.config."+from)
		user, _, _ := strings.Cut(aws.ToString(c.User), ":")
		n.addIf(user != "" && user != "0" && user != "root", capability+"firelens.non-root-user")
	}
}

package ecs

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

func checkContainers(td *types.TaskDefinition) error {
	names := map[string]bool{}
	essential := false
	for _, c := range td.ContainerDefinitions {
		name := aws.ToString(c.Name)
		if name == "" {
			return clientError("Container.name should not be null or empty.")
		}
		if !nameForm.MatchString(name) {
			return clientError("Container.name contains invalid characters. It may have up to 255 letters, numbers, hyphens and "+
				"underscores: %q.", name)
		}
		if names[name] {
			return clientError("Container name %q is used twice.", name)
		}
		names[name] = true
		essential = essential || *c.Essential
	}
	if !essential {
		return clientError("At least one container must be essential.")
	}
	ports := map[hostPort]string{}
	for i := range td.ContainerDefinitions {
		c := &td.ContainerDefinitions[i]
		if err := checkContainer(td, c); err != nil {
			return err
		}
		if err := checkPorts(td, c, ports); err != nil {
			return err
		}
	}
	if err := checkFirelens(td.ContainerDefinitions); err != nil {
		return err
	}
	return checkOrder(td.ContainerDefinitions)
}

// checkFirelens checks that the containers that log with awsfirelens have one container that routes their logs, and the other way
// round. Amazon's agent crashes at a task that has only half of this.
func checkFirelens(containers []types.ContainerDefinition) error {
	var routers []string
	used := false
	for _, c := range containers {
		used = used || c.LogConfiguration != nil && c.LogConfiguration.LogDriver == types.LogDriverAwsfirelens
		if f := c.FirelensConfiguration; f != nil {
			routers = append(routers, *c.Name)
			if err := checkFirelensConfiguration(*c.Name, f); err != nil {
				return err
			}
		}
	}
	switch {
	case used && len(routers) == 0:
		return clientError("When awsfirelens log driver is specified in log configuration, a firelens configuration object must be " +
			"configured in one of the containers.")
	case !used && len(routers) > 0:
		return clientError("When a firelensConfiguration object is specified, at least one container has to be configured with the " +
			"awsfirelens log driver.")
	case len(routers) > 1:
		return clientError("Only one container of a task can have a firelensConfiguration, not %v.", routers)
	}
	return nil
}

func checkFirelensConfiguration(container string, f *types.FirelensConfiguration) error {
	if !slices.Contains(f.Type.Values(), f.Type) {
		return clientError("Invalid setting for container '%s'. The type of its firelensConfiguration must be one of %v, not %q.",
			container, f.Type.Values(), f.Type)
	}
	from, ok := f.Options["config-file-type"]
	if ok && from != "file" && from != "s3" {
		return clientError("Invalid setting for container '%s'. The firelensConfiguration's option config-file-type must be file or s3, "+
			"not %q.", container, from)
	}
	if ok && f.Options["config-file-value"] == "" {
		return clientError("Invalid setting for container '%s'. The firelensConfiguration's option config-file-type needs "+
			"config-file-value.", container)
	}
	return nil
}

// checkContainer checks one container, except for its ports and what it needs of other containers.
func checkContainer(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	name := *c.Name
	if strings.TrimSpace(aws.ToString(c.Image)) == "" {
		return clientError("Container.image should not be null or empty. Container '%s' has none.", name)
	}
	if err := checkMemory(td, c); err != nil {
		return err
	}
	if v := c.VersionConsistency; v != "" && !slices.Contains(v.Values(), v) {
		return clientError("Invalid setting for container '%s'. The versionConsistency must be one of %v, not %q.", name, v.Values(), v)
	}
	if c.Cpu < 0 {
		return clientError("Invalid setting for container '%s'. 'cpu' must not be negative.", name)
	}
	if _, err := gpusOf(name, c.ResourceRequirements); err != nil {
		return err
	}
	if err := checkEnvironment(c); err != nil {
		return err
	}
	if err := checkMounts(td, c); err != nil {
		return err
	}
	if err := checkHealthCheck(c); err != nil {
		return err
	}
	if err := checkTimes(td, c); err != nil {
		return err
	}
	if err := checkCredentialSpecs(c); err != nil {
		return err
	}
	if err := checkUlimits(c); err != nil {
		return err
	}
	if err := checkLinuxParameters(td, c); err != nil {
		return err
	}
	if err := checkNetworkMode(td, c); err != nil {
		return err
	}
	return checkLogs(c.LogConfiguration, "container '"+*c.Name+"'")
}

// The shortest and longest period of a restart policy: API_ContainerRestartPolicy.
const (
	minRestartSeconds = 60
	maxRestartSeconds = 1800
)

func checkTimes(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	name := *c.Name
	if t := c.StopTimeout; t != nil &&
		(*t < 0 || *t > maxStopTimeoutSeconds && slices.Contains(td.RequiresCompatibilities, types.CompatibilityFargate)) {
		return clientError("Invalid setting for container '%s'. 'stopTimeout' must be between 0 and %d seconds.",
			name, maxStopTimeoutSeconds)
	}
	if t := c.StartTimeout; t != nil && *t < 2 {
		return clientError("Invalid setting for container '%s'. 'startTimeout' must be at least 2 seconds.", name)
	}
	if c.RestartPolicy == nil {
		return nil
	}
	if t := c.RestartPolicy.RestartAttemptPeriod; t != nil && (*t < minRestartSeconds || *t > maxRestartSeconds) {
		return clientError("Invalid setting for container '%s'. The restart policy's restartAttemptPeriod must be between %d and %d seconds, not %d.",
			name, minRestartSeconds, maxRestartSeconds, *t)
	}
	return nil
}

// checkCredentialSpecs refuses what no node would be asked to have, and would be left out in silence.
func checkCredentialSpecs(c *types.ContainerDefinition) error {
	if len(c.CredentialSpecs) > 1 {
		return clientError("Invalid setting for container '%s'. 'credentialSpecs' must have at most one member.", *c.Name)
	}
	for _, s := range c.CredentialSpecs {
		if !strings.HasPrefix(s, "credentialspec:") && !strings.HasPrefix(s, "credentialspecdomainless:") {
			return clientError("Invalid setting for container '%s'. 'credentialSpecs' must begin with credentialspec: or credentialspecdomainless:, not %q.",
				*c.Name, s)
		}
	}
	return nil
}

func checkMemory(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	name := *c.Name
	if c.Memory == nil && c.MemoryReservation == nil && td.Memory == nil {
		return clientError("Invalid setting for container '%s'. At least one of 'memory' or 'memoryReservation' must be specified.", name)
	}
	if c.Memory != nil && *c.Memory < minMemoryMiB {
		return clientError("Invalid setting for container '%s'. 'memory' must be at least %d MiB.", name, minMemoryMiB)
	}
	if c.MemoryReservation != nil && *c.MemoryReservation < minMemoryMiB {
		return clientError("Invalid setting for container '%s'. 'memoryReservation' must be at least %d MiB.", name, minMemoryMiB)
	}
	if c.Memory != nil && c.MemoryReservation != nil && *c.Memory < *c.MemoryReservation {
		return clientError("Invalid setting for container '%s'. 'memory' must be greater than or equal to 'memoryReservation'.", name)
	}
	return nil
}

// checkSizes checks that the containers fit into the task's own cpu and memory.
func checkSizes(td *types.TaskDefinition) error {
	var cpu, reserved int64
	for _, c := range td.ContainerDefinitions {
		cpu += int64(c.Cpu)
		reserved += reservedMemory(c.Memory, c.MemoryReservation)
		if td.Memory != nil && c.Memory != nil && int64(*c.Memory) > sizeOf(td.Memory) {
			return clientError("The 'memory' setting for container '%s' is greater than for the task.", *c.Name)
		}
	}
	if td.Cpu != nil && cpu > sizeOf(td.Cpu) {
		return clientError("The 'cpu' settings of the containers come to %d, more than the %s of the task.", cpu, *td.Cpu)
	}
	if td.Memory != nil && reserved > sizeOf(td.Memory) {
		return clientError("The memory of the containers comes to %d MiB, more than the %s of the task.", reserved, *td.Memory)
	}
	return nil
}

// reservedMemory returns the memory that a container reserves on its instance: its soft limit, or else its hard limit.
func reservedMemory(memory, reservation *int32) int64 {
	if reservation != nil {
		return int64(*reservation)
	}
	return int64(aws.ToInt32(memory))
}

// gpusOf returns the number of whole GPUs that a container asks for, which fits 32 bits, so that a task's fit an int.
func gpusOf(container string, requirements []types.ResourceRequirement) (int, error) {
	gpus := 0
	for _, r := range requirements {
		switch r.Type {
		case types.ResourceTypeGpu:
			if r.SharingStrategy != nil {
				return 0, clientError("Container '%s' asks for a shared GPU, but Pintle only gives out whole GPUs so far. Use 'value' "+
					"instead of 'sharingStrategy'.", container)
			}
			n, err := strconv.Atoi(aws.ToString(r.Value))
			if err != nil || n < 1 || n > math.MaxInt32 {
				return 0, clientError("Invalid setting for container '%s'. The value of the resource requirement GPU must be a whole "+
					"number from 1 to %d, not %q.", container, math.MaxInt32, aws.ToString(r.Value))
			}
			if gpus > 0 {
				return 0, clientError("Invalid setting for container '%s'. The resource requirement GPU is given twice.", container)
			}
			gpus = n
		case types.ResourceTypeInferenceAccelerator:
			return 0, clientError("Container '%s' asks for an inference accelerator, which Pintle does not have.", container)
		default:
			return 0, clientError("Invalid setting for container '%s'. The type of a resource requirement must be GPU, not %q.",
				container, r.Type)
		}
	}
	return gpus, nil
}

func checkEnvironment(c *types.ContainerDefinition) error {
	for _, e := range c.Environment {
		if aws.ToString(e.Name) == "" || strings.ContainsAny(*e.Name, "=\x00") {
			return clientError("Invalid setting for container '%s'. An environment variable's name must not be empty or hold '=': %q.",
				*c.Name, aws.ToString(e.Name))
		}
	}
	if err := checkEnvironmentFiles(*c.Name, c.EnvironmentFiles); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, s := range c.Secrets {
		name := aws.ToString(s.Name)
		if name == "" || aws.ToString(s.ValueFrom) == "" {
			return clientError("Invalid setting for container '%s'. A secret needs a name and valueFrom.", *c.Name)
		}
		if seen[name] || slices.ContainsFunc(c.Environment, func(e types.KeyValuePair) bool { return aws.ToString(e.Name) == name }) {
			return clientError("The secret name must be unique and not shared with any new or existing environment variables set on the "+
				"container, such as '%s'.", name)
		}
		seen[name] = true
	}
	return nil
}

// maxEnvironmentFiles is how many files of variables a container can have: API_EnvironmentFile.
const maxEnvironmentFiles = 10

var environmentFileARN = regexp.MustCompile(`^arn:[a-z-]+:s3:::[^/]+/.*\.env$`)

func checkEnvironmentFiles(container string, files []types.EnvironmentFile) error {
	if len(files) > maxEnvironmentFiles {
		return clientError("Invalid setting for container '%s'. A container can have at most %d environment files.", container, maxEnvironmentFiles)
	}
	for _, f := range files {
		if f.Type != types.EnvironmentFileTypeS3 {
			return clientError("Invalid setting for container '%s'. The type of an environment file must be s3, not %q.", container, f.Type)
		}
		if !environmentFileARN.MatchString(aws.ToString(f.Value)) {
			return clientError("Invalid setting for container '%s'. The value of an environment file must be the ARN of an S3 object whose key "+
				"ends with .env, not %q.", container, aws.ToString(f.Value))
		}
	}
	return nil
}

func checkMounts(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	for _, m := range c.MountPoints {
		if !slices.ContainsFunc(td.Volumes, func(v types.Volume) bool { return aws.ToString(v.Name) == aws.ToString(m.SourceVolume) }) {
			return clientError("Unknown volume '%s' in a mount point of container '%s'.", aws.ToString(m.SourceVolume), *c.Name)
		}
		if !strings.HasPrefix(aws.ToString(m.ContainerPath), "/") {
			return clientError("Invalid setting for container '%s'. The containerPath %q of a mount point must be absolute.",
				*c.Name, aws.ToString(m.ContainerPath))
		}
	}
	return nil
}

// checkHealthCheck checks a health check's command, and its numbers against the ranges of API_HealthCheck.
func checkHealthCheck(c *types.ContainerDefinition) error {
	h := c.HealthCheck
	if h == nil {
		return nil
	}
	if len(h.Command) == 0 || !slices.Contains([]string{"CMD", "CMD-SHELL", "NONE"}, h.Command[0]) {
		return clientError("Invalid setting for container '%s'. The health check's command must begin with CMD, CMD-SHELL or NONE.",
			*c.Name)
	}
	if h.Command[0] != "NONE" && len(h.Command) < 2 {
		return clientError("Invalid setting for container '%s'. The health check's command names nothing to run.", *c.Name)
	}
	for _, f := range []struct {
		name     string
		value    *int32
		min, max int32
	}{
		{"interval", h.Interval, 5, 300},
		{"timeout", h.Timeout, 2, 60},
		{"retries", h.Retries, 1, 10},
		{"startPeriod", h.StartPeriod, 0, 300},
	} {
		if f.value != nil && (*f.value < f.min || *f.value > f.max) {
			return clientError("Invalid setting for container '%s'. The health check's %s must be between %d and %d, not %d.",
				*c.Name, f.name, f.min, f.max, *f.value)
		}
	}
	return nil
}

func checkUlimits(c *types.ContainerDefinition) error {
	for _, u := range c.Ulimits {
		if !slices.Contains(u.Name.Values(), u.Name) {
			return clientError("Invalid setting for container '%s'. Unknown ulimit %q.", *c.Name, u.Name)
		}
		if u.HardLimit >= 0 && (u.SoftLimit > u.HardLimit || u.SoftLimit < 0) {
			return clientError("Invalid setting for container '%s'. The soft limit %d of ulimit %s is over its hard limit %d.",
				*c.Name, u.SoftLimit, u.Name, u.HardLimit)
		}
	}
	return nil
}

func checkLinuxParameters(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	p := c.LinuxParameters
	if p == nil {
		return nil
	}
	if p.SharedMemorySize != nil && *p.SharedMemorySize < 1 {
		return clientError("Invalid setting for container '%s'. sharedMemorySize must be at least 1 MiB.", *c.Name)
	}
	if p.Swappiness != nil && (*p.Swappiness < 0 || *p.Swappiness > 100) {
		return clientError("Invalid setting for container '%s'. swappiness must be between 0 and 100.", *c.Name)
	}
	if p.MaxSwap != nil && *p.MaxSwap < 0 {
		return clientError("Invalid setting for container '%s'. maxSwap must not be negative.", *c.Name)
	}
	for _, d := range p.Devices {
		if !strings.HasPrefix(aws.ToString(d.HostPath), "/") {
			return clientError("Invalid setting for container '%s'. The hostPath %q of a device must be absolute.",
				*c.Name, aws.ToString(d.HostPath))
		}
	}
	for _, t := range p.Tmpfs {
		if !strings.HasPrefix(aws.ToString(t.ContainerPath), "/") || t.Size < 1 {
			return clientError("Invalid setting for container '%s'. A tmpfs needs an absolute containerPath and a size of at least 1 MiB.",
				*c.Name)
		}
	}
	return nil
}

// checkOrder checks how containers refer to each other: links, dependsOn and volumesFrom must name containers of the task, and
// no container may wait for itself.
func checkOrder(containers []types.ContainerDefinition) error {
	before := map[string][]string{}
	for _, c := range containers {
		before[*c.Name] = nil
	}
	for _, c := range containers {
		for _, l := range c.Links {
			name, _, _ := strings.Cut(l, ":")
			before[*c.Name] = append(before[*c.Name], name)
		}
		for _, v := range c.VolumesFrom {
			before[*c.Name] = append(before[*c.Name], aws.ToString(v.SourceContainer))
		}
		for _, d := range c.DependsOn {
			if !slices.Contains(d.Condition.Values(), d.Condition) {
				return clientError("Invalid setting for container '%s'. The condition of dependsOn must be one of %v, not %q.",
					*c.Name, d.Condition.Values(), d.Condition)
			}
			before[*c.Name] = append(before[*c.Name], aws.ToString(d.ContainerName))
		}
		if err := checkDependencies(c, containers); err != nil {
			return err
		}
	}
	for name, others := range before {
		for _, o := range others {
			if _, ok := before[o]; !ok {
				return clientError("Container '%s' refers to the container '%s', which the task does not have.", name, o)
			}
		}
	}
	if name := findCycle(before); name != "" {
		return clientError("Container '%s' depends on itself, by way of dependsOn, links or volumesFrom.", name)
	}
	return nil
}

// checkDependencies checks that the containers in a container's dependsOn can meet its conditions.
func checkDependencies(c types.ContainerDefinition, containers []types.ContainerDefinition) error {
	for _, d := range c.DependsOn {
		for _, other := range containers {
			if *other.Name != aws.ToString(d.ContainerName) {
				continue
			}
			if d.Condition == types.ContainerConditionHealthy && other.HealthCheck == nil {
				return clientError("Container '%s' waits for '%s' to be HEALTHY, but that has no health check.", *c.Name, *other.Name)
			}
			ends := d.Condition == types.ContainerConditionComplete || d.Condition == types.ContainerConditionSuccess
			if ends && *other.Essential {
				return clientError("Container '%s' waits for '%s' to end, but that is essential: its end stops the task.",
					*c.Name, *other.Name)
			}
		}
	}
	return nil
}

// findCycle returns a node that can be reached from itself, or "".
func findCycle(before map[string][]string) string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(n string) string
	visit = func(n string) string {
		switch state[n] {
		case visiting:
			return n
		case done:
			return ""
		}
		state[n] = visiting
		for _, o := range before[n] {
			if c := visit(o); c != "" {
				return c
			}
		}
		state[n] = done
		return ""
	}
	for n := range before {
		if c := visit(n); c != "" {
			return c
		}
	}
	return ""
}

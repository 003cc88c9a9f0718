package ecs

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/wire/call"
)

// The limits of task definitions:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-quotas.html
const (
	maxContainers         = 10
	maxConstraints        = 10
	minMemoryMiB          = 4
	maxStopTimeoutSeconds = 120
	// Fargate's storage: API_EphemeralStorage.
	minEphemeralGiB = 21
	maxEphemeralGiB = 200
)

var (
	volumeRE = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9_-]*$`, 255)
	roleRE   = regexp.MustCompile(`^(arn:[^:]+:iam::\d{12}:role/)?[\w+=,.@/-]+$`)
)

// taskCPU parses a task's CPU, "1024" or "1 vCPU", into CPU units.
func taskCPU(s *string) (*string, error) {
	return parseSize(s, "cpu", "vcpu", 1024)
}

// taskMemory parses a task's memory, "2048" or "2 GB", into MiB.
func taskMemory(s *string) (*string, error) {
	return parseSize(s, "memory", "gb", 1024)
}

// parseSize parses a size with an optional unit, which multiplies it by factor. The result has no unit.
func parseSize(s *string, field, unit string, factor float64) (*string, error) {
	if s == nil || *s == "" {
		return nil, nil
	}
	text := strings.ToLower(strings.TrimSpace(*s))
	number, inUnits := strings.CutSuffix(text, unit)
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if inUnits {
		n *= factor
	}
	if err != nil || n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
		return nil, clientError("Invalid '%s' setting for task: %q.", field, *s)
	}
	return new(strconv.FormatInt(int64(n), 10)), nil
}

// sizeOf returns the value of a size that parseSize returned.
func sizeOf(s *string) int64 {
	n, _ := strconv.ParseInt(aws.ToString(s), 10, 64)
	return n
}

// checkTaskDefinition refuses what ECS refuses. Errors name the container and the field.
func checkTaskDefinition(td *types.TaskDefinition) error {
	if aws.ToString(td.Family) == "" {
		return clientError("Family should not be null or blank.")
	}
	if !nameForm.MatchString(*td.Family) {
		return clientError("Family contains invalid characters. It may have up to 255 letters, numbers, hyphens and underscores: %q.", *td.Family)
	}
	if len(td.ContainerDefinitions) == 0 {
		return clientError("Container list cannot be empty.")
	}
	if n := len(td.ContainerDefinitions); n > maxContainers {
		return clientError("containerDefinitions must have between 1 and %d members, not %d.", maxContainers, n)
	}
	if err := checkModes(td); err != nil {
		return err
	}
	if len(td.InferenceAccelerators) > 0 {
		return clientError("inferenceAccelerators are not supported: Pintle has no Amazon Elastic Inference.")
	}
	for field, role := range map[string]*string{"taskRoleArn": td.TaskRoleArn, "executionRoleArn": td.ExecutionRoleArn} {
		if role != nil && *role != "" && !roleRE.MatchString(*role) {
			return clientError("Role is not valid: %s %q.", field, *role)
		}
	}
	if err := checkVolumes(td.Volumes); err != nil {
		return err
	}
	if err := checkTaskConstraints(td.PlacementConstraints); err != nil {
		return err
	}
	if err := checkContainers(td); err != nil {
		return err
	}
	if what := needsExecutionRole(td); what != "" && aws.ToString(td.ExecutionRoleArn) == "" {
		return clientError("When you are specifying %s, you must also specify a value for 'executionRoleArn'.", what)
	}
	showsS3 := func(v types.Volume) bool { return isDataSet(v.DockerVolumeConfiguration) }
	if aws.ToString(td.TaskRoleArn) == "" && slices.ContainsFunc(td.Volumes, showsS3) {
		return clientError("When you are specifying a volume of the driver %s, you must also specify a value for 'taskRoleArn', which must "+
			"be allowed to read it.", acs.S3Driver)
	}
	return checkSizes(td)
}

// needsExecutionRole says what of a task definition nodes fetch as its execution role, or "" for nothing.
func needsExecutionRole(td *types.TaskDefinition) string {
	for _, c := range td.ContainerDefinitions {
		switch {
		case len(c.Secrets) > 0:
			return "container secrets"
		case c.RepositoryCredentials != nil:
			return "container repository credentials"
		case len(c.EnvironmentFiles) > 0:
			return "container environment files"
		case c.LogConfiguration != nil && len(c.LogConfiguration.SecretOptions) > 0:
			return "container log configuration secret options"
		}
	}
	return ""
}

func checkModes(td *types.TaskDefinition) error {
	if m := td.NetworkMode; m != "" && !slices.Contains(m.Values(), m) {
		return clientError("networkMode must be one of %v, not %q.", m.Values(), m)
	}
	if m := td.PidMode; m != "" && !slices.Contains(m.Values(), m) {
		return clientError("pidMode must be one of %v, not %q.", m.Values(), m)
	}
	if m := td.IpcMode; m != "" && !slices.Contains(m.Values(), m) {
		return clientError("ipcMode must be one of %v, not %q.", m.Values(), m)
	}
	for _, c := range td.RequiresCompatibilities {
		if !slices.Contains(c.Values(), c) {
			return clientError("requiresCompatibilities must be among %v, not %q.", c.Values(), c)
		}
	}
	return checkPlatform(td)
}

// checkPlatform checks what only some platforms have: the architecture, the operating system, and Fargate's storage.
func checkPlatform(td *types.TaskDefinition) error {
	if p := td.RuntimePlatform; p != nil {
		if a := p.CpuArchitecture; a != "" && !slices.Contains(a.Values(), a) {
			return clientError("runtimePlatform.cpuArchitecture must be one of %v, not %q.", a.Values(), a)
		}
		if f := p.OperatingSystemFamily; f != "" && !slices.Contains(f.Values(), f) {
			return clientError("runtimePlatform.operatingSystemFamily must be one of %v, not %q.", f.Values(), f)
		}
	}
	if e := td.EphemeralStorage; e != nil && (e.SizeInGiB < minEphemeralGiB || e.SizeInGiB > maxEphemeralGiB) {
		return clientError("ephemeralStorage.sizeInGiB must be between %d and %d, not %d.", minEphemeralGiB, maxEphemeralGiB, e.SizeInGiB)
	}
	return nil
}

func checkVolumes(volumes []types.Volume) error {
	seen := map[string]bool{}
	atLaunch := ""
	for _, v := range volumes {
		name := aws.ToString(v.Name)
		if !volumeRE.MatchString(name) {
			return clientError("Volume name %q must begin with a letter or number, and have up to 255 letters, numbers, hyphens and "+
				"underscores.", name)
		}
		if seen[name] {
			return clientError("Volume %q is defined twice.", name)
		}
		seen[name] = true
		if v.Host != nil && v.DockerVolumeConfiguration != nil {
			return clientError("Volume %q has both host and dockerVolumeConfiguration.", name)
		}
		if v.S3filesVolumeConfiguration != nil {
			return clientError("Volume %q is of Amazon S3 Files, which Pintle does not have.", name)
		}
		if err := checkAtLaunch(v, &atLaunch); err != nil {
			return err
		}
		if err := checkFileSystem(name, v.EfsVolumeConfiguration); err != nil {
			return err
		}
		if d := v.DockerVolumeConfiguration; d != nil {
			if d.Scope != "" && !slices.Contains(d.Scope.Values(), d.Scope) {
				return clientError("Volume %q: scope must be task or shared, not %q.", name, d.Scope)
			}
			if d.Scope != types.ScopeShared && d.Autoprovision != nil {
				return clientError("Volume %q: autoprovision is for volumes of scope shared.", name)
			}
			if err := checkDataSet(name, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAtLaunch checks a volume that may be configured at launch. other is the name of another one, or "".
func checkAtLaunch(v types.Volume, other *string) error {
	if !aws.ToBool(v.ConfiguredAtLaunch) {
		return nil
	}
	host := v.Host != nil && aws.ToString(v.Host.SourcePath) != ""
	if host || v.DockerVolumeConfiguration != nil || v.EfsVolumeConfiguration != nil || v.FsxWindowsFileServerVolumeConfiguration != nil {
		return clientError("Volume %q is configured at launch, so it can't have a configuration in the task definition.", *v.Name)
	}
	if *other != "" {
		return clientError("At most one volume can be configured at launch, not both %q and %q.", *other, *v.Name)
	}
	*other = *v.Name
	return nil
}

var (
	fileSystemRE  = pattern.New(`^fs-[0-9a-f]{8,40}$`, 43)
	accessPointRE = pattern.New(`^fsap-[0-9a-f]{8,40}$`, 45)
)

// checkFileSystem checks a volume of EFS: API_EFSVolumeConfiguration, API_EFSAuthorizationConfig.
func checkFileSystem(name string, e *types.EFSVolumeConfiguration) error {
	if e == nil {
		return nil
	}
	if id := aws.ToString(e.FileSystemId); !fileSystemRE.MatchString(id) {
		return clientError("Volume %q: fileSystemId %q is not of the form fs-0123abcd.", name, id)
	}
	encrypted := e.TransitEncryption == types.EFSTransitEncryptionEnabled
	if t := e.TransitEncryption; t != "" && !slices.Contains(t.Values(), t) {
		return clientError("Volume %q: transitEncryption must be one of %v, not %q.", name, t.Values(), t)
	}
	if port := aws.ToInt32(e.TransitEncryptionPort); port != 0 && !encrypted || port < 0 || port > math.MaxUint16 {
		return clientError("Volume %q: transitEncryptionPort must be a port, and needs transitEncryption.", name)
	}
	a := e.AuthorizationConfig
	if a == nil {
		return nil
	}
	point := aws.ToString(a.AccessPointId)
	switch {
	case a.Iam != "" && !slices.Contains(a.Iam.Values(), a.Iam):
		return clientError("Volume %q: iam must be one of %v, not %q.", name, a.Iam.Values(), a.Iam)
	case point != "" && !accessPointRE.MatchString(point):
		return clientError("Volume %q: accessPointId %q is not of the form fsap-0123abcd.", name, point)
	case (point != "" || a.Iam == types.EFSAuthorizationConfigIAMEnabled) && !encrypted:
		return clientError("Volume %q: transitEncryption must be ENABLED for an access point or IAM.", name)
	case point != "" && strings.Trim(aws.ToString(e.RootDirectory), "/") != "":
		return clientError("Volume %q: rootDirectory must be omitted or / with an access point, which has its own.", name)
	}
	return nil
}

// isDataSet reports whether a volume shows what lies in S3.
func isDataSet(d *types.DockerVolumeConfiguration) bool {
	return d != nil && aws.ToString(d.Driver) == acs.S3Driver
}

// checkFunctions refuses volumes of Lambda's driver to everybody but Lambda: whoever names another function's code would have it.
func checkFunctions(ctx context.Context, volumes []types.Volume) error {
	if call.From(ctx).Via == "lambda" {
		return nil
	}
	for _, v := range volumes {
		if d := v.DockerVolumeConfiguration; d != nil && aws.ToString(d.Driver) == acs.FunctionDriver {
			return clientError("Volume %q: the driver %s is for AWS Lambda's own task definitions.", aws.ToString(v.Name), acs.FunctionDriver)
		}
	}
	return nil
}

// checkDataSet refuses what a volume that shows a prefix of S3 can't have.
func checkDataSet(name string, d *types.DockerVolumeConfiguration) error {
	if !isDataSet(d) {
		return nil
	}
	source := d.DriverOpts[acs.S3Source]
	bucket, _, _ := strings.Cut(strings.TrimPrefix(source, "s3://"), "/")
	switch {
	case !strings.HasPrefix(source, "s3://") || bucket == "":
		return clientError("Volume %q: the driver %s needs driverOpts with %s, of the form s3://bucket/prefix, not %q.",
			name, acs.S3Driver, acs.S3Source, source)
	case len(d.DriverOpts) > 1:
		return clientError("Volume %q: the driver %s has no driverOpts but %s.", name, acs.S3Driver, acs.S3Source)
	case d.Scope == types.ScopeShared:
		return clientError("Volume %q: volumes of the driver %s have the scope task; all tasks of a node share what was fetched.",
			name, acs.S3Driver)
	case len(d.Labels) > 0:
		return clientError("Volume %q: volumes of the driver %s have no labels.", name, acs.S3Driver)
	}
	return nil
}

func checkTaskConstraints(constraints []types.TaskDefinitionPlacementConstraint) error {
	if len(constraints) > maxConstraints {
		return clientError("placementConstraints has %d members, at most %d are allowed.", len(constraints), maxConstraints)
	}
	for _, c := range constraints {
		if c.Type != types.TaskDefinitionPlacementConstraintTypeMemberOf {
			return clientError("The type of a task definition's placement constraint must be memberOf, not %q.", c.Type)
		}
		if _, err := query.Parse(aws.ToString(c.Expression)); err != nil {
			return clientError("Invalid placement constraint expression: %v.", err)
		}
	}
	return nil
}

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
	if t := c.StopTimeout; t != nil &&
		(*t < 0 || *t > maxStopTimeoutSeconds && slices.Contains(td.RequiresCompatibilities, types.CompatibilityFargate)) {
		return clientError("Invalid setting for container '%s'. 'stopTimeout' must be between 0 and %d seconds.",
			name, maxStopTimeoutSeconds)
	}
	if t := c.StartTimeout; t != nil && *t < 2 {
		return clientError("Invalid setting for container '%s'. 'startTimeout' must be at least 2 seconds.", name)
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

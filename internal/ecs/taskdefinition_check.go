package ecs

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/query"
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

var roleRE = regexp.MustCompile(`^(arn:[^:]+:iam::\d{12}:role/)?[\w+=,.@/-]+$`)

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
	if p := td.ProxyConfiguration; p != nil && p.Type != "" && !slices.Contains(p.Type.Values(), p.Type) {
		return clientError("The type of the proxyConfiguration must be one of %v, not %q.", p.Type.Values(), p.Type)
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

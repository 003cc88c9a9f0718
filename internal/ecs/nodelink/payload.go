package nodelink

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// Payload builds a task as its node gets it. Overrides are merged into the task definition, because a node reads only
// the command of an override. GPUs become associations. Credentials are not included.
func Payload(t *state.Task, td *state.TaskDefinition) acs.Task {
	o := t.Override()
	p := acs.Task{
		Arn:                  *t.TaskArn,
		Family:               *td.Family,
		Version:              strconv.Itoa(int(td.Revision)),
		DesiredStatus:        *t.DesiredStatus,
		TaskClusterArn:       *t.ClusterArn,
		LaunchType:           string(t.LaunchType),
		NetworkMode:          networkMode(td),
		Overrides:            "{}",
		CPU:                  float64(firstSize(o.Cpu, td.Cpu)) / 1024,
		Memory:               firstSize(o.Memory, td.Memory),
		PidMode:              string(td.PidMode),
		IpcMode:              string(td.IpcMode),
		Group:                aws.ToString(t.Group),
		EnableFaultInjection: aws.ToBool(td.EnableFaultInjection),
	}
	if name, ok := strings.CutPrefix(p.Group, "service:"); ok {
		p.ServiceName = name
	}
	for _, g := range t.GPUs {
		p.Associations = append(p.Associations, acs.Association{
			Type:       "gpu",
			Name:       g.ID,
			Containers: []string{g.Container},
			Content:    acs.EncodedString{Encoding: "base64"},
		})
	}
	for _, v := range td.Volumes {
		p.Volumes = append(p.Volumes, volume(v, t.Volumes))
	}
	for _, c := range td.ContainerDefinitions {
		out := container(withOverride(c, o), &p)
		out.ContainerArn = containerArn(t, *c.Name)
		out.RegistryAuthentication = registryAuthentication(c, *t.TaskArn, roleOf(t, td, acs.ExecutionRole) != "")
		if usesDriver(c, types.LogDriverAwslogs) && aws.ToString(td.ExecutionRoleArn) != "" {
			out.LogsAuthStrategy = acs.LogsByExecutionRole
		}
		if t.EnableExecuteCommand {
			out.ManagedAgents = []acs.ManagedAgent{{Name: acs.ExecuteCommandAgent, Properties: map[string]string{"sessionLimit": sessionLimit}}}
		}
		p.Containers = append(p.Containers, out)
	}
	return p
}

// sessionLimit is how many sessions a container may have where Amazon's agent runs it, as on AWS.
const sessionLimit = "2"

// pinImages names the images that a service revision's first task found, so that the later ones run the same, whatever their tags are by then.
func pinImages(p *acs.Task, r *state.ServiceRevision) {
	if r == nil {
		return
	}
	for _, image := range r.ContainerImages {
		for i := range p.Containers {
			if c := &p.Containers[i]; c.Name == aws.ToString(image.ContainerName) && image.ImageDigest != nil {
				c.Image += "@" + *image.ImageDigest
			}
		}
	}
}

func networkMode(td *state.TaskDefinition) string {
	if td.NetworkMode == "" {
		return string(types.NetworkModeBridge)
	}
	return string(td.NetworkMode)
}

func containerArn(t *state.Task, name string) string {
	for _, c := range t.Containers {
		if aws.ToString(c.Name) == name {
			return aws.ToString(c.ContainerArn)
		}
	}
	return ""
}

// firstSize returns the first size that is given.
func firstSize(sizes ...*string) int64 {
	for _, s := range sizes {
		if n, err := strconv.ParseInt(aws.ToString(s), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// volume tells of a task's volume; made are those that ECS makes for it.
func volume(v types.Volume, made []state.TaskVolume) acs.Volume {
	out := acs.Volume{Name: aws.ToString(v.Name)}
	switch {
	case v.DockerVolumeConfiguration != nil:
		d := v.DockerVolumeConfiguration
		out.Type = "docker"
		out.DockerVolumeConfiguration = &acs.DockerVolumeConfiguration{
			Scope:         string(d.Scope),
			Autoprovision: aws.ToBool(d.Autoprovision),
			Driver:        aws.ToString(d.Driver),
			DriverOpts:    d.DriverOpts,
			Labels:        d.Labels,
		}
	case aws.ToBool(v.ConfiguredAtLaunch):
		out.Type = "ebs"
		out.EBSVolume = ebsVolume(out.Name, made)
	case v.EfsVolumeConfiguration != nil:
		out.Type = "efs"
		out.EFSVolumeConfiguration = efsVolume(v.EfsVolumeConfiguration)
	default:
		out.Type = "host"
		out.Host = &acs.HostVolume{}
		if v.Host != nil {
			out.Host.SourcePath = aws.ToString(v.Host.SourcePath)
		}
	}
	return out
}

func ebsVolume(name string, made []state.TaskVolume) *acs.EBSVolume {
	for _, v := range made {
		if v.Name == name {
			return &acs.EBSVolume{
				VolumeID:   v.VolumeID,
				SizeGiB:    number(v.GiB),
				FileSystem: v.FileSystem,
				Keep:       !v.DeleteOnTermination,
			}
		}
	}
	return nil
}

func efsVolume(e *types.EFSVolumeConfiguration) *acs.EFSVolumeConfiguration {
	out := &acs.EFSVolumeConfiguration{
		FileSystemID:          aws.ToString(e.FileSystemId),
		RootDirectory:         cmp.Or(aws.ToString(e.RootDirectory), "/"),
		TransitEncryption:     string(e.TransitEncryption),
		TransitEncryptionPort: number(e.TransitEncryptionPort),
	}
	if a := e.AuthorizationConfig; a != nil {
		out.AuthorizationConfig = &acs.EFSAuthorizationConfig{AccessPointID: aws.ToString(a.AccessPointId), IAM: string(a.Iam)}
	}
	return out
}

// addAccessPoints tells the node what the access points are that a task's volumes name.
func addAccessPoints(p *acs.Task, v *state.View) {
	for i := range p.Volumes {
		e := p.Volumes[i].EFSVolumeConfiguration
		if e == nil || e.AuthorizationConfig == nil {
			continue
		}
		if a := v.AccessPointOf(e.FileSystemID, e.AuthorizationConfig.AccessPointID); a != nil {
			e.AccessPoint = accessPoint(a)
		}
	}
}

func accessPoint(a *state.AccessPoint) *acs.EFSAccessPoint {
	out := &acs.EFSAccessPoint{RootDirectory: aws.ToString(a.RootDirectory.Path)}
	if c := a.RootDirectory.CreationInfo; c != nil {
		out.CreationInfo = &acs.EFSCreationInfo{UID: *c.OwnerUid, GID: *c.OwnerGid, Permissions: *c.Permissions}
	}
	if u := a.PosixUser; u != nil {
		out.PosixUser = &acs.EFSPosixUser{UID: *u.Uid, GID: *u.Gid}
	}
	return out
}

// withOverride returns a container with its override applied.
func withOverride(c types.ContainerDefinition, o *types.TaskOverride) types.ContainerDefinition {
	for _, v := range o.ContainerOverrides {
		if aws.ToString(v.Name) != *c.Name {
			continue
		}
		if v.Command != nil {
			c.Command = v.Command
		}
		if v.Cpu != nil {
			c.Cpu = *v.Cpu
		}
		if v.Memory != nil {
			c.Memory = v.Memory
		}
		if v.MemoryReservation != nil {
			c.MemoryReservation = v.MemoryReservation
		}
		c.Environment = append(c.Environment[:len(c.Environment):len(c.Environment)], v.Environment...)
		if v.EnvironmentFiles != nil { // unlike variables, they are in the place of the definition's: API_ContainerOverride
			c.EnvironmentFiles = v.EnvironmentFiles
		}
	}
	return c
}

// isEssential reports whether the task ends with the container, which is the default.
func isEssential(c types.ContainerDefinition) bool { return c.Essential == nil || *c.Essential }

// usesDriver reports whether a container logs with the driver.
func usesDriver(c types.ContainerDefinition, driver types.LogDriver) bool {
	return c.LogConfiguration != nil && c.LogConfiguration.LogDriver == driver
}

// container builds a container of the task t, of which only the fields besides its containers are set.
func container(c types.ContainerDefinition, t *acs.Task) acs.Container {
	out := acs.Container{
		Name:                  *c.Name,
		Image:                 aws.ToString(c.Image),
		Essential:             isEssential(c),
		CPU:                   int64(c.Cpu),
		Memory:                number(c.Memory),
		Command:               c.Command,
		EntryPoint:            c.EntryPoint,
		Environment:           map[string]string{},
		Overrides:             "{}",
		Links:                 c.Links,
		StartTimeout:          number(c.StartTimeout),
		StopTimeout:           number(c.StopTimeout),
		RestartPolicy:         restartPolicy(c.RestartPolicy),
		Secrets:               secrets(c, regionOf(t.Arn)),
		CredentialSpecs:       c.CredentialSpecs,
		FirelensConfiguration: firelens(c.FirelensConfiguration),
		DockerConfig:          dockerConfig(c, t),
	}
	if c.HealthCheck != nil {
		out.HealthCheckType = "docker" // lower case, or Amazon's agent reports no health
	}
	for _, e := range c.Environment {
		out.Environment[aws.ToString(e.Name)] = aws.ToString(e.Value)
	}
	for _, f := range c.EnvironmentFiles {
		out.EnvironmentFiles = append(out.EnvironmentFiles, acs.EnvironmentFile{Type: string(f.Type), Value: aws.ToString(f.Value)})
	}
	out.PortMappings = portMappings(c.PortMappings)
	for _, m := range c.MountPoints {
		out.MountPoints = append(out.MountPoints, acs.MountPoint{
			SourceVolume:  aws.ToString(m.SourceVolume),
			ContainerPath: aws.ToString(m.ContainerPath),
			ReadOnly:      aws.ToBool(m.ReadOnly),
		})
	}
	for _, v := range c.VolumesFrom {
		out.VolumesFrom = append(out.VolumesFrom, acs.VolumeFrom{
			SourceContainer: aws.ToString(v.SourceContainer),
			ReadOnly:        aws.ToBool(v.ReadOnly),
		})
	}
	for _, d := range c.DependsOn {
		out.DependsOn = append(out.DependsOn, acs.ContainerDependency{
			ContainerName: aws.ToString(d.ContainerName),
			Condition:     string(d.Condition),
		})
	}
	return out
}

func portMappings(mappings []types.PortMapping) (out []acs.PortMapping) {
	for _, p := range mappings {
		out = append(out, acs.PortMapping{
			ContainerPort:      number(p.ContainerPort),
			ContainerPortRange: aws.ToString(p.ContainerPortRange),
			HostPort:           number(p.HostPort),
			Protocol:           string(p.Protocol),
		})
	}
	return out
}

func firelens(f *types.FirelensConfiguration) *acs.FirelensConfiguration {
	if f == nil {
		return nil
	}
	return &acs.FirelensConfiguration{Type: string(f.Type), Options: f.Options}
}

func restartPolicy(r *types.ContainerRestartPolicy) *acs.RestartPolicy {
	if r == nil {
		return nil
	}
	out := &acs.RestartPolicy{Enabled: aws.ToBool(r.Enabled), RestartAttemptPeriod: number(r.RestartAttemptPeriod)}
	for _, code := range r.IgnoredExitCodes {
		out.IgnoredExitCodes = append(out.IgnoredExitCodes, int64(code))
	}
	return out
}

// registryAuthentication tells with what a container's image is pulled: with the task definition's credentials or, if it's of the account's own
// registry, with a token, as the execution role if the task has one.
func registryAuthentication(c types.ContainerDefinition, task string, hasRole bool) *acs.RegistryAuthentication {
	if r := c.RepositoryCredentials; r != nil {
		secret := aws.ToString(r.CredentialsParameter)
		return &acs.RegistryAuthentication{Type: "asm", ASMAuthData: &acs.ASMAuthData{CredentialsParameter: secret, Region: regionOf(secret)}}
	}
	of, err := arn.Parse(task)
	if err != nil {
		return nil
	}
	registry := account.Account{ID: of.AccountID, Region: of.Region}
	if _, own := registry.OwnImage(aws.ToString(c.Image)); !own {
		return nil
	}
	return ownRegistry(registry, hasRole)
}

// ownRegistry is a token of an account's own registry, as the task's execution role or as the node.
func ownRegistry(of account.Account, asRole bool) *acs.RegistryAuthentication {
	return &acs.RegistryAuthentication{Type: "ecr", ECRAuthData: &acs.ECRAuthData{
		Region:           of.Region,
		RegistryID:       of.ID,
		UseExecutionRole: asRole,
	}}
}

// secrets returns the secrets of the container and of its log driver.
func secrets(c types.ContainerDefinition, region string) []acs.Secret {
	var out []acs.Secret
	for _, s := range c.Secrets {
		out = append(out, secret(s, "", region))
	}
	if c.LogConfiguration != nil {
		for _, s := range c.LogConfiguration.SecretOptions {
			out = append(out, secret(s, "LOG_DRIVER", region))
		}
	}
	return out
}

// secret builds a reference to a secret of Secrets Manager, or to a parameter of Systems Manager. A parameter without
// an ARN is in the task's region.
func secret(s types.Secret, target, region string) acs.Secret {
	from := aws.ToString(s.ValueFrom)
	out := acs.Secret{
		Name:      aws.ToString(s.Name),
		ValueFrom: from,
		Provider:  "ssm",
		Region:    cmp.Or(regionOf(from), region),
		Type:      "ENVIRONMENT_VARIABLE",
		Target:    target,
	}
	if strings.Contains(from, ":secretsmanager:") {
		out.Provider = "asm"
	}
	return out
}

// regionOf returns an ARN's region, or "" if it isn't an ARN. The form is arn:partition:service:region:…
func regionOf(arn string) string {
	if parts := strings.SplitN(arn, ":", 5); len(parts) == 5 && parts[0] == "arn" {
		return parts[3]
	}
	return ""
}

func number(n *int32) int64 { return int64(aws.ToInt32(n)) }

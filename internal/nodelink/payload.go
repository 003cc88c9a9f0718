package nodelink

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

const mebibyte = 1 << 20

// Payload is a task as its node gets it: the task definition with the overrides merged in, since a
// node reads only the command of those.
func Payload(t *state.Task, td *state.TaskDefinition) acs.Task {
	p := acs.Task{
		Arn: *t.TaskArn, Family: *td.Family, Version: strconv.Itoa(int(td.Revision)), DesiredStatus: *t.DesiredStatus,
		TaskClusterArn: *t.ClusterArn, LaunchType: string(t.LaunchType), NetworkMode: string(td.NetworkMode), Overrides: "{}",
		PidMode: string(td.PidMode), IpcMode: string(td.IpcMode), Group: aws.ToString(t.Group),
	}
	if name, ok := strings.CutPrefix(p.Group, "service:"); ok {
		p.ServiceName = name
	}
	if p.NetworkMode == "" {
		p.NetworkMode = "bridge"
	}
	p.CPU = float64(size(overrideOf(t).Cpu, td.Cpu)) / 1024
	p.Memory = size(overrideOf(t).Memory, td.Memory)
	for _, g := range t.GPUs {
		p.Associations = append(p.Associations, acs.Association{
			Type: "gpu", Name: g.ID, Containers: []string{g.Container}, Content: acs.EncodedString{Encoding: "base64"},
		})
	}
	for _, v := range td.Volumes {
		p.Volumes = append(p.Volumes, volume(v))
	}
	arns := map[string]string{}
	for _, c := range t.Containers {
		arns[*c.Name] = aws.ToString(c.ContainerArn)
	}
	for _, c := range td.ContainerDefinitions {
		p.Containers = append(p.Containers, container(t, p.NetworkMode, c, arns[*c.Name]))
	}
	return p
}

func overrideOf(t *state.Task) *types.TaskOverride {
	if t.Overrides == nil {
		return &types.TaskOverride{}
	}
	return t.Overrides
}

// size is the first of the sizes that is given.
func size(sizes ...*string) int64 {
	for _, s := range sizes {
		if n, err := strconv.ParseInt(aws.ToString(s), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

func volume(v types.Volume) acs.Volume {
	out := acs.Volume{Name: aws.ToString(v.Name), Type: "host", Host: &acs.HostVolume{}}
	if v.Host != nil {
		out.Host.SourcePath = aws.ToString(v.Host.SourcePath)
	}
	if d := v.DockerVolumeConfiguration; d != nil {
		out.Type, out.Host = "docker", nil
		out.DockerVolumeConfiguration = &acs.DockerVolumeConfiguration{
			Scope: string(d.Scope), Autoprovision: aws.ToBool(d.Autoprovision), Driver: aws.ToString(d.Driver), DriverOpts: d.DriverOpts, Labels: d.Labels,
		}
	}
	return out
}

func container(t *state.Task, networkMode string, c types.ContainerDefinition, arn string) acs.Container {
	c = merged(c, overrideOf(t))
	out := acs.Container{
		Name: *c.Name, ContainerArn: arn, Image: aws.ToString(c.Image), Essential: c.Essential == nil || *c.Essential,
		CPU: int64(c.Cpu), Memory: int64(aws.ToInt32(c.Memory)), Command: c.Command, EntryPoint: c.EntryPoint,
		Environment: map[string]string{}, Overrides: "{}", Links: c.Links,
		StartTimeout: int64(aws.ToInt32(c.StartTimeout)), StopTimeout: int64(aws.ToInt32(c.StopTimeout)),
		DockerConfig: dockerConfig(networkMode, c),
	}
	for _, e := range c.Environment {
		out.Environment[aws.ToString(e.Name)] = aws.ToString(e.Value)
	}
	for _, p := range c.PortMappings {
		out.PortMappings = append(out.PortMappings, acs.PortMapping{
			ContainerPort: int64(aws.ToInt32(p.ContainerPort)), HostPort: int64(aws.ToInt32(p.HostPort)), Protocol: string(p.Protocol),
		})
	}
	for _, m := range c.MountPoints {
		out.MountPoints = append(out.MountPoints, acs.MountPoint{
			SourceVolume: aws.ToString(m.SourceVolume), ContainerPath: aws.ToString(m.ContainerPath), ReadOnly: aws.ToBool(m.ReadOnly),
		})
	}
	for _, v := range c.VolumesFrom {
		out.VolumesFrom = append(out.VolumesFrom, acs.VolumeFrom{SourceContainer: aws.ToString(v.SourceContainer), ReadOnly: aws.ToBool(v.ReadOnly)})
	}
	for _, d := range c.DependsOn {
		out.DependsOn = append(out.DependsOn, acs.ContainerDependency{ContainerName: aws.ToString(d.ContainerName), Condition: string(d.Condition)})
	}
	if c.HealthCheck != nil {
		out.HealthCheckType = "docker" // in lower case, or Amazon's agent reports no health
	}
	if r := c.RestartPolicy; r != nil {
		out.RestartPolicy = &acs.RestartPolicy{Enabled: aws.ToBool(r.Enabled), RestartAttemptPeriod: int64(aws.ToInt32(r.RestartAttemptPeriod))}
		for _, code := range r.IgnoredExitCodes {
			out.RestartPolicy.IgnoredExitCodes = append(out.RestartPolicy.IgnoredExitCodes, int64(code))
		}
	}
	return out
}

// merged is a container with its override.
func merged(c types.ContainerDefinition, o *types.TaskOverride) types.ContainerDefinition {
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
		c.Environment = append(append([]types.KeyValuePair{}, c.Environment...), v.Environment...)
	}
	return c
}

// dockerConfig is what has no field of its own in the payload.
func dockerConfig(networkMode string, c types.ContainerDefinition) acs.DockerConfig {
	config := acs.Config{
		User: aws.ToString(c.User), WorkingDir: aws.ToString(c.WorkingDirectory), Hostname: aws.ToString(c.Hostname),
		Labels: c.DockerLabels, Tty: aws.ToBool(c.PseudoTerminal), OpenStdin: aws.ToBool(c.Interactive),
	}
	if h := c.HealthCheck; h != nil {
		config.Healthcheck = &acs.Healthcheck{
			Test: h.Command, Interval: nanoseconds(h.Interval), Timeout: nanoseconds(h.Timeout),
			StartPeriod: nanoseconds(h.StartPeriod), Retries: int(aws.ToInt32(h.Retries)),
		}
	}
	host := acs.HostConfig{
		NetworkMode: networkMode, Privileged: aws.ToBool(c.Privileged), ReadonlyRootfs: aws.ToBool(c.ReadonlyRootFilesystem),
		DNS: c.DnsServers, DNSSearch: c.DnsSearchDomains, SecurityOpt: c.DockerSecurityOptions,
		MemoryReservation: int64(aws.ToInt32(c.MemoryReservation)) * mebibyte,
		LogConfig:         &acs.LogConfig{Type: "json-file"},
	}
	if l := c.LogConfiguration; l != nil {
		host.LogConfig = &acs.LogConfig{Type: string(l.LogDriver), Config: maps.Clone(l.Options)}
	}
	for _, h := range c.ExtraHosts {
		host.ExtraHosts = append(host.ExtraHosts, aws.ToString(h.Hostname)+":"+aws.ToString(h.IpAddress))
	}
	for _, u := range c.Ulimits {
		host.Ulimits = append(host.Ulimits, acs.Ulimit{Name: string(u.Name), Soft: int64(u.SoftLimit), Hard: int64(u.HardLimit)})
	}
	for _, s := range c.SystemControls {
		if host.Sysctls == nil {
			host.Sysctls = map[string]string{}
		}
		host.Sysctls[aws.ToString(s.Namespace)] = aws.ToString(s.Value)
	}
	linuxParameters(&host, c)
	return acs.DockerConfig{Config: encoded(config), HostConfig: encoded(host), Version: "1.17"}
}

func linuxParameters(host *acs.HostConfig, c types.ContainerDefinition) {
	p := c.LinuxParameters
	if p == nil {
		return
	}
	host.Init = p.InitProcessEnabled
	host.ShmSize = int64(aws.ToInt32(p.SharedMemorySize)) * mebibyte
	if p.Capabilities != nil {
		host.CapAdd, host.CapDrop = p.Capabilities.Add, p.Capabilities.Drop
	}
	if p.MaxSwap != nil { // Docker's figure is memory and swap together
		host.MemorySwap = int64(*p.MaxSwap+aws.ToInt32(c.Memory)) * mebibyte
	}
	if p.Swappiness != nil {
		host.MemorySwappiness = aws.Int64(int64(*p.Swappiness))
	}
	for _, d := range p.Devices {
		host.Devices = append(host.Devices, device(d))
	}
	for _, t := range p.Tmpfs {
		if host.Tmpfs == nil {
			host.Tmpfs = map[string]string{}
		}
		options := append([]string{"size=" + strconv.Itoa(int(t.Size)) + "m"}, t.MountOptions...)
		host.Tmpfs[aws.ToString(t.ContainerPath)] = strings.Join(options, ",")
	}
}

func device(d types.Device) acs.DeviceMapping {
	out := acs.DeviceMapping{PathOnHost: aws.ToString(d.HostPath), PathInContainer: aws.ToString(d.ContainerPath)}
	if out.PathInContainer == "" {
		out.PathInContainer = out.PathOnHost
	}
	for _, p := range d.Permissions {
		switch p {
		case types.DeviceCgroupPermissionRead:
			out.CgroupPermissions += "r"
		case types.DeviceCgroupPermissionWrite:
			out.CgroupPermissions += "w"
		case types.DeviceCgroupPermissionMknod:
			out.CgroupPermissions += "m"
		}
	}
	if out.CgroupPermissions == "" {
		out.CgroupPermissions = "rwm"
	}
	return out
}

func nanoseconds(seconds *int32) int64 { return int64(aws.ToInt32(seconds)) * 1e9 }

// encoded is a struct of strings and numbers as JSON, which cannot fail.
func encoded(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

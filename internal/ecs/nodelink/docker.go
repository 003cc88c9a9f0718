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

// dockerConfig encodes what has no field of its own in the payload, as JSON of the Docker Engine's API.
func dockerConfig(c types.ContainerDefinition, t *acs.Task) acs.DockerConfig {
	return acs.DockerConfig{Config: toJSON(config(c)), HostConfig: toJSON(hostConfig(c, t)), Version: "1.17"}
}

// toJSON encodes a struct of strings and numbers, which can't fail.
func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func config(c types.ContainerDefinition) acs.Config {
	out := acs.Config{
		User:            aws.ToString(c.User),
		WorkingDir:      aws.ToString(c.WorkingDirectory),
		Hostname:        aws.ToString(c.Hostname),
		Labels:          c.DockerLabels,
		Tty:             aws.ToBool(c.PseudoTerminal),
		OpenStdin:       aws.ToBool(c.Interactive),
		NetworkDisabled: aws.ToBool(c.DisableNetworking),
	}
	if h := c.HealthCheck; h != nil {
		out.Healthcheck = &acs.Healthcheck{
			Test:        h.Command,
			Interval:    nanoseconds(h.Interval),
			Timeout:     nanoseconds(h.Timeout),
			StartPeriod: nanoseconds(h.StartPeriod),
			Retries:     int(number(h.Retries)),
		}
	}
	return out
}

func nanoseconds(seconds *int32) int64 { return number(seconds) * 1e9 }

func hostConfig(c types.ContainerDefinition, t *acs.Task) acs.HostConfig {
	out := acs.HostConfig{
		NetworkMode:       t.NetworkMode,
		Privileged:        aws.ToBool(c.Privileged),
		ReadonlyRootfs:    aws.ToBool(c.ReadonlyRootFilesystem),
		DNS:               c.DnsServers,
		DNSSearch:         c.DnsSearchDomains,
		SecurityOpt:       c.DockerSecurityOptions,
		MemoryReservation: number(c.MemoryReservation) * mebibyte,
		LogConfig:         logConfig(c, t),
	}
	for _, h := range c.ExtraHosts {
		out.ExtraHosts = append(out.ExtraHosts, aws.ToString(h.Hostname)+":"+aws.ToString(h.IpAddress))
	}
	for _, u := range c.Ulimits {
		out.Ulimits = append(out.Ulimits, acs.Ulimit{Name: string(u.Name), Soft: int64(u.SoftLimit), Hard: int64(u.HardLimit)})
	}
	for _, s := range c.SystemControls {
		put(&out.Sysctls, aws.ToString(s.Namespace), aws.ToString(s.Value))
	}
	if c.LinuxParameters != nil {
		addLinuxParameters(&out, c.LinuxParameters, number(c.Memory))
	}
	return out
}

// logConfig returns a container's log driver and its options.
func logConfig(c types.ContainerDefinition, t *acs.Task) *acs.LogConfig {
	if c.LogConfiguration == nil {
		return &acs.LogConfig{Type: "json-file"}
	}
	return logConfigOf(c.LogConfiguration, *c.Name, t.Arn)
}

// logConfigOf returns the log driver and the options of a container with a name.
func logConfigOf(l *types.LogConfiguration, container, taskArn string) *acs.LogConfig {
	out := &acs.LogConfig{Type: string(l.LogDriver), Config: l.Options}
	if l.LogDriver == types.LogDriverAwslogs {
		out.Config = streamOptions(out.Config, container, taskArn)
	}
	return out
}

// streamOptions names the log stream in the options of the driver awslogs. Docker knows streams alone: their prefix is an idea of
// ECS's, and an option that Docker doesn't know fails the container.
func streamOptions(options map[string]string, container, taskArn string) map[string]string {
	prefix, ok := options["awslogs-stream-prefix"]
	if !ok {
		return options
	}
	out := maps.Clone(options)
	delete(out, "awslogs-stream-prefix")
	if prefix != "" && out["awslogs-stream"] == "" {
		out["awslogs-stream"] = prefix + "/" + container + "/" + state.NameOf(taskArn)
	}
	return out
}

// addLinuxParameters adds the linuxParameters of a container with a memory limit.
func addLinuxParameters(out *acs.HostConfig, p *types.LinuxParameters, memoryMiB int64) {
	out.Init = p.InitProcessEnabled
	out.ShmSize = number(p.SharedMemorySize) * mebibyte
	if p.Capabilities != nil {
		out.CapAdd = p.Capabilities.Add
		out.CapDrop = p.Capabilities.Drop
	}
	if p.MaxSwap != nil { // Docker counts memory and swap together
		out.MemorySwap = (number(p.MaxSwap) + memoryMiB) * mebibyte
		if p.Swappiness != nil { // without maxSwap it's ignored: API_LinuxParameters
			out.MemorySwappiness = aws.Int64(number(p.Swappiness))
		}
	}
	for _, d := range p.Devices {
		out.Devices = append(out.Devices, device(d))
	}
	for _, t := range p.Tmpfs {
		options := append([]string{"size=" + strconv.Itoa(int(t.Size)) + "m"}, t.MountOptions...)
		put(&out.Tmpfs, aws.ToString(t.ContainerPath), strings.Join(options, ","))
	}
}

// device maps a device. By default it has the host's path inside the container, and every permission.
func device(d types.Device) acs.DeviceMapping {
	out := acs.DeviceMapping{PathOnHost: aws.ToString(d.HostPath), PathInContainer: aws.ToString(d.ContainerPath)}
	if out.PathInContainer == "" {
		out.PathInContainer = out.PathOnHost
	}
	for _, p := range d.Permissions {
		out.CgroupPermissions += string(p[:min(1, len(p))]) // read, write, mknod
	}
	if out.CgroupPermissions == "" {
		out.CgroupPermissions = "rwm"
	}
	return out
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/runtime"
)

const mebibyte = 1 << 20

// minShares is the least weight that the kernel takes; ECS gives it to containers that ask for none.
const minShares = 2

// spec is a container as its runtime wants it, with the ports that it gets on the node.
func (t *task) spec(c *acs.Container) (*runtime.Spec, []Port, error) {
	config, host := containerConfig(c), hostConfig(c)
	s := &runtime.Spec{
		ID: t.containerID(c.Name), Owner: t.engine.opts.Owner, Image: c.Image,
		Entrypoint: c.EntryPoint, Command: c.Command, Env: t.environment(c), Labels: t.labels(c, config.Labels),
		WorkingDir: config.WorkingDir, User: config.User, Hostname: config.Hostname, Tty: config.Tty, OpenStdin: config.OpenStdin,
		CPUShares: max(c.CPU, minShares), MemoryBytes: c.Memory * mebibyte, MemoryReserve: host.MemoryReservation,
		MemorySwap: host.MemorySwap, Swappiness: host.MemorySwappiness, ShmSizeBytes: host.ShmSize, Sysctls: host.Sysctls,
		CapAdd: host.CapAdd, CapDrop: host.CapDrop, Privileged: host.Privileged, ReadonlyRootfs: host.ReadonlyRootfs,
		Init: host.Init != nil && *host.Init, ExtraHosts: host.ExtraHosts, DNS: host.DNS, DNSSearch: host.DNSSearch,
		SecurityOpt: host.SecurityOpt, SimulatedGPUs: t.engine.opts.SimulatedGPUs,
	}
	if c.Memory == 0 && t.rec.Task.Memory > 0 {
		s.MemoryBytes = t.rec.Task.Memory * mebibyte
	}
	for _, u := range host.Ulimits {
		s.Ulimits = append(s.Ulimits, runtime.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, d := range host.Devices {
		s.Devices = append(s.Devices, runtime.Device{HostPath: d.PathOnHost, ContainerPath: d.PathInContainer, Permissions: d.CgroupPermissions})
	}
	for _, path := range slices.Sorted(maps.Keys(host.Tmpfs)) {
		s.Tmpfs = append(s.Tmpfs, runtime.Tmpfs{Path: path, Options: strings.Split(host.Tmpfs[path], ",")})
	}
	for _, a := range t.rec.Task.Associations {
		if a.Type == "gpu" && slices.Contains(a.Containers, c.Name) {
			s.GPUs = append(s.GPUs, a.Name)
		}
	}
	var err error
	if s.Mounts, err = t.mounts(c, map[string]bool{}); err != nil {
		return nil, nil, err
	}
	ports, err := t.publish(c, s)
	return s, ports, err
}

// containerConfig and hostConfig read what the payload carries as JSON. What cannot be read is empty:
// the control plane wrote it.
func containerConfig(c *acs.Container) (out acs.Config) {
	json.Unmarshal([]byte(c.DockerConfig.Config), &out) //nolint:errcheck // see above
	return out
}

func hostConfig(c *acs.Container) (out acs.HostConfig) {
	json.Unmarshal([]byte(c.DockerConfig.HostConfig), &out) //nolint:errcheck // see above
	return out
}

func (t *task) environment(c *acs.Container) []string {
	env := map[string]string{}
	if t.engine.opts.Environment != nil {
		env = t.engine.opts.Environment(&t.rec.Task, c.Name)
	}
	maps.Copy(env, c.Environment)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// labels are those that Amazon's agent sets, and the container's own.
func (t *task) labels(c *acs.Container, own map[string]string) map[string]string {
	out := map[string]string{
		"com.amazonaws.ecs.cluster":                 t.rec.Task.TaskClusterArn,
		"com.amazonaws.ecs.container-name":          c.Name,
		"com.amazonaws.ecs.task-arn":                t.rec.Task.Arn,
		"com.amazonaws.ecs.task-definition-family":  t.rec.Task.Family,
		"com.amazonaws.ecs.task-definition-version": t.rec.Task.Version,
	}
	maps.Copy(out, own)
	return out
}

// mounts are a container's mount points, and those of the containers whose volumes it takes.
func (t *task) mounts(c *acs.Container, seen map[string]bool) ([]runtime.Mount, error) {
	if seen[c.Name] {
		return nil, nil
	}
	seen[c.Name] = true
	var out []runtime.Mount
	for _, m := range c.MountPoints {
		mount, err := t.mount(m)
		if err != nil {
			return nil, err
		}
		out = append(out, mount)
	}
	for _, v := range c.VolumesFrom {
		other := t.definition(v.SourceContainer)
		if other == nil {
			return nil, fmt.Errorf("volumesFrom names the container %q, which the task does not have", v.SourceContainer)
		}
		mounts, err := t.mounts(other, seen)
		if err != nil {
			return nil, err
		}
		for _, m := range mounts {
			m.ReadOnly = m.ReadOnly || v.ReadOnly
			out = append(out, m)
		}
	}
	return out, nil
}

// mount is a mount point's source: a directory of the node, or a volume. A volume without a path, or
// of scope task, is the task's own.
func (t *task) mount(m acs.MountPoint) (runtime.Mount, error) {
	out := runtime.Mount{Destination: m.ContainerPath, ReadOnly: m.ReadOnly}
	for _, v := range t.rec.Task.Volumes {
		if v.Name != m.SourceVolume {
			continue
		}
		if v.Host != nil && v.Host.SourcePath != "" {
			out.Source = v.Host.SourcePath
			return out, nil
		}
		out.Volume, out.Source = true, "ecs-"+t.id()+"-"+v.Name
		if d := v.DockerVolumeConfiguration; d != nil && d.Scope == "shared" {
			out.Source = v.Name
		}
		return out, nil
	}
	return out, fmt.Errorf("the mount point %s names the volume %q, which the task does not have", m.ContainerPath, m.SourceVolume)
}

// publish picks the network and the ports. A plain process has the node's network whatever the mode.
func (t *task) publish(c *acs.Container, s *runtime.Spec) ([]Port, error) {
	s.Network.Mode = t.rec.Task.NetworkMode
	if t.engine.opts.Runtime.Name() == "process" {
		s.Network.Mode = "host"
	}
	var ports []Port
	for _, p := range c.PortMappings {
		port := Port{Container: p.ContainerPort, Host: p.HostPort, Protocol: p.Protocol}
		if s.Network.Mode != "bridge" {
			port.Host = p.ContainerPort
			ports = append(ports, port)
			continue
		}
		if port.Host == 0 {
			host, err := freePort(p.Protocol)
			if err != nil {
				return nil, err
			}
			port.Host = host
		}
		ports = append(ports, port)
		s.Network.Ports = append(s.Network.Ports, runtime.Port{ContainerPort: uint16(port.Container), HostPort: uint16(port.Host), Protocol: p.Protocol})
	}
	s.Network.Links = c.Links
	return ports, nil
}

// freePort asks the kernel for a port that nobody uses.
func freePort(protocol string) (int64, error) {
	if protocol == "udp" {
		c, err := net.ListenPacket("udp", ":0")
		if err != nil {
			return 0, err
		}
		defer c.Close()
		return int64(c.LocalAddr().(*net.UDPAddr).Port), nil
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return int64(l.Addr().(*net.TCPAddr).Port), nil
}

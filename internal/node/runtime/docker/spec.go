package docker

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"

	"github.com/pintle/pintle/internal/node/runtime"
)

// translate turns a spec into the engine's configuration. cdi says that GPUs have their names in CDI files.
func translate(s *runtime.Spec, cdi bool) (*container.Config, *container.HostConfig, error) {
	config := &container.Config{
		Image:        imageName(s.Image),
		Entrypoint:   s.Entrypoint,
		Cmd:          s.Command,
		Env:          append([]string{}, s.Env...),
		WorkingDir:   s.WorkingDir,
		User:         s.User,
		Hostname:     s.Hostname,
		Tty:          s.Tty,
		OpenStdin:    s.OpenStdin,
		StopSignal:   s.StopSignal,
		Labels:       map[string]string{},
		ExposedPorts: network.PortSet{},
		Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}}, // the agent checks health itself
	}
	maps.Copy(config.Labels, s.Labels)
	config.Labels[ownerLabel] = s.Owner
	config.Labels[idLabel] = s.ID
	host := hostConfig(s)
	if s.Init {
		host.Init = &s.Init
	}
	for _, u := range s.Ulimits {
		host.Ulimits = append(host.Ulimits, &units.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, d := range s.Devices {
		host.Devices = append(host.Devices, container.DeviceMapping{
			PathOnHost:        d.HostPath,
			PathInContainer:   d.ContainerPath,
			CgroupPermissions: d.Permissions,
		})
	}
	for _, m := range s.Mounts {
		addMount(host, m)
	}
	for _, v := range s.VolumesFrom {
		mode := ":rw"
		if v.ReadOnly {
			mode = ":ro"
		}
		host.VolumesFrom = append(host.VolumesFrom, v.ID+mode)
	}
	if host.IpcMode == "" {
		host.IpcMode = "shareable" // other containers of the task may join it
	}
	for _, d := range s.DNS {
		ip, err := netip.ParseAddr(d)
		if err != nil {
			return nil, nil, fmt.Errorf("DNS server %q isn't an address: %w", d, err)
		}
		host.DNS = append(host.DNS, ip)
	}
	addGPUs(s, config, host, cdi)
	return config, host, connect(s, config, host)
}

// hostConfig sets the fields that need no conversion.
func hostConfig(s *runtime.Spec) *container.HostConfig {
	return &container.HostConfig{
		CapAdd:         s.CapAdd,
		CapDrop:        s.CapDrop,
		Privileged:     s.Privileged,
		ReadonlyRootfs: s.ReadonlyRootfs,
		ShmSize:        s.ShmSizeBytes,
		Sysctls:        s.Sysctls,
		SecurityOpt:    s.SecurityOpt,
		ExtraHosts:     s.ExtraHosts,
		DNSSearch:      s.DNSSearch,
		PidMode:        container.PidMode(s.Pid),
		IpcMode:        container.IpcMode(s.IPC),
		Tmpfs:          tmpfs(s.Tmpfs),
		LogConfig:      container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "16m", "max-file": "2"}},
		Resources: container.Resources{
			CgroupParent:      s.CgroupParent,
			CPUShares:         s.CPUShares,
			NanoCPUs:          s.CPUQuotaMilli * 1e6,
			Memory:            s.MemoryBytes,
			MemoryReservation: s.MemoryReserve,
			MemorySwap:        s.MemorySwap,
			MemorySwappiness:  s.Swappiness,
		},
	}
}

// addGPUs shows the container its own devices and no others, since an image may ask for all of them; or all of the machine's if it looks after
// these.
func addGPUs(s *runtime.Spec, config *container.Config, host *container.HostConfig, cdi bool) {
	visible := s.Visible()
	if visible == "" {
		return
	}
	config.Env = runtime.Environment(config.Env, []string{"NVIDIA_VISIBLE_DEVICES=" + visible})
	switch {
	case s.SimulatedGPUs:
	case cdi && len(s.GPUs)+len(s.MachineGPUs) > 0:
		ids := s.GPUs
		if len(ids) == 0 {
			ids = s.MachineGPUs
		}
		host.DeviceRequests = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: cdiNames(ids)}}
	case len(s.GPUs) > 0:
		host.DeviceRequests = []container.DeviceRequest{{DeviceIDs: s.GPUs, Capabilities: [][]string{{"gpu"}}}}
	case len(s.MachineGPUs) > 0:
		host.DeviceRequests = []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}}
	}
}

// cdiGPU is what names of NVIDIA's GPUs begin with in CDI files.
const cdiGPU = "nvidia.com/gpu="

// cdiNames returns the names of GPUs in CDI files.
func cdiNames(ids []string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, cdiGPU+id)
	}
	return out
}

// connect sets the container's network and its published ports.
func connect(s *runtime.Spec, config *container.Config, host *container.HostConfig) error {
	switch s.Network.Mode {
	case "netns":
		host.NetworkMode = modeOf(s.Network)
	case "":
		host.NetworkMode = "bridge"
	default:
		host.NetworkMode = container.NetworkMode(s.Network.Mode)
	}
	host.Links = s.Network.Links
	host.PortBindings = network.PortMap{}
	for _, p := range s.Network.Ports {
		port, ok := network.PortFrom(p.ContainerPort, network.IPProtocol(p.Protocol))
		if !ok {
			return fmt.Errorf("port %d/%s cannot be published", p.ContainerPort, p.Protocol)
		}
		config.ExposedPorts[port] = struct{}{}
		host.PortBindings[port] = append(host.PortBindings[port], network.PortBinding{HostPort: strconv.Itoa(int(p.HostPort))})
	}
	return nil
}

// addMount mounts a volume or a directory. The engine creates a missing directory; before version 23 it did so only for binds in the
// older form, which is why we use that.
func addMount(host *container.HostConfig, m runtime.Mount) {
	if m.Volume {
		volume := mount.Mount{Type: mount.TypeVolume, Source: m.Source, Target: m.Destination, ReadOnly: m.ReadOnly}
		if m.Driver != "" || len(m.DriverOpts) > 0 || len(m.Labels) > 0 {
			volume.VolumeOptions = &mount.VolumeOptions{
				Labels: m.Labels, DriverConfig: &mount.Driver{Name: m.Driver, Options: m.DriverOpts},
			}
		}
		host.Mounts = append(host.Mounts, volume)
		return
	}
	bind := m.Source + ":" + m.Destination
	if m.ReadOnly {
		bind += ":ro"
	}
	host.Binds = append(host.Binds, bind)
}

func tmpfs(in []runtime.Tmpfs) map[string]string {
	out := map[string]string{}
	for _, t := range in {
		options := t.Options
		if t.SizeBytes > 0 {
			options = append([]string{"size=" + strconv.FormatInt(t.SizeBytes, 10)}, options...)
		}
		out[t.Path] = strings.Join(options, ",")
	}
	return out
}

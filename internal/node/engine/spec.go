package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

const mebibyte = 1 << 20

// minShares is the kernel's lowest weight, which ECS gives to containers that ask for none.
const minShares = 2

// spec returns a container as its runtime wants it, and its ports on the node.
func (t *task) spec(c *acs.Container) (*runtime.Spec, []Port, error) {
	config, host := containerConfig(c), hostConfig(c)
	_, id := t.container(c.Name)
	s := &runtime.Spec{
		ID: id, Owner: t.engine.opts.Owner, Image: c.Image,
		Entrypoint: c.EntryPoint, Command: c.Command, Env: t.environment(c), Labels: t.labels(c, config.Labels),
		WorkingDir: config.WorkingDir, User: config.User, Hostname: config.Hostname, Tty: config.Tty, OpenStdin: config.OpenStdin,
		MemorySwap: host.MemorySwap, Swappiness: host.MemorySwappiness, ShmSizeBytes: host.ShmSize, Sysctls: host.Sysctls,
		CapAdd: host.CapAdd, CapDrop: host.CapDrop, Privileged: host.Privileged, ReadonlyRootfs: host.ReadonlyRootfs,
		Init: host.Init != nil && *host.Init, ExtraHosts: host.ExtraHosts, DNS: host.DNS, DNSSearch: host.DNSSearch,
		SecurityOpt: host.SecurityOpt, SimulatedGPUs: t.engine.opts.SimulatedGPUs,
	}
	t.limit(s, c, &host)
	t.share(s, c)
	for _, d := range host.Devices {
		s.Devices = append(s.Devices, runtime.Device{HostPath: d.PathOnHost, ContainerPath: d.PathInContainer, Permissions: d.CgroupPermissions})
	}
	for _, path := range slices.Sorted(maps.Keys(host.Tmpfs)) {
		s.Tmpfs = append(s.Tmpfs, tmpfs(path, host.Tmpfs[path]))
	}
	for _, a := range t.rec.Task.Associations {
		if a.Type == "gpu" && slices.Contains(a.Containers, c.Name) {
			s.GPUs = append(s.GPUs, a.Name)
		}
	}
	if asked, ok := c.Environment["NVIDIA_VISIBLE_DEVICES"]; host.Privileged && len(s.GPUs) == 0 && (!ok || asked == "all") {
		s.MachineGPUs = t.engine.opts.GPUs
	}
	var err error
	if s.Mounts, err = t.mounts(c, map[string]bool{}); err != nil {
		return nil, nil, err
	}
	for _, m := range t.engine.opts.Mounts {
		if !slices.ContainsFunc(s.Mounts, m.IsAtSamePlace) {
			s.Mounts = append(s.Mounts, m)
		}
	}
	s.VolumesFrom = t.volumesFrom(c, false, map[string]bool{c.Name: true})
	var ports []Port
	s.Network, ports, err = t.network(c)
	s.DNS = t.nameServers(s)
	if t.engine.opts.Hosts != nil && hasNetwork(s) {
		s.ExtraHosts = append(t.engine.opts.Hosts(&t.rec.Task), s.ExtraHosts...)
	}
	if err == nil && t.engine.opts.Functions != nil {
		err = t.engine.opts.Functions.Shape(s, &t.rec.Task)
	}
	return s, ports, err
}

// hasNetwork reports whether a container has a network of its own, or its task's, in which the agent serves it.
func hasNetwork(s *runtime.Spec) bool { return s.Network.Mode == "netns" || s.Network.Mode == "bridge" }

// nameServers returns a container's own name servers, or else the agent, where that answers names.
func (t *task) nameServers(s *runtime.Spec) []string {
	if len(s.DNS) > 0 || !hasNetwork(s) || t.engine.opts.NameServer == nil {
		return s.DNS
	}
	if at := t.engine.opts.NameServer(); at != "" {
		return []string{at}
	}
	return nil
}

// limit sets a container's limits: its own, or else the task's.
func (t *task) limit(s *runtime.Spec, c *acs.Container, host *acs.HostConfig) {
	s.CPUShares = max(c.CPU, minShares)
	s.MemoryBytes = c.Memory * mebibyte
	s.MemoryReserve = host.MemoryReservation
	if c.Memory == 0 {
		s.MemoryBytes = t.rec.Task.Memory * mebibyte
	}
	if s.CgroupParent = t.group; t.group == "" {
		s.CPUQuotaMilli = t.cpuQuotaMilli()
	}
	for _, u := range host.Ulimits {
		s.Ulimits = append(s.Ulimits, runtime.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
}

// tmpfs reads a mount's options. The size has its own field.
func tmpfs(path, options string) runtime.Tmpfs {
	out := runtime.Tmpfs{Path: path}
	for o := range strings.SplitSeq(options, ",") {
		size, ok := strings.CutPrefix(o, "size=")
		n, err := strconv.ParseInt(strings.TrimSuffix(size, "m"), 10, 64)
		if ok && err == nil {
			out.SizeBytes = n * mebibyte
		} else if o != "" {
			out.Options = append(out.Options, o)
		}
	}
	return out
}

// containerConfig and hostConfig read the parts of the payload that are JSON. They ignore errors, since the control plane wrote it.
func containerConfig(c *acs.Container) (out acs.Config) {
	json.Unmarshal([]byte(c.DockerConfig.Config), &out) //nolint:errcheck // see above
	return out
}

func hostConfig(c *acs.Container) (out acs.HostConfig) {
	json.Unmarshal([]byte(c.DockerConfig.HostConfig), &out) //nolint:errcheck // see above
	return out
}

// environment returns the container's own variables, on top of what the node gives every container.
func (t *task) environment(c *acs.Container) []string {
	env := map[string]string{}
	if t.engine.opts.Environment != nil {
		rc, _ := t.container(c.Name)
		env = t.engine.opts.Environment(new(t.payload()), rc.Token)
	}
	maps.Copy(env, c.Environment)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// labels returns the labels that Amazon's agent sets, and the container's own.
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

// mounts returns a container's mount points, and those of the containers in its volumesFrom. As in Docker, its own count where there are others, and
// those of the last container.
func (t *task) mounts(c *acs.Container, seen map[string]bool) ([]runtime.Mount, error) {
	if seen[c.Name] {
		return nil, nil
	}
	seen[c.Name] = true
	var out []runtime.Mount
	for _, m := range c.MountPoints {
		mount, err := t.mount(c.Name, m)
		if err != nil {
			return nil, err
		}
		out = append(out, mount)
	}
	for _, v := range slices.Backward(c.VolumesFrom) {
		other := t.definition(v.SourceContainer)
		if other == nil {
			return nil, fmt.Errorf("volumesFrom names the container %q, which the task does not have", v.SourceContainer)
		}
		mounts, err := t.mounts(other, seen)
		if err != nil {
			return nil, err
		}
		own := out
		for _, m := range mounts {
			if slices.ContainsFunc(own, m.IsAtSamePlace) {
				continue
			}
			m.ReadOnly = m.ReadOnly || v.ReadOnly
			out = append(out, m)
		}
	}
	return out, nil
}

// volumesFrom lists the containers whose images' volumes a container sees: those in its volumesFrom, and in theirs.
func (t *task) volumesFrom(c *acs.Container, readonly bool, seen map[string]bool) []runtime.VolumesFrom {
	var out []runtime.VolumesFrom
	for _, v := range c.VolumesFrom {
		other := t.definition(v.SourceContainer)
		if other == nil || seen[other.Name] {
			continue
		}
		seen[other.Name] = true
		_, id := t.container(other.Name)
		readonly := readonly || v.ReadOnly
		out = append(out, runtime.VolumesFrom{ID: id, ReadOnly: readonly})
		out = append(out, t.volumesFrom(other, readonly, seen)...)
	}
	return out
}

// mount returns the source of a mount point: a directory of the node, or a volume. A volume without a path, or with scope task, belongs
// to the task.
func (t *task) mount(container string, m acs.MountPoint) (runtime.Mount, error) {
	out := runtime.Mount{Destination: m.ContainerPath, ReadOnly: m.ReadOnly}
	for _, v := range t.rec.Task.Volumes {
		if v.Name != m.SourceVolume {
			continue
		}
		if v.Host != nil && v.Host.SourcePath != "" {
			out.Source = v.Host.SourcePath
			return out, nil
		}
		if isFunction(v) {
			out.Source = t.engine.opts.Functions.Path(t.arn(), v)
			return out, nil
		}
		if isDataSet(v) {
			out.Source, out.ReadOnly = t.engine.opts.DataSets.Path(t.dataSet(v)), true
			return out, nil
		}
		if v.EFSVolumeConfiguration != nil {
			out.Source = t.engine.opts.FileSystems.Path(t.fileSystem(v, container))
			return out, nil
		}
		if v.EBSVolume != nil {
			out.Source = t.engine.opts.BlockVolumes.Path(t.blockVolume(v))
			return out, nil
		}
		out.Volume = true
		if name, own := t.ownVolume(v); own {
			out.Source = name
		} else {
			out.Source = v.Name
		}
		d := v.DockerVolumeConfiguration
		switch {
		case d == nil:
		case d.Scope == "shared" && !d.Autoprovision:
			out.MustExist = true
		default:
			out.Driver, out.DriverOpts, out.Labels = d.Driver, d.DriverOpts, d.Labels
		}
		return out, nil
	}
	return out, fmt.Errorf("the mount point %s names the volume %q, which the task does not have", m.ContainerPath, m.SourceVolume)
}

// ownVolume returns the node's name for a volume that ends with its task.
func (t *task) ownVolume(v acs.Volume) (name string, own bool) {
	d := v.DockerVolumeConfiguration
	if v.Host != nil && v.Host.SourcePath != "" || d != nil && d.Scope == "shared" || isPrepared(v) {
		return "", false
	}
	return "ecs-" + t.id() + "-" + v.Name, true
}

package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/pintle/pintle/internal/node/runtime"
)

// cdiKind is NVIDIA's name for GPUs in the Container Device Interface.
const cdiKind = "nvidia.com/gpu="

// makeCDIFile is the command that describes a machine's GPUs.
const makeCDIFile = "nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml"

// gpus gives the container its GPUs and no others, or all of the machine's if it looks after these. Real GPUs come through the Container
// Device Interface: a file that NVIDIA's tools generate says which parts of the driver each needs.
func (b *bundle) gpus(context.Context) error {
	if err := b.injectGPUs(); err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrCannotStart, err)
	}
	if visible := b.spec.Visible(); visible != "" { // after the CDI file's own variables: NVIDIA's tools set void there
		b.out.Process.Env = runtime.Environment(b.out.Process.Env, []string{"NVIDIA_VISIBLE_DEVICES=" + visible})
	}
	return nil
}

func (b *bundle) injectGPUs() error {
	if b.spec.SimulatedGPUs || len(b.spec.GPUs)+len(b.spec.MachineGPUs) == 0 {
		return nil
	}
	cache, err := b.runtime.cdi()
	if err != nil {
		return err
	}
	var names []string
	for _, id := range b.spec.GPUs {
		names = append(names, cdiKind+id)
	}
	for _, id := range b.spec.MachineGPUs { // those that are described: the container asked for none of them
		if name := cdiKind + id; cache.GetDevice(name) != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	missing, err := cache.InjectDevices(b.out, names...)
	if len(missing) > 0 {
		return undescribed(cache, missing)
	}
	return err
}

// CheckGPUs implements runtime.GPUChecker: a CDI file has to describe each GPU, and what it names has to be here.
func (r *Runtime) CheckGPUs(_ context.Context, ids []string) error {
	cache, err := r.cdi()
	if err != nil {
		return err
	}
	var names []string
	for _, id := range ids {
		names = append(names, cdiKind+id)
	}
	spec := &specs.Spec{}
	switch missing, err := cache.InjectDevices(spec, names...); {
	case len(missing) > 0:
		return undescribed(cache, missing)
	case err != nil: // a device without its file in /dev, say
		return fmt.Errorf("%w: if the machine has changed since, make the CDI file anew with %s", err, makeCDIFile)
	}
	for _, path := range hostPaths(spec) {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("containers with GPUs need %s by the CDI file, and it is not on this machine: "+
				"install NVIDIA's container toolkit, and make the file anew with %s", path, makeCDIFile)
		}
	}
	return nil
}

// hostPaths lists the files of the machine that a container with this spec needs: programs that are run when it starts, and what it mounts.
func hostPaths(spec *specs.Spec) []string {
	var paths []string
	if h := spec.Hooks; h != nil {
		for _, hook := range slices.Concat(h.Prestart, h.CreateRuntime, h.CreateContainer, h.StartContainer, h.Poststart, h.Poststop) {
			paths = append(paths, hook.Path)
		}
	}
	for _, m := range spec.Mounts {
		if slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind") {
			paths = append(paths, m.Source)
		}
	}
	return paths
}

// cdi reads the files that describe devices.
func (r *Runtime) cdi() (*cdi.Cache, error) {
	options := []cdi.Option{cdi.WithAutoRefresh(false)}
	if dirs := r.opts.CDIDirs; dirs != nil {
		options = append(options, cdi.WithSpecDirs(dirs...))
	}
	return cdi.NewCache(options...)
}

// undescribed says which devices no file describes, which files can't be read, and what to do.
func undescribed(cache *cdi.Cache, missing []string) error {
	err := fmt.Errorf(
		"no CDI file in %s describes %s: make one with %s",
		strings.Join(cache.GetSpecDirectories(), " or "), strings.Join(missing, ", "), makeCDIFile,
	)
	for _, problems := range cache.GetErrors() {
		err = fmt.Errorf("%w; %w", err, errors.Join(problems...))
	}
	return err
}

// devices gives the container the machine's devices in its spec, and denies all others except the harmless ones that runc adds.
func (b *bundle) devices(context.Context) error {
	if b.spec.Privileged {
		b.out.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		// It replaces the container's own /dev at the same index, so that mounts below /dev still come later.
		i := slices.IndexFunc(b.out.Mounts, func(m specs.Mount) bool { return m.Destination == "/dev" })
		b.out.Mounts[i] = specs.Mount{Destination: "/dev", Type: "bind", Source: "/dev", Options: []string{"rbind", "rprivate"}}
		return nil
	}
	b.out.Linux.Resources.Devices = append(b.out.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: false, Access: "rwm"})
	for _, d := range b.spec.Devices {
		if err := b.device(d); err != nil {
			return fmt.Errorf("%w: %w", runtime.ErrCannotStart, err)
		}
	}
	return nil
}

func (b *bundle) device(d runtime.Device) error {
	var st unix.Stat_t
	if err := unix.Stat(d.HostPath, &st); err != nil {
		return fmt.Errorf("device %s: %w", d.HostPath, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return b.devicesIn(d)
	}
	kind := map[uint32]string{unix.S_IFCHR: "c", unix.S_IFBLK: "b"}[st.Mode&unix.S_IFMT]
	if kind == "" {
		return fmt.Errorf("%s is not a device", d.HostPath)
	}
	path, access := d.ContainerPath, d.Permissions
	if path == "" {
		path = d.HostPath
	}
	if access == "" {
		access = "rwm"
	}
	major, minor := int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	mode := os.FileMode(st.Mode & 0o777)
	b.out.Linux.Devices = append(b.out.Linux.Devices, specs.LinuxDevice{
		Path:     path,
		Type:     kind,
		Major:    major,
		Minor:    minor,
		FileMode: &mode,
		UID:      &st.Uid,
		GID:      &st.Gid,
	})
	b.out.Linux.Resources.Devices = append(b.out.Linux.Resources.Devices, specs.LinuxDeviceCgroup{
		Allow:  true,
		Type:   kind,
		Major:  &major,
		Minor:  &minor,
		Access: access,
	})
	return nil
}

// devicesIn gives the container every device in a directory, such as /dev/infiniband.
func (b *bundle) devicesIn(d runtime.Device) error {
	return filepath.WalkDir(d.HostPath, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.Type()&os.ModeDevice == 0 {
			return err
		}
		inside, err := filepath.Rel(d.HostPath, path)
		if err != nil {
			return err
		}
		one := runtime.Device{HostPath: path, Permissions: d.Permissions}
		if d.ContainerPath != "" {
			one.ContainerPath = filepath.Join(d.ContainerPath, inside)
		}
		return b.device(one)
	})
}

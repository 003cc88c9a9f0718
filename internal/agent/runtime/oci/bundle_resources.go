package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/containerd/cgroups/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/pintle/pintle/internal/agent/runtime"
)

func unifiedCgroups() bool { return cgroups.Mode() == cgroups.Unified }

// cpuPeriod is what a CPU quota refers to, in microseconds.
const cpuPeriod = 100_000

// resources limits what the container may use.
func (b *bundle) resources(context.Context) error {
	s := b.spec
	res := &specs.LinuxResources{Memory: &specs.LinuxMemory{}, CPU: &specs.LinuxCPU{}}
	b.out.Linux.Resources = res
	if s.MemoryBytes > 0 {
		res.Memory.Limit = &s.MemoryBytes
		res.Memory.Swap = swap(s)
	}
	if s.MemoryReserve > 0 {
		res.Memory.Reservation = &s.MemoryReserve
	}
	if s.Swappiness != nil && *s.Swappiness >= 0 && !unifiedCgroups() {
		swappiness := uint64(*s.Swappiness)
		res.Memory.Swappiness = &swappiness
	}
	if s.CPUShares > 0 {
		shares := uint64(s.CPUShares)
		res.CPU.Shares = &shares
	}
	if s.CPUQuotaMilli > 0 {
		period, quota := uint64(cpuPeriod), s.CPUQuotaMilli*cpuPeriod/1000
		res.CPU.Period, res.CPU.Quota = &period, &quota
	}
	if s.PidsLimit > 0 {
		res.Pids = &specs.LinuxPids{Limit: &s.PidsLimit}
	}
	return nil
}

// swap is what the container may have of memory and swap together: Docker's default is twice its
// memory. A kernel that does not count swap cannot limit it.
func swap(s *runtime.Spec) *int64 {
	if !swapCounted() {
		return nil
	}
	total := s.MemorySwap
	if total == 0 {
		total = 2 * s.MemoryBytes
	}
	return &total
}

func swapCounted() bool {
	if unifiedCgroups() {
		swap, _ := filepath.Glob(unified + "/*/memory.swap.max")
		memory, _ := filepath.Glob(unified + "/*/memory.max")
		return len(swap) > 0 || len(memory) == 0 // without a cgroup to look at, the kernel's default
	}
	_, err := os.Stat(unified + "/memory/memory.memsw.limit_in_bytes")
	return err == nil
}

// cdiKind is NVIDIA's name for GPUs in the Container Device Interface.
const cdiKind = "nvidia.com/gpu="

// gpus gives the container its GPUs and no others. Real ones come through the Container Device
// Interface: a file of NVIDIA's tools says what of the driver each needs.
func (b *bundle) gpus(context.Context) error {
	ids := "void" // none, in the NVIDIA runtime's word
	if len(b.spec.GPUs) > 0 {
		ids = strings.Join(b.spec.GPUs, ",")
	}
	if len(b.spec.GPUs) > 0 || !b.spec.Privileged {
		b.out.Process.Env = environment(b.out.Process.Env, []string{"NVIDIA_VISIBLE_DEVICES=" + ids})
	}
	if len(b.spec.GPUs) == 0 || b.spec.SimulatedGPUs {
		return nil
	}
	var options []cdi.Option
	if dirs := b.runtime.opts.CDIDirs; dirs != nil {
		options = append(options, cdi.WithSpecDirs(dirs...))
	}
	cache, err := cdi.NewCache(options...)
	if err != nil {
		return err
	}
	var names []string
	for _, id := range b.spec.GPUs {
		names = append(names, cdiKind+id)
	}
	missing, err := cache.InjectDevices(b.out, names...)
	if len(missing) > 0 {
		return fmt.Errorf("no CDI file in %s describes %s: make one with nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml",
			strings.Join(cache.GetSpecDirectories(), " or "), strings.Join(missing, ", "))
	}
	return err
}

// copyFromImage copies what an image has at a path, with owners, modes and links. Nothing there is
// nothing to copy.
func copyFromImage(root, path, to string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close()
	from, err := r.OpenFile(strings.TrimPrefix(filepath.Clean("/"+path), "/"), os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil //nolint:nilerr // the image has no directory there, or a link that leads out of it
	}
	defer from.Close()
	// From the open directory, so that no link on the way can be changed meanwhile.
	cmd := exec.Command("cp", "--archive", "--no-target-directory", "/dev/fd/3/.", to)
	cmd.ExtraFiles = []*os.File{from}
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/dataset"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/docker"
	"github.com/pintle/pintle/internal/node/runtime/oci"
	"github.com/pintle/pintle/internal/node/runtime/process"
	"github.com/pintle/pintle/internal/node/runtime/shim"
	"github.com/pintle/pintle/internal/node/taskgroup"
)

// machine runs containers here, and gives tasks their own networks if it can.
type machine struct {
	runtime  runtime.Runtime
	networks engine.Networks // nil if there are none
	groups   engine.Groups   // nil if there are none
	// containersAt is where the containers are: the runtime's directory, or the address of the Docker Engine, "" for the default.
	containersAt string
	// imageBudget is how many bytes images may take on the disk by default; 0 if nobody knows which disk that is.
	imageBudget int64
	dataSets    *dataset.Cache // nil if containers can't have them
}

// machine opens the chosen runtime. By default that is Docker, or else runc; plain processes only by name. If there's none, the error says
// how to get one. dir is for the runtime's own files.
func (f nodeFlags) machine(ctx context.Context, dir string) (machine, error) {
	m, err := f.containers(ctx, dir)
	if err != nil || m.runtime.Name() == "process" {
		return m, err
	}
	m.dataSets, err = openDataSets(f.cacheIn(dir), f.DataBudget)
	return m, err
}

// cacheIn returns where the cache of data sets is of a machine whose files are in a directory.
func (f nodeFlags) cacheIn(dir string) string {
	return cmp.Or(f.DataSets, filepath.Join(dir, "datasets"))
}

// openDataSets opens a cache of data sets. Without a budget, it may have a quarter of the file system.
func openDataSets(dir string, budget int64) (*dataset.Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return dataset.Open(dir, cmp.Or(budget, halfOfDisk(dir)/2), slog.Default())
}

// containers opens the runtime.
func (f nodeFlags) containers(ctx context.Context, dir string) (machine, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	switch f.Runtime {
	case "process":
		program, err := findShim(ctx)
		if err != nil {
			return machine{}, err
		}
		images, err := f.standIns()
		if err != nil {
			return machine{}, err
		}
		dir := filepath.Join(dir, "processes")
		rt, err := process.New(dir, program, images)
		return machine{runtime: rt, containersAt: dir}, err
	case "docker":
		return f.docker(ctx, dir)
	case "oci":
		return f.oci(ctx, dir)
	}
	m, dockerErr := f.docker(ctx, dir)
	if dockerErr == nil {
		return m, nil
	}
	m, ociErr := f.oci(ctx, dir)
	if ociErr == nil {
		return m, nil
	}
	return machine{}, fmt.Errorf("there is nothing to run containers with\n  docker: %w\n  oci: %w\n"+
		"Install one: apt-get install docker.io, or apt-get install runc containernetworking-plugins iptables\n"+
		"Or run containers as plain processes, without isolation: --runtime process", dockerErr, ociErr)
}

// standIns returns the commands that stand in for images' own, by image.
func (f nodeFlags) standIns() (map[string]string, error) {
	lines := f.Images
	if f.ImagesFile != "" {
		b, err := os.ReadFile(f.ImagesFile)
		if err != nil {
			return nil, err
		}
		lines = append(strings.Split(string(b), "\n"), lines...)
	}
	images := map[string]string{}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, command, ok := strings.Cut(line, "=")
		if !ok || name == "" || command == "" {
			return nil, fmt.Errorf("%q is not of the form IMAGE=COMMAND", line)
		}
		images[name] = command
	}
	return images, nil
}

func (f nodeFlags) docker(ctx context.Context, dir string) (machine, error) {
	rt, err := docker.New(ctx, f.DockerHost)
	if err != nil {
		return machine{}, err
	}
	m := machine{runtime: rt, containersAt: f.DockerHost, groups: orNoGroups(rt.TaskGroups(ctx))}
	if root, err := rt.Root(ctx); err == nil {
		m.imageBudget = halfOfDisk(root)
	}
	networks, err := f.dockerNetworks(ctx, dir, rt)
	if err != nil {
		slog.Warn("tasks in network mode awsvpc cannot run on this node", "reason", err)
		return m, nil
	}
	m.networks = networks
	return m, nil
}

// holdBack has Docker's containers wait for the agent. launched says that the machine is one of Pintle's own fleet.
func (m machine) holdBack(ctx context.Context, launched bool) {
	rt, ok := m.runtime.(*docker.Runtime)
	if !ok || os.Geteuid() != 0 { // without root there is nothing to wait for
		return
	}
	if err := rt.HoldBack(ctx, launched); err != nil {
		slog.Warn("containers in network mode bridge that ask for their metadata or credentials at once may be refused", "reason", err)
	}
}

// orNoGroups returns a machine's control groups for tasks. If there can be none, it says so.
func orNoGroups(g *taskgroup.Groups, err error) engine.Groups {
	if err != nil {
		slog.Warn("the CPU and memory of a task bind each of its containers, not the task as a whole", "reason", err)
		return nil
	}
	return g
}

func (f nodeFlags) dockerNetworks(ctx context.Context, dir string, rt *docker.Runtime) (*docker.Networks, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the agent is not root")
	}
	cni, err := f.taskNetworks(ctx, dir)
	if err != nil {
		return nil, err
	}
	return docker.NewNetworks(rt, cni)
}

func (f nodeFlags) oci(ctx context.Context, dir string) (machine, error) {
	if os.Geteuid() != 0 {
		return machine{}, errors.New("the runtime oci needs root")
	}
	program, err := findShim(ctx)
	if err != nil {
		return machine{}, err
	}
	bridge, err := f.bridge(ctx, filepath.Join(dir, "networks"))
	if err != nil {
		return machine{}, err
	}
	tasks, err := f.taskNetworks(ctx, dir)
	if err != nil {
		return machine{}, err
	}
	rt, err := oci.New(oci.Options{Dir: dir, Shim: program, Networks: bridge})
	return machine{
		runtime: rt, containersAt: dir, networks: tasks, groups: orNoGroups(taskgroup.Open(false)), imageBudget: halfOfDisk(dir),
	}, err
}

// halfOfDisk is half of what the file system of a directory holds, in bytes; 0 if that can't be told.
func halfOfDisk(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Blocks) * s.Bsize / 2
}

// findShim returns the program to run beside each container. If that is this one, which takes more memory, it says so.
func findShim(ctx context.Context) (shim.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, reason := shim.Find(ctx, self)
	if reason != nil {
		slog.Warn("each container takes some MB more, because there is no matching pintle-shim beside pintle", "reason", reason)
	}
	return p, nil
}

// taskNetworks returns the networks for awsvpc tasks: the user's own kind, or the machine's bridge.
func (f nodeFlags) taskNetworks(ctx context.Context, dir string) (*network.Networks, error) {
	dir = filepath.Join(dir, "task-networks")
	if f.TaskNetwork == "" {
		return f.bridge(ctx, dir)
	}
	config, err := os.ReadFile(f.TaskNetwork)
	if err != nil {
		return nil, err
	}
	return network.Open(ctx, dir, config)
}

func (f nodeFlags) bridge(ctx context.Context, dir string) (*network.Networks, error) {
	subnet, err := netip.ParsePrefix(f.Subnet)
	if err != nil || !subnet.Addr().Is4() {
		return nil, fmt.Errorf("--subnet %s is not an IPv4 network such as 10.213.0.0/16", f.Subnet)
	}
	return network.OpenBridge(ctx, dir, subnet)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/network"
	"github.com/pintle/pintle/internal/agent/runtime"
	"github.com/pintle/pintle/internal/agent/runtime/docker"
	"github.com/pintle/pintle/internal/agent/runtime/oci"
	"github.com/pintle/pintle/internal/agent/runtime/process"
)

// machine is what runs containers here, and gives tasks networks of their own where it can.
type machine struct {
	runtime  runtime.Runtime
	networks engine.Networks // nil where there are none
}

// machine opens the runtime that is asked for: Docker's, else runc, or plain processes by name alone.
// Without any it says how to get one. What the runtime keeps itself lies in dir.
func (f nodeFlags) machine(ctx context.Context, dir string) (machine, error) {
	self, err := os.Executable()
	if err != nil {
		return machine{}, err
	}
	shim := []string{self, "shim"}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	switch f.Runtime {
	case "process":
		rt, err := process.New(filepath.Join(dir, "processes"), shim)
		return machine{runtime: rt}, err
	case "docker":
		return f.docker(ctx)
	case "oci":
		return f.oci(ctx, dir, shim)
	}
	m, dockerErr := f.docker(ctx)
	if dockerErr == nil {
		return m, nil
	}
	m, ociErr := f.oci(ctx, dir, shim)
	if ociErr == nil {
		return m, nil
	}
	return machine{}, fmt.Errorf("there is nothing to run containers with\n  docker: %w\n  oci: %w\n"+
		"Install one: apt-get install docker.io, or apt-get install runc containernetworking-plugins iptables\n"+
		"Or run containers as plain processes, without isolation: --runtime process", dockerErr, ociErr)
}

func (f nodeFlags) docker(ctx context.Context) (machine, error) {
	rt, err := docker.New(ctx, f.DockerHost)
	return machine{runtime: rt}, err
}

func (f nodeFlags) oci(ctx context.Context, dir string, shim []string) (machine, error) {
	subnet, err := netip.ParsePrefix(f.Subnet)
	if err != nil {
		return machine{}, fmt.Errorf("--subnet: %w", err)
	}
	bridge, err := network.Open(ctx, filepath.Join(dir, "networks"), network.Bridge(subnet))
	if err != nil {
		return machine{}, err
	}
	tasks, err := f.taskNetworks(ctx, dir, subnet)
	if err != nil {
		return machine{}, err
	}
	rt, err := oci.New(oci.Options{Dir: dir, Self: shim, Networks: bridge})
	return machine{rt, tasks}, err
}

// taskNetworks are the networks of tasks of mode awsvpc: the user's own kind, or the machine's bridge.
func (f nodeFlags) taskNetworks(ctx context.Context, dir string, subnet netip.Prefix) (*network.Networks, error) {
	config := network.Bridge(subnet)
	if f.TaskNetwork != "" {
		var err error
		if config, err = os.ReadFile(f.TaskNetwork); err != nil {
			return nil, errors.Join(errors.New("--task-network"), err)
		}
	}
	return network.Open(ctx, filepath.Join(dir, "task-networks"), config)
}

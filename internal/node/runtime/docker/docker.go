// Package docker runs containers on a Docker Engine through its API. The engine keeps track of them while agents come and go; this package
// only talks to it. Images come from any registry, an OCI layout, or a tarball of a root file system.
package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/taskgroup"
)

// Runtime is a runtime.Runtime on a Docker Engine.
type Runtime struct {
	api  *client.Client
	held io.Closer // what HoldBack holds, or nil
	cdi  bool      // whether GPUs are asked for by their names in CDI files, as CheckGPUs found

	importing sync.Mutex
	imported  map[string]tarballStamp // by reference
}

var (
	_ runtime.Runtime    = (*Runtime)(nil)
	_ runtime.GPUChecker = (*Runtime)(nil)
)

// New connects to the engine at a host such as unix:///var/run/docker.sock. An empty host means $DOCKER_HOST, or that socket. If the engine
// doesn't answer, the error says so.
func New(ctx context.Context, host string) (*Runtime, error) {
	options := []client.Opt{client.WithHostFromEnv()}
	if host != "" {
		options = []client.Opt{client.WithHost(host)}
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if _, err := api.ServerVersion(ctx, client.ServerVersionOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("the Docker Engine does not answer (start it, or choose another runtime with --runtime): %w", err), api.Close())
	}
	return &Runtime{api: api, imported: map[string]tarballStamp{}}, nil
}

// Close closes the connection. Containers keep running.
func (r *Runtime) Close() error {
	if r.held != nil {
		r.held.Close() //nolint:errcheck // it ends with the process at the latest
	}
	return r.api.Close()
}

// HoldBack has containers in network mode bridge wait for the agent: the engine starts them before the agent can serve their namespaces,
// and what they ask in between is held back, until Close. On a machine that Pintle launched, so is what they ask the instance metadata
// service, lest they get the credentials of a cloud's machine from that cloud's own.
func (r *Runtime) HoldBack(ctx context.Context, launched bool) error {
	if !r.IsLocal() {
		return errors.New("the Docker Engine is on another machine")
	}
	bridge, err := r.api.NetworkInspect(ctx, "bridge", client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return nil // the engine has been told to have none
	}
	if err != nil {
		return err
	}
	var more []string
	if launched {
		more = []string{network.InstanceMetadata}
	}
	r.held, err = network.HoldBack(bridge.Network.Options["com.docker.network.bridge.name"], more...)
	return err
}

// Name implements runtime.Runtime.
func (*Runtime) Name() string { return "docker" }

// CheckGPUs implements runtime.GPUChecker. The engine gives GPUs out by NVIDIA's hook, which it finds in its PATH, or by CDI files, which it
// lists since version 28.3. It doesn't say that it has the hook, but the agent's PATH is the same where both are on one machine, and who
// configures the toolkit has a runtime for it. Without hook and runtime the engine can't tell whose GPUs are meant, and version 29 takes them
// for AMD's. So then they are asked for by their names in CDI files.
func (r *Runtime) CheckGPUs(ctx context.Context, ids []string) error {
	if _, err := exec.LookPath("nvidia-container-runtime-hook"); err == nil {
		return nil
	}
	i, err := r.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return orUnavailable(err)
	}
	if _, ok := i.Info.Runtimes["nvidia"]; ok {
		return nil
	}
	described := map[string]bool{}
	for _, d := range i.Info.DiscoveredDevices {
		if strings.HasPrefix(d.ID, cdiGPU) {
			described[d.ID] = true
		}
	}
	if r.cdi = len(described) > 0; r.cdi {
		for _, name := range cdiNames(ids) {
			if !described[name] {
				return fmt.Errorf("no CDI file of the Docker Engine describes %s: nvidia-ctk cdi generate --device-name-strategy=uuid "+
					"--output=/etc/cdi/nvidia.yaml", name)
			}
		}
		return nil
	}
	return errors.New("the Docker Engine has no NVIDIA Container Toolkit: install nvidia-container-toolkit, then " +
		"nvidia-ctk runtime configure --runtime=docker, and restart the engine")
}

// ownerLabel holds a container's Owner, and idLabel its ID.
const (
	ownerLabel = "dev.pintle.owner"
	idLabel    = "dev.pintle.id"
)

// Create implements runtime.Runtime.
func (r *Runtime) Create(ctx context.Context, spec *runtime.Spec) error {
	config, host, err := translate(spec, r.cdi)
	if err != nil {
		return err
	}
	for _, m := range spec.Mounts {
		if err := r.checkVolume(ctx, m); err != nil {
			return err
		}
	}
	if spec.Network.Mode == "netns" {
		if err := r.setNames(ctx, spec); err != nil {
			return err
		}
		host.DNS, host.ExtraHosts = nil, nil // it has the holder's
	}
	_, err = r.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: spec.ID, Config: config, HostConfig: host})
	if errdefs.IsConflict(err) { // it exists already
		return nil
	}
	return orUnavailable(err)
}

// checkVolume returns an error for a missing volume that must exist: the engine would make it.
func (r *Runtime) checkVolume(ctx context.Context, m runtime.Mount) error {
	if !m.MustExist {
		return nil
	}
	_, err := r.api.VolumeInspect(ctx, m.Source, client.VolumeInspectOptions{})
	if errdefs.IsNotFound(err) {
		return runtime.NoVolume(m.Source)
	}
	return orUnavailable(err)
}

// orUnavailable marks the error of a call that did not get through, or was cut off, as when the engine restarts.
func orUnavailable(err error) error {
	if client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return err
}

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, id string) error {
	c, err := r.inspect(ctx, id)
	if err != nil {
		return err
	}
	if c.State.Status != container.StateCreated {
		return nil // it must not run twice
	}
	_, err = r.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return orUnavailable(err)
}

// Revive implements runtime.Runtime. The engine starts an ended container just so.
func (r *Runtime) Revive(ctx context.Context, id string, ended time.Time) error {
	c, err := r.inspect(ctx, id)
	if err != nil {
		return err
	}
	if c.State.Running || !exitOf(c).FinishedAt.Equal(ended) {
		return nil
	}
	_, err = r.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return orUnavailable(err)
}

func (r *Runtime) inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	c, err := r.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return container.InspectResponse{}, fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
	}
	return c.Container, orUnavailable(err)
}

// IsRunning reports whether a container runs. One that isn't there doesn't.
func (r *Runtime) IsRunning(ctx context.Context, id string) (bool, error) {
	c, err := r.inspect(ctx, id)
	if errors.Is(err, runtime.ErrNotFound) {
		return false, nil
	}
	return err == nil && c.State != nil && c.State.Running, err
}

// IsLocal reports whether the engine is on this machine, and so its containers' processes too.
func (r *Runtime) IsLocal() bool { return strings.HasPrefix(r.api.DaemonHost(), "unix://") }

// Root returns the directory where the engine keeps its images, if that is on this machine.
func (r *Runtime) Root(ctx context.Context) (string, error) {
	if !r.IsLocal() {
		return "", errors.New("the Docker Engine is on another machine")
	}
	info, err := r.api.Info(ctx, client.InfoOptions{})
	return info.Info.DockerRootDir, err
}

// VolumeDrivers lists the drivers of volumes that the engine has: its own, and those of its plugins.
func (r *Runtime) VolumeDrivers(ctx context.Context) ([]string, error) {
	info, err := r.api.Info(ctx, client.InfoOptions{})
	return info.Info.Plugins.Volume, orUnavailable(err)
}

// TaskGroups returns the control groups in which the engine puts the containers of tasks, or why it can't.
func (r *Runtime) TaskGroups(ctx context.Context) (*taskgroup.Groups, error) {
	if !r.IsLocal() {
		return nil, errors.New("the Docker Engine is on another machine")
	}
	info, err := r.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, err
	}
	return taskgroup.Open(info.Info.CgroupDriver == "systemd")
}

// NetNS implements runtime.Runtime. The engine makes the namespace when the container starts.
func (r *Runtime) NetNS(ctx context.Context, id string) (string, error) {
	c, err := r.inspect(ctx, id)
	if err != nil || !c.State.Running || c.HostConfig.NetworkMode != "bridge" || !r.IsLocal() {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/ns/net", c.State.Pid), nil
}

// Address returns the address of a running container in mode bridge.
func (r *Runtime) Address(ctx context.Context, id string) (string, error) {
	c, err := r.inspect(ctx, id)
	if err != nil {
		return "", err
	}
	n := c.NetworkSettings
	if n == nil || n.Networks["bridge"] == nil || !n.Networks["bridge"].IPAddress.IsValid() {
		return "", errors.New("it has none")
	}
	return n.Networks["bridge"].IPAddress.String(), nil
}

// Wait implements runtime.Runtime. It keeps trying while the engine restarts.
func (r *Runtime) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	for {
		wait := r.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			if ctx.Err() != nil {
				return runtime.Exit{}, ctx.Err()
			}
			if errdefs.IsNotFound(err) {
				return runtime.Exit{}, fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
			}
		case <-ctx.Done():
			return runtime.Exit{}, ctx.Err()
		}
		c, err := r.inspect(ctx, id)
		if errors.Is(err, runtime.ErrNotFound) {
			return runtime.Exit{}, err
		}
		if err == nil && !c.State.Running {
			exit := exitOf(c)
			exit.OOMKilled = exit.OOMKilled || r.outOfMemory(ctx, c)
			return exit, nil
		}
		select {
		case <-ctx.Done():
			return runtime.Exit{}, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func exitOf(c container.InspectResponse) runtime.Exit {
	finished, _ := time.Parse(time.RFC3339Nano, c.State.FinishedAt)
	return runtime.Exit{Code: c.State.ExitCode, OOMKilled: c.State.OOMKilled, FinishedAt: finished, Error: c.State.Error}
}

// outOfMemory reports whether a container that was killed had run out of memory, though its state doesn't say so: containerd tells the
// kernel's reason apart from the exit, and now and then after it. The engine has an event for either order.
func (r *Runtime) outOfMemory(ctx context.Context, c container.InspectResponse) bool {
	if c.State.ExitCode != 128+int(syscall.SIGKILL) || c.HostConfig.Memory == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	filters := client.Filters{}.Add("container", c.ID).Add("event", string(events.ActionOOM))
	told := r.api.Events(ctx, client.EventsListOptions{Since: c.State.StartedAt, Filters: filters})
	select {
	case <-told.Messages:
		return true
	case <-told.Err:
		return false
	}
}

// Stop implements runtime.Runtime.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	seconds := int((grace + time.Second - 1) / time.Second)
	_, err := r.api.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
	}
	return err
}

// Remove implements runtime.Runtime. It removes the container's anonymous volumes too.
func (r *Runtime) Remove(ctx context.Context, id string) error {
	c, err := r.inspect(ctx, id)
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.State.Running {
		return fmt.Errorf("container %s is running", id)
	}
	_, err = r.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{RemoveVolumes: true})
	return err
}

// RemoveVolume implements runtime.Runtime.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	_, err := r.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// List implements runtime.Runtime.
func (r *Runtime) List(ctx context.Context, owner string) ([]runtime.Container, error) {
	found, err := r.api.ContainerList(ctx, client.ContainerListOptions{
		All:     true,
		Filters: client.Filters{}.Add("label", ownerLabel+"="+owner),
	})
	if err != nil {
		return nil, err
	}
	var out []runtime.Container
	for _, s := range found.Items {
		c, err := r.inspect(ctx, s.ID)
		if errors.Is(err, runtime.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, describe(c))
	}
	return out, nil
}

// Identify returns what the engine knows of a container, with its own ids of it and its image.
func (r *Runtime) Identify(ctx context.Context, id string) (runtime.Container, error) {
	c, err := r.inspect(ctx, id)
	if err != nil {
		return runtime.Container{}, err
	}
	return describe(c), nil
}

func describe(c container.InspectResponse) runtime.Container {
	out := runtime.Container{
		ID: c.Config.Labels[idLabel], RuntimeID: c.ID, ImageID: c.Image, Labels: c.Config.Labels, PID: c.State.Pid,
	}
	out.StartedAt, _ = time.Parse(time.RFC3339Nano, c.State.StartedAt)
	switch {
	case c.State.Status == container.StateCreated:
		out.Status = runtime.Created
	case c.State.Running:
		out.Status = runtime.Running
	default:
		out.Status = runtime.Exited
		out.Exit = exitOf(c)
	}
	return out
}

// Stats implements runtime.Runtime.
func (r *Runtime) Stats(ctx context.Context, id string) (runtime.Stats, error) {
	res, err := r.api.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return runtime.Stats{}, err
	}
	defer res.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&s); err != nil {
		return runtime.Stats{}, err
	}
	out := runtime.Stats{
		At:          time.Now(),
		CPU:         time.Duration(s.CPUStats.CPUUsage.TotalUsage),
		MemoryLimit: int64(s.MemoryStats.Limit),
		MemoryBytes: int64(s.MemoryStats.Usage - min(s.MemoryStats.Usage, reclaimable(s.MemoryStats.Stats))),
		Docker:      &s,
	}
	for _, n := range s.Networks {
		out.RxBytes += int64(n.RxBytes)
		out.TxBytes += int64(n.TxBytes)
	}
	return out, nil
}

// reclaimable returns the cache that the kernel can reclaim. Its name depends on the cgroup version.
func reclaimable(stats map[string]uint64) uint64 {
	if v, ok := stats["total_inactive_file"]; ok {
		return v
	}
	return stats["inactive_file"]
}

// cursor identifies a line by its time, and by its number among the lines with that same time.
type cursor struct {
	at    string
	lines int // counts from 1
}

func parseCursor(s string) cursor {
	at, lines, _ := strings.Cut(s, "#")
	n, _ := strconv.Atoi(lines)
	return cursor{at, n}
}

func (c cursor) String() string { return c.at + "#" + strconv.Itoa(c.lines) }

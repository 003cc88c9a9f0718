package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/gpu"
)

// nodeFlags are what every node can be told.
type nodeFlags struct {
	Runtime     string            `default:"" enum:",docker,oci,process" help:"Container runtime: docker, oci (runc, without a daemon; needs root), or process (plain child processes: no image, no isolation). Default docker, if its engine answers, else oci."`
	DockerHost  string            `help:"Address of the Docker Engine; default DOCKER_HOST or the local socket."`
	Subnet      string            `default:"10.213.0.0/16" placeholder:"CIDR" help:"Addresses for containers of the oci runtime on this machine's bridge."`
	TaskNetwork string            `type:"existingfile" placeholder:"FILE" help:"CNI network configuration list for tasks of network mode awsvpc; default the bridge. With macvlan, say, each task has an address on the LAN."`
	Metrics     string            `default:"127.0.0.1:9400" placeholder:"ADDRESS" help:"Where the GPUs' metrics are served to Prometheus, at /metrics, under dcgm-exporter's names; empty serves none."`
	GPUExporter string            `name:"gpu-exporter" placeholder:"URL" help:"Read the load of this machine's GPUs from the dcgm-exporter there, such as http://127.0.0.1:9400/metrics, instead of NVML."`
	StrictLogs  bool              `name:"strict" help:"Fail tasks whose log group does not exist, as AWS does, instead of making it."`
	Zone        string            `name:"availability-zone" help:"Availability zone to be in; default the region's first."`
	StandsFor   string            `placeholder:"TYPE" help:"Instance type to be known as, with what this machine has."`
	Attributes  map[string]string `name:"attribute" help:"Attribute of the container instance, NAME=VALUE; repeat for more."`
}

type agentCmd struct {
	nodeFlags
	Endpoint  string `env:"AWS_ENDPOINT_URL" default:"http://127.0.0.1:4566" help:"The control plane's URL."`
	Cluster   string `env:"ECS_CLUSTER" default:"default" help:"Cluster to join."`
	Data      string `default:"~/.pintle/agent" type:"path" help:"Directory for the node's records and containers."`
	Type      string `name:"instance-type" help:"Simulate this instance type's GPUs, CPU and memory, instead of the machine's own."`
	Name      string `help:"Name of the node; default the host's."`
	Instance  string `name:"instance-id" placeholder:"ID" help:"The machine's id, in EC2's form; default one of its own making."`
	Ephemeral bool   `help:"Stop the node's tasks when it is interrupted, as a machine does that is switched off."`
	LockFD    int    `name:"lock-fd" hidden:"" help:"The lock of the directory, taken by who starts this, as a file descriptor."`
	Verbose   bool   `short:"v" help:"Log more."`
}

// Run makes this machine a node.
func (c *agentCmd) Run(ctx context.Context) error {
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // it ends with the process
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	name := c.Name
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		name = host
	}
	setup := ctx
	if c.Ephemeral { // it may be told to end at once, but what an agent before it has left is still to be stopped
		setup = context.WithoutCancel(ctx)
	}
	config, err := awsConfig(setup, c.Endpoint)
	if err != nil {
		return err
	}
	m, err := c.machine(setup, c.Data)
	if err != nil {
		return err
	}
	a, err := c.agent(setup, config, m, node.Config{
		Name: name, Cluster: c.Cluster, Endpoint: c.Endpoint, InstanceType: c.Type, InstanceID: c.Instance, DataDir: c.Data, Log: log,
	})
	if err != nil {
		return err
	}
	if err := file.Sign(lock); err != nil { // it can run: that is what a fleet waits for
		return err
	}
	err = c.serve(ctx, a, log)
	if !c.Ephemeral || ctx.Err() == nil {
		return err
	}
	return errors.Join(err, c.switchOff(a))
}

// lock is the node's, as long as it runs.
func (c *agentCmd) lock() (*os.File, error) {
	if c.LockFD != 0 {
		return file.Inherit(c.LockFD), nil
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, err
	}
	return file.Reserve(filepath.Join(c.Data, fleet.LockFile))
}

// switchOff kills what still runs on a node that is ephemeral, and says that nothing does.
func (c *agentCmd) switchOff(a *node.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := a.Kill(ctx); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Data, fleet.OffFile), nil, 0o600)
}

// serve runs the node until ctx ends. One that is ephemeral stops its tasks first.
func (c *agentCmd) serve(ctx context.Context, a *node.Agent, log *slog.Logger) error {
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	g, serving := errgroup.WithContext(serving)
	g.Go(func() error { defer stop(); return ignore(a.Run(serving)) })
	g.Go(func() error { return serveMetrics(serving, c.Metrics, []*node.Agent{a}, log) })
	g.Go(func() error {
		defer stop()
		select {
		case <-serving.Done():
			return nil
		case <-ctx.Done():
		}
		if !c.Ephemeral {
			return nil
		}
		draining, cancel := context.WithTimeout(serving, drainTimeout)
		defer cancel()
		select { // tasks of an agent before it are its own once it is ready
		case <-a.Ready():
		case <-time.After(readyTimeout):
		case <-draining.Done():
		}
		return ignore(a.Drain(draining))
	})
	return g.Wait()
}

// readyTimeout is how long an agent may take to take over what one before it has left.
const readyTimeout = 10 * time.Second

// agent is a node: of the instance type that c names, simulated, or of this very machine where it names none.
func (f nodeFlags) agent(ctx context.Context, config aws.Config, m machine, c node.Config) (*node.Agent, error) {
	c.Region, c.Zone, c.Version = config.Region, cmp.Or(f.Zone, config.Region+"a"), version
	c.Attributes, c.StrictLogs, c.Runtime, c.Networks = f.Attributes, f.StrictLogs, m.runtime, m.networks
	c.Credentials, c.ECS, c.Logs = config.Credentials, awsecs.NewFromConfig(config), cloudwatchlogs.NewFromConfig(config)
	if c.InstanceType == "" {
		c, err := thisMachine(ctx, c, cmp.Or(f.StandsFor, "pintle.machine"), f.GPUExporter)
		if err != nil {
			return nil, err
		}
		return node.New(c), nil
	}
	if f.GPUExporter != "" {
		return nil, errors.New("--gpu-exporter is for this machine's own GPUs: no exporter knows simulated ones")
	}
	t, err := instancetype.Lookup(c.InstanceType)
	if err != nil {
		return nil, err
	}
	c.InstanceType, c.CPU, c.MemoryMiB, c.GPUs = t.Name, int64(t.VCPUs)*1024, t.MemoryMiB, gpu.Source(gpu.None{})
	if t.GPUs > 0 {
		c.GPUs = gpu.NewSimulated(c.Name, t)
	}
	return node.New(c), nil
}

// thisMachine fills in what this machine has, which is known as a type. metrics is where an exporter tells of its GPUs, or empty.
func thisMachine(ctx context.Context, c node.Config, typeName, metrics string) (node.Config, error) {
	c.InstanceType, c.CPU, c.MemoryMiB, c.GPUs = typeName, int64(goruntime.NumCPU())*1024, machineMemoryMiB(), gpu.None{}
	real, err := gpu.NewNVML(nvml.New())
	switch {
	case err == nil:
		c.GPUs = real
	case metrics == "":
		c.Log.Info("this machine has no GPUs that can be used", "reason", err)
	}
	if metrics == "" {
		return c, gpu.Claim(c.GPUs.Devices())
	}
	var devices gpu.Source // nil lets the exporter say which there are
	if err == nil {
		devices = real
	}
	exported, err := gpu.NewDCGM(ctx, metrics, devices, c.Log)
	if err != nil {
		return c, fmt.Errorf("--gpu-exporter: %v", err) // not wrapped: it is not the control plane that does not answer
	}
	c.GPUs = exported
	return c, gpu.Claim(c.GPUs.Devices())
}

// machineMemoryMiB is the machine's memory, from /proc/meminfo.
func machineMemoryMiB() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 1024
	}
	var kib int64
	if _, err := fmt.Sscanf(string(b[strings.Index(string(b), "MemTotal:"):]), "MemTotal: %d kB", &kib); err != nil {
		return 1024
	}
	return kib / 1024
}

// The fleet of this machine gives an agent 45 seconds to end.
const (
	drainTimeout = 35 * time.Second
	killTimeout  = 5 * time.Second
)

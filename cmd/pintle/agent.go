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
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/gpu"
)

// nodeFlags are what every node can be told.
type nodeFlags struct {
	Runtime     string
	DockerHost  string
	Subnet      string
	TaskNetwork string
	Metrics     string
	GPUExporter string
	StrictLogs  bool
	Zone        string
	StandsFor   string
	Attributes  map[string]string
}

// define defines the flags.
func (c *nodeFlags) define(f flags) {
	f.choice(&c.Runtime, "runtime", "", "Container runtime: docker, oci (runc, without a daemon; needs root), or process (plain child processes: no image, no isolation). Default docker, if its engine answers, else oci.", "docker", "oci", "process")
	f.StringVar(&c.DockerHost, "docker-host", "", "Address of the Docker Engine; default DOCKER_HOST or the local socket.")
	f.StringVar(&c.Subnet, "subnet", "10.213.0.0/16", "Addresses for containers of the oci runtime on this machine's bridge.")
	f.placeholder("subnet", "CIDR")
	f.file(&c.TaskNetwork, "task-network", "CNI network configuration list for tasks of network mode awsvpc; default the bridge. With macvlan, say, each task has an address on the LAN.")
	f.StringVar(&c.Metrics, "metrics", "127.0.0.1:9400", "Where the GPUs' metrics are served to Prometheus, at /metrics, under dcgm-exporter's names; empty serves none.")
	f.placeholder("metrics", "ADDRESS")
	f.StringVar(&c.GPUExporter, "gpu-exporter", "", "Read the load of this machine's GPUs from the dcgm-exporter there, such as http://127.0.0.1:9400/metrics, instead of NVML.")
	f.placeholder("gpu-exporter", "URL")
	f.BoolVar(&c.StrictLogs, "strict", false, "Fail tasks whose log group does not exist, as AWS does, instead of making it.")
	f.StringVar(&c.Zone, "availability-zone", "", "Availability zone to be in; default the region's first.")
	f.StringVar(&c.StandsFor, "stands-for", "", "Instance type to be known as, with what this machine has.")
	f.placeholder("stands-for", "TYPE")
	pairs(f, &c.Attributes, "attribute", "", "NAME=VALUE", "Attribute of the container instance, NAME=VALUE; repeat for more.", asIs)
}

type agentCmd struct {
	nodeFlags
	Endpoint  string
	Cluster   string
	Data      string
	Type      string
	Name      string
	Instance  string
	Ephemeral bool
	LockFD    int
	Verbose   bool
}

// define defines the flags.
func (c *agentCmd) define(f flags) {
	c.nodeFlags.define(f)
	f.StringVar(&c.Endpoint, "endpoint", "http://127.0.0.1:4566", "The control plane's URL.")
	f.env("endpoint", "AWS_ENDPOINT_URL")
	f.StringVar(&c.Cluster, "cluster", "default", "Cluster to join.")
	f.env("cluster", "ECS_CLUSTER")
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle/agent", "Directory for the node's records and containers.")
	f.StringVar(&c.Type, "instance-type", "", "Simulate this instance type's GPUs, CPU and memory, instead of the machine's own.")
	f.StringVar(&c.Name, "name", "", "Name of the node; default the host's.")
	f.StringVar(&c.Instance, "instance-id", "", "The machine's id, in EC2's form; default one of its own making.")
	f.placeholder("instance-id", "ID")
	f.BoolVar(&c.Ephemeral, "ephemeral", false, "Stop the node's tasks when it is interrupted, as a machine does that is switched off.")
	f.IntVar(&c.LockFD, "lock-fd", 0, "The lock of the directory, taken by who starts this, as a file descriptor.")
	f.hidden("lock-fd")
	f.BoolVarP(&c.Verbose, "verbose", "v", false, "Log more.")
}

// verb is the command line of the verb.
func (c *agentCmd) verb() *cobra.Command {
	cmd := newVerb("agent [flags]", "Make this machine a node of a control plane.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
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

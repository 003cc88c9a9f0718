package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/bootstrap"
	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/blockvolume"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/filesystem"
	"github.com/pintle/pintle/internal/node/gpu"
)

// nodeFlags are the flags of every node.
type nodeFlags struct {
	Runtime     string
	DockerHost  string
	Subnet      string
	TaskNetwork string
	Metrics     string
	GPUExporter string
	GPUs        string
	StrictLogs  bool
	Zone        string
	StandsFor   string
	Attributes  map[string]string
	Images      []string
	ImagesFile  string
	BlockIMDS   bool
	DNS         string
	Transparent bool
	OtherAWS    bool
	Keep        time.Duration
	ImagePull   string
	ImageBudget int64
	Prefetch    bool
	PeerPulls   bool
	PeerAddress string
	DataSets    string
	DataBudget  int64
	FileSystems string
}

// keepStopped is how long what stopped tasks leave is kept, as by Amazon's agent.
const keepStopped = 3 * time.Hour

func (c *nodeFlags) define(f flags) {
	f.choice(
		&c.Runtime, "runtime", "",
		"Container runtime: docker, oci (runc, without a daemon; needs root), or process (plain child processes: no image, no "+
			"isolation). Default docker if its engine answers, else oci.",
		"docker", "oci", "process",
	)
	f.StringVar(&c.DockerHost, "docker-host", "", "Address of the Docker Engine; default DOCKER_HOST or the local socket.")
	f.StringVar(&c.Subnet, "subnet", "10.213.0.0/16", "Addresses for containers of the oci runtime on this machine's bridge.")
	f.placeholder("subnet", "CIDR")
	f.file(
		&c.TaskNetwork, "task-network",
		"CNI network configuration list for tasks in network mode awsvpc; default the bridge. With macvlan, for example, each task has "+
			"an address on the LAN.",
	)
	f.StringVar(
		&c.Metrics, "metrics", "127.0.0.1:9400",
		"Address that serves the GPUs' metrics to Prometheus, at /metrics, under dcgm-exporter's names; empty for none.",
	)
	f.placeholder("metrics", "ADDRESS")
	f.StringVar(
		&c.GPUExporter, "gpu-exporter", "",
		"Read the load of this machine's GPUs from a dcgm-exporter, such as http://127.0.0.1:9400/metrics, instead of NVML.",
	)
	f.placeholder("gpu-exporter", "URL")
	f.choice(
		&c.GPUs, "gpus", gpusAuto,
		"This machine's own GPUs: auto offers them if containers can have them; required has the agent end with an error if there are none, or "+
			"containers can't have them; none offers none.",
		gpusAuto, gpusRequired, gpusNone,
	)
	f.BoolVar(&c.StrictLogs, "strict", false, "Fail tasks whose log group does not exist, like AWS, instead of creating it.")
	f.DurationVar(&c.Keep, "keep", keepStopped, "How long stopped tasks' containers, files and output are kept on the node.")
	f.env("keep", "ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION")
	f.choice(
		&c.ImagePull, "image-pull", string(engine.PullDefault),
		"When images are pulled. default: for each task, and if that fails the image that is here will do; always: for each task; once: unless a "+
			"task has pulled it before; prefer-cached: unless it's here, and no image is removed.",
		string(engine.PullDefault), string(engine.PullAlways), string(engine.PullOnce), string(engine.PullPreferCached),
	)
	f.env("image-pull", "ECS_IMAGE_PULL_BEHAVIOR")
	f.bytes(
		&c.ImageBudget, "image-budget", 0,
		"How much images may take on the disk before those are removed that tasks didn't use for longest; default half of the file system that "+
			"they are on.",
	)
	f.BoolVar(
		&c.Prefetch, "prefetch", false,
		"Pull the images of services before their next tasks are placed here, as long as --image-budget has room for them without removing others.",
	)
	f.path(
		&c.DataSets, "dataset-cache", "DIRECTORY", "",
		"Directory for what volumes of the driver pintle-s3 show of S3; default datasets in --data. Agents on one machine may share it.",
	)
	f.bytes(
		&c.DataBudget, "dataset-budget", 0,
		"How much of S3 may be kept there before objects go that tasks didn't use for longest; default a quarter of the file system.",
	)
	f.directory(
		&c.FileSystems, "file-systems",
		"Directory with a directory for each file system that tasks may mount by efsVolumeConfiguration, named by its id, fs-…: the same on all "+
			"nodes and the control plane, such as an NFS export that is mounted there. Default none.",
	)
	f.BoolVar(
		&c.PeerPulls, "peer-pulls", false,
		"Fetch layers of images that the control plane has from other nodes of the cluster with this flag, and pass layers on to them: up to a quarter "+
			"of --image-budget is kept for that.",
	)
	f.StringVar(
		&c.PeerAddress, "peer-address", "",
		"With --peer-pulls: where other nodes reach this one, HOST:PORT; default a free port of the address that it has towards the control plane.",
	)
	f.placeholder("peer-address", "HOST:PORT")
	f.BoolVar(
		&c.BlockIMDS, "awsvpc-block-imds", false,
		"Keep tasks in network mode awsvpc from the instance metadata service, 169.254.169.254.",
	)
	f.env("awsvpc-block-imds", "ECS_AWSVPC_BLOCK_IMDS")
	f.StringVar(
		&c.DNS, "dns", "",
		"Address at which this machine's first node also answers the names of AWS Cloud Map, such as 127.0.0.1:8053, for tasks of plain "+
			"processes or in network mode host. Others find the names without it.",
	)
	f.placeholder("dns", "ADDRESS:PORT")
	f.BoolVar(
		&c.Transparent, "transparent", false,
		"Stand in for AWS: tasks find the control plane at names such as sqs.us-east-1.amazonaws.com, for SDKs that know no other endpoint, and trust "+
			"an authority of the node's own for them. Other services of AWS's aren't there.",
	)
	f.BoolVar(&c.OtherAWS, "transparent-others", false, "With --transparent: names of AWS's services that Pintle hasn't lead to AWS itself.")
	f.StringVar(&c.Zone, "availability-zone", "", "Availability zone of the node; default the region's first.")
	f.StringVar(&c.StandsFor, "stands-for", "", "Instance type to register as, with this machine's own resources.")
	f.placeholder("stands-for", "TYPE")
	pairs(f, &c.Attributes, "attribute", "", "NAME=VALUE", "Attribute of the container instance, NAME=VALUE; repeat for more.", asIs)
	f.repeated(
		&c.Images, "image", "NAME=COMMAND",
		"With --runtime process, which has no images: the shell command that stands in for an image's own; repeat for more.",
	)
	f.file(&c.ImagesFile, "images", "File with such stand-ins, one a line.")
}

type agentCmd struct {
	nodeFlags
	Endpoint  string
	Cluster   string
	Data      string
	Type      string
	Name      string
	Instance  string
	Join      string
	Elsewhere bool // the control plane is at Endpoint, whatever the join token says
	Ephemeral bool
	UserData  bool
	LockFD    int
	Verbose   bool
}

func (c *agentCmd) define(f flags) {
	c.nodeFlags.define(f)
	f.endpoint(&c.Endpoint)
	f.env("endpoint", "AWS_ENDPOINT_URL")
	f.StringVar(
		&c.Join, "join", "",
		"Join token of the control plane, from pintle token: where it is (unless --endpoint says so), whose certificate it has, and the "+
			"right to a key of this node's own. Needed once: the key is kept in --data.",
	)
	f.placeholder("join", "TOKEN")
	f.env("join", "PINTLE_JOIN_TOKEN")
	f.StringVar(&c.Cluster, "cluster", "default", "Cluster to join.")
	f.env("cluster", "ECS_CLUSTER")
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle/agent", "Directory for the node's records and containers.")
	f.StringVar(&c.Type, "instance-type", "", "Simulate this instance type's GPUs, CPU and memory, instead of the machine's own.")
	f.StringVar(&c.Name, "name", "", "Name of the node; default the host's.")
	f.StringVar(&c.Instance, "instance-id", "", "The machine's id, in EC2's form; default a generated one.")
	f.placeholder("instance-id", "ID")
	f.BoolVar(&c.Ephemeral, "ephemeral", false, "Stop the node's tasks on interruption, as if the machine were switched off.")
	f.BoolVar(
		&c.UserData, "run-user-data", false,
		"Run the scripts of the instance's user data on this machine, once, before it joins: whoever may launch instances runs programs "+
			"here then. For agents of --fleet local and static.",
	)
	f.IntVar(&c.LockFD, "lock-fd", 0, "File descriptor of the directory's lock, which the parent process holds.")
	f.hidden("lock-fd")
	f.BoolVarP(&c.Verbose, "verbose", "v", false, "Log more.")
}

func (c *agentCmd) verb() *cobra.Command {
	cmd := newVerb("agent [flags]", "Make this machine a node of a control plane.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	prepare := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		c.Elsewhere = cmd.Flags().Changed("endpoint") // and not by the environment, which is for other clients too
		return prepare(cmd, args)
	}
	return cmd
}

// Run makes this machine a node.
func (c *agentCmd) Run(ctx context.Context) error {
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the process ends anyway
	log := c.logger(os.Stderr)
	name := c.Name
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		name = host
	}
	setup := ctx
	if c.Ephemeral { // even if it's told to end at once, it must still stop what an earlier agent left
		setup = context.WithoutCancel(ctx)
	}
	os.Unsetenv("PINTLE_JOIN_TOKEN") //nolint:errcheck // it never fails on Linux; what the agent starts beside containers needn't have it
	l, err := c.login(setup)
	if err != nil {
		return err
	}
	config, authority, err := l.agent()
	if err != nil {
		return err
	}
	if c.UserData {
		if c.Attributes == nil {
			c.Attributes = map[string]string{}
		}
		c.Attributes[fleet.UserDataAttribute] = "run"
	}
	m, err := c.machine(setup, c.Data)
	if err != nil {
		return err
	}
	m.holdBack(setup, c.Instance != "")
	a, err := c.agent(setup, config, m, node.Config{
		Name:         name,
		Cluster:      c.Cluster,
		Endpoint:     l.Endpoint,
		Authority:    authority,
		InstanceType: c.Type,
		InstanceID:   c.Instance,
		DataDir:      c.Data,
		Log:          log,
	})
	if err != nil {
		return err
	}
	if err := file.Sign(lock); err != nil { // tells a waiting fleet that the node can run
		return err
	}
	if err := c.runUserData(ctx, config, log); err != nil {
		return err
	}
	err = c.serve(ctx, m, a, log)
	if !c.Ephemeral || ctx.Err() == nil {
		return err
	}
	return errors.Join(err, c.switchOff(a))
}

// logger returns the agent's log, which is the default one too.
func (c *agentCmd) logger(w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := newLogger(w, level)
	slog.SetDefault(log)
	return log
}

// runUserData runs the user data of the fleet's instance that this node is, if it may.
func (c *agentCmd) runUserData(ctx context.Context, config aws.Config, log *slog.Logger) error {
	if !c.UserData {
		return nil
	}
	m, err := fleet.ReadMachine(c.Data)
	if err != nil {
		return fmt.Errorf("--run-user-data is for agents of --fleet local and static: %w", err)
	}
	text, err := base64.StdEncoding.DecodeString(m.UserData)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	err = bootstrap.UserData{
		Text:    text,
		Dir:     c.Data,
		Program: program,
		Relay: bootstrap.Relay{
			Stacks:   bootstrap.Direct{Client: cloudformation.NewFromConfig(config)},
			Stack:    m.Stack,
			Instance: m.InstanceID,
		},
		Credentials: func(ctx context.Context) (*bootstrap.Credentials, error) {
			return instanceCredentials(ctx, config, m.Endpoint, m.InstanceID)
		},
		Env: []string{"AWS_ENDPOINT_URL=" + m.Endpoint, "AWS_REGION=" + m.Region, "AWS_DEFAULT_REGION=" + m.Region},
		Log: log,
	}.Run(ctx)
	if ctx.Err() != nil { // the node ends as usual, and has nothing to stop
		return nil
	}
	return err
}

// announcing returns what tells the control plane of a node's layers.
func announcing(config aws.Config, endpoint string) func(context.Context, acs.PeerAnnouncement) (acs.PeerWelcome, error) {
	return func(ctx context.Context, a acs.PeerAnnouncement) (welcome acs.PeerWelcome, err error) {
		body, err := json.Marshal(a)
		if err != nil {
			return welcome, err
		}
		answer, err := callPintle(ctx, config, http.MethodPost, endpoint+acs.PeerPath, body)
		if err != nil {
			return welcome, err
		}
		return welcome, json.Unmarshal(answer, &welcome)
	}
}

// instanceCredentials asks the control plane for the credentials of an instance's role. There are none to have for a node with a key of its own,
// which says itself which instance it is.
func instanceCredentials(ctx context.Context, config aws.Config, endpoint, id string) (*bootstrap.Credentials, error) {
	body, err := json.Marshal(console.InstanceCredentials{InstanceID: id})
	if err != nil {
		return nil, err
	}
	answer, err := callPintle(ctx, config, http.MethodPost, endpoint+"/pintle/instance/credentials", body)
	if err != nil {
		return nil, err
	}
	var c *acs.IAMRoleCredentials
	if err := json.Unmarshal(answer, &c); c == nil || err != nil {
		return nil, err
	}
	return &bootstrap.Credentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		Token:           c.SessionToken,
		Expiration:      c.Expiration,
		RoleArn:         c.RoleArn,
	}, nil
}

// lock takes the node's lock, which it holds as long as it runs.
func (c *agentCmd) lock() (*os.File, error) {
	if c.LockFD != 0 {
		return file.Inherit(c.LockFD), nil
	}
	if err := makeData(c.Data); err != nil {
		return nil, err
	}
	lock, err := file.Reserve(filepath.Join(c.Data, fleet.LockFile))
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("another agent is using %s (%w): stop that one, or choose another directory with --data", c.Data, err)
	}
	return lock, err
}

// switchOff kills what still runs on an ephemeral node, and records in a file that nothing does any more.
func (c *agentCmd) switchOff(a *node.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := a.Kill(ctx); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Data, fleet.OffFile), nil, 0o600)
}

// serve runs the node until ctx ends. An ephemeral node stops its tasks first.
func (c *agentCmd) serve(ctx context.Context, m machine, a *node.Agent, log *slog.Logger) error {
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	g, serving := errgroup.WithContext(serving)
	g.Go(func() error { defer stop(); return ignore(a.Run(serving)) })
	g.Go(func() error { return serveMetrics(serving, c.Metrics, m.dataSets, []*node.Agent{a}, log) })
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
		select { // once ready, the agent has adopted an earlier agent's tasks
		case <-a.Ready():
		case <-time.After(readyTimeout):
		case <-draining.Done():
		}
		return ignore(a.Drain(draining))
	})
	return g.Wait()
}

// readyTimeout is how long an agent may take to adopt an earlier agent's tasks.
const readyTimeout = 10 * time.Second

// agent returns a node. If c names an instance type, the node simulates it; otherwise it's this machine.
func (f nodeFlags) agent(ctx context.Context, config aws.Config, m machine, c node.Config) (*node.Agent, error) {
	c.Proxy = proxyProgram
	c.Session = m.sessionProgram()
	c.Region = config.Region
	c.Zone = cmp.Or(f.Zone, config.Region+"a")
	c.Version = version
	c.Attributes = f.Attributes
	c.StrictLogs = f.StrictLogs
	c.Keep = f.Keep
	c.Pull = engine.PullBehavior(f.ImagePull)
	c.Prefetch = f.Prefetch
	if f.OtherAWS && !f.Transparent {
		return nil, errors.New("--transparent-others is for --transparent")
	}
	if f.Transparent {
		c.Transparent = &node.Transparent{Others: f.OtherAWS}
	}
	c.ImageBudget = cmp.Or(f.ImageBudget, m.imageBudget)
	if f.PeerAddress != "" && !f.PeerPulls {
		return nil, errors.New("--peer-address is for --peer-pulls")
	}
	if f.PeerPulls {
		c.PeerPulls = &node.PeerPulls{Address: f.PeerAddress, Announce: announcing(config, c.Endpoint)}
	}
	c.Functions = calling(config, c.Endpoint)
	c.BlockInstanceMetadata = f.BlockIMDS
	c.DNS = f.DNS
	c.Runtime = m.runtime
	c.Networks = m.networks
	c.Groups = m.groups
	c.Credentials = config.Credentials
	c.ECS = awsecs.NewFromConfig(config)
	c.Logs = cloudwatchlogs.NewFromConfig(config)
	c.Parameters = ssm.NewFromConfig(config)
	c.SecretValues = secretsmanager.NewFromConfig(config)
	c.Images = ecr.NewFromConfig(config)
	c.Objects = s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	c.DataSets = m.dataSets
	if f.FileSystems != "" {
		var err error
		if c.FileSystems, err = filesystem.Open(f.FileSystems, filepath.Join(c.DataDir, "file-systems")); err != nil {
			return nil, err
		}
	}
	if m.runtime.Name() != "process" {
		var err error
		if c.BlockVolumes, err = blockvolume.Open(filepath.Join(c.DataDir, "volumes")); err != nil {
			c.BlockVolumes = nil
			c.Log.Warn("tasks with volumes that are configured at launch (Amazon EBS) cannot run on this node", "reason", err)
		}
	}
	if c.InstanceType == "" {
		c, err := f.thisMachine(ctx, c)
		if err != nil {
			return nil, err
		}
		return node.New(c), nil
	}
	switch {
	case f.GPUExporter != "":
		return nil, errors.New("--gpu-exporter is for this machine's own GPUs: no exporter knows simulated ones")
	case f.GPUs == gpusRequired:
		return nil, errors.New("--gpus required is for this machine's own GPUs, and an instance type is simulated")
	}
	t, err := instancetype.Lookup(c.InstanceType)
	if err != nil {
		return nil, err
	}
	c.InstanceType = t.Name
	c.CPU = int64(t.VCPUs) * 1024
	c.MemoryMiB = t.MemoryMiB
	c.GPUs = gpu.None{}
	if t.GPUs > 0 {
		c.GPUs = gpu.NewSimulated(c.Name, t)
	}
	return node.New(c), nil
}

// thisMachine fills in this machine's resources. The node registers as the type.
func (f nodeFlags) thisMachine(ctx context.Context, c node.Config) (node.Config, error) {
	c.InstanceType = cmp.Or(f.StandsFor, "pintle.machine")
	c.CPU = int64(goruntime.NumCPU()) * 1024
	c.MemoryMiB = machineMemoryMiB()
	var err error
	c.GPUs, err = f.realGPUs(ctx, c.Runtime, c.Log)
	return c, err
}

// machineMemoryMiB reads the machine's memory from /proc/meminfo.
func machineMemoryMiB() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 1024
	}
	_, total, _ := strings.Cut(string(b), "MemTotal:")
	var kib int64
	if _, err := fmt.Sscanf(total, "%d kB", &kib); err != nil {
		return 1024
	}
	return kib / 1024
}

// These fit into the 45 seconds that the local fleet gives an agent to end.
const (
	drainTimeout = 35 * time.Second
	killTimeout  = 5 * time.Second
)

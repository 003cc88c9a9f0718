// Package node is a node's agent. It's a client of AWS's own APIs: it registers as a container instance, opens the ACS and TCS web
// sockets that DiscoverPollEndpoint names, runs the tasks that come, reports their states and ships their logs. It never touches the
// control plane's state, so Amazon's agent could replace it, and it Amazon's.
package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/awslogs"
	"github.com/pintle/pintle/internal/node/blockvolume"
	"github.com/pintle/pintle/internal/node/connect"
	"github.com/pintle/pintle/internal/node/dataset"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/filesystem"
	"github.com/pintle/pintle/internal/node/forward"
	"github.com/pintle/pintle/internal/node/function"
	"github.com/pintle/pintle/internal/node/gpu"
	"github.com/pintle/pintle/internal/node/nameserver"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/peers"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/session"
	"github.com/pintle/pintle/internal/node/tmds"
	"github.com/pintle/pintle/internal/transparent"
)

// ECS is the part of the ECS client that a node uses.
type ECS interface {
	RegisterContainerInstance(
		context.Context, *ecs.RegisterContainerInstanceInput, ...func(*ecs.Options),
	) (*ecs.RegisterContainerInstanceOutput, error)
	DiscoverPollEndpoint(context.Context, *ecs.DiscoverPollEndpointInput, ...func(*ecs.Options)) (*ecs.DiscoverPollEndpointOutput, error)
	SubmitTaskStateChange(context.Context, *ecs.SubmitTaskStateChangeInput, ...func(*ecs.Options)) (*ecs.SubmitTaskStateChangeOutput, error)
	tmds.ECS
}

// Config configures a node.
type Config struct {
	Name         string // of the machine, for people
	Cluster      string
	Region       string
	Zone         string // availability zone
	DataDir      string
	InstanceType string
	InstanceID   string // EC2's id of the machine; if "", the node makes one up and keeps it
	CPU          int64  // units, 1,024 a core
	MemoryMiB    int64
	Attributes   map[string]string // custom ones
	Endpoint     string            // of the control plane, as the node's containers reach it
	Version      string
	Keep         time.Duration // of stopped tasks; 0 is three hours
	StrictLogs   bool          // a missing log group fails the task, as on AWS
	Pull         engine.PullBehavior
	Prefetch     bool  // pull images before tasks want them
	ImageBudget  int64 // how many bytes images may take; 0 is no limit
	// BlockInstanceMetadata keeps tasks in network mode awsvpc from the instance metadata service.
	BlockInstanceMetadata bool
	// DNS is an address with a port at which the node answers the names of Cloud Map to anybody, or "". Containers with a network of their
	// own find them without.
	DNS string
	// Transparent has tasks find the control plane at the names of AWS's hosts; nil leaves these to AWS.
	Transparent *Transparent

	Runtime      runtime.Runtime
	Networks     engine.Networks // for awsvpc tasks; nil if the node has none
	Groups       engine.Groups   // of tasks with limits; nil if the node can have none
	GPUs         gpu.Source
	ECS          ECS
	Logs         awslogs.Client
	Parameters   Parameters              // nil if tasks with parameters as secrets can't run here
	SecretValues SecretValues            // nil if tasks with secrets of Secrets Manager can't
	Images       Images                  // nil if images of ECR are pulled without a token
	Objects      Objects                 // nil if tasks with files of variables can't
	FileSystems  *filesystem.Mounts      // nil if tasks with file systems can't
	BlockVolumes *blockvolume.Volumes    // nil if tasks with volumes of EBS's kind can't
	DataSets     *dataset.Cache          // nil if tasks with volumes that show what lies in S3 can't
	Functions    function.Call           // calls the control plane for functions' environments; nil if they can't run here
	Session      []string                // the command line of a session's process, which reads a session.Assignment; nil if there can be none
	Proxy        []string                // the command line of a proxy for Service Connect; nil if its tasks can't run here
	PeerPulls    *PeerPulls              // nil if layers come from the registry alone
	Credentials  aws.CredentialsProvider // nil leaves web sockets unsigned
	Authority    Authority               // of the control plane's certificate, if it isn't one that everybody knows
	Log          *slog.Logger
}

// Authority is the control plane's certificate authority. The zero value stands for those of the system.
type Authority struct {
	TLS  *tls.Config // trusts it
	Path string      // of its certificate in PEM, for containers that see the machine's files
}

// Agent runs a node.
type Agent struct {
	dialer
	config   Config
	plane    string // address to which the agent forwards calls of its containers, if they can't make these themselves, else ""
	identity atomic.Pointer[identity]

	ready    chan struct{} // closed once there is an engine
	engine   *engine.Engine
	metadata net.Addr
	standIn  *transparent.StandIn // nil without Transparent
	stoodIn  bool                 // an earlier agent of the node did, whose containers may go on asking here for names
	proxy    net.Addr             // of AWS's hosts, for tasks in the machine's network
	address  string               // the machine's, towards the control plane
	sampler  *sampler
	machine  *machine
	planeAt  planeAt
	faults   *faults
	sessions *session.Sessions
	peers    *peers.Peers // nil without PeerPulls
	names    *nameserver.Names
	function *function.Functions // nil if functions can't run here
	connect  *connect.Proxies
	release  func() error               // ends the claim to be the only agent of the node; nil before there is one
	process  string                     // tells this agent from one with a copy of its data directory
	acs      atomic.Pointer[acsSession] // the open connection, or nil
	sending  sync.Mutex                 // held to send the inventory, so that the newest is sent last
	beats    chan struct{}              // receives when a heartbeat came, so the node's own status is due
	log      *slog.Logger
}

// New returns a node. Run registers and connects it.
func New(c Config) *Agent {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.GPUs == nil {
		c.GPUs = gpu.None{}
	}
	a := &Agent{
		config: c,
		plane:  forwarded(c),
		ready:  make(chan struct{}),
		beats:  make(chan struct{}, 1),

		process: rand.Text(),
		log:     c.Log.With("node", c.Name),
	}
	a.ecs, a.cluster, a.region, a.instance, a.credentials = c.ECS, c.Cluster, c.Region, a.Instance, c.Credentials
	a.web = newWebClient(c.Authority.TLS)
	a.dialer.log = a.log
	a.identity.Store(new(identity))
	a.sampler = newSampler(a)
	a.machine = newMachine(c, a.log)
	a.faults = newFaults(c.DataDir)
	return a
}

// Run registers the node and keeps it connected until ctx ends. Its containers keep running.
func (a *Agent) Run(ctx context.Context) error {
	if err := os.MkdirAll(a.config.DataDir, 0o700); err != nil {
		return err
	}
	if err := a.faults.load(bootID(), a.config.GPUs); err != nil {
		a.log.Error("cannot read which GPUs are broken", "error", err)
	}
	err := a.register(ctx)
	if a.release != nil {
		defer a.release() //nolint:errcheck // the process ends anyway
	}
	if err != nil {
		return err
	}
	listener, err := a.listen()
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // Serve closes it first, if it was called
	a.metadata = listener.Addr()
	g, ctx := errgroup.WithContext(ctx)
	a.address = addressTowards(ctx, a.config.Endpoint)
	if err := a.openPeers(); err != nil {
		return err
	}
	at := &attendant{ctx: ctx, group: g, machine: a.machine, plane: a.plane, tls: a.tls()}
	if err := errors.Join(a.startTransparent(at), a.startNames(at)); err != nil {
		return err
	}
	a.startConnect(at)
	if err := a.openFunctions(); err != nil {
		return err
	}
	if a.engine, err = engine.Open(a.engineOptions(at)); err != nil {
		return err
	}
	at.metadata = tmds.New(a.metadataOptions())
	a.sessions = session.New(a.config.Session, a.log)
	close(a.ready)
	g.Go(func() error { return a.engine.Run(ctx) })
	g.Go(func() error { return at.metadata.Serve(ctx, listener) })
	g.Go(func() error { return a.sampler.run(ctx) })
	g.Go(func() error { return a.sweepProxies(ctx) })
	g.Go(func() error { return a.connectACS(ctx) })
	g.Go(func() error { return a.connectTCS(ctx) })
	if a.function != nil {
		g.Go(func() error { return a.function.Run(ctx) })
	}
	if a.peers != nil {
		g.Go(func() error { return a.peers.Run(ctx) })
	}
	return g.Wait()
}

func (a *Agent) engineOptions(at *attendant) engine.Options {
	o := engine.Options{
		Dir:           filepath.Join(a.config.DataDir, "tasks"),
		Owner:         a.identity.Load().Owner,
		Runtime:       a.config.Runtime,
		Reporter:      &reporter{a.config.ECS},
		Shippers:      a.shippers(),
		InstanceID:    a.identity.Load().InstanceID,
		Environment:   a.environment,
		CPU:           a.config.CPU,
		MemoryMiB:     a.config.MemoryMiB,
		GPUs:          a.gpuIDs(),
		SimulatedGPUs: a.simulated(),
		Networks:      a.config.Networks,
		Groups:        a.config.Groups,
		Address:       a.address,
		Connected:     a.sendNetwork,
		Keep:          a.config.Keep,
		Pull:          a.config.Pull,
		ImageBudget:   a.config.ImageBudget,
		Free:          func() (int64, error) { return freeBytes(a.config.DataDir) },
		Mounts:        a.awsMounts(),
		Log:           a.log,
	}
	if a.config.Parameters != nil || a.config.SecretValues != nil {
		o.Secrets = a.secrets
	}
	if a.config.Images != nil {
		o.Registry = a.registry
	}
	if a.config.Objects != nil {
		o.EnvironmentFile = a.environmentFile
	}
	if a.function != nil {
		o.Functions = a.function
	}
	if a.hasFileSystems() {
		o.FileSystems = a.config.FileSystems
	}
	if a.hasBlockVolumes() {
		o.BlockVolumes = a.config.BlockVolumes
	}
	if a.hasDataSets() {
		o.DataSets = &dataSets{a.config.DataSets, a.config.Objects, a.identity.Load().InstanceID}
	}
	switch {
	case a.config.Runtime.Name() == "process": // shares the machine's network
	case os.Geteuid() == 0:
		o.Attend = at.attend
		o.NameServer = a.nameServer
		o.Hosts = connect.Hosts
		o.Restrict = a.restrict
		o.Bridged = a.sendBridged
	default:
		a.log.Warn("the agent is not root: containers in network mode bridge get no metadata, credentials, or control plane on loopback")
	}
	return o
}

func (a *Agent) gpuIDs() []string {
	ids := []string{}
	for _, d := range a.config.GPUs.Devices() {
		ids = append(ids, d.ID)
	}
	return ids
}

// shippers send output away, by log driver.
func (a *Agent) shippers() map[string]engine.Shipper {
	return map[string]engine.Shipper{
		"awslogs":     awslogs.New(a.config.Logs, a.config.StrictLogs, a.log),
		"awsfirelens": forward.New(a.log),
	}
}

// Ready is closed once the node knows all its tasks, including those from before a restart.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Drain stops the node's tasks, with the sessions in them, and waits until that is reported; Run must go on meanwhile. A node that isn't ready
// has no tasks.
func (a *Agent) Drain(ctx context.Context) error {
	select {
	case <-a.ready:
		return errors.Join(a.engine.Drain(ctx), a.sessions.Drain(ctx))
	default:
		return nil
	}
}

// Kill removes all containers that the node has left, even if it never connected. Call it after Run, if Drain couldn't stop them all in
// time.
func (a *Agent) Kill(ctx context.Context) error {
	containers, err := a.Containers(ctx)
	for _, c := range containers {
		err = errors.Join(err, a.config.Runtime.Stop(ctx, c.ID, 0))
	}
	if a.connect != nil {
		a.connect.Sweep(func(string) bool { return false })
	}
	return err
}

// Containers lists the node's running containers.
func (a *Agent) Containers(ctx context.Context) (running []runtime.Container, err error) {
	id, err := a.loadIdentity()
	if err != nil || id.Owner == "" {
		return nil, err
	}
	all, err := a.config.Runtime.List(ctx, id.Owner)
	for _, c := range all {
		if c.Status == runtime.Running {
			running = append(running, c)
		}
	}
	return running, err
}

// Name returns the node's name.
func (a *Agent) Name() string { return a.config.Name }

// Instance returns the node's container instance ARN, once it is registered.
func (a *Agent) Instance() string { return a.identity.Load().ContainerInstanceArn }

func (a *Agent) simulated() bool {
	for _, d := range a.config.GPUs.Devices() {
		return d.Simulated
	}
	return false
}

// linkLocal is the metadata endpoint's address for containers that have their own network.
const linkLocal = "http://" + network.LinkLocal

// environment returns what every container gets besides its own variables: where AWS is, its role's credentials, and where its metadata is.
func (a *Agent) environment(t *acs.Task, token string) map[string]string {
	env := map[string]string{
		"AWS_REGION": a.config.Region, "AWS_DEFAULT_REGION": a.config.Region, "AWS_EXECUTION_ENV": "AWS_ECS_EC2",
	}
	if t.LaunchType == "FARGATE" {
		env["AWS_EXECUTION_ENV"] = "AWS_ECS_FARGATE"
	}
	base, endpoint := linkLocal, a.config.Endpoint
	onMachine := t.NetworkMode == "host" || a.config.Runtime.Name() == "process"
	switch {
	case onMachine:
		base = "http://" + a.metadata.String()
	case a.plane != "":
		endpoint = linkLocal + ":" + strconv.Itoa(network.APIPort)
	}
	if endpoint != "" {
		env["AWS_ENDPOINT_URL"] = endpoint
		env["AWS_DISABLE_HOST_PREFIX_INJECTION"] = "true" // DiscoverInstances would go to data- before the endpoint's name
	}
	if path := a.config.Authority.Path; path != "" && a.config.Runtime.Name() == "process" {
		env["AWS_CA_BUNDLE"] = path
	}
	a.addTransparent(env, onMachine)
	if a.config.Runtime.Name() == "process" && a.machine.service != nil { // such a task can't be given an address of its own
		env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = base + "/imds/" + token + "/"
	}
	env["ECS_CONTAINER_METADATA_URI"] = base + "/v3/" + token
	env["ECS_CONTAINER_METADATA_URI_V4"] = base + "/v4/" + token
	env["ECS_AGENT_URI"] = base + "/api/" + token
	if c := t.RoleCredentials; c != nil {
		path := "/v2/credentials/" + c.CredentialsID
		if base == linkLocal { // the SDKs prepend that address to a relative URI
			env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = path
		} else {
			env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = base + path
		}
	}
	return env
}

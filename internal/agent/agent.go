// Package agent is a node. It is a client of AWS's own APIs: it registers as a container instance,
// opens the ACS and TCS web sockets that DiscoverPollEndpoint names, runs the tasks that come, reports
// their states and ships their logs. It never touches the control plane's state, so Amazon's agent can
// stand in its place, and it in Amazon's.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/awslogs"
	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/gpu"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// ECS is the part of the ECS client that a node uses.
type ECS interface {
	RegisterContainerInstance(context.Context, *ecs.RegisterContainerInstanceInput, ...func(*ecs.Options)) (*ecs.RegisterContainerInstanceOutput, error)
	DiscoverPollEndpoint(context.Context, *ecs.DiscoverPollEndpointInput, ...func(*ecs.Options)) (*ecs.DiscoverPollEndpointOutput, error)
	SubmitTaskStateChange(context.Context, *ecs.SubmitTaskStateChangeInput, ...func(*ecs.Options)) (*ecs.SubmitTaskStateChangeOutput, error)
}

// Config is what a node is.
type Config struct {
	Name         string // of the machine, for people
	Cluster      string
	Region       string
	Zone         string // availability zone
	DataDir      string
	InstanceType string
	CPU          int64 // units, 1,024 a core
	MemoryMiB    int64
	Attributes   map[string]string // the user's own
	Endpoint     string            // of the control plane, for the node and its containers
	Version      string
	Keep         time.Duration // of stopped tasks; 0 is three hours
	StrictLogs   bool          // a log group that is not there fails the task, as on AWS

	Runtime     runtime.Runtime
	GPUs        gpu.Source
	ECS         ECS
	Logs        awslogs.Client
	Credentials aws.CredentialsProvider
	Log         *slog.Logger
}

// Agent is a node.
type Agent struct {
	config   Config
	instance string // its ARN
	engine   *engine.Engine
	load     *load
	log      *slog.Logger
}

// New returns a node that Run registers and connects.
func New(c Config) *Agent {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Agent{config: c, log: c.Log.With("node", c.Name)}
}

// identity is what a node remembers of its registration.
type identity struct {
	Cluster              string
	ContainerInstanceArn string
}

func (a *Agent) identityPath() string { return filepath.Join(a.config.DataDir, "instance.json") }

// Run registers the node and keeps it connected until ctx ends. Its containers go on then.
func (a *Agent) Run(ctx context.Context) error {
	if err := os.MkdirAll(a.config.DataDir, 0o700); err != nil {
		return err
	}
	if err := a.register(ctx); err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{
		Dir: filepath.Join(a.config.DataDir, "tasks"), Owner: a.instance, Runtime: a.config.Runtime,
		Reporter: &reporter{a.config.ECS}, Shipper: awslogs.New(a.config.Logs, a.config.StrictLogs, a.log),
		Environment: a.environment, SimulatedGPUs: a.simulated(), Keep: a.config.Keep, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.engine = e
	a.load = newLoad(a.config.Runtime)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.Run(ctx) })
	g.Go(func() error { return a.connectACS(ctx) })
	g.Go(func() error { return a.connectTCS(ctx) })
	return g.Wait()
}

// Drain stops the node's tasks and waits until that is reported. Run must be running.
func (a *Agent) Drain(ctx context.Context) error {
	if a.engine == nil {
		return nil
	}
	return a.engine.Drain(ctx)
}

// Instance is the node's container instance ARN, once it is registered.
func (a *Agent) Instance() string { return a.instance }

func (a *Agent) simulated() bool {
	for _, d := range a.config.GPUs.Devices() {
		return d.Simulated
	}
	return false
}

// register registers the node, again under its old ARN where it has one. A control plane that cannot
// answer yet is asked again; one that refuses is not.
func (a *Agent) register(ctx context.Context) error {
	in := a.registration()
	var id identity
	if b, err := os.ReadFile(a.identityPath()); err == nil && json.Unmarshal(b, &id) == nil && id.Cluster == a.config.Cluster {
		in.ContainerInstanceArn = &id.ContainerInstanceArn
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		out, err := a.config.ECS.RegisterContainerInstance(ctx, in)
		if err == nil {
			a.instance = aws.ToString(out.ContainerInstance.ContainerInstanceArn)
			b, err := json.Marshal(identity{a.config.Cluster, a.instance})
			if err != nil {
				return err
			}
			return os.WriteFile(a.identityPath(), b, 0o600)
		}
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient {
			if in.ContainerInstanceArn != nil { // it was deregistered: it is a new instance then
				in.ContainerInstanceArn = nil
				continue
			}
			return fmt.Errorf("register as a container instance of cluster %s: %w", a.config.Cluster, err)
		}
		a.log.Warn("cannot register; trying again", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// reservedPorts are those that a machine needs for itself: SSH, the Docker engine's and the agent's.
var reservedPorts = []string{"22", "2375", "2376", "51678", "51679"}

func (a *Agent) registration() *ecs.RegisterContainerInstanceInput {
	in := &ecs.RegisterContainerInstanceInput{
		Cluster: &a.config.Cluster,
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: int32(a.config.CPU)},
			{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: int32(a.config.MemoryMiB)},
			{Name: aws.String("PORTS"), Type: aws.String("STRINGSET"), StringSetValue: reservedPorts},
			{Name: aws.String("PORTS_UDP"), Type: aws.String("STRINGSET"), StringSetValue: []string{}},
		},
		VersionInfo: &types.VersionInfo{AgentVersion: aws.String(a.config.Version)},
	}
	for _, d := range a.config.GPUs.Devices() {
		in.PlatformDevices = append(in.PlatformDevices, types.PlatformDevice{Id: aws.String(d.ID), Type: types.PlatformDeviceTypeGpu})
	}
	attributes := a.attributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := types.Attribute{Name: aws.String(name)}
		if v := attributes[name]; v != "" {
			at.Value = aws.String(v)
		}
		in.Attributes = append(in.Attributes, at)
	}
	return in
}

// capabilities are what task definitions may require, in the words of Amazon's agent.
var capabilities = []string{
	"com.amazonaws.ecs.capability.logging-driver.awslogs", "com.amazonaws.ecs.capability.logging-driver.json-file",
	"com.amazonaws.ecs.capability.logging-driver.none", "com.amazonaws.ecs.capability.task-iam-role",
	"com.amazonaws.ecs.capability.task-iam-role-network-host", "ecs.capability.container-health-check",
	"ecs.capability.container-ordering", "ecs.capability.external",
}

func (a *Agent) attributes() map[string]string {
	m := map[string]string{
		"ecs.instance-type": a.config.InstanceType, "ecs.availability-zone": a.config.Zone, "ecs.os-type": "linux",
		"ecs.cpu-architecture": "x86_64", "pintle.runtime": a.config.Runtime.Name(), "pintle.node": a.config.Name,
	}
	for _, c := range capabilities {
		m[c] = ""
	}
	if driver := a.config.GPUs.Driver(); driver != "" {
		m["ecs.capability.gpu-driver-version"] = driver
	}
	if a.simulated() {
		m["pintle.gpu"] = "simulated"
	}
	maps.Copy(m, a.config.Attributes)
	return m
}

// environment is what every container gets besides its own: where AWS is, and where it is itself.
func (a *Agent) environment(*acs.Task, string) map[string]string {
	return map[string]string{
		"AWS_REGION": a.config.Region, "AWS_DEFAULT_REGION": a.config.Region, "AWS_ENDPOINT_URL": a.config.Endpoint,
		"AWS_EXECUTION_ENV": "AWS_ECS_EC2",
	}
}

// reporter reports through SubmitTaskStateChange.
type reporter struct{ ecs ECS }

// Report is engine.Reporter's.
func (r *reporter) Report(ctx context.Context, e engine.Report) error {
	in := &ecs.SubmitTaskStateChangeInput{
		Cluster: &e.Cluster, Task: &e.TaskArn, Status: &e.Status,
		PullStartedAt: timeOrNil(e.PullStartedAt), PullStoppedAt: timeOrNil(e.PullStoppedAt), ExecutionStoppedAt: timeOrNil(e.ExecutionStoppedAt),
	}
	if e.Reason != "" {
		in.Reason = &e.Reason
	}
	for _, c := range e.Containers {
		s := types.ContainerStateChange{ContainerName: aws.String(c.Name), Status: aws.String(string(c.Status)), RuntimeId: aws.String(c.RuntimeID)}
		if c.ExitCode != nil {
			s.ExitCode = aws.Int32(int32(*c.ExitCode))
		}
		if c.Reason != "" {
			s.Reason = aws.String(c.Reason)
		}
		if c.Digest != "" {
			s.ImageDigest = aws.String(c.Digest)
		}
		for _, p := range c.Ports {
			s.NetworkBindings = append(s.NetworkBindings, types.NetworkBinding{
				BindIP: aws.String("0.0.0.0"), ContainerPort: aws.Int32(int32(p.Container)), HostPort: aws.Int32(int32(p.Host)), Protocol: types.TransportProtocol(p.Protocol),
			})
		}
		in.Containers = append(in.Containers, s)
	}
	_, err := r.ecs.SubmitTaskStateChange(ctx, in)
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient {
		return &engine.Permanent{Err: err}
	}
	return err
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/plane"
	"github.com/pintle/pintle/internal/state"
)

type upCmd struct {
	serverFlags
	nodeFlags
	Instances []string
	Fresh     bool
}

func (c *upCmd) define(f flags) {
	c.serverFlags.define(f)
	c.defineBalancer(f, "local")
	c.nodeFlags.define(f)
	f.list(
		&c.Instances, "instances", "TYPE[=N],...", "",
		"Simulated nodes by instance type, such as p3.16xlarge=2,c5.2xlarge; default this machine with its own GPUs.",
	)
	f.BoolVar(&c.Fresh, "fresh", false, "Begin with nothing. What was in the data directory is kept beside it, under another name.")
}

func (c *upCmd) verb() *cobra.Command {
	cmd := newVerb("up [flags]", "Run a control plane and its nodes on this machine.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return checked(cmd, c.validate)
}

func (c *upCmd) validate() error {
	specs, err := c.specs()
	if err == nil && c.PeerAddress != "" && len(specs) > 1 {
		err = fmt.Errorf("--peer-address %s: it is for one node, and there are %d", c.PeerAddress, len(specs))
	}
	return errors.Join(err, c.serverFlags.validate())
}

// Run runs a control plane and its nodes in one process. On interruption it stops its tasks.
func (c *upCmd) Run(ctx context.Context) error {
	specs, err := c.specs()
	if err != nil {
		return err
	}
	if err := checkData(c.Data); err != nil {
		return err
	}
	if err := c.prepareData(len(specs)); err != nil {
		return err
	}
	if err := makeData(c.Data); err != nil {
		return err
	}
	m, err := c.machine(ctx, filepath.Join(c.Data, "machine"))
	if err != nil {
		return err
	}
	m.holdBack(ctx, false)
	c.Runtime = m.runtime.Name()
	c.SharedFiles = c.FileSystems
	c.FleetAgent = append(c.containerFlags(), c.FleetAgent...)
	p, err := c.open(ctx)
	if err != nil {
		return err
	}
	agents, err := c.agents(ctx, p, m, specs)
	if err != nil {
		return err
	}
	return c.serve(ctx, p, m, agents)
}

// containerFlags returns, for the local fleet's agents, what holds for containers on this machine, whichever node has them. What is as by
// default isn't there: an instance's user data may say otherwise, and flags count more.
func (c *upCmd) containerFlags() []string {
	all := []string{"--runtime=" + c.Runtime, "--subnet=" + c.Subnet, "--docker-host=" + c.DockerHost}
	if c.DataSets != "" {
		all = append(all, "--dataset-cache="+c.DataSets)
	}
	if c.FileSystems != "" {
		all = append(all, "--file-systems="+c.FileSystems)
	}
	if c.DataBudget != 0 {
		all = append(all, "--dataset-budget="+strconv.FormatInt(c.DataBudget, 10))
	}
	if c.Keep != keepStopped {
		all = append(all, "--keep="+c.Keep.String())
	}
	if c.ImagePull != string(engine.PullDefault) {
		all = append(all, "--image-pull="+c.ImagePull)
	}
	if c.ImageBudget != 0 {
		all = append(all, "--image-budget="+strconv.FormatInt(c.ImageBudget, 10))
	}
	if c.Prefetch {
		all = append(all, "--prefetch")
	}
	if c.PeerPulls {
		all = append(all, "--peer-pulls")
	}
	if c.Transparent {
		all = append(all, "--transparent")
	}
	if c.OtherAWS {
		all = append(all, "--transparent-others")
	}
	if c.StrictLogs {
		all = append(all, "--strict")
	}
	if c.BlockIMDS {
		all = append(all, "--awsvpc-block-imds")
	}
	if c.TaskNetwork != "" {
		all = append(all, "--task-network="+c.TaskNetwork)
	}
	if c.ImagesFile != "" {
		all = append(all, "--images="+c.ImagesFile)
	}
	for _, standIn := range c.Images {
		all = append(all, "--image="+standIn)
	}
	return all
}

// prepareData sets the data directory aside if that is wanted. Else it says which of its nodes don't come back.
func (c *upCmd) prepareData(nodes int) error {
	if c.Fresh {
		aside, err := plane.SetAside(c.Data, time.Now())
		if aside != "" {
			fmt.Printf("what was in %s is now in %s\n", c.Data, aside)
		}
		return err
	}
	if err := plane.CheckUnused(c.Data); err != nil {
		return err
	}
	for n := nodes + 1; ; n++ {
		name := nodeName(n)
		if _, err := os.Stat(c.nodeDir(name)); err != nil {
			return nil
		}
		fmt.Printf("%s of an earlier run is not among these nodes: its tasks are given up after %v\n", name, c.Lost)
	}
}

func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }

func (c *upCmd) nodeDir(name string) string { return filepath.Join(c.Data, "nodes", name) }

// serve runs everything and says when it's up. On interruption it drains the nodes before it returns.
func (c *upCmd) serve(ctx context.Context, p *plane.Plane, m machine, agents []*node.Agent) error {
	serving, stop := context.WithCancel(context.Background()) // until the nodes are drained
	defer stop()
	g, serving := errgroup.WithContext(serving)
	g.Go(func() error { return p.Run(serving) })
	for _, a := range agents {
		g.Go(func() error { return ignore(a.Run(serving)) })
	}
	g.Go(func() error { return serveMetrics(serving, c.Metrics, m.dataSets, agents, slog.Default()) })
	g.Go(func() error { return c.announce(serving, p, len(agents)) })
	g.Go(func() error {
		select {
		case <-serving.Done():
			return nil
		case <-ctx.Done():
		}
		defer stop()
		go endAtOnce(p, agents)
		return ignore(drain(serving, p, agents))
	})
	return ignore(g.Wait())
}

// drain stops the nodes' tasks and the fleet's machines.
func drain(ctx context.Context, p *plane.Plane, agents []*node.Agent) error {
	fmt.Printf("stopping tasks, for at most %v; Ctrl-C once more ends pintle at once, and leaves running what has not stopped\n", drainTimeout)
	for _, line := range remaining(p, agents) {
		fmt.Println("  waiting for", line)
	}
	p.Rollout.Rest()
	draining, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	g, draining := errgroup.WithContext(draining)
	for _, a := range agents {
		g.Go(func() error { return a.Drain(draining) })
	}
	ending, cancel := context.WithTimeout(ctx, drainTimeout+2*killTimeout)
	defer cancel()
	g.Go(func() error { return p.StopMachines(ending) })
	err := g.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	return errors.Join(err, p.StopBalancer(stopping))
}

// endAtOnce waits for a second signal, and ends the process with what it leaves behind named. Its data stands a kill at any time.
func endAtOnce(p *plane.Plane, agents []*node.Agent) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	<-again
	left := remaining(p, agents)
	for _, line := range left {
		fmt.Println("left running:", line)
	}
	if len(left) > 0 {
		fmt.Println("the next pintle up with the same --data takes them over")
	}
	os.Exit(130)
}

// listTimeout is how long a container engine may take to say what runs.
const listTimeout = 2 * time.Second

// remaining describes what runs on the nodes and in the local fleet.
func remaining(p *plane.Plane, agents []*node.Agent) (lines []string) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	for _, a := range agents {
		containers, err := a.Containers(ctx)
		if err != nil {
			lines = append(lines, fmt.Sprintf("the containers of %s, which cannot be listed: %v", a.Name(), err))
		}
		for _, c := range containers {
			lines = append(lines, fmt.Sprintf("container %s of %s (process %d)", c.ID, a.Name(), c.PID))
		}
	}
	for id, pid := range p.Machines() {
		lines = append(lines, fmt.Sprintf("machine %s with its tasks (process %d)", id, pid))
	}
	if pid := p.BalancerProcess(); pid != 0 {
		lines = append(lines, fmt.Sprintf("the load balancers' process (process %d)", pid))
	}
	slices.Sort(lines)
	return lines
}

// announce prints a summary once every node is connected.
func (c *upCmd) announce(ctx context.Context, p *plane.Plane, nodes int) error {
	for {
		v := p.State.Watch()
		connected, gpus := 0, 0
		for row := range v.ContainerInstances.By(state.InstancesByCluster, "arn:aws:ecs:"+c.Region+":"+c.Account+":cluster/default") {
			if row.AgentConnected {
				connected++
				gpus += len(row.GPUs)
			}
		}
		if connected >= nodes {
			note := ""
			if len(c.Instances) > 0 {
				note = " (simulated)"
			}
			if c.Fleet != "" {
				note += " and those of the fleet " + c.Fleet
			}
			fmt.Printf(
				"pintle %s is up at %s: cluster default, %s, %s%s, runtime %s\n", version, p.Endpoint(), counted(nodes, "node"),
				counted(gpus, "GPU"), note, c.Runtime,
			)
			fmt.Printf("In another shell:  %s && aws ecs list-container-instances\n", c.environment(p.Endpoint()))
			return nil
		}
		if err := v.Changed(ctx); err != nil {
			return nil // ctx ended first
		}
		time.Sleep(10 * time.Millisecond) // nodes come in bursts
	}
}

// environment returns the shell command that points another shell at a control plane.
func (c *upCmd) environment(endpoint string) string {
	command := `eval "$(pintle env`
	if endpoint != "http://127.0.0.1:4566" {
		command += " --endpoint " + endpoint
	}
	if c.Region != "us-east-1" {
		command += " --region " + quote(c.Region)
	}
	command += `)"`
	if ca := c.authority(); ca != "" && ca != plane.Authority(expand("~/.pintle")) { // that one pintle env finds
		command = "export AWS_CA_BUNDLE=" + quote(ca) + " && " + command
	}
	if c.AccessKeyID != "" {
		command = "export AWS_ACCESS_KEY_ID=" + quote(c.AccessKeyID) + " AWS_SECRET_ACCESS_KEY=… && " + command
	}
	return command
}

func (c *upCmd) agents(ctx context.Context, p *plane.Plane, m machine, specs []string) ([]*node.Agent, error) {
	own := login{
		Endpoint:        p.Endpoint(),
		Region:          c.Region,
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		CA:              c.authority(),
	}
	config, authority, err := own.agent()
	if err != nil {
		return nil, err
	}
	var out []*node.Agent
	for i, t := range specs {
		name := nodeName(i + 1)
		a, err := c.agent(ctx, config, m, node.Config{
			Name:         name,
			Cluster:      "default",
			Endpoint:     p.Endpoint(),
			Authority:    authority,
			InstanceType: t,
			DataDir:      c.nodeDir(name),
			Log:          slog.Default(),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, a)
		c.DNS = "" // the first node has it
	}
	return out, nil
}

// specs returns the types of the nodes. With a fleet there may be none.
func (c *upCmd) specs() ([]string, error) {
	if c.Fleet != "" && len(c.Instances) == 0 {
		return nil, nil
	}
	return parseInstances("--instances", c.Instances, maxNodes)
}

// maxNodes is the maximum number of simulated nodes on one machine.
const maxNodes = 200

// parseInstances turns a flag such as p3.16xlarge=2,c5.2xlarge into one type for each node, limit at most. Without types, it returns "" for
// this machine.
func parseInstances(flag string, in []string, limit int) ([]string, error) {
	if len(in) == 0 {
		return []string{""}, nil
	}
	var out []string
	for _, s := range in {
		name, number, ok := strings.Cut(s, "=")
		n := 1
		if ok {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 1 {
				return nil, fmt.Errorf("%s %s: how many must be a number of at least 1", flag, s)
			}
		}
		if _, err := instancetype.Lookup(name); err != nil {
			return nil, fmt.Errorf("%s %s: %w", flag, s, err)
		}
		if n > limit-len(out) {
			return nil, fmt.Errorf("%s asks for more than %d nodes", flag, limit)
		}
		out = append(out, slices.Repeat([]string{name}, n)...)
	}
	return out, nil
}

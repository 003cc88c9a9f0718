package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/ec2/machines"
)

// fleetFlags are what a control plane can be told of where instances' machines come from.
type fleetFlags struct {
	Fleet        string   `default:"" enum:",local,static,command" help:"Where machines for EC2 instances and Auto Scaling groups come from: local, an agent for each on this machine, of the instance's type; static, a pool of machines of yours, woken and reached over SSH; or command, a program of yours (docs/fleet.md). Default nowhere."`
	FleetPool    string   `type:"path" placeholder:"FILE" help:"The machines of --fleet static, in JSON."`
	FleetProgram string   `type:"path" placeholder:"FILE" help:"The program of --fleet command."`
	Prices       string   `type:"path" placeholder:"FILE" help:"What an hour of instance types costs, in JSON: {\"g4dn.xlarge\": 0.526}. Groups with the allocation strategy lowest-price take the cheapest that fits; without, the smallest."`
	FleetMost    int      `default:"50" help:"The most instances that the local fleet runs on this machine."`
	FleetAgent   []string `placeholder:"FLAG" sep:"none" help:"Flag of the local fleet's agents, such as --runtime=process; repeat for more."`
}

// check refuses flags without the fleet that they are for, and a program that cannot be run.
func (f fleetFlags) check() error {
	for _, x := range []struct{ fleet, flag, value string }{{"static", "--fleet-pool", f.FleetPool}, {"command", "--fleet-program", f.FleetProgram}} {
		if f.Fleet == x.fleet && x.value == "" {
			return fmt.Errorf("--fleet %s needs %s", x.fleet, x.flag)
		}
		if f.Fleet != x.fleet && x.value != "" {
			return fmt.Errorf("%s goes with --fleet %s", x.flag, x.fleet)
		}
	}
	if f.FleetMost < 1 {
		return errors.New("--fleet-most must be at least 1")
	}
	if f.FleetProgram == "" {
		return nil
	}
	if _, err := exec.LookPath(f.FleetProgram); err != nil {
		return fmt.Errorf("--fleet-program: %w", err)
	}
	return nil
}

// openFleet says where machines come from; nowhere, if nothing was said.
func (s *server) openFleet() error {
	if err := s.flags.check(); err != nil {
		return err
	}
	var env []string // of the agents
	if s.flags.AccessKeyID != "" {
		env = []string{"AWS_ACCESS_KEY_ID=" + s.flags.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + s.flags.SecretAccessKey, "AWS_SESSION_TOKEN="}
	}
	switch s.flags.Fleet {
	case "local":
		program, err := os.Executable()
		if err != nil {
			return err
		}
		s.local = fleet.NewLocal(fleet.LocalOptions{Program: program, Dir: filepath.Join(s.flags.Data, "fleet"), Args: s.flags.FleetAgent, Env: env, Most: s.flags.FleetMost, Log: s.log})
		s.fleet = s.local
	case "static":
		return s.openPool(env)
	case "command":
		s.fleet = fleet.Command{Program: s.flags.FleetProgram}
	}
	return nil
}

// openPool has machines come from a pool.
func (s *server) openPool(env []string) error {
	pool, err := fleet.ReadPool(s.flags.FleetPool, s.flags.Region)
	if err != nil {
		return fmt.Errorf("--fleet-pool: %w", err)
	}
	if u, err := url.Parse(s.endpoint()); err == nil && localHost(u.Host) {
		s.log.Warn("only this machine reaches the control plane: --listen and --advertise say how those of the pool do", "endpoint", s.endpoint())
	}
	s.pool, err = fleet.NewStatic(fleet.StaticOptions{Pool: pool, Dir: filepath.Join(s.flags.Data, "pool"), Env: env, Log: s.log})
	s.fleet = s.pool
	return err
}

// runFleet looks after the machines until ctx ends.
func (s *server) runFleet(ctx context.Context) error {
	if s.fleet == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if s.pool != nil {
		g.Go(func() error { return s.pool.Run(ctx) })
	}
	g.Go(func() error {
		return machines.New(s.store, machines.Options{
			Now: time.Now, Provider: s.fleet, ECS: s.ecs, Endpoint: s.endpoint(), Region: s.flags.Region, Log: s.log,
		}).Run(ctx)
	})
	return g.Wait()
}

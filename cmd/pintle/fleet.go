package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	controlfleet "github.com/pintle/pintle/internal/control/fleet"
	"github.com/pintle/pintle/internal/fleet"
)

// fleetFlags are what a control plane can be told of where instances' machines come from.
type fleetFlags struct {
	Fleet        string   `default:"" enum:",local,command" help:"Where machines for EC2 instances and Auto Scaling groups come from: local, an agent for each on this machine, of the instance's type; or command, a program of yours (docs/fleet.md). Default nowhere."`
	FleetProgram string   `type:"path" placeholder:"FILE" help:"The program of --fleet command."`
	FleetMost    int      `default:"50" help:"The most instances that the local fleet runs on this machine."`
	FleetAgent   []string `placeholder:"FLAG" sep:"none" help:"Flag of the local fleet's agents, such as --runtime=process; repeat for more."`
}

// openFleet says where machines come from; nowhere, if nothing was said.
func (s *server) openFleet() error {
	if s.flags.Fleet == "" {
		return nil
	}
	if s.flags.Fleet == "command" {
		if s.flags.FleetProgram == "" {
			return errors.New("--fleet command needs --fleet-program")
		}
		s.fleet = fleet.Command{Program: s.flags.FleetProgram}
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	o := fleet.LocalOptions{Program: program, Dir: filepath.Join(s.flags.Data, "fleet"), Args: s.flags.FleetAgent, Most: s.flags.FleetMost, Log: s.log}
	if s.flags.AccessKeyID != "" {
		o.Env = []string{"AWS_ACCESS_KEY_ID=" + s.flags.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + s.flags.SecretAccessKey, "AWS_SESSION_TOKEN="}
	}
	s.local = fleet.NewLocal(o)
	s.fleet = s.local
	return nil
}

// runFleet looks after the machines until ctx ends.
func (s *server) runFleet(ctx context.Context) error {
	if s.fleet == nil {
		return nil
	}
	return controlfleet.New(s.store, controlfleet.Options{
		Now: time.Now, Provider: s.fleet, ECS: s.ecs, Endpoint: s.endpoint(), Region: s.flags.Region, Log: s.log,
	}).Run(ctx)
}

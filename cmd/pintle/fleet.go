package main

import (
	"errors"
	"fmt"
	"os/exec"
)

// fleetFlags say where a control plane gets the machines for instances.
type fleetFlags struct {
	Fleet        string
	FleetPool    string
	FleetProgram string
	Prices       string
	FleetMost    int
	FleetAgent   []string
}

func (c *fleetFlags) define(f flags) {
	f.choice(
		&c.Fleet, "fleet", "",
		"Where machines for EC2 instances and Auto Scaling groups come from: local, an agent for each on this machine, of the "+
			"instance's type; static, a pool of your machines, woken and reached over SSH; or command, a program of yours "+
			"(docs/fleet.md). Default nowhere.",
		"local", "static", "command",
	)
	f.path(&c.FleetPool, "fleet-pool", "FILE", "", "The machines of --fleet static, in JSON.")
	f.path(&c.FleetProgram, "fleet-program", "FILE", "", "The program of --fleet command.")
	f.path(
		&c.Prices, "prices", "FILE", "",
		"What an hour of each instance type costs, in JSON: {\"g4dn.xlarge\": 0.526}. Groups with the allocation strategy "+
			"lowest-price take the cheapest that fits; without prices, the smallest.",
	)
	f.IntVar(&c.FleetMost, "fleet-most", 50, "Maximum number of instances that the local fleet runs on this machine.")
	f.repeated(&c.FleetAgent, "fleet-agent", "FLAG", "Flag of the local fleet's agents, such as --runtime=process; repeat for more.")
}

// check returns an error for flags without their fleet, a fleet without its flag, and a program that can't be run.
func (f fleetFlags) check() error {
	for _, x := range []struct{ fleet, flag, value string }{
		{"static", "--fleet-pool", f.FleetPool},
		{"command", "--fleet-program", f.FleetProgram},
	} {
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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/pintle/pintle/internal/ec2/fleet"
)

// machineCmd is the end of --fleet static on the machines of the pool. Control planes run it, over SSH.
type machineCmd struct {
	Verb  string   `arg:"" enum:"launch,terminate,list" help:"What is to be so: launch, terminate or list."`
	Data  string   `default:"~/.pintle/machine" type:"path" help:"Directory of the instance that the machine is."`
	Agent []string `placeholder:"FLAG" sep:"none" help:"Flag of the instance's agent; repeat for more."`
}

// Run does what the order on the standard input says.
func (c *machineCmd) Run(ctx context.Context) error {
	var order fleet.Order
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	local := fleet.NewLocal(fleet.LocalOptions{Program: program, Dir: c.Data, Args: c.Agent, Env: order.Env, Most: 1, Real: true, Log: slog.Default()})
	answer, err := local.Obey(ctx, c.Verb, order)
	if err != nil || answer == nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

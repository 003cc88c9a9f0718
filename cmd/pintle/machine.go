package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/ec2/fleet"
)

// machineCmd is what control planes with --fleet static run on the machines of their pool, over SSH.
type machineCmd struct {
	Verb  string
	Data  string
	Agent []string
}

func (c *machineCmd) define(f flags) {
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle/machine", "Directory of the machine's instance.")
	f.repeated(&c.Agent, "agent", "FLAG", "Flag of the instance's agent; repeat for more.")
}

func (c *machineCmd) verb() *cobra.Command {
	cmd := newVerb(
		"machine [flags] launch|terminate|list", "What a control plane with --fleet static runs on the machines of its pool.",
		c.argument, c.Run,
	)
	cmd.Hidden = true
	c.define(flags{cmd.Flags()})
	return cmd
}

// argument takes the action.
func (c *machineCmd) argument(cmd *cobra.Command, args []string) error {
	if err := argument(&c.Verb, "launch, terminate or list")(cmd, args); err != nil {
		return err
	}
	if err := oneOf(c.Verb, []string{"launch", "terminate", "list"}); err != nil {
		return fmt.Errorf("%s: %w", c.Verb, err)
	}
	return nil
}

// Run carries out the order on standard input.
func (c *machineCmd) Run(ctx context.Context) error {
	var order fleet.Order
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	local := fleet.NewLocal(fleet.LocalOptions{
		Program: program,
		Dir:     c.Data,
		Args:    c.Agent,
		Env:     order.Env,
		Most:    1,
		Real:    true,
		Log:     slog.Default(),
	})
	answer, err := local.Obey(ctx, c.Verb, order)
	if err != nil || answer == nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

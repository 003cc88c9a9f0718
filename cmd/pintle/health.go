package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// healthCmd asks a control plane how it is, for supervisors and probes.
type healthCmd struct{ endpointFlags }

func (c *healthCmd) verb() *cobra.Command {
	cmd := newVerb("health [flags]", "Ask a control plane how it is. The status is 1 if it doesn't answer.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run asks, within the time that a probe has.
func (c *healthCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	h, err := askHealth(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	if h.status == "" {
		return errors.New(noControlPlane + ": " + c.Endpoint)
	}
	fmt.Println(h.status)
	return nil
}

package main

import (
	"context"
	"fmt"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/spf13/cobra"
)

type stopCmd struct {
	clientFlags
	Reason string
	Tasks  []string
}

func (c *stopCmd) define(f flags) {
	c.clientFlags.define(f)
	f.StringVar(&c.Reason, "reason", "", "The reason that describe-tasks shows.")
}

func (c *stopCmd) verb() *cobra.Command {
	cmd := newVerb("stop [flags] TASK…", "Stop tasks.", arguments(&c.Tasks, "tasks, by id or ARN"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run asks tasks to stop.
func (c *stopCmd) Run(ctx context.Context) error {
	cl, err := c.clients(ctx)
	if err != nil {
		return err
	}
	for _, t := range c.Tasks {
		if _, err := cl.describe(ctx, c.Cluster, t); err != nil {
			return err
		}
		if _, err := cl.ecs.StopTask(ctx, &awsecs.StopTaskInput{Cluster: &c.Cluster, Task: &t, Reason: notEmpty(c.Reason)}); err != nil {
			return fmt.Errorf("stop %s: %w", t, err)
		}
		fmt.Println("stopping", t)
	}
	return nil
}

func notEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

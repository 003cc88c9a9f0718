package main

import (
	"context"
	"fmt"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
)

type stopCmd struct {
	clientFlags
	Reason string   `help:"Why, for describe-tasks."`
	Tasks  []string `arg:"" name:"task" help:"Tasks by id or ARN."`
}

// Run asks tasks to stop.
func (c *stopCmd) Run(ctx context.Context) error {
	cl, err := c.clients(ctx)
	if err != nil {
		return err
	}
	for _, t := range c.Tasks {
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

package main

import (
	"context"
	"fmt"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
)

type serveCmd struct {
	serverFlags
}

// Run serves a control plane without nodes of its own.
func (c *serveCmd) Run(ctx context.Context) error {
	s, err := newServer(ctx, c.serverFlags)
	if err != nil {
		return err
	}
	if _, err := s.ecs.CreateCluster(ctx, &awsecs.CreateClusterInput{}); err != nil {
		return err
	}
	fmt.Printf("pintle %s serves %s\n", version, s.endpoint())
	fmt.Printf("Attach a node:  pintle agent --endpoint %s\n", s.endpoint())
	return s.run(ctx)
}

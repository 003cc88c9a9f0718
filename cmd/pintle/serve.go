package main

import (
	"context"
	"fmt"
)

type serveCmd struct {
	serverFlags
}

// Run serves a control plane without nodes of its own.
func (c *serveCmd) Run(ctx context.Context) error {
	p, err := c.open(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("pintle %s serves %s\n", version, p.Endpoint())
	fmt.Printf("Attach a node:  pintle agent --endpoint %s\n", p.Endpoint())
	return p.Run(ctx)
}

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

type serveCmd struct {
	serverFlags
}

func (c *serveCmd) define(f flags) {
	c.serverFlags.define(f)
	c.defineBalancer(f, "none")
	f.directory(
		&c.SharedFiles, "file-systems",
		"Directory in which efs create-file-system makes one for each file system: the same that nodes have as their --file-systems.",
	)
}

func (c *serveCmd) verb() *cobra.Command {
	cmd := newVerb("serve [flags]", "Run a control plane that nodes on other machines connect to.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return checked(cmd, c.validate)
}

// Run serves a control plane without nodes of its own.
func (c *serveCmd) Run(ctx context.Context) error {
	if err := checkData(c.Data); err != nil {
		return err
	}
	p, err := c.open(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("pintle %s serves %s\n", version, p.Endpoint())
	if c.AccessKeyID != "" {
		fmt.Println("Attach a node:  pintle agent --join TOKEN, with a token of: pintle token --endpoint", p.Endpoint())
	} else {
		fmt.Printf("Attach a node:  pintle agent --endpoint %s\n", p.Endpoint())
	}
	return p.Run(ctx)
}

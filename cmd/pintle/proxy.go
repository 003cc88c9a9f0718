package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/transparent"
)

type proxyCmd struct {
	endpointFlags
	Listen      string
	Data        string
	AllowOthers bool
}

func (c *proxyCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.StringVar(&c.Listen, "listen", "127.0.0.1:4567", "Loopback address to listen on.")
	f.placeholder("listen", "ADDRESS:PORT")
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle/proxy", "Directory for the authority that signs certificates for names of AWS's.")
	f.BoolVar(
		&c.AllowOthers, "allow-others", false,
		"Lead connections to other hosts, and to services of AWS's that Pintle hasn't, to the real ones. They are refused otherwise.",
	)
}

func (c *proxyCmd) verb() *cobra.Command {
	cmd := newVerb(
		"proxy [flags]", "Lead programs here that know no endpoint but AWS's, as their HTTPS_PROXY.", noArguments, c.Run,
	)
	cmd.Long = proxyHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

const proxyHelp = `Old SDKs don't read AWS_ENDPOINT_URL. With the variables that this prints, they call sqs.us-east-1.amazonaws.com and the like, and the control
plane answers. The certificates are from an authority of this directory's own. It's good for amazonaws.com alone: let programs trust it by these
variables, and never install it in the system. See docs/transparent.md.`

// Run serves until ctx ends.
func (c *proxyCmd) Run(ctx context.Context) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: a proxy that takes the place of AWS for everybody on the network would be a trap; it listens on loopback alone", c.Listen)
	}
	s, err := c.standIn()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	c.print(s, l.Addr().String())
	log := newLogger(os.Stderr, slog.LevelInfo)
	p := &transparent.Proxy{StandIn: s, Log: log, Passes: func(string) bool { return c.AllowOthers }}
	return ignore(p.Serve(ctx, l))
}

// standIn opens what stands in for AWS.
func (c *proxyCmd) standIn() (*transparent.StandIn, error) {
	o := transparent.Options{Dir: c.Data, Endpoint: c.Endpoint}
	if path := cmp.Or(authorityHere(c.Endpoint), os.Getenv("AWS_CA_BUNDLE")); path != "" && strings.HasPrefix(c.Endpoint, "https:") {
		trusting, err := trust(path)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		o.TLS, o.Trusted = trusting, string(text)
	}
	if err := makeData(c.Data); err != nil {
		return nil, err
	}
	return transparent.Open(o)
}

// print prints the variables, as shells read them.
func (c *proxyCmd) print(s *transparent.StandIn, address string) {
	fmt.Printf("export HTTPS_PROXY=http://%s NO_PROXY=localhost,127.0.0.1,169.254.169.254,fd00:ec2::254,169.254.170.2\n", address)
	variables := transparent.Environment(s.Public())
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Printf("export %s=%s\n", name, quote(variables[name]))
	}
	services := awsname.Services()
	slices.Sort(services)
	fmt.Printf("# Calls of these services are led to %s: %s\n", c.Endpoint, strings.Join(services, ", "))
}

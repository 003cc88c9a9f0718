package plane

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/ec2/machines"
)

// FleetOptions say where machines for instances come from. If Kind is empty, there are none.
type FleetOptions struct {
	Kind    string   // local, static or command
	Pool    string   // static: the file that lists the machines
	Program string   // command: the program to run
	Most    int      // local: the most instances
	Agent   []string // local: flags of the agents
	// Authority is the file with the certificate authority that the local agents trust; "" for the system's.
	Authority string
}

// openFleet opens the provider of machines.
func (p *Plane) openFleet() error {
	o := p.options
	var env []string // the agents' environment
	if o.AccessKeyID != "" {
		env = []string{"AWS_ACCESS_KEY_ID=" + o.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + o.SecretAccessKey, "AWS_SESSION_TOKEN="}
	}
	switch o.Fleet.Kind {
	case "local":
		program, err := os.Executable()
		if err != nil {
			return err
		}
		if o.Fleet.Authority != "" {
			env = append(env, "AWS_CA_BUNDLE="+o.Fleet.Authority)
		}
		p.local = fleet.NewLocal(fleet.LocalOptions{
			Program: program,
			Dir:     filepath.Join(o.Data, "fleet"),
			Args:    o.Fleet.Agent,
			Env:     env,
			Most:    o.Fleet.Most,
			Log:     p.log,
		})
		p.fleet = p.local
	case "static":
		return p.openPool(env)
	case "command":
		p.fleet = fleet.Command{Program: o.Fleet.Program}
	}
	return nil
}

// openPool opens a pool as the provider of machines.
func (p *Plane) openPool(env []string) error {
	pool, err := fleet.ReadPool(p.options.Fleet.Pool, p.options.Region)
	if err != nil {
		return fmt.Errorf("--fleet-pool: %w", err)
	}
	if u, err := url.Parse(p.Endpoint()); err == nil && isLocalHost(u.Host) {
		p.log.Warn("only this machine reaches the control plane: --listen and --advertise say how those of the pool do",
			"endpoint", p.Endpoint())
	}
	p.pool, err = fleet.NewStatic(fleet.StaticOptions{Pool: pool, Dir: filepath.Join(p.options.Data, "pool"), Env: env, Log: p.log})
	p.fleet = p.pool
	return err
}

// runMachines runs a machine for each instance, if there is a provider of machines.
func (p *Plane) runMachines(ctx context.Context) error {
	if p.fleet == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if p.pool != nil {
		g.Go(func() error { return p.pool.Run(ctx) })
	}
	g.Go(func() error {
		return machines.New(p.State, machines.Options{
			Now:      p.now,
			Provider: p.fleet,
			ECS:      p.ecs(),
			Endpoint: p.Endpoint(),
			Region:   p.options.Region,
			Late:     p.workings.Late("machines"),
			Log:      p.log,
		}).Run(ctx)
	})
	return g.Wait()
}

// Machines returns the agents' processes of the local fleet's instances that run, by instance id.
func (p *Plane) Machines() map[string]int {
	if p.local == nil {
		return nil
	}
	return p.local.Running()
}

// StopMachines ends the local fleet's agents, once their tasks have stopped.
func (p *Plane) StopMachines(ctx context.Context) error {
	if p.local == nil {
		return nil
	}
	return p.local.Stop(ctx)
}

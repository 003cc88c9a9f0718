package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/firelens"
	"github.com/pintle/pintle/internal/node/runtime"
)

// FireLens: one container of a task routes the logs of the others. It starts before them and stops after them, once it has all of their
// output, and the agent gives it its configuration and a directory for its socket.

// routing is the log driver of containers whose logs are routed.
const routing = "awsfirelens"

// routerOf returns the container that routes the others' logs, or nil.
func routerOf(t *acs.Task) *acs.Container {
	for i := range t.Containers {
		if t.Containers[i].FirelensConfiguration != nil {
			return &t.Containers[i]
		}
	}
	return nil
}

func isRouted(c *acs.Container) bool {
	l := hostConfig(c).LogConfig
	return l != nil && l.Type == routing
}

// waitsForRouter reports whether a container starts after the router even though no dependsOn says so. As with Amazon's agent, a router
// that waits for others itself isn't waited for.
func waitsForRouter(c, router *acs.Container) bool {
	return router != nil && router.Name != c.Name && len(router.DependsOn) == 0 && isRouted(c)
}

// owesRouter reports whether a container's router hasn't yet got all of its output. The caller holds mu.
func (t *task) owesRouter(c, router *acs.Container) bool {
	rc := t.rec.Containers[c.Name]
	return router.Name != c.Name && !rc.StartedAt.IsZero() && !rc.Shipped && isRouted(c)
}

// routerDir holds the task's files for its router: the configuration, and the socket's directory. Nobody else can read it.
func (t *task) routerDir() string { return filepath.Join(t.engine.opts.Dir, t.id()+".firelens") }

// routerSocket is the directory of the router's socket. The router sees it as /var/run.
func (t *task) routerSocket() string { return filepath.Join(t.routerDir(), "socket") }

// addRouting gives the router its files, and containers whose logs it routes its address.
func (t *task) addRouting(ctx context.Context, c *acs.Container, s *runtime.Spec) error {
	router := routerOf(&t.rec.Task)
	switch {
	case router == nil:
		return nil
	case router.Name == c.Name:
		return t.prepareRouter(c, s)
	case isRouted(c):
		return t.addRouterAddress(ctx, router, s)
	}
	return nil
}

// prepareRouter writes the router's configuration and mounts it. The socket's directory is everybody's, since the router may run as any
// user; only the router sees it.
func (t *task) prepareRouter(c *acs.Container, s *runtime.Spec) error {
	r := t.router(c)
	path, err := r.Path()
	if err != nil {
		return err
	}
	text, err := r.Config()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(t.routerDir())
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "socket")
	config := filepath.Join(dir, "fluent.conf")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(socket, 0o777); err != nil {
		return err
	}
	err = errors.Join(os.Chmod(socket, 0o777), file.Replace(config, []byte(text), false), os.Chmod(config, 0o644))
	if err != nil {
		return err
	}
	s.Mounts = append(s.Mounts,
		runtime.Mount{Source: config, Destination: path},
		runtime.Mount{Source: socket, Destination: "/var/run"},
	)
	if c.FirelensConfiguration.Type == "fluentd" {
		s.Env = append(s.Env, "FLUENT_UID=0") // its image would otherwise drop root, and could not make the socket
	}
	return nil
}

// router describes the router for its configuration.
func (t *task) router(c *acs.Container) *firelens.Router {
	p := &t.rec.Task
	r := &firelens.Router{
		Type:       c.FirelensConfiguration.Type,
		Options:    c.FirelensConfiguration.Options,
		MemoryMiB:  c.Memory,
		Mode:       p.NetworkMode,
		Cluster:    p.TaskClusterArn[strings.LastIndexByte(p.TaskClusterArn, '/')+1:],
		TaskArn:    p.Arn,
		Definition: p.Family + ":" + p.Version,
		InstanceID: t.engine.opts.InstanceID,
		Routed:     map[string]map[string]string{},
		Secret:     map[string]map[string]string{},
	}
	if soft := hostConfig(c).MemoryReservation; soft > 0 {
		r.MemoryMiB = soft / mebibyte
	}
	for i := range p.Containers {
		if other := &p.Containers[i]; isRouted(other) {
			r.Routed[other.Name] = hostConfig(other).LogConfig.Config
			r.Secret[other.Name] = t.secretOptions(i)
		}
	}
	return r
}

// addressed is a runtime that knows its containers' addresses.
type addressed interface {
	// Address returns the address of a container in mode bridge.
	Address(ctx context.Context, id string) (string, error)
}

// addRouterAddress tells a container where the router takes logs from its program itself.
func (t *task) addRouterAddress(ctx context.Context, router *acs.Container, s *runtime.Spec) error {
	host := ""
	switch t.rec.Task.NetworkMode {
	case "awsvpc":
		host = "127.0.0.1"
	case "bridge":
		if rt, ok := t.engine.opts.Runtime.(addressed); ok {
			_, id := t.container(router.Name)
			var err error
			if host, err = rt.Address(ctx, id); err != nil {
				return fmt.Errorf("the address of the log router %s: %w", router.Name, err)
			}
		}
	}
	if host != "" {
		s.Env = append(s.Env, "FLUENT_HOST="+host, "FLUENT_PORT="+firelens.Port)
	}
	return nil
}

// whileRouted returns a context that ends with ctx, or when nobody will take a container's output any more: once its router has ended,
// or shipGrace after its own end.
func (t *task) whileRouted(ctx context.Context, source *LogSource) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	router := routerOf(&t.rec.Task)
	routerEnded := func() bool { return router == nil || t.rec.Containers[router.Name].Status == Stopped }
	go func() {
		err := t.await(ctx, func() bool {
			return routerEnded() || t.rec.Containers[source.Container].Status == Stopped
		})
		if err != nil {
			return
		}
		grace, stop := context.WithTimeout(ctx, shipGrace)
		defer stop()
		t.await(grace, routerEnded) //nolint:errcheck // either way it's over
		cancel()
	}()
	return ctx, cancel
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/routing"
)

type balancerCmd struct {
	Config      string
	Endpoint    string
	Data        string
	Name        string
	Ports       string
	LockFD      int
	Listen      string
	Connections int
	Threads     int
	DrainTime   time.Duration
}

func (c *balancerCmd) define(f flags) {
	f.endpoint(&c.Endpoint)
	c.Endpoint = ""
	f.Lookup("endpoint").DefValue = ""
	f.Lookup("endpoint").Usage = "The control plane whose load balancers it carries out, in place of a file's."
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle-balancer", "Directory for the last configuration and the ports of listeners, with --endpoint.")
	f.StringVar(&c.Name, "name", "", "The process's name, with --endpoint; by default one is made up and kept.")
	f.StringVar(&c.Ports, "ports", defaultBalancerPorts, "Ports for listeners whose own ports aren't free, with --endpoint.")
	f.IntVar(&c.LockFD, "lock-fd", 0, "File descriptor of the directory's lock, which the parent process holds.")
	f.hidden("lock-fd")
	f.file(&c.Config, "config", "The balancers, as JSON: docs/balancer.md. Changes are taken up within a second, or at once with SIGHUP.")
	f.StringVar(&c.Listen, "listen", "127.0.0.1", "Address that listeners have; their ports are in the file.")
	f.IntVar(&c.Connections, "connections", 10_000, "The most connections of clients.")
	f.IntVar(&c.Threads, "threads", max(8, runtime.GOMAXPROCS(0)), "The most threads that carry traffic at once; more than there are processors help where others keep those busy.")
	f.DurationVar(&c.DrainTime, "drain-time", 30*time.Second, "How long requests may take to end after SIGTERM.")
}

func (c *balancerCmd) verb() *cobra.Command {
	cmd := newVerb("balancer --endpoint URL | --config FILE [flags]", "Carry the traffic of load balancers: a control plane's, or a file's.", noArguments, c.Run)
	cmd.Long = "What can't be carried out is refused, and what ran before goes on; so it does while the control plane is away. With SIGTERM it\n" +
		"takes no more connections, and ends when those that there are have ended."
	c.define(flags{cmd.Flags()})
	return checked(cmd, c.Validate)
}

// Validate checks the ranges of the flags' values.
func (c *balancerCmd) Validate() error {
	switch {
	case (c.Config == "") == (c.Endpoint == ""):
		return errors.New("give either --endpoint or --config")
	case c.Connections < 1:
		return fmt.Errorf("--connections %d: it must be 1 or more", c.Connections)
	case c.Threads < 1:
		return fmt.Errorf("--threads %d: it must be 1 or more", c.Threads)
	case c.DrainTime <= 0:
		return fmt.Errorf("--drain-time %s: it must be more than 0", c.DrainTime)
	}
	_, _, err := portRange(c.Ports)
	return err
}

// Run carries traffic until it's stopped.
func (c *balancerCmd) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := newLogger(os.Stderr, slog.LevelInfo)
	runtime.GOMAXPROCS(c.Threads) // a thread that the kernel stops after a write, to let the target read it, then holds up few requests
	ballast := make([]byte, 128<<20) // never touched, so it takes no memory; but garbage isn't collected before there is as much of it
	defer runtime.KeepAlive(ballast)
	if c.Endpoint != "" {
		return c.carry(ctx, log)
	}
	p := proxy.New(proxy.Config{Host: c.Listen, Connections: c.Connections, DrainTime: c.DrainTime, Log: log})
	seen := stamp(c.Config)
	if err := c.load(p); err != nil {
		return errors.Join(err, runEnded(p))
	}
	following := make(chan struct{})
	go func() {
		defer close(following)
		c.follow(ctx, p, log, seen)
	}()
	log.Info("balancing", "config", c.Config, "listen", c.Listen)
	err := p.Run(ctx)
	<-following
	return err
}

// runEnded ends a proxy that never ran.
func runEnded(p *proxy.Proxy) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return p.Run(ctx)
}

// fileStamp changes when a file does.
type fileStamp struct {
	modified time.Time
	size     int64
}

func stamp(file string) fileStamp {
	info, err := os.Stat(file)
	if err != nil {
		return fileStamp{} // load says why
	}
	return fileStamp{info.ModTime(), info.Size()}
}

// follow takes up the file's changes.
func (c *balancerCmd) follow(ctx context.Context, p *proxy.Proxy, log *slog.Logger, seen fileStamp) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		told := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			told = true
		case <-each.C:
		}
		now := stamp(c.Config)
		if now == seen && !told {
			continue
		}
		seen = now
		if err := c.load(p); err != nil {
			log.Error("the configuration stays as it was", "error", err)
			continue
		}
		log.Info("the configuration has changed")
	}
}

// maxConfig is how large a configuration may be.
const maxConfig = 64 << 20

// load makes the proxy carry out what the file says.
func (c *balancerCmd) load(p *proxy.Proxy) error {
	file, err := os.Open(c.Config)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxConfig))
	if err != nil {
		return err
	}
	b, err := readBalancers(text)
	if err == nil {
		err = p.Set(b)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Config, err)
	}
	return nil
}

// readBalancers reads a configuration. A field that it doesn't know is an error, and so is what follows the configuration.
func readBalancers(text []byte) (b routing.Balancers, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return b, err
	}
	if _, err := d.Token(); err != io.EOF {
		return b, errors.New("something follows the configuration")
	}
	return b, nil
}

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/elb/accesslog"
	"github.com/pintle/pintle/internal/elb/carrier"
	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/file"
)

// defaultBalancerPorts are the ports of listeners whose own ports aren't free.
const defaultBalancerPorts = "30000-30999"

// portRange parses a range of ports.
func portRange(text string) (first, last int, err error) {
	from, to, _ := strings.Cut(text, "-")
	first, err = strconv.Atoi(from)
	if err == nil {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < 1 || last > 65535 || first > last {
		return 0, 0, fmt.Errorf("--ports %s: it must be a range such as %s", text, defaultBalancerPorts)
	}
	return first, last, nil
}

// carry carries out the load balancers of a control plane.
func (c *balancerCmd) carry(ctx context.Context, log *slog.Logger) error {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // it ends with the process
	if err := file.Sign(lock); err != nil {
		return err
	}
	config, err := awsConfig(c.Endpoint)
	if err != nil {
		return err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	first, last, err := portRange(c.Ports)
	if err != nil {
		return err
	}
	counter := carrier.NewCounter()
	var f *carrier.Carrier
	logs := accesslog.New(accesslog.Options{
		Dir:  filepath.Join(c.Data, "accesslogs"),
		Now:  time.Now,
		Send: func(ctx context.Context, part accesslog.File) error { return f.SendLog(ctx, part) },
		Log:  log,
	})
	p := proxy.New(proxy.Config{
		Host: c.Listen, Connections: c.Connections, DrainTime: c.DrainTime, Observer: proxy.Observers{counter, logs}, Log: log,
	})
	f = carrier.New(p, counter, carrier.Options{
		ID:    id,
		Dir:   c.Data,
		Host:  c.Listen,
		First: first,
		Last:  last,
		Logs:  logs,
		Post: func(ctx context.Context, path string, body []byte) ([]byte, error) {
			return callPintle(ctx, config, http.MethodPost, c.Endpoint+path, body)
		},
		Log: log,
	})
	log.Info("balancing", "endpoint", c.Endpoint, "listen", c.Listen, "name", id)
	logging, end := context.WithCancel(context.WithoutCancel(ctx)) // until the last request has ended
	defer end()
	logged := make(chan error, 1)
	go func() { logged <- logs.Run(logging) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	err = g.Wait()
	end()
	return errors.Join(err, <-logged)
}

// lock returns the lock of the directory, which one process at a time may have.
func (c *balancerCmd) lock() (*os.File, error) {
	if c.LockFD != 0 {
		return file.Inherit(c.LockFD), nil
	}
	lock, err := file.Reserve(filepath.Join(c.Data, "balancer.lock"))
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("another balancer uses %s: choose another directory with --data", c.Data)
	}
	return lock, err
}

// id returns the process's name, which it keeps.
func (c *balancerCmd) id() (id string, err error) {
	path := filepath.Join(c.Data, "name.json")
	err = file.ReadJSON(path, &id)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if c.Name == "" && id != "" {
		return id, nil
	}
	host, _ := os.Hostname() //nolint:errcheck // then the name is shorter
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	id = cmp.Or(c.Name, host+"-"+hex.EncodeToString(b[:]))
	return id, file.WriteJSON(path, id, true)
}

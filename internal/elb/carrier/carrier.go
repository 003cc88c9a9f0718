// Package carrier is a balancer process's end of its control plane: it follows the configuration, gives listeners ports that are free, and
// reports how targets are and what was counted. The last configuration is kept on disk, so that traffic goes on while the control plane is
// away, and when the process is started again meanwhile. Package balancers is the other end; pintle balancer runs one.
package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/elb/accesslog"
	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/file"
)

// Options say who a process is.
type Options struct {
	ID   string // the process's, which it keeps
	Dir  string // where it keeps what it must remember
	Host string // the address that listeners have
	// First and Last are the range of ports for listeners whose own ports aren't free.
	First, Last int
	// Logs, if set, keeps access logs.
	Logs *accesslog.Spool
	// Post posts JSON to a path of the control plane.
	Post func(ctx context.Context, path string, body []byte) ([]byte, error)
	Log  *slog.Logger
}

// Carrier makes a proxy carry out what a control plane wants.
type Carrier struct {
	opts    Options
	proxy   *proxy.Proxy
	counter *Counter
	started time.Time

	mu       sync.Mutex
	version  string         // of the configuration that the proxy carries out
	ports    map[string]int // of listeners, by ARN
	problems map[string]string
}

// The files of a carrier.
const (
	configurationFile = "configuration.json"
	portsFile         = "ports.json"
)

// New returns a carrier for a proxy whose traffic the counter observes.
func New(p *proxy.Proxy, c *Counter, o Options) *Carrier {
	return &Carrier{opts: o, proxy: p, counter: c, started: time.Now().UTC().Truncate(time.Millisecond), ports: map[string]int{}}
}

// Run follows until ctx ends. It begins with what is on disk.
func (f *Carrier) Run(ctx context.Context) error {
	if err := f.remember(); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.follow(ctx) })
	g.Go(func() error { return f.tell(ctx) })
	return g.Wait()
}

// remember takes up what an earlier process has kept.
func (f *Carrier) remember() error {
	err := file.ReadJSON(filepath.Join(f.opts.Dir, portsFile), &f.ports)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if f.ports == nil {
		f.ports = map[string]int{}
	}
	var last report.Configuration
	switch err := file.ReadJSON(filepath.Join(f.opts.Dir, configurationFile), &last); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := f.apply(last); err != nil {
		f.opts.Log.Warn("the last configuration can't be carried out", "error", err)
	}
	return nil
}

// patience is how long the control plane may keep a question for a new configuration.
const patience = 30 * time.Second

// follow asks for configurations, and takes them up.
func (f *Carrier) follow(ctx context.Context) error {
	pause := 100 * time.Millisecond
	away := false
	for ctx.Err() == nil {
		err := f.next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			if away {
				f.opts.Log.Info("the control plane is back")
			}
			away = false
			pause = 100 * time.Millisecond
			continue
		}
		if !away {
			f.opts.Log.Warn("no new configuration; what there is goes on", "error", err)
		}
		away = true
		pause = min(2*pause, 2*time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// next asks for the next configuration, and takes it up.
func (f *Carrier) next(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience+10*time.Second)
	defer cancel()
	f.mu.Lock()
	ask := report.Ask{Balancer: f.opts.ID, Version: f.version, Wait: patience}
	f.mu.Unlock()
	var c report.Configuration
	if err := f.post(ctx, report.ConfigurationPath, ask, &c); err != nil {
		return err
	}
	if c.Version == ask.Version {
		return nil
	}
	return f.apply(c)
}

// post posts a question, and reads the answer if there is to be one.
func (f *Carrier) post(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	b, err := f.opts.Post(ctx, path, body)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(b, answer)
}

// apply makes the proxy carry out a configuration, and keeps it.
func (f *Carrier) apply(c report.Configuration) error {
	ports, problems := f.assign(&c.Balancers)
	if err := f.proxy.Set(c.Balancers); err != nil {
		return err
	}
	if f.opts.Logs != nil {
		f.opts.Logs.Set(logged(&c))
	}
	f.mu.Lock()
	changed := !maps.Equal(f.ports, ports)
	f.version = c.Version
	f.ports = ports
	f.problems = problems
	f.mu.Unlock()
	// It has certificates' private keys; the directory is the owner's alone.
	err := file.WriteJSON(filepath.Join(f.opts.Dir, configurationFile), c, true)
	if changed {
		err = errors.Join(err, file.WriteJSON(filepath.Join(f.opts.Dir, portsFile), ports, true))
	}
	if err != nil {
		f.opts.Log.Error("the configuration is carried out, but not kept", "error", err)
	}
	return nil
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// Static wakes the user's own machines for instances, and runs an agent on each. The control plane decides which
// machine is which instance. Before it does anything to a machine, it records that in a file per machine, so that a
// machine is never two instances. Whether a machine is the instance that it should be, the machine itself says over
// SSH, as long as it answers.
type Static struct {
	opts  StaticOptions
	hosts []*host
	mu    sync.Mutex // guards the fields of host that say so
}

// StaticOptions configures Static.
type StaticOptions struct {
	Pool []Host
	Dir  string   // holds the claims
	Env  []string // environment of every agent
	Log  *slog.Logger
}

// host is a machine, and what we know of it.
type host struct {
	Host
	retired bool       // no longer in the pool; goes once its instance has gone
	work    sync.Mutex // held while doing something to the machine

	// Guarded by Static.mu.
	claim      *claim // nil while it's free
	gone       bool   // it says that it isn't the instance that it was claimed for
	silent     bool   // it doesn't answer
	failures   int    // launches that failed in a row
	restsUntil time.Time
	reason     error // why the last launch failed
}

// claim records that a machine belongs to an instance.
type claim struct {
	Host    Host // as it was in the pool
	Machine Machine
	// Left is why the instance was given up here and went to another machine. Whatever it left here must be ended.
	Left string `json:",omitzero"`
}

const (
	// answerTimeout is how long a machine may take to carry out an order. Stopping an agent and its tasks takes a
	// minute.
	answerTimeout = 2 * time.Minute
	// lookEvery is how often machines are asked what they are.
	lookEvery = 30 * time.Second
	// maxLooks is how many machines are asked at a time.
	maxLooks = 16
	// sleepTimeout is how long a sleep command may take.
	sleepTimeout = time.Minute
	// rest and maxRest are how long a failed machine is left out: after one failure, and after many.
	rest    = 30 * time.Second
	maxRest = 30 * time.Minute
)

// NewStatic returns the fleet of a pool's machines. It restores earlier claims.
func NewStatic(o StaticOptions) (*Static, error) {
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, err
	}
	s := &Static{opts: o}
	for _, h := range o.Pool {
		s.hosts = append(s.hosts, &host{Host: h})
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := file.Clean(o.Dir); err != nil { // claims that a crash has cut off
		return nil, err
	}
	paths, err := file.Glob(o.Dir, "*.json")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		c := new(claim)
		if err := file.ReadJSON(path, c); err != nil {
			return nil, fmt.Errorf("%s can't be read, which says that an instance has a machine of the pool: put back a copy of it, or remove it "+
				"once no agent runs on that machine: %w", path, err)
		}
		at := slices.IndexFunc(s.hosts, func(h *host) bool { return h.Name == c.Host.Name })
		if at < 0 {
			at = len(s.hosts)
			s.hosts = append(s.hosts, &host{Host: c.Host, retired: true})
		}
		h := s.hosts[at]
		if h.claim = c; c.Left != "" {
			h.failures = 1
			h.reason = errors.New(c.Left)
			h.restsUntil = time.Now().Add(rest)
		}
	}
	return s, nil
}

// Launch claims a free machine for the instance, wakes it, and makes it start the agent. A machine that fails is left
// out for a while; the next call takes another one.
func (s *Static) Launch(ctx context.Context, m Machine) error {
	h, err := s.claimHost(m)
	if err != nil {
		return err
	}
	h.work.Lock()
	defer h.work.Unlock()
	err = s.bringUp(ctx, h, m)
	if ctx.Err() != nil {
		return ctx.Err() // the claim stays: Launch will be called again
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.failures = 0
		h.reason = nil
		h.gone = false
		h.silent = false
		return nil
	}
	err = fmt.Errorf("%s: %w", h.Name, err)
	c, failed := s.giveUp(h, err)
	if failed != nil {
		return failed
	}
	if err := s.end(ctx, h, c); err != nil {
		s.opts.Log.Warn("cannot end what an instance has left on a machine; it is tried again",
			"machine", h.Name, "instance", m.InstanceID, "error", err)
	}
	return err
}

// claimHost returns the instance's machine. If it has none, claimHost claims a free machine that fits, one with the
// fewest failures.
func (s *Static) claimHost(m Machine) (*host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hostOf(m.InstanceID); h != nil {
		return h, nil
	}
	var best *host
	var busy int
	var resting []string
	for _, h := range s.hosts {
		switch {
		case h.retired || h.InstanceType != m.InstanceType || h.Zone != "" && m.Zone != "" && h.Zone != m.Zone:
		case h.claim != nil && h.claim.Left == "":
			busy++
		case time.Now().Before(h.restsUntil):
			resting = append(resting, fmt.Sprintf("; left out for %s is %v", time.Until(h.restsUntil).Round(time.Second), h.reason))
		case best == nil || h.failures < best.failures:
			best = h
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: the pool has no free %s in %s: %d in use%s",
			ErrCapacity, m.InstanceType, m.Zone, busy, strings.Join(resting, ""))
	}
	c := &claim{Host: best.Host, Machine: m}
	if err := s.write(c); err != nil {
		return nil, err
	}
	best.claim = c
	best.gone = false
	return best, nil
}

// hostOf returns the instance's machine, or nil. s.mu must be held.
func (s *Static) hostOf(id string) *host {
	for _, h := range s.hosts {
		if h.claim != nil && h.claim.Left == "" && h.claim.Machine.InstanceID == id {
			return h
		}
	}
	return nil
}

func (s *Static) path(c *claim) string { return filepath.Join(s.opts.Dir, c.Host.Name+".json") }

func (s *Static) write(c *claim) error {
	if err := file.WriteJSON(s.path(c), c, true); err != nil {
		return err
	}
	return file.SyncDir(s.opts.Dir)
}

// bringUp wakes a machine and makes it start an instance's agent. It repeats the order until the machine answers.
func (s *Static) bringUp(ctx context.Context, h *host, m Machine) error {
	waking, cancel := context.WithTimeout(ctx, time.Duration(h.WakeSeconds)*time.Second)
	defer cancel()
	if len(h.Wake) > 0 {
		if err := run(waking, "wake", h.Wake, nil, nil); err != nil {
			return err
		}
	}
	for {
		err := s.sendOrder(ctx, h, "launch", Order{Machine: m}, nil)
		if err == nil || !isUnreachable(err) {
			return err
		}
		select {
		case <-waking.Done():
			return fmt.Errorf("it has not answered within %ds: %w", h.WakeSeconds, err)
		case <-time.After(time.Second):
		}
	}
}

// sendOrder makes a machine carry out an order.
func (s *Static) sendOrder(ctx context.Context, h *host, verb string, o Order, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	o.Env = s.opts.Env
	words := []string{h.Program, "machine", verb, "--data=" + h.Data}
	for _, flag := range h.Agent {
		words = append(words, "--agent="+flag)
	}
	return run(ctx, "ssh", h.ssh(words...), o, out)
}

// isUnreachable reports whether an error means that a machine doesn't answer yet. ssh exits with 255 for its own
// errors, but a wrong key won't get better.
func isUnreachable(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 255 && !strings.Contains(err.Error(), "Host key verification failed") &&
		!strings.Contains(err.Error(), "Permission denied")
}

// giveUp leaves a machine out for a while, longer the more often it has failed. The machine is no longer its
// instance's: the remaining claim says what must be ended there.
func (s *Static) giveUp(h *host, reason error) (*claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *h.claim
	c.Left = reason.Error()
	if err := s.write(&c); err != nil {
		return nil, err
	}
	h.claim = &c
	h.reason = reason
	h.restsUntil = time.Now().Add(restAfter(h.failures))
	h.failures++
	return &c, nil
}

// restAfter returns how long a machine is left out after so many earlier failures.
func restAfter(failures int) time.Duration { return min(maxRest, rest<<min(failures, 10)) }

// end ends whatever is left on a machine of the instance that it was claimed for, puts it to sleep and frees it, unless
// it has been claimed again since. A machine that doesn't answer counts as off once its sleep command succeeds. h.work
// must be held.
func (s *Static) end(ctx context.Context, h *host, c *claim) error {
	err := s.sendOrder(ctx, h, "terminate", Order{Machine: Machine{InstanceID: c.Machine.InstanceID}}, nil)
	if err != nil && (!isUnreachable(err) || len(h.Sleep) == 0) {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if len(h.Sleep) > 0 {
		ctx, cancel := context.WithTimeout(ctx, sleepTimeout)
		defer cancel()
		if err := run(ctx, "sleep", h.Sleep, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.claim != c {
		return nil // it had been given up, and belongs to an instance again
	}
	if err := os.Remove(s.path(c)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	h.claim = nil
	h.gone = false
	h.silent = false
	return nil
}

// Terminate stops an instance's tasks and its agent, and puts its machine to sleep.
func (s *Static) Terminate(ctx context.Context, id string) error {
	s.mu.Lock()
	h := s.hostOf(id)
	if h == nil {
		s.mu.Unlock()
		return nil
	}
	c := h.claim
	s.mu.Unlock()
	h.work.Lock()
	defer h.work.Unlock()
	return s.end(ctx, h, c)
}

// List returns the instances that machines are claimed for, except where the machine has answered that it isn't the
// instance.
func (s *Static) List(context.Context) (ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if h.claim != nil && h.claim.Left == "" && !h.gone {
			ids = append(ids, h.claim.Machine.InstanceID)
		}
	}
	return ids, nil
}

// Run regularly asks the machines what they are, until ctx ends. That makes a machine that was switched off and on
// again start its agent, and ends what was left on a failed machine once it answers.
func (s *Static) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var asking sync.WaitGroup
		places := make(chan struct{}, maxLooks)
		for _, h := range s.hosts {
			asking.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				s.look(ctx, h)
			})
		}
		asking.Wait()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// look asks a machine what it is, unless something is being done to it.
func (s *Static) look(ctx context.Context, h *host) {
	if !h.work.TryLock() {
		return
	}
	defer h.work.Unlock()
	s.mu.Lock()
	c := h.claim
	s.mu.Unlock()
	switch {
	case c == nil:
		return
	case c.Left != "":
		s.end(ctx, h, c) //nolint:errcheck // it's tried again; why it failed first is known
		return
	}
	var out listed
	err := s.sendOrder(ctx, h, "list", Order{}, &out)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !h.silent {
		s.opts.Log.Warn("a machine of the pool does not answer", "machine", h.Name, "instance", c.Machine.InstanceID, "error", err)
	}
	h.silent = err != nil
	h.gone = err == nil && out.InstanceIDs != nil && !slices.Contains(*out.InstanceIDs, c.Machine.InstanceID)
}

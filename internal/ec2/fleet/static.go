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

// Static wakes machines of one's own for instances, and has an agent run on each. Which machine is which instance is the
// control plane's to say: it writes that down, in a file for each machine, before it does anything to it, so that a machine
// is never two instances. Whether the machine is what it is to be, the machine itself says, over SSH, for as long as it answers.
type Static struct {
	opts  StaticOptions
	hosts []*host
	mu    sync.Mutex // guards what hosts says is guarded
}

// StaticOptions are what Static needs.
type StaticOptions struct {
	Pool []Host
	Dir  string   // of the claims
	Env  []string // of every agent
	Log  *slog.Logger
}

// host is a machine, and what is known of it.
type host struct {
	Host
	retired bool       // it is in the pool no more, and goes once its instance has
	work    sync.Mutex // held by whoever does something to the machine

	// Guarded by Static.mu.
	claim    *claim // nil while it is free
	gone     bool   // it says that it is not the instance that it is claimed for
	silent   bool   // it does not answer
	failures int    // launches that failed in a row
	rests    time.Time
	reason   error // why the last launch failed
}

// claim says that a machine is an instance's.
type claim struct {
	Host    Host // as it was in the pool
	Machine Machine
	// Left is why the instance was given up here, and went to another machine. What it may have left here is to be ended.
	Left string `json:",omitzero"`
}

const (
	// answers is how long a machine may take to do as it is told: to stop an agent and its tasks takes a minute.
	answers = 2 * time.Minute
	// looks is how often machines are asked what they are.
	looks = 30 * time.Second
	// maxLooks is how many are asked at a time.
	maxLooks = 16
	// sleeps is how long a sleep command may take.
	sleeps = time.Minute
	// rest and maxRest are how long a machine is left out that failed, once and after many times.
	rest, maxRest = 30 * time.Second, 30 * time.Minute
)

// NewStatic returns the fleet of a pool's machines. It remembers what those are that were claimed before.
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
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		at := slices.IndexFunc(s.hosts, func(h *host) bool { return h.Name == c.Host.Name })
		if at < 0 {
			s.hosts, at = append(s.hosts, &host{Host: c.Host, retired: true}), len(s.hosts)
		}
		h := s.hosts[at]
		if h.claim = c; c.Left != "" {
			h.failures, h.reason, h.rests = 1, errors.New(c.Left), time.Now().Add(rest)
		}
	}
	return s, nil
}

// Launch claims a free machine for the instance, wakes it, and has it start the agent. A machine that fails is left out for
// a while; the next call takes another one.
func (s *Static) Launch(ctx context.Context, m Machine) error {
	h, err := s.take(m)
	if err != nil {
		return err
	}
	h.work.Lock()
	defer h.work.Unlock()
	err = s.bringUp(ctx, h, m)
	if ctx.Err() != nil {
		return ctx.Err() // the claim stays: Launch is called again
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.failures, h.reason, h.gone, h.silent = 0, nil, false, false
		return nil
	}
	err = fmt.Errorf("%s: %w", h.Name, err)
	c, failed := s.giveUp(h, err)
	if failed != nil {
		return failed
	}
	if err := s.end(ctx, h, c); err != nil {
		s.opts.Log.Warn("cannot end what an instance has left on a machine; it is tried again", "machine", h.Name, "instance", m.InstanceID, "error", err)
	}
	return err
}

// take is the machine that is an instance's, or becomes it: of the free ones that fit, one that has failed least.
func (s *Static) take(m Machine) (*host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.of(m.InstanceID); h != nil {
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
		case time.Now().Before(h.rests):
			resting = append(resting, fmt.Sprintf("; left out for %s is %v", time.Until(h.rests).Round(time.Second), h.reason))
		case best == nil || h.failures < best.failures:
			best = h
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: the pool has no free %s in %s: %d in use%s", ErrCapacity, m.InstanceType, m.Zone, busy, strings.Join(resting, ""))
	}
	c := &claim{Host: best.Host, Machine: m}
	if err := s.write(c); err != nil {
		return nil, err
	}
	best.claim, best.gone = c, false
	return best, nil
}

// of is the machine that is an instance's; nil where there is none. s.mu is held.
func (s *Static) of(id string) *host {
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

// bringUp wakes a machine and has it start an instance's agent. Until it answers it is asked again.
func (s *Static) bringUp(ctx context.Context, h *host, m Machine) error {
	waking, cancel := context.WithTimeout(ctx, time.Duration(h.WakeSeconds)*time.Second)
	defer cancel()
	if len(h.Wake) > 0 {
		if err := run(waking, "wake", h.Wake, nil, nil); err != nil {
			return err
		}
	}
	for {
		err := s.tell(ctx, h, "launch", Order{Machine: m}, nil)
		if err == nil || !unreachable(err) {
			return err
		}
		select {
		case <-waking.Done():
			return fmt.Errorf("it has not answered within %ds: %w", h.WakeSeconds, err)
		case <-time.After(time.Second):
		}
	}
}

// tell has a machine do something.
func (s *Static) tell(ctx context.Context, h *host, verb string, o Order, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	o.Env = s.opts.Env
	words := []string{h.Program, "machine", verb, "--data=" + h.Data}
	for _, flag := range h.Agent {
		words = append(words, "--agent="+flag)
	}
	return run(ctx, "ssh", h.ssh(words...), o, out)
}

// unreachable reports whether an error is that a machine does not answer, yet. ssh exits with 255 when the fault is its own; a
// key that is wrong will not get better.
func unreachable(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 255 && !strings.Contains(err.Error(), "Host key verification failed") && !strings.Contains(err.Error(), "Permission denied")
}

// giveUp leaves a machine out for a while, and longer the more often it has failed. Its instance has it no more: the claim that
// is left says what is to be ended there.
func (s *Static) giveUp(h *host, reason error) (*claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *h.claim
	c.Left = reason.Error()
	if err := s.write(&c); err != nil {
		return nil, err
	}
	h.claim, h.reason, h.rests = &c, reason, time.Now().Add(restAfter(h.failures))
	h.failures++
	return &c, nil
}

// restAfter is how long a machine is left out that has failed so often before.
func restAfter(failures int) time.Duration { return min(maxRest, rest<<min(failures, 10)) }

// end has nothing left on a machine of the instance that it was claimed for, puts it to sleep and frees it, unless it has been
// claimed anew since. One that does not answer is thought to be off once its sleep command says so. h.work is held.
func (s *Static) end(ctx context.Context, h *host, c *claim) error {
	err := s.tell(ctx, h, "terminate", Order{Machine: Machine{InstanceID: c.Machine.InstanceID}}, nil)
	if err != nil && (!unreachable(err) || len(h.Sleep) == 0) {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if len(h.Sleep) > 0 {
		ctx, cancel := context.WithTimeout(ctx, sleeps)
		defer cancel()
		if err := run(ctx, "sleep", h.Sleep, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.claim != c {
		return nil // it had been given up, and is an instance's again
	}
	if err := os.Remove(s.path(c)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	h.claim, h.gone, h.silent = nil, false, false
	return nil
}

// Terminate stops an instance's tasks and its agent, and puts its machine to sleep.
func (s *Static) Terminate(ctx context.Context, id string) error {
	s.mu.Lock()
	h := s.of(id)
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

// List are the instances that machines are claimed for, but for those whose machine has answered that it is not.
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

// Run asks the machines now and then what they are, until ctx ends. One that was switched off and on again then starts its
// agent, and what was left on one that failed is ended once it answers.
func (s *Static) Run(ctx context.Context) error {
	tick := time.NewTicker(looks)
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
		s.end(ctx, h, c) //nolint:errcheck // it is tried again; why it failed first is known
		return
	}
	var out listed
	err := s.tell(ctx, h, "list", Order{}, &out)
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

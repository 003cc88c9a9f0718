package engine

import (
	"context"
	"errors"
	"reflect"

	"github.com/pintle/pintle/internal/acs"
)

// What security groups let pass holds in the network namespaces of their tasks: a task's own, or those of its containers in mode bridge.

// SetRules changes what the security groups of a task let pass; nil lets everything. When it returns nil the rules are on disk and hold. It
// ignores tasks that aren't here.
func (e *Engine) SetRules(ctx context.Context, arn string, rules *acs.NetworkRules) error {
	t := e.task(arn)
	if t == nil || t.stopped() {
		return nil
	}
	t.mu.Lock()
	same := reflect.DeepEqual(t.rec.Task.NetworkRules, rules) && !t.unguarded
	t.rec.Task.NetworkRules = rules
	var err error
	if !same {
		err = t.save()
	}
	t.mu.Unlock()
	if same {
		return nil
	}
	return errors.Join(err, t.guardAll(ctx))
}

// guardAll applies the rules wherever the task has a network now.
func (t *task) guardAll(ctx context.Context) error {
	t.mu.Lock()
	own := t.rec.Network
	t.mu.Unlock()
	if t.hasOwnNetwork() {
		if own == nil {
			return nil // it gets them when it's made
		}
		return t.guard(own.NetNS, "")
	}
	if t.rec.Task.NetworkMode != "bridge" {
		return nil
	}
	var all error
	for i := range t.rec.Task.Containers {
		name := t.rec.Task.Containers[i].Name
		c, id := t.container(name)
		if c.Status != Running {
			continue
		}
		netns, err := t.engine.opts.Runtime.NetNS(ctx, id)
		if err == nil && netns != "" {
			err = t.guard(netns, name)
		}
		all = errors.Join(all, err)
	}
	return all
}

// guard applies the rules in a namespace: the one of a container, or the task's own.
func (t *task) guard(netns, container string) error {
	t.guarding.Lock()
	defer t.guarding.Unlock()
	if t.engine.opts.Restrict == nil || netns == "" {
		return nil
	}
	var ports []Port
	if container != "" {
		c, _ := t.container(container)
		ports = c.Ports
	}
	err := t.engine.opts.Restrict(netns, new(t.payload()), ports)
	t.mu.Lock()
	t.unguarded = err != nil
	t.mu.Unlock()
	return err
}

// guardNew applies the rules in a namespace that has none yet, before anything runs in it if the runtime allows.
func (t *task) guardNew(netns, container string) error {
	rules := t.payload().NetworkRules
	if rules == nil {
		return nil
	}
	if t.engine.opts.Restrict == nil || netns == "" {
		t.warnUnguarded()
		return nil
	}
	return t.guard(netns, container)
}

// warnUnguarded says that the rules of the task's security groups don't hold.
func (t *task) warnUnguarded() {
	t.warned.Do(func() {
		t.engine.opts.Log.Warn("this node cannot enforce the rules of security groups: anything may reach the task, and it anything", "task", t.arn())
	})
}

// isUnguardable reports whether the task has rules that its network mode or the node's runtime leaves without effect.
func (t *task) isUnguardable() bool {
	return t.payload().NetworkRules != nil && (t.engine.runsProcesses() || t.engine.opts.Restrict == nil)
}

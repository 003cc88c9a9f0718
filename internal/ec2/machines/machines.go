// Package machines is the loop that makes instances real: for each row that is pending it has a machine started, for each
// that is shutting-down it has it ended, and says in the row that it was. A step that is done twice does no harm, so that
// a crash between any two leaves neither a machine too many nor one too few; what runs without a row is ended.
package machines

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/state"
)

// Provider is where machines come from. Its methods may be called again for what is done already, and for several
// instances at a time.
type Provider interface {
	// Launch sees to it that the instance has a machine.
	Launch(context.Context, fleet.Machine) error
	// Terminate sees to it that it has none.
	Terminate(ctx context.Context, instanceID string) error
	// List are the instances that have one.
	List(context.Context) ([]string, error)
}

// ECS is where the container instances of machines are drained, and deregistered once they have gone.
type ECS interface {
	UpdateContainerInstancesState(context.Context, *ecs.UpdateContainerInstancesStateInput, ...func(*ecs.Options)) (*ecs.UpdateContainerInstancesStateOutput, error)
	DeregisterContainerInstance(context.Context, *ecs.DeregisterContainerInstanceInput, ...func(*ecs.Options)) (*ecs.DeregisterContainerInstanceOutput, error)
}

// Options are what the loop needs besides the store.
type Options struct {
	Now      func() time.Time
	Provider Provider
	ECS      ECS
	// Endpoint and Region are the control plane's, for the machines' agents.
	Endpoint, Region string
	Log              *slog.Logger
}

const (
	every    = 2 * time.Second // how often the machines are listed
	attempts = 3               // to launch a machine, before the instance is given up
	maxBusy  = 64              // machines that are started or ended at a time
)

// Loop is the loop.
type Loop struct {
	store *state.Store
	opts  Options

	mu   sync.Mutex
	busy map[string]bool
	// failed is how often in a row each instance's last step has failed, and when it is tried again.
	failed map[string]failure
}

type failure struct {
	n     int
	until time.Time
}

// New returns a loop over the store.
func New(store *state.Store, opts Options) *Loop {
	return &Loop{store: store, opts: opts, busy: map[string]bool{}, failed: map[string]failure{}}
}

// Run looks after the machines until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	if err := l.sweep(ctx, &working); err != nil {
		return err
	}
	for {
		v := l.store.Watch()
		l.step(ctx, v, &working)
		waiting, cancel := context.WithCancel(ctx)
		select {
		case <-v.ChangedCh(waiting):
		case <-tick.C:
			if err := l.sweep(ctx, &working); err != nil {
				cancel()
				return err
			}
		}
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// step begins what is to be done for each instance, unless it is being done.
func (l *Loop) step(ctx context.Context, v *state.View, working *sync.WaitGroup) {
	for _, s := range []struct {
		in types.InstanceStateName
		do func(context.Context, *state.Instance) error
	}{{types.InstanceStateNameShuttingDown, l.terminate}, {types.InstanceStateNamePending, l.launch}} {
		for row := range v.Instances.By(state.InstancesByState, string(s.in)) {
			if l.take(*row.InstanceId) {
				working.Go(func() { l.done(ctx, row, s.do(ctx, row)) })
			}
		}
	}
}

// take takes an instance to work on, unless somebody does or it failed just now.
func (l *Loop) take(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[id] || len(l.busy) >= maxBusy || l.opts.Now().Before(l.failed[id].until) {
		return false
	}
	l.busy[id] = true
	return true
}

// done lets an instance go, and tries again later what has failed.
func (l *Loop) done(ctx context.Context, row *state.Instance, err error) {
	id := *row.InstanceId
	l.mu.Lock()
	delete(l.busy, id)
	if err == nil {
		delete(l.failed, id)
		l.mu.Unlock()
		return
	}
	n := l.failed[id].n + 1
	l.failed[id] = failure{n, l.opts.Now().Add(min(time.Minute, time.Second<<min(n-1, 6)))}
	l.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	l.opts.Log.Warn("cannot start or end a machine", "instance", id, "state", row.Name(), "error", err)
	if row.Name() == types.InstanceStateNamePending {
		l.change(ctx, id, types.InstanceStateNamePending, func(row *state.Instance) *state.Instance { return failed(row, n, err) }) //nolint:errcheck // the store is closed
	}
}

// failed is a pending instance whose launch has failed so often: it says why, and is given up in the end.
func failed(row *state.Instance, times int, err error) *state.Instance {
	code, message := "Server.InternalError", "Server.InternalError: "+err.Error()
	if errors.Is(err, fleet.ErrCapacity) { // it is not there the next second, either
		code, message, times = "Server.InsufficientInstanceCapacity", "Server."+err.Error(), attempts
	}
	if times >= attempts {
		return row.Terminating(code, message)
	}
	c := row.Clone()
	c.StateReason = &types.StateReason{Code: &code, Message: &message}
	return c
}

// change changes an instance that is still in a state.
func (l *Loop) change(ctx context.Context, id string, in types.InstanceStateName, change func(*state.Instance) *state.Instance) error {
	return l.store.Update(ctx, func(tx *state.Tx) error {
		if row := tx.Instances.Get(id); row != nil && row.Name() == in {
			tx.Instances.Put(change(row))
		}
		return nil
	})
}

func (l *Loop) launch(ctx context.Context, row *state.Instance) error {
	if err := l.opts.Provider.Launch(ctx, l.machine(row)); err != nil {
		return err
	}
	return l.change(ctx, *row.InstanceId, types.InstanceStateNamePending, func(row *state.Instance) *state.Instance {
		c := row.In(types.InstanceStateNameRunning)
		c.StateReason = nil // of attempts that failed
		return c
	})
}

func (l *Loop) machine(row *state.Instance) fleet.Machine {
	m := fleet.Machine{
		InstanceID: *row.InstanceId, InstanceType: string(row.InstanceType), ImageID: aws.ToString(row.ImageId), Zone: aws.ToString(row.Placement.AvailabilityZone),
		UserData: row.UserData, Endpoint: l.opts.Endpoint, Region: l.opts.Region,
	}
	for _, t := range row.Tags {
		if m.Tags == nil {
			m.Tags = map[string]string{}
		}
		m.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	if row.Member != nil {
		m.Group = row.Member.Group
	}
	m.Configure()
	return m
}

// terminate has the machine of an instance ended.
func (l *Loop) terminate(ctx context.Context, row *state.Instance) error {
	if err := l.end(ctx, *row.InstanceId); err != nil {
		return err
	}
	return l.change(ctx, *row.InstanceId, types.InstanceStateNameShuttingDown, func(row *state.Instance) *state.Instance {
		c := row.In(types.InstanceStateNameTerminated)
		c.TerminatedAt = new(l.opts.Now().UTC().Truncate(time.Millisecond))
		return c
	})
}

// end has a machine ended, and what it was to ECS with it.
func (l *Loop) end(ctx context.Context, id string) error {
	if err := l.drain(ctx, id); err != nil {
		return err
	}
	if err := l.opts.Provider.Terminate(ctx, id); err != nil {
		return err
	}
	return l.deregister(ctx, id)
}

// drain has no more tasks placed on a machine that goes.
func (l *Loop) drain(ctx context.Context, id string) error {
	for c := range l.containerInstances(id) {
		_, err := l.opts.ECS.UpdateContainerInstancesState(ctx, &ecs.UpdateContainerInstancesStateInput{Cluster: new(c.ClusterArn), ContainerInstances: []string{*c.ContainerInstanceArn}, Status: ecstypes.ContainerInstanceStatusDraining})
		if err != nil {
			return fmt.Errorf("drain %s: %w", *c.ContainerInstanceArn, err)
		}
	}
	return nil
}

// deregister takes the container instance of a machine that is gone out of its cluster.
func (l *Loop) deregister(ctx context.Context, id string) error {
	for c := range l.containerInstances(id) {
		_, err := l.opts.ECS.DeregisterContainerInstance(ctx, &ecs.DeregisterContainerInstanceInput{Cluster: new(c.ClusterArn), ContainerInstance: c.ContainerInstanceArn, Force: aws.Bool(true)})
		if err != nil {
			return fmt.Errorf("deregister %s: %w", *c.ContainerInstanceArn, err)
		}
	}
	return nil
}

// containerInstances are those that a machine has registered.
func (l *Loop) containerInstances(id string) iter.Seq[*state.ContainerInstance] {
	v := l.store.View()
	return func(yield func(*state.ContainerInstance) bool) {
		for c := range v.ContainerInstances.By(state.InstancesByMachine, id) {
			if aws.ToString(c.Status) != "INACTIVE" && !yield(c) {
				return
			}
		}
	}
}

// sweep compares the machines with the rows. A machine without a row is ended; a row whose machine has gone goes, too.
// Rows are written before machines are started: so one that the list has and a later view has not has none.
func (l *Loop) sweep(ctx context.Context, working *sync.WaitGroup) error {
	before := l.store.View()
	ids, err := l.opts.Provider.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.opts.Log.Warn("cannot list the fleet's machines", "error", err)
		}
		return ctx.Err()
	}
	there, v := map[string]bool{}, l.store.View()
	for _, id := range ids {
		there[id] = true
		if row := v.Instances.Get(id); row != nil && row.Name() != types.InstanceStateNameTerminated || !l.take(id) {
			continue
		}
		stray := &state.Instance{Instance: types.Instance{InstanceId: &id, State: &types.InstanceState{}}}
		working.Go(func() { l.done(ctx, stray, l.end(ctx, id)) })
	}
	for row := range before.Instances.By(state.InstancesByState, string(types.InstanceStateNameRunning)) {
		if there[*row.InstanceId] {
			continue
		}
		err := l.change(ctx, *row.InstanceId, types.InstanceStateNameRunning, func(row *state.Instance) *state.Instance {
			return row.Terminating("Server.InternalError", "Server.InternalError: the machine is gone")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

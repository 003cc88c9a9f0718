// Package machines is the loop that makes instances real. It starts a machine for each pending row, ends the machine of
// each row that is shutting-down, and records in the row when that is done. Repeating a step does no harm, so a crash
// between any two steps leaves neither a machine too many nor one too few. A machine without a row is ended.
package machines

import (
	"cmp"
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

// Provider starts and ends machines. Its methods may be called again for what is done already, and for several
// instances at a time.
type Provider interface {
	// Launch makes sure that the instance has a machine.
	Launch(context.Context, fleet.Machine) error
	// Terminate makes sure that the instance has no machine.
	Terminate(ctx context.Context, instanceID string) error
	// List returns the instances that have a machine.
	List(context.Context) ([]string, error)
}

// ECS drains the container instances of machines, and deregisters them once the machines are gone.
type ECS interface {
	UpdateContainerInstancesState(context.Context, *ecs.UpdateContainerInstancesStateInput,
		...func(*ecs.Options)) (*ecs.UpdateContainerInstancesStateOutput, error)
	DeregisterContainerInstance(context.Context, *ecs.DeregisterContainerInstanceInput,
		...func(*ecs.Options)) (*ecs.DeregisterContainerInstanceOutput, error)
}

// Options configures a Loop.
type Options struct {
	Now      func() time.Time
	Provider Provider
	ECS      ECS
	// Endpoint and Region are the control plane's. The machines' agents get them.
	Endpoint string
	Region   string
	Late     func(time.Duration) // told how late each look at the machines is; nil tells nobody
	Log      *slog.Logger
}

const (
	listEvery = 2 * time.Second // how often the machines are listed
	attempts  = 3               // attempts to launch a machine before the instance is given up
	maxBusy   = 64              // machines that are started or ended at a time
)

// Loop starts and ends the machines of instances.
type Loop struct {
	store *state.Store
	opts  Options

	mu   sync.Mutex
	busy map[string]bool
	// failed records how often in a row each instance's last step has failed, and when to retry it.
	failed map[string]failure
}

type failure struct {
	n     int
	until time.Time
}

// New returns a loop over the store.
func New(store *state.Store, opts Options) *Loop {
	if opts.Late == nil {
		opts.Late = func(time.Duration) {}
	}
	return &Loop{store: store, opts: opts, busy: map[string]bool{}, failed: map[string]failure{}}
}

// Run manages the machines until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	tick := time.NewTicker(listEvery)
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
		case due := <-tick.C:
			l.opts.Late(time.Since(due))
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

// step begins the next step of each instance, unless one is in progress.
func (l *Loop) step(ctx context.Context, v *state.View, working *sync.WaitGroup) {
	for _, s := range []struct {
		in types.InstanceStateName
		do func(context.Context, *state.Instance) error
	}{
		{types.InstanceStateNameShuttingDown, l.terminate},
		{types.InstanceStateNameStopping, l.stop},
		{types.InstanceStateNamePending, l.launch},
	} {
		for row := range v.Instances.By(state.InstancesByState, string(s.in)) {
			if l.begin(*row.InstanceId) {
				working.Go(func() { l.finish(ctx, row, s.do(ctx, row)) })
			}
		}
	}
}

// begin reserves an instance for a step. It reports false if a step is in progress, too many are, or one failed just
// now.
func (l *Loop) begin(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[id] || len(l.busy) >= maxBusy || l.opts.Now().Before(l.failed[id].until) {
		return false
	}
	l.busy[id] = true
	return true
}

// finish ends an instance's step, and schedules a retry if it failed.
func (l *Loop) finish(ctx context.Context, row *state.Instance, err error) {
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
		withFailure := func(row *state.Instance) *state.Instance { return failed(row, n, err) }
		l.change(ctx, id, types.InstanceStateNamePending, withFailure) //nolint:errcheck // the store is closed
	}
}

// failed returns a pending instance whose launch has failed this many times. It records the reason, and gives the
// instance up in the end.
func failed(row *state.Instance, times int, err error) *state.Instance {
	code, message := "Server.InternalError", "Server.InternalError: "+err.Error()
	if errors.Is(err, fleet.ErrCapacity) { // there won't be any the next second, either
		code, message = "Server.InsufficientInstanceCapacity", "Server."+err.Error()
		times = attempts
	}
	if times >= attempts {
		return row.Terminating(code, message)
	}
	c := row.Clone()
	c.StateReason = &types.StateReason{Code: &code, Message: &message}
	return c
}

// change changes an instance if it's still in the given state.
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
		c.StateReason = nil // left by failed attempts
		return c
	})
}

func (l *Loop) machine(row *state.Instance) fleet.Machine {
	m := fleet.Machine{
		InstanceID:   *row.InstanceId,
		InstanceType: string(row.InstanceType),
		ImageID:      aws.ToString(row.ImageId),
		Zone:         aws.ToString(row.Placement.AvailabilityZone),
		UserData:     row.UserData,
		Endpoint:     l.opts.Endpoint,
		Region:       l.opts.Region,
		Stack:        stackOf(l.store.View(), row),
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
	m.Configure(l.metadata)
	return m
}

// stackOf returns the ARN of the stack that has made an instance or its group, or that took it over; or "".
func stackOf(v *state.View, row *state.Instance) string {
	if row.UserData == "" { // nobody asks
		return ""
	}
	for _, t := range row.Tags {
		if aws.ToString(t.Key) == state.StackTag {
			return aws.ToString(t.Value)
		}
	}
	for r := range v.StackResources.All() {
		isInstance := r.Type == "AWS::EC2::Instance" && r.PhysicalID == *row.InstanceId
		isGroup := r.Type == "AWS::AutoScaling::AutoScalingGroup" && row.Member != nil && r.PhysicalID == row.Member.Group
		if isInstance || isGroup {
			return r.Stack
		}
	}
	return ""
}

// metadata returns the metadata of a resource of a stack, as cfn-init would be told it.
func (l *Loop) metadata(stack, resource string) string {
	v := l.store.View()
	s := cmp.Or(v.StackNamed(stack), v.Stacks.Get(stack))
	if s == nil {
		return ""
	}
	for r := range v.ResourcesOf(*s.StackId) {
		if r.Name == resource && !r.Superseded {
			return r.Metadata
		}
	}
	return ""
}

// terminate ends an instance's machine, and makes the instance terminated.
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

// stop ends an instance's machine, and makes the instance stopped. Once it's pending again, it gets a machine anew.
func (l *Loop) stop(ctx context.Context, row *state.Instance) error {
	if err := l.end(ctx, *row.InstanceId); err != nil {
		return err
	}
	return l.change(ctx, *row.InstanceId, types.InstanceStateNameStopping, func(row *state.Instance) *state.Instance {
		return row.In(types.InstanceStateNameStopped)
	})
}

// end ends a machine, and deregisters its container instances.
func (l *Loop) end(ctx context.Context, id string) error {
	if err := l.drain(ctx, id); err != nil {
		return err
	}
	if err := l.opts.Provider.Terminate(ctx, id); err != nil {
		return err
	}
	return l.deregister(ctx, id)
}

// drain stops placement on a machine that will go.
func (l *Loop) drain(ctx context.Context, id string) error {
	for c := range l.containerInstances(id) {
		_, err := l.opts.ECS.UpdateContainerInstancesState(ctx, &ecs.UpdateContainerInstancesStateInput{
			Cluster:            new(c.ClusterArn),
			ContainerInstances: []string{*c.ContainerInstanceArn},
			Status:             ecstypes.ContainerInstanceStatusDraining,
		})
		if err != nil {
			return fmt.Errorf("drain %s: %w", *c.ContainerInstanceArn, err)
		}
	}
	return nil
}

// deregister removes the container instances of a machine that is gone from their clusters.
func (l *Loop) deregister(ctx context.Context, id string) error {
	for c := range l.containerInstances(id) {
		_, err := l.opts.ECS.DeregisterContainerInstance(ctx, &ecs.DeregisterContainerInstanceInput{
			Cluster:           new(c.ClusterArn),
			ContainerInstance: c.ContainerInstanceArn,
			Force:             aws.Bool(true),
		})
		if err != nil {
			return fmt.Errorf("deregister %s: %w", *c.ContainerInstanceArn, err)
		}
	}
	return nil
}

// containerInstances returns what a machine has registered.
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

// hasMachine reports whether an instance may have a machine.
func hasMachine(row *state.Instance) bool {
	return row.Name() != types.InstanceStateNameTerminated && row.Name() != types.InstanceStateNameStopped
}

// sweep compares the machines with the rows. It ends a machine without a row, and terminates a row whose machine is
// gone. Rows are written before machines are started, so a machine that is listed but missing from a later view has no
// row.
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
		if row := v.Instances.Get(id); row != nil && hasMachine(row) || !l.begin(id) {
			continue
		}
		stray := &state.Instance{Instance: types.Instance{InstanceId: &id, State: &types.InstanceState{}}}
		working.Go(func() {
			var err error
			if row := l.store.View().Instances.Get(id); row == nil || !hasMachine(row) { // one that was stopped may be starting by now
				err = l.end(ctx, id)
			}
			l.finish(ctx, stray, err)
		})
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

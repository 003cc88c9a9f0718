package machines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// yard is a fleet of machines in memory. Each call takes a second, and may be cut off by a kill before or after it has
// taken effect.
type yard struct {
	mu       sync.Mutex
	there    map[string]bool
	launched map[string]int // how often each machine was started
	broken   error
	refused  int // launches refused with broken
}

func (y *yard) Launch(ctx context.Context, m fleet.Machine) error {
	if err := wait(ctx); err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.broken != nil {
		y.refused++
		return y.broken
	}
	if !y.there[m.InstanceID] {
		y.there[m.InstanceID] = true
		y.launched[m.InstanceID]++
	}
	y.mu.Unlock()
	defer y.mu.Lock()
	return wait(ctx)
}

func (y *yard) Terminate(ctx context.Context, id string) error {
	y.mu.Lock()
	delete(y.there, id)
	y.mu.Unlock()
	return wait(ctx)
}

func (y *yard) List(context.Context) (ids []string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for id := range y.there {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

// noECS is an ECS without container instances.
type noECS struct{}

func (noECS) UpdateContainerInstancesState(context.Context, *ecs.UpdateContainerInstancesStateInput,
	...func(*ecs.Options)) (*ecs.UpdateContainerInstancesStateOutput, error) {
	return nil, nil
}

func (noECS) DeregisterContainerInstance(context.Context, *ecs.DeregisterContainerInstanceInput,
	...func(*ecs.Options)) (*ecs.DeregisterContainerInstanceOutput, error) {
	return nil, nil
}

func open(t *testing.T) *state.Store {
	t.Helper()
	store := statetest.Open(t)
	return store
}

func put(t *testing.T, store *state.Store, rows ...*state.Instance) {
	t.Helper()
	err := store.Update(context.Background(), func(tx *state.Tx) error {
		for _, row := range rows {
			tx.Instances.Put(row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pending() *state.Instance {
	return state.NewInstance(&types.ResponseLaunchTemplateData{InstanceType: "c5.large"}, "z", time.Now())
}

// runFor runs a new loop for a while, as if the old one had been killed.
func runFor(t *testing.T, store *state.Store, y *yard, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	err := New(store, Options{Now: time.Now, Provider: y, ECS: noECS{}, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// TestKills kills the loop at every half second of a launch and an end. Each machine must be started once, and none
// left.
func TestKills(t *testing.T) {
	for at := 500 * time.Millisecond; at < 6*time.Second; at += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			store, y := open(t), &yard{there: map[string]bool{}, launched: map[string]int{}}
			defer store.Close() //nolint:errcheck // the test is over
			stays, goes := pending(), pending()
			put(t, store, stays, goes)
			runFor(t, store, y, at)
			put(t, store, store.View().Instances.Get(*goes.InstanceId).Terminating("c", "r"))
			runFor(t, store, y, at)
			runFor(t, store, y, 10*time.Second)
			ids, _ := y.List(t.Context())
			if !slices.Equal(ids, []string{*stays.InstanceId}) || y.launched[*stays.InstanceId] != 1 || y.launched[*goes.InstanceId] > 1 {
				t.Errorf("killed at %v: there are %v, started %v", at, ids, y.launched)
			}
			v := store.View()
			a, b := v.Instances.Get(*stays.InstanceId).Name(), v.Instances.Get(*goes.InstanceId).Name()
			if a != "running" || b != "terminated" {
				t.Errorf("killed at %v: %s and %s", at, a, b)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, y := open(t), &yard{there: map[string]bool{"i-stray": true}, launched: map[string]int{}}
		defer store.Close() //nolint:errcheck // the test is over
		lost := pending().In(types.InstanceStateNameRunning)
		put(t, store, lost)
		runFor(t, store, y, 10*time.Second)
		if ids, _ := y.List(t.Context()); len(ids) != 0 {
			t.Errorf("%v is left", ids)
		}
		if row := store.View().Instances.Get(*lost.InstanceId); row.Name() != "terminated" ||
			aws.ToString(row.StateReason.Code) != "Server.InternalError" {
			t.Errorf("an instance whose machine has gone is %s: %+v", row.Name(), row.StateReason)
		}
	})
}

// TestGivesUp checks that a launch is tried three times, or once if no machine can be had. The row shows the reason
// from the first time on.
func TestGivesUp(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    string
		message string
		more    int // attempts of the next loop
	}{
		{errors.New("no power"), "Server.InternalError", "Server.InternalError: no power", 3},
		{fmt.Errorf("%w: none is free", fleet.ErrCapacity), "Server.InsufficientInstanceCapacity",
			"Server.InsufficientInstanceCapacity: none is free", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, y := open(t), &yard{there: map[string]bool{}, launched: map[string]int{}, broken: c.err}
			defer store.Close() //nolint:errcheck // the test is over
			row := pending()
			put(t, store, row)
			runFor(t, store, y, 1500*time.Millisecond)
			if got := store.View().Instances.Get(*row.InstanceId); *got.StateReason.Message != c.message ||
				(got.Name() == types.InstanceStateNamePending) != (c.more > 0) {
				t.Errorf("after one attempt it is %s: %+v", got.Name(), got.StateReason)
			}
			y.refused = 0
			runFor(t, store, y, 30*time.Second)
			got := store.View().Instances.Get(*row.InstanceId)
			if got.Name() != "terminated" || *got.StateReason.Message != c.message || *got.StateReason.Code != c.code ||
				y.refused != c.more {
				t.Errorf("after %d more it is %s: %+v", y.refused, got.Name(), got.StateReason)
			}
		})
	}
}

// TestStops kills the loop at every half second of a stop. The machine must be gone while the instance is stopped, and there once more when
// the instance starts again.
func TestStops(t *testing.T) {
	for at := 500 * time.Millisecond; at < 5*time.Second; at += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			store, y := open(t), &yard{there: map[string]bool{}, launched: map[string]int{}}
			defer store.Close() //nolint:errcheck // the test is over
			row := pending()
			turn := func(from, to types.InstanceStateName) {
				now := store.View().Instances.Get(*row.InstanceId)
				if now.Name() != from {
					t.Fatalf("killed at %v: the instance is %s, not %s", at, now.Name(), from)
				}
				put(t, store, now.In(to))
				runFor(t, store, y, at)
				runFor(t, store, y, 10*time.Second)
			}
			put(t, store, row)
			runFor(t, store, y, 10*time.Second)
			turn(types.InstanceStateNameRunning, types.InstanceStateNameStopping)
			if ids, _ := y.List(t.Context()); len(ids) > 0 {
				t.Errorf("killed at %v: while it is stopped there are %v", at, ids)
			}
			turn(types.InstanceStateNameStopped, types.InstanceStateNamePending)
			if ids, _ := y.List(t.Context()); !slices.Equal(ids, []string{*row.InstanceId}) || y.launched[*row.InstanceId] != 2 {
				t.Errorf("killed at %v: started again there are %v, started %v", at, ids, y.launched)
			}
		})
	}
}

// TestMachineKnowsItsStack: the machine of an instance that CloudFormation's tag is on knows its stack even before the stack has noted that it
// has made the instance's group. User data that doesn't know it can't signal, and the stack would wait for it until it gives up.
func TestMachineKnowsItsStack(t *testing.T) {
	const stack = "arn:aws:cloudformation:us-east-1:000000000000:stack/web/5b2c"
	store := open(t)
	unnoted := &state.StackResource{Stack: stack, Name: "Group", Type: "AWS::AutoScaling::AutoScalingGroup"}
	if err := store.Update(t.Context(), func(tx *state.Tx) error { tx.StackResources.Put(unnoted); return nil }); err != nil {
		t.Fatal(err)
	}
	row := pending()
	row.UserData = "IyEvYmluL3NoCg=="
	row.Member = &state.Member{Group: "web-Group"}
	row.Tags = []types.Tag{{Key: aws.String(state.StackTag), Value: aws.String(stack)}}
	put(t, store, row)
	l := New(store, Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if got := l.machine(row).Stack; got != stack {
		t.Errorf("the machine's stack is %q", got)
	}
}

package nodelink

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const lost = 5 * time.Minute

func TestGiveUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		away    time.Duration // how long from the start, 0 if connected
		wait    time.Duration
		stopped bool
	}{
		{"connected", 0, time.Hour, false},
		{"away, but not for long", time.Hour, lost - time.Second, false},
		{"away for too long", time.Hour, lost + lost/10 + time.Second, true},
		{"back in time", lost - time.Second, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				putRows(t, store, lostInstance("ci/i", c.away > 0), lostTask("runs", "ci/i", "RUNNING"),
					lostTask("pending", "ci/i", "PENDING"))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- GiveUp(ctx, store, LostOptions{Now: time.Now, Lost: lost}) }()
				if c.away > 0 {
					time.AfterFunc(c.away, func() { putRows(t, store, lostInstance("ci/i", false)) })
				}
				time.Sleep(c.wait)
				synctest.Wait()
				for _, name := range []string{"runs", "pending"} {
					if got := *store.View().Tasks.Get(name).LastStatus == "STOPPED"; got != c.stopped {
						t.Errorf("%s is stopped: %v", name, got)
					}
				}
				cancel()
				if err := <-ended; err != context.Canceled {
					t.Errorf("Run ended with %v", err)
				}
				time.Sleep(2 * time.Hour) // the node's return, if it was still to come
			})
		})
	}
}

// TestGiveUpDoesNotTrustTheClock: a clock that is set says nothing of how long a node has been away. It gets the whole time anew.
func TestGiveUpDoesNotTrustTheClock(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				putRows(t, store, lostInstance("ci/i", true), lostTask("runs", "ci/i", "RUNNING"))
				ctx, cancel := context.WithCancel(t.Context())
				var ahead atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
				ended := make(chan error)
				go func() { ended <- GiveUp(ctx, store, LostOptions{Now: now, Lost: lost}) }()
				stopped := func() bool {
					synctest.Wait()
					return *store.View().Tasks.Get("runs").LastStatus == "STOPPED"
				}
				time.Sleep(lost / 5)
				ahead.Store(int64(jump))
				if time.Sleep(lost - time.Second); stopped() {
					t.Error("it's given up too early")
				}
				if time.Sleep(lost / 4); !stopped() {
					t.Error("it isn't given up")
				}
				cancel()
				<-ended
			})
		})
	}
}

// TestGivenUpTasks checks the stopped tasks of a lost node, and that its GPU is free.
func TestGivenUpTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		asked := lostTask("asked", "ci/i", "RUNNING")
		asked.DesiredStatus = aws.String("STOPPED")
		asked.StoppedReason = aws.String("the user's")
		asked.StopCode = types.TaskStopCodeUserInitiated
		over := lostTask("over", "ci/i", "STOPPED")
		never := lostInstance("never", true)
		never.DisconnectedAt = nil // registered, but never connected
		awsvpc := lostTask("awsvpc", "ci/i", "RUNNING")
		awsvpc.Attachments = []types.Attachment{{Id: aws.String("eni"), Status: aws.String("ATTACHED")}}
		putRows(t, store, awsvpc, lostInstance("ci/i", true), lostTask("runs", "ci/i", "RUNNING", "GPU-0"), asked, over, never,
			lostTask("waits", "never", "PENDING"))
		time.Sleep(lost)
		if err := giveUp(t.Context(), store, lost, time.Now().UTC(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		v := store.View()
		runs := v.Tasks.Get("runs")
		const reason = "Container instance i has been disconnected for more than 5m0s."
		if *runs.DesiredStatus != "STOPPED" || runs.StopCode != types.TaskStopCodeTerminationNotice ||
			*runs.StoppedReason != reason || !runs.StoppedAt.Equal(time.Now()) {
			t.Errorf("got %s, %s, %s, %v", *runs.DesiredStatus, runs.StopCode, *runs.StoppedReason, runs.StoppedAt)
		}
		if c := runs.Containers[0]; *c.LastStatus != "STOPPED" || *c.Reason != reason {
			t.Errorf("its container is %s: %s", *c.LastStatus, *c.Reason)
		}
		if a := v.Tasks.Get("asked"); *a.LastStatus != "STOPPED" || *a.StoppedReason != "the user's" ||
			a.StopCode != types.TaskStopCodeUserInitiated {
			t.Errorf("a task that was stopping says %s", *a.StoppedReason)
		}
		if a := v.Tasks.Get("awsvpc").Attachments[0]; *a.Status != "DELETED" {
			t.Errorf("the network interface of a task that went with its node is %s", *a.Status)
		}
		if o := v.Tasks.Get("over"); o.Version != 0 {
			t.Error("a stopped task was touched")
		}
		if *v.Tasks.Get("waits").LastStatus != "PENDING" {
			t.Error("a task of a node that never connected was stopped")
		}
		putRows(t, store, lostInstance("ci/i", false), lostTask("next", "ci/i", "RUNNING", "GPU-0")) // the ledger would refuse it
		revision := store.Revision()
		if err := giveUp(t.Context(), store, lost, time.Now().UTC(), time.Time{}); err != nil || store.Revision() != revision {
			t.Errorf("a second look changed something: %v", err)
		}
	})
}

func openStore(t *testing.T) *state.Store {
	t.Helper()
	store := statetest.Open(t)
	return store
}

func putRows(t *testing.T, store *state.Store, rows ...any) {
	t.Helper()
	err := store.Update(context.Background(), func(tx *state.Tx) error {
		for _, row := range rows {
			switch row := row.(type) {
			case *state.ContainerInstance:
				tx.ContainerInstances.Put(row)
			case *state.Task:
				tx.Tasks.Put(row)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func lostInstance(name string, away bool) *state.ContainerInstance {
	row := &state.ContainerInstance{
		ContainerInstance: types.ContainerInstance{ContainerInstanceArn: &name, Status: aws.String("ACTIVE"), AgentConnected: !away},
		ClusterArn:        "c",
		GPUs:              []state.GPU{{ID: "GPU-0"}},
	}
	if away {
		row.DisconnectedAt = aws.Time(time.Now())
	}
	return row
}

func lostTask(name, instance, last string, gpus ...string) *state.Task {
	t := &state.Task{Task: types.Task{
		TaskArn:              &name,
		ClusterArn:           aws.String("c"),
		ContainerInstanceArn: &instance,
		LastStatus:           &last,
		DesiredStatus:        aws.String("RUNNING"),
		Containers:           []types.Container{{Name: aws.String("main"), LastStatus: &last}},
	}}
	for _, id := range gpus {
		t.GPUs = append(t.GPUs, state.HeldGPU{Container: "main", ID: id, Milli: 1000})
	}
	return t
}

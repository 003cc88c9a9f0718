package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// BenchmarkServices durably reconciles many services of two tasks each on a hundred nodes: from nothing to all tasks
// placed, and then with nothing to do.
func BenchmarkServices(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("services=%d/new", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w, loop := newBench(b, n)
				b.StartTimer()
				w.reconcile(b, loop)
				b.StopTimer()
				w.store.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/service")
		})
		b.Run(fmt.Sprintf("services=%d/steady", n), func(b *testing.B) {
			w, loop := newBench(b, n)
			w.reconcile(b, loop)
			all := arns(w)
			for b.Loop() {
				loop.mu.Lock()
				for _, arn := range all {
					loop.queueLocked(arn)
				}
				loop.mu.Unlock()
				w.reconcile(b, loop)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/service")
			w.store.Close()
		})
	}
}

// newBench returns a world whose nodes don't answer.
func newBench(b *testing.B, services int) (*world, *Loop) {
	scheduler := scheduler.New(1)
	loop := New(scheduler, Options{Now: time.Now, Settle: settle, Log: slog.New(slog.DiscardHandler)})
	store := statetest.Open(b, scheduler, loop)
	w := &world{t: b, store: store, ctx: context.Background()}
	w.ecs = ecs.New(store, scheduler, ecs.Options{Account: accounttest.New(time.Now)})
	w.cluster(100)
	w.define("i")
	w.update(func(tx *state.Tx) { // room for all tasks
		for _, row := range instances(tx) {
			row.Capacity = state.Resources{CPU: 1 << 20, MemoryMiB: 1 << 20}
			tx.ContainerInstances.Put(&row)
		}
	})
	for i := range services {
		w.create(2, func(in *awsecs.CreateServiceInput) { in.ServiceName = aws.String(fmt.Sprint("s", i)) })
	}
	return w, loop
}

func instances(tx *state.Tx) (rows []state.ContainerInstance) {
	for row := range tx.ContainerInstances.All() {
		rows = append(rows, *row)
	}
	return rows
}

func arns(w *world) (all []string) {
	for row := range w.store.View().Services.All() {
		all = append(all, *row.ServiceArn)
	}
	return all
}

// reconcile makes steps until no service is due.
func (w *world) reconcile(b *testing.B, loop *Loop) {
	for due := loop.take(); len(due) > 0; due = loop.take() {
		if err := loop.stepAll(w.ctx, w.store, due); err != nil {
			b.Fatal(err)
		}
	}
}

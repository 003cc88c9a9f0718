package state

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store/sqlite"
)

// BenchmarkUpdate durably commits one task per transaction.
func BenchmarkUpdate(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			j, err := sqlite.Open(context.Background(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			s, err := Open(context.Background(), j)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() })
			b.ReportAllocs()
			b.SetParallelism(clients)
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					row := benchTask(n.Add(1))
					if err := s.Update(context.Background(), func(tx *Tx) error { tx.Tasks.Put(row); return nil }); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkOpen replays a journal of tasks.
func BenchmarkOpen(b *testing.B) {
	for _, rows := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("tasks=%d", rows), func(b *testing.B) {
			dir := b.TempDir()
			j, err := sqlite.Open(context.Background(), dir)
			if err != nil {
				b.Fatal(err)
			}
			s, err := Open(context.Background(), j)
			if err != nil {
				b.Fatal(err)
			}
			update(b, s, func(tx *Tx) error {
				for i := range rows {
					tx.Tasks.Put(benchTask(int64(i)))
				}
				return nil
			})
			s.Close()
			for b.Loop() {
				j, err := sqlite.Open(context.Background(), dir)
				if err != nil {
					b.Fatal(err)
				}
				s, err := Open(context.Background(), j)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

func benchTask(n int64) *Task {
	arn := fmt.Sprintf("arn:aws:ecs:us-east-1:000000000000:task/default/%016x%016x", uint64(n)*0x9e3779b97f4a7c15, n)
	t := task(arn, fmt.Sprintf("i-%d", n%500), "RUNNING", Resources{CPU: 1, MemoryMiB: 1}, fmt.Sprintf("GPU-%d", n))
	t.Containers = []types.Container{{
		Name:       aws.String("main"),
		TaskArn:    &arn,
		Image:      aws.String("image"),
		LastStatus: aws.String("PENDING"),
		Cpu:        aws.String("1024"),
		Memory:     aws.String("2048"),
	}}
	t.Overrides = &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{
		Name:    aws.String("main"),
		Command: []string{"a", "b"},
	}}}
	return t
}

// BenchmarkGet reads 100 tasks by their ARNs out of 50,000, as DescribeTasks does.
func BenchmarkGet(b *testing.B) {
	s := benchStore(b, 50_000)
	var arns []string
	for t := range s.View().Tasks.All() {
		arns = append(arns, *t.TaskArn)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		v := s.View()
		for range 100 {
			n += 7919
			if v.Tasks.Get(arns[n%len(arns)]) == nil {
				b.Fatal("it is not there")
			}
		}
	}
}

// BenchmarkList lists the tasks of each of 500 instances, 100 of each.
func BenchmarkList(b *testing.B) {
	s := benchStore(b, 50_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := 0
		for range s.View().Tasks.By(TasksByInstance, fmt.Sprintf("i-%d", i%500)) {
			n++
		}
		if n != 100 {
			b.Fatalf("%d tasks", n)
		}
	}
}

// BenchmarkMemory reports how much memory tasks take when read from the journal, as after a restart.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := benchStore(b, 50_000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(s)
		s.Close()
	}
}

// benchStore returns a store with tasks, reopened after they were stored.
func benchStore(b *testing.B, tasks int) *Store {
	dir := b.TempDir()
	open := func() *Store {
		j, err := sqlite.Open(context.Background(), dir)
		if err != nil {
			b.Fatal(err)
		}
		s, err := Open(context.Background(), j)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	s := open()
	update(b, s, func(tx *Tx) error {
		for i := range tasks {
			tx.Tasks.Put(benchTask(int64(i)))
		}
		return nil
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	s = open()
	b.Cleanup(func() { s.Close() })
	return s
}

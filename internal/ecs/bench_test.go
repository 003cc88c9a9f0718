package ecs

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire"
)

// BenchmarkRunTask places a task and commits it durably, on a cluster of GPU nodes.
func BenchmarkRunTask(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			scheduler := scheduler.New(1)
			store := statetest.Open(b, scheduler)
			s := New(store, scheduler, Options{Account: accounttest.New(time.Now)})
			ctx := context.Background()
			if _, err := s.CreateCluster(ctx, &ecs.CreateClusterInput{}); err != nil {
				b.Fatal(err)
			}
			for range 100 {
				addNode(b, s, store)
			}
			if _, err := s.RegisterTaskDefinition(ctx, smallTask()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetParallelism(clients)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					out, err := s.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("f")})
					if err != nil || len(out.Tasks) != 1 {
						b.Fatal(out, err)
					}
				}
			})
		})
	}
}

// smallTask is the family "f" of a task so small that many fit on a node.
func smallTask() *ecs.RegisterTaskDefinitionInput {
	return &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("f"),
		ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), Image: aws.String("i"), Cpu: 1, Memory: aws.Int32(4)},
		},
	}
}

// addNode registers a huge node whose agent is connected.
func addNode(b *testing.B, s *Service, store *state.Store) {
	out, err := s.RegisterContainerInstance(context.Background(), &ecs.RegisterContainerInstanceInput{TotalResources: []types.Resource{
		{Name: aws.String("CPU"), IntegerValue: 1 << 30},
		{Name: aws.String("MEMORY"), IntegerValue: 1 << 30},
	}})
	if err != nil {
		b.Fatal(err)
	}
	err = store.Update(context.Background(), func(tx *state.Tx) error {
		row := *tx.ContainerInstances.Get(*out.ContainerInstance.ContainerInstanceArn)
		row.AgentConnected = true
		tx.ContainerInstances.Put(&row)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDescribeTasks describes the same hundred tasks again and again, from request body to response body.
func BenchmarkDescribeTasks(b *testing.B) {
	scheduler := scheduler.New(1)
	store := statetest.Open(b, scheduler)
	s := New(store, scheduler, Options{Account: accounttest.New(time.Now)})
	if _, err := s.CreateCluster(b.Context(), &ecs.CreateClusterInput{}); err != nil {
		b.Fatal(err)
	}
	addNode(b, s, store)
	if _, err := s.RegisterTaskDefinition(b.Context(), smallTask()); err != nil {
		b.Fatal(err)
	}
	var arns []string
	for len(arns) < maxPage {
		out, err := s.RunTask(b.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), Count: aws.Int32(10)})
		if err != nil || len(out.Tasks) != 10 {
			b.Fatal(out, err)
		}
		for _, t := range out.Tasks {
			arns = append(arns, *t.TaskArn)
		}
	}
	h, err := wire.New(wire.Options{}, API(s))
	if err != nil {
		b.Fatal(err)
	}
	body := `{"tasks":["` + strings.Join(arns, `","`) + `"]}`
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.DescribeTasks")
		out.Reset()
		w := &httptest.ResponseRecorder{Body: &out}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK || out.Len() < 100*len(arns) {
			b.Fatal(w)
		}
	}
}

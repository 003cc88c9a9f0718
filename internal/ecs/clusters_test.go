package ecs

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestStatistics: a cluster's statistics are there where a call asks for them, by launch type.
func TestStatistics(t *testing.T) {
	s, _ := newTestService(t)
	registerNode(t, s)
	if _, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f")}); err != nil {
		t.Fatal(err)
	}
	create(t, s, nil)
	for _, include := range [][]types.ClusterField{nil, {types.ClusterFieldStatistics}} {
		out, err := s.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{Include: include})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, p := range out.Clusters[0].Statistics {
			got[*p.Name] = *p.Value
		}
		if include == nil {
			if len(got) > 0 {
				t.Errorf("nobody asked for %v", got)
			}
			continue
		}
		for name, want := range map[string]string{
			"runningEC2TasksCount": "0", "pendingEC2TasksCount": "1", "runningFargateTasksCount": "0", "pendingFargateTasksCount": "0",
			"activeEC2ServiceCount": "1", "drainingEC2ServiceCount": "0", "activeFargateServiceCount": "0", "drainingFargateServiceCount": "0",
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %s", name, got[name], want)
			}
		}
	}
}

// TestEndOfATask: a task that ended by itself was stopping before it stopped, and a task on its node's network shows no bindings.
func TestEndOfATask(t *testing.T) {
	for mode, bindings := range map[types.NetworkMode]int{"": 1, types.NetworkModeBridge: 1, types.NetworkModeHost: 0} {
		t.Run(string(mode), func(t *testing.T) {
			s, store := newTestService(t)
			registerNode(t, s)
			_, err := s.RegisterTaskDefinition(t.Context(), definition(func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = mode }))
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("d")})
			if err != nil {
				t.Fatal(err)
			}
			ended := time.Now().Add(-time.Minute)
			_, err = s.SubmitTaskStateChange(t.Context(), &ecs.SubmitTaskStateChangeInput{
				Task:               run.Tasks[0].TaskArn,
				Status:             aws.String("STOPPED"),
				ExecutionStoppedAt: &ended,
				Containers: []types.ContainerStateChange{{
					ContainerName:   aws.String("main"),
					ExitCode:        aws.Int32(0),
					NetworkBindings: []types.NetworkBinding{{ContainerPort: aws.Int32(80), HostPort: aws.Int32(80)}},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			task := store.View().Tasks.Get(*run.Tasks[0].TaskArn)
			if !task.StoppingAt.Equal(ended) || !task.StoppedAt.After(ended) {
				t.Errorf("stopping at %v, stopped at %v, ended at %v", task.StoppingAt, task.StoppedAt, ended)
			}
			if n := len(task.Containers[0].NetworkBindings); n != bindings {
				t.Errorf("%d bindings, want %d", n, bindings)
			}
		})
	}
}

func TestSameNamespace(t *testing.T) {
	const arn = "arn:aws:servicediscovery:us-east-1:000000000000:namespace/ns"
	for _, c := range []struct {
		a, b string
		same bool
	}{{"ns", "ns", true}, {"ns", arn, true}, {arn, arn, true}, {arn, "other", false}, {arn, arn + "2", false}} {
		if sameNamespace(c.a, c.b) != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.same)
		}
	}
}

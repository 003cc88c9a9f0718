package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// eni is the attribute of nodes that take tasks with networks of their own.
var eni = types.Attribute{Name: aws.String("ecs.capability.task-eni")}

var inSubnet = &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}}}

// fargate makes the default cluster's nodes those of Fargate, with a definition of which two tasks fit a node, and the cluster own without nodes.
func (w *world) fargate() {
	w.t.Helper()
	out, err := w.ecs.CreateCluster(w.ctx, &awsecs.CreateClusterInput{ClusterName: aws.String("own")})
	if err != nil {
		w.t.Fatal(err)
	}
	w.update(func(*state.Tx) {
		w.loop.scheduler.Serverless = strings.TrimSuffix(*out.Cluster.ClusterArn, "own") + "default"
	})
	if _, err := w.ecs.RegisterTaskDefinition(w.ctx, &awsecs.RegisterTaskDefinitionInput{
		Family: aws.String("net"), Cpu: aws.String("1024"), Memory: aws.String("2048"), NetworkMode: types.NetworkModeAwsvpc,
		RequiresCompatibilities: []types.Compatibility{types.CompatibilityFargate},
		ContainerDefinitions:    []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("v1")}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// expectOn checks on how many nodes there are how many tasks of the cluster own, after a while.
func (w *world) expectOn(when string, within time.Duration, want map[string]int) {
	w.t.Helper()
	w.after(within)
	got := map[string]int{}
	for _, t := range w.tasks() {
		if state.NameOf(*t.ClusterArn) == "own" && *t.LastStatus == "RUNNING" {
			got[*t.ContainerInstanceArn]++
		}
	}
	for node, n := range want {
		if got[node] != n {
			w.t.Errorf("%s: %d tasks are on %s, want %d", when, got[node], node, n)
		}
		delete(got, node)
	}
	if len(got) > 0 {
		w.t.Errorf("%s: there are tasks on %v", when, got)
	}
}

// TestFargateOnNodesForAll: tasks of Fargate whose cluster has no nodes run on those for all clusters, and their service follows these: nodes that
// come and are drained, and room that others free.
func TestFargateOnNodesForAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fargate()
		own := aws.String("own")
		const soon = stopping + starting + time.Second/10 // to be quicker than the next try, which comes by itself
		w.create(0)
		w.create(2, func(in *awsecs.CreateServiceInput) {
			in.Cluster, in.TaskDefinition, in.LaunchType, in.NetworkConfiguration = own, aws.String("net"), types.LaunchTypeFargate, inSubnet
		})
		scale := func(desired int32) {
			t.Helper()
			if _, err := w.ecs.UpdateService(w.ctx, &awsecs.UpdateServiceInput{Cluster: own, Service: aws.String("s"), DesiredCount: &desired}); err != nil {
				t.Fatal(err)
			}
		}
		w.expectOn("no node has their attribute", soon, nil)
		first := w.node(eni)
		w.expectOn("a node has come", soon, map[string]int{first: 2})
		scale(3)
		w.expectOn("the node is full", soon, map[string]int{first: 2})
		second := w.node(eni)
		w.expectOn("another node has come", soon, map[string]int{first: 2, second: 1})

		run, err := w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{TaskDefinition: aws.String("net"), LaunchType: types.LaunchTypeFargate, NetworkConfiguration: inSubnet})
		if err != nil || len(run.Tasks) != 1 {
			t.Fatal(run, err)
		}
		scale(4)
		w.expectOn("the rest is a task's of the nodes' own cluster", soon, map[string]int{first: 2, second: 1})
		if _, err := w.ecs.StopTask(w.ctx, &awsecs.StopTaskInput{Task: run.Tasks[0].TaskArn}); err != nil {
			t.Fatal(err)
		}
		w.expectOn("it has ended", soon, map[string]int{first: 2, second: 2})

		scale(2)
		w.after(time.Minute)
		for _, node := range []string{first, second} {
			other := map[string]string{first: second, second: first}[node]
			for status, on := range map[types.ContainerInstanceStatus]string{types.ContainerInstanceStatusDraining: node, types.ContainerInstanceStatusActive: other} {
				if _, err := w.ecs.UpdateContainerInstancesState(w.ctx, &awsecs.UpdateContainerInstancesStateInput{ContainerInstances: []string{on}, Status: status}); err != nil {
					t.Fatal(err)
				}
			}
			w.expectOn("a node is drained", time.Minute, map[string]int{other: 2})
		}
		listed, err := w.ecs.ListTasks(w.ctx, &awsecs.ListTasksInput{ContainerInstance: &first})
		if err != nil || len(listed.TaskArns) != 0 {
			t.Errorf("the cluster of the nodes lists tasks of another: %v, %v", listed, err)
		}
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Cluster: own, Service: aws.String("s"), Force: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		_, err = w.ecs.DeleteCluster(w.ctx, &awsecs.DeleteClusterInput{Cluster: own})
		if _, refused := errors.AsType[*types.ClusterContainsTasksException](err); !refused {
			t.Errorf("the cluster's tasks stop, and its deletion says %v", err)
		}
		w.after(soon)
		for row := range w.store.View().Tasks.All() {
			if *row.LastStatus != "STOPPED" {
				t.Errorf("a task is %s", *row.LastStatus)
			}
		}
		if _, err := w.ecs.DeleteCluster(w.ctx, &awsecs.DeleteClusterInput{Cluster: own}); err != nil {
			t.Error(err)
		}
	})
}

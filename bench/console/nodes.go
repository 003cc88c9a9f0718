package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
)

const (
	gpusOfANode = 8
	tasksOfCall = 10 // RunTask starts at most this many
	cluster     = "default"
	memoryMiB   = 32768
)

// node is a simulated node.
type node struct {
	arn  string
	gpus []acs.GPULoad
}

// startNodes registers and connects nodes, lets tasks hold some of their GPUs, and returns once all of them tell of their GPUs.
func startNodes(ctx context.Context, api *ecs.Client, address string, o options) error {
	began := time.Now()
	if _, err := api.CreateCluster(ctx, &ecs.CreateClusterInput{}); err != nil {
		return err
	}
	nodes := make([]*node, o.nodes)
	if err := each(o.nodes, func(i int) (err error) {
		if nodes[i], err = register(ctx, api, i); err != nil {
			return err
		}
		return nodes[i].connectACS(ctx, address)
	}); err != nil {
		return err
	}
	if err := runTasks(ctx, api, o.nodes*o.busy/100); err != nil {
		return err
	}
	busy, err := holders(ctx, api)
	if err != nil {
		return err
	}
	slices.SortStableFunc(nodes, func(a, b *node) int { // who is busy tells first
		return cmp.Compare(fmt.Sprint(!busy[a.arn]), fmt.Sprint(!busy[b.arn]))
	})
	if err := each(o.nodes, func(i int) error { return nodes[i].connectTCS(ctx, address, busy[nodes[i].arn], o.every) }); err != nil {
		return err
	}
	fmt.Printf("%d nodes with %d GPUs each are there after %.0f s, %d of them busy; they tell of their GPUs every %s\n",
		o.nodes, gpusOfANode, time.Since(began).Seconds(), len(busy), o.every)
	return nil
}

// each calls a function for each number below n, some at a time.
func each(n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

func register(ctx context.Context, api *ecs.Client, i int) (*node, error) {
	n := &node{}
	in := &ecs.RegisterContainerInstanceInput{
		Attributes: []types.Attribute{{Name: aws.String("ecs.instance-type"), Value: aws.String("p3.16xlarge")}},
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: 65536},
			{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: 499712},
		},
	}
	for g := range gpusOfANode {
		id := fmt.Sprintf("GPU-%06d-%d", i, g)
		n.gpus = append(n.gpus, acs.GPULoad{ID: id, UtilizationPct: new(0.0), MemoryMiB: memoryMiB, TemperatureC: 33, PowerW: 52, Simulated: true})
		in.PlatformDevices = append(in.PlatformDevices, types.PlatformDevice{Id: &id, Type: types.PlatformDeviceTypeGpu})
	}
	out, err := api.RegisterContainerInstance(ctx, in)
	if err != nil {
		return nil, err
	}
	n.arn = *out.ContainerInstance.ContainerInstanceArn
	return n, nil
}

// connectACS opens the socket by which the node is told of its tasks, says what GPUs it has, and acknowledges whatever comes.
func (n *node) connectACS(ctx context.Context, address string) error {
	c, err := dial(ctx, address, "acs", url.Values{"clusterArn": {cluster}, "containerInstanceArn": {n.arn}, "protocolVersion": {"2"}, "sendCredentials": {"true"}})
	if err != nil {
		return err
	}
	inventory := &acs.PintleNodeInventory{Runtime: "none", InstanceType: "p3.16xlarge"}
	for i, g := range n.gpus {
		inventory.GPUs = append(inventory.GPUs, acs.GPUDevice{ID: g.ID, Model: "V100", MemoryMiB: memoryMiB, Index: i, Simulated: true})
	}
	go func() {
		for {
			_, b, err := c.Read(ctx)
			if err != nil {
				return
			}
			switch m := decode(b).(type) {
			case *acs.PayloadMessage:
				err = say(ctx, c, &acs.AckRequest{Cluster: cluster, ContainerInstance: n.arn, MessageID: m.MessageID})
			case *acs.HeartbeatMessage:
				err = say(ctx, c, &acs.HeartbeatAckRequest{MessageID: m.MessageID})
			}
			if err != nil {
				return
			}
		}
	}()
	return say(ctx, c, inventory)
}

// connectTCS opens the socket by which the node tells of its GPUs, and tells of them.
func (n *node) connectTCS(ctx context.Context, address string, busy bool, every time.Duration) error {
	c, err := dial(ctx, address, "tcs", url.Values{"cluster": {cluster}, "containerInstance": {n.arn}})
	if err != nil {
		return err
	}
	go func() {
		for {
			if _, _, err := c.Read(ctx); err != nil {
				return
			}
		}
	}()
	if err := say(ctx, c, &acs.PintleGPUTelemetry{GPUs: n.gpus}); err != nil {
		return err
	}
	go func() {
		time.Sleep(rand.N(every)) // nodes don't tell in step
		for range time.Tick(every) {
			if busy {
				n.work()
			}
			if say(ctx, c, &acs.PintleGPUTelemetry{GPUs: n.gpus}) != nil {
				return
			}
		}
	}()
	return nil
}

// work lets the load of the node's GPUs wander.
func (n *node) work() {
	for i := range n.gpus {
		load := min(100, max(20, *n.gpus[i].UtilizationPct+rand.Float64()*20-9))
		n.gpus[i].UtilizationPct = &load
		n.gpus[i].MemoryUsedMiB = memoryMiB/2 + int64(load*100)
		n.gpus[i].TemperatureC = 40 + load/3
		n.gpus[i].PowerW = 100 + 2*load
	}
}

func dial(ctx context.Context, address, kind string, q url.Values) (*websocket.Conn, error) {
	q.Set("agentVersion", "1.0.0")
	q.Set("agentHash", "bench")
	c, _, err := websocket.Dial(ctx, "ws://"+address+"/"+kind+"/ws?"+q.Encode(), &websocket.DialOptions{HTTPHeader: http.Header{}})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(acs.MaxFrame)
	return c, nil
}

func decode(b []byte) acs.Message {
	m, err := acs.Decode(b)
	if err != nil {
		return nil // nothing that a node must answer
	}
	return m
}

func say(ctx context.Context, c *websocket.Conn, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	return c.Write(ctx, websocket.MessageText, b)
}

// runTasks runs tasks that each need all GPUs of a node.
func runTasks(ctx context.Context, api *ecs.Client, count int) error {
	_, err := api.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("train"),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name:                 aws.String("main"),
			Image:                aws.String("train"),
			Memory:               aws.Int32(1024),
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String(fmt.Sprint(gpusOfANode))}},
		}},
	})
	if err != nil {
		return err
	}
	return each((count+tasksOfCall-1)/tasksOfCall, func(i int) error {
		out, err := api.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("train"), Count: aws.Int32(int32(min(tasksOfCall, count-i*tasksOfCall)))})
		if err == nil && len(out.Failures) > 0 {
			err = fmt.Errorf("a task wasn't placed: %s", aws.ToString(out.Failures[0].Reason))
		}
		return err
	})
}

// holders are the nodes that have a task.
func holders(ctx context.Context, api *ecs.Client) (map[string]bool, error) {
	all := map[string]bool{}
	for pages := ecs.NewListTasksPaginator(api, &ecs.ListTasksInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		out, err := api.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: page.TaskArns})
		if len(page.TaskArns) == 0 {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range out.Tasks {
			all[aws.ToString(t.ContainerInstanceArn)] = true
		}
	}
	return all, nil
}

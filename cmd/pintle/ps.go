package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"
)

type psCmd struct {
	clientFlags
	All bool
}

func (c *psCmd) define(f flags) {
	c.clientFlags.define(f)
	f.BoolVarP(&c.All, "all", "a", false, "Also tasks that have stopped within the last hour.")
}

func (c *psCmd) verb() *cobra.Command {
	cmd := newVerb("ps [flags]", "List tasks.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run lists tasks.
func (c *psCmd) Run(ctx context.Context) error {
	cl, err := c.clients(ctx)
	if err != nil {
		return err
	}
	statuses := []types.DesiredStatus{types.DesiredStatusRunning}
	if c.All {
		statuses = append(statuses, types.DesiredStatusStopped)
	}
	w := newTable("TASK", "DEFINITION", "STATUS", "GPUS", "NODE", "AGE", "REASON")
	for _, st := range statuses {
		tasks, err := listTasks(ctx, cl.ecs, c.Cluster, st)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			w.row(
				lastPart(t.TaskArn), lastPart(t.TaskDefinitionArn), status(t), gpuCount(t), lastPart(t.ContainerInstanceArn),
				age(t.CreatedAt), reason(t),
			)
		}
	}
	c.noteReadOnly(ctx)
	return w.Flush()
}

// reason says why a task has stopped, or what it waits for.
func reason(t types.Task) string {
	if aws.ToString(t.LastStatus) == "PROVISIONING" && t.ContainerInstanceArn == nil && t.CapacityProviderName != nil {
		return "waits for an instance of the capacity provider " + *t.CapacityProviderName
	}
	if aws.ToString(t.StoppedReason) == "Essential container in task exited" {
		for _, c := range t.Containers {
			if namedError.MatchString(aws.ToString(c.Reason)) {
				return *c.Reason
			}
		}
	}
	return aws.ToString(t.StoppedReason)
}

// namedError is what a container's reason begins with if it says why the container ended: OutOfMemoryError.
var namedError = regexp.MustCompile(`^\w+Error: `)

// status returns a task's status, with the exit code of the first container that has one.
func status(t types.Task) string {
	for _, c := range t.Containers {
		if c.ExitCode != nil {
			return fmt.Sprintf("%s (%d)", aws.ToString(t.LastStatus), *c.ExitCode)
		}
	}
	return aws.ToString(t.LastStatus)
}

func gpuCount(t types.Task) int {
	n := 0
	for _, c := range t.Containers {
		n += len(c.GpuIds)
	}
	return n
}

// listTasks describes every task of the cluster with a desired status.
func listTasks(ctx context.Context, c *awsecs.Client, cluster string, desired types.DesiredStatus) ([]types.Task, error) {
	var out []types.Task
	pages := awsecs.NewListTasksPaginator(c, &awsecs.ListTasksInput{Cluster: &cluster, DesiredStatus: desired})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.TaskArns) == 0 {
			continue
		}
		d, err := c.DescribeTasks(ctx, &awsecs.DescribeTasksInput{Cluster: &cluster, Tasks: p.TaskArns})
		if err != nil {
			return nil, err
		}
		out = append(out, d.Tasks...)
	}
	return out, nil
}

func lastPart(arn *string) string {
	s := aws.ToString(arn)
	return cmp.Or(s[strings.LastIndexByte(s, '/')+1:], "-")
}

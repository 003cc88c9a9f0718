package ecs

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// findTask finds a task of the cluster by its ARN or id, or returns nil.
func (s *Service) findTask(v *state.View, clusterArn, task string) *state.Task {
	row := v.Tasks.Get(inCluster(clusterArn, "task", task))
	if row == nil || *row.ClusterArn != clusterArn {
		return nil
	}
	return row
}

// checkTaskID refuses what can't be the id of a task, such as the None that the AWS CLI prints for a task that wasn't placed.
func checkTaskID(task string) error {
	if n := len(state.NameOf(task)); n != 32 && n != 36 {
		return invalidParameter("taskId length should be one of [32,36]")
	}
	return nil
}

// StopTask asks a task to stop. The task is STOPPED once its node reports it.
func (s *Service) StopTask(ctx context.Context, in *ecs.StopTaskInput) (*ecs.StopTaskOutput, error) {
	if aws.ToString(in.Task) == "" {
		return nil, invalidParameter("taskId can not be null or empty.")
	}
	if err := checkTaskID(*in.Task); err != nil {
		return nil, err
	}
	var row *state.Task
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		old := s.findTask(tx.View, *c.ClusterArn, *in.Task)
		if old == nil {
			return invalidParameter("The referenced task was not found.")
		}
		row = old
		if *old.DesiredStatus == "STOPPED" {
			return nil
		}
		reason := cmp.Or(aws.ToString(in.Reason), "Task stopped by user")
		row = tx.StopTask(old, types.TaskStopCodeUserInitiated, reason, *s.now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.StopTaskOutput{Task: &row.Task}, nil
}

// DescribeTasks describes tasks. It reports tasks that don't exist as failures.
func (s *Service) DescribeTasks(_ context.Context, in *ecs.DescribeTasksInput) (*ecs.DescribeTasksOutput, error) {
	rows, failures, err := s.findTasks(in)
	if err != nil {
		return nil, err
	}
	out := &ecs.DescribeTasksOutput{Tasks: make([]types.Task, 0, len(rows)), Failures: failures}
	for _, row := range rows {
		task := *row
		if !slices.Contains(in.Include, types.TaskFieldTags) {
			task.Tags = []types.Tag{}
		}
		out.Tasks = append(out.Tasks, task)
	}
	return out, nil
}

// describedTasks is a DescribeTasksOutput on the wire. Its tasks are rows of the store, which never change.
type describedTasks struct {
	Failures []types.Failure
	Tasks    []*types.Task `wire:"kept"`
	Untagged []*types.Task `wire:"kept,as=Tasks,empty=Tags"` // instead of Tasks, if the call doesn't ask for tags
}

// describeTasksRows is DescribeTasks for clients on the network. They ask for many tasks again and again, so it doesn't copy
// the rows, and their JSON is cached.
func (s *Service) describeTasksRows(_ context.Context, in *ecs.DescribeTasksInput) (*describedTasks, error) {
	rows, failures, err := s.findTasks(in)
	if err != nil {
		return nil, err
	}
	if slices.Contains(in.Include, types.TaskFieldTags) {
		return &describedTasks{Failures: failures, Tasks: rows}, nil
	}
	return &describedTasks{Failures: failures, Untagged: rows}, nil
}

// findTasks returns the tasks that the input names, and failures for those that don't exist.
func (s *Service) findTasks(in *ecs.DescribeTasksInput) ([]*types.Task, []types.Failure, error) {
	if len(in.Tasks) == 0 {
		return nil, nil, invalidParameter("Tasks cannot be empty.")
	}
	if len(in.Tasks) > maxPage {
		return nil, nil, invalidParameter("tasks has %d members, at most %d are allowed.", len(in.Tasks), maxPage)
	}
	if err := checkOneOf("include", types.TaskField("").Values(), in.Include...); err != nil {
		return nil, nil, err
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, nil, err
	}
	rows := make([]*types.Task, 0, len(in.Tasks))
	failures := []types.Failure{}
	for _, name := range in.Tasks {
		if err := checkTaskID(name); err != nil {
			return nil, nil, err
		}
		if err := checkIdentifier(*c.ClusterArn, "task", name); err != nil {
			return nil, nil, err
		}
		row := s.findTask(v, *c.ClusterArn, name)
		if row == nil {
			failures = append(failures, missing(inCluster(*c.ClusterArn, "task", name)))
			continue
		}
		task := &row.Task
		if row.Deregistering {
			task = new(row.Task)
			task.LastStatus = aws.String("DEACTIVATING")
		}
		rows = append(rows, task)
	}
	return rows, failures, nil
}

// ListTasks lists the ARNs of a cluster's tasks, by default those whose desired status is RUNNING.
func (s *Service) ListTasks(_ context.Context, in *ecs.ListTasksInput) (*ecs.ListTasksOutput, error) {
	desired := cmp.Or(in.DesiredStatus, types.DesiredStatusRunning)
	if !slices.Contains(desired.Values(), desired) {
		return nil, invalidParameter("desiredStatus must be one of %v, not %q.", desired.Values(), desired)
	}
	if in.LaunchType != "" && !slices.Contains(in.LaunchType.Values(), in.LaunchType) {
		return nil, invalidParameter("launchType must be one of %v, not %q.", in.LaunchType.Values(), in.LaunchType)
	}
	if in.StartedBy != nil && (in.Family != nil || in.ServiceName != nil || in.ContainerInstance != nil || in.LaunchType != "") {
		return nil, invalidParameter("startedBy cannot be combined with family, serviceName, containerInstance or launchType.")
	}
	if in.DaemonName != nil {
		return nil, invalidParameter("daemonName: Pintle has no daemons, only services with the scheduling strategy DAEMON.")
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	instance := ""
	if in.ContainerInstance != nil {
		row := s.findInstance(v, *c.ClusterArn, *in.ContainerInstance)
		if row == nil {
			return nil, invalidParameter("The container instance %q was not found in cluster %s.", *in.ContainerInstance, *c.ClusterName)
		}
		instance = *row.ContainerInstanceArn
	}
	service := ""
	if in.ServiceName != nil {
		row := s.findService(v, *c.ClusterArn, *in.ServiceName)
		if row == nil {
			return nil, serviceNotFound()
		}
		service = *row.ServiceArn
	}
	arns, next, err := page(listing("ListTasks"), in.MaxResults, in.NextToken,
		func(after string) iter.Seq[*state.Task] {
			return v.Tasks.After(state.TasksByCluster, state.ClusterStatus(*c.ClusterArn, string(desired)), after)
		},
		func(t *state.Task) string { return *t.TaskArn },
		func(t *state.Task) bool { return taskMatches(t, in, instance, service) })
	if err != nil {
		return nil, err
	}
	return &ecs.ListTasksOutput{TaskArns: arns, NextToken: next}, nil
}

// taskMatches reports whether a task passes ListTasks' filters.
func taskMatches(t *state.Task, in *ecs.ListTasksInput, instance, service string) bool {
	if instance != "" && aws.ToString(t.ContainerInstanceArn) != instance {
		return false
	}
	if in.Family != nil && familyOf(*t.TaskDefinitionArn) != *in.Family {
		return false
	}
	if in.StartedBy != nil && aws.ToString(t.StartedBy) != *in.StartedBy {
		return false
	}
	if service != "" && t.ServiceArn != service {
		return false
	}
	return in.LaunchType == "" || t.LaunchType == in.LaunchType
}

// familyOf returns the family in a task definition's ARN.
func familyOf(taskDefinitionArn string) string {
	family, _, _ := strings.Cut(state.NameOf(taskDefinitionArn), ":")
	return family
}

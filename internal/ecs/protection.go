package ecs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// The limits of task protection: API_UpdateTaskProtection, API_GetTaskProtection.
const (
	maxProtectTasks   = 10  // of one UpdateTaskProtection
	maxDescribedTasks = 100 // of one GetTaskProtection

	maxProtectionMinutes     = 2880
	defaultProtectionMinutes = 120
)

// UpdateTaskProtection protects tasks of services from scale-in and deployments for a while, or ends their protection.
func (s *Service) UpdateTaskProtection(ctx context.Context, in *ecs.UpdateTaskProtectionInput) (*ecs.UpdateTaskProtectionOutput, error) {
	if n := len(in.Tasks); n == 0 || n > maxProtectTasks {
		return nil, invalidParameter("tasks must have between 1 and %d members, not %d.", maxProtectTasks, n)
	}
	minutes := aws.ToInt32(in.ExpiresInMinutes)
	if in.ExpiresInMinutes == nil {
		minutes = defaultProtectionMinutes
	}
	if minutes < 1 || minutes > maxProtectionMinutes {
		return nil, invalidParameter("expiresInMinutes must be between 1 and %d, not %d.", maxProtectionMinutes, minutes)
	}
	var until *time.Time
	if in.ProtectionEnabled {
		until = aws.Time(s.now().Add(time.Duration(minutes) * time.Minute))
	}
	out := &ecs.UpdateTaskProtectionOutput{}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		out.ProtectedTasks = []types.ProtectedTask{}
		out.Failures = []types.Failure{}
		for _, name := range in.Tasks {
			row, failure := s.findProtectable(tx.View, *c.ClusterArn, name)
			if failure != nil {
				out.Failures = append(out.Failures, *failure)
				continue
			}
			t, _ := clone(row)
			t.ProtectedUntil = until
			tx.Tasks.Put(t)
			out.ProtectedTasks = append(out.ProtectedTasks, s.protectedTask(t))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// GetTaskProtection describes the protection of the given tasks. Without any it lists the cluster's protected tasks.
func (s *Service) GetTaskProtection(_ context.Context, in *ecs.GetTaskProtectionInput) (*ecs.GetTaskProtectionOutput, error) {
	if len(in.Tasks) > maxDescribedTasks {
		return nil, invalidParameter("tasks has %d members, at most %d are allowed.", len(in.Tasks), maxDescribedTasks)
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	out := &ecs.GetTaskProtectionOutput{ProtectedTasks: []types.ProtectedTask{}, Failures: []types.Failure{}}
	if len(in.Tasks) == 0 {
		for t := range v.Tasks.By(state.TasksByCluster, state.ClusterStatus(*c.ClusterArn, "RUNNING")) {
			if p := s.protectedTask(t); p.ProtectionEnabled {
				out.ProtectedTasks = append(out.ProtectedTasks, p)
			}
		}
		return out, nil
	}
	for _, name := range in.Tasks {
		row, failure := s.findProtectable(v, *c.ClusterArn, name)
		if failure != nil {
			out.Failures = append(out.Failures, *failure)
			continue
		}
		out.ProtectedTasks = append(out.ProtectedTasks, s.protectedTask(row))
	}
	return out, nil
}

// findProtectable finds a task that can be protected. It must belong to a service and not be stopping:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
func (s *Service) findProtectable(v *state.View, clusterArn, name string) (*state.Task, *types.Failure) {
	row := s.findTask(v, clusterArn, name)
	arn := inCluster(clusterArn, "task", name)
	if row == nil {
		return nil, new(missing(arn))
	}
	if row.ServiceArn == "" || *row.DesiredStatus == "STOPPED" {
		return nil, &types.Failure{
			Arn:    &arn,
			Reason: aws.String("TASK_NOT_VALID"),
			Detail: aws.String("Only a task of a service that is not stopping can be protected."),
		}
	}
	return row, nil
}

// protectedTask describes a task's protection.
func (s *Service) protectedTask(t *state.Task) types.ProtectedTask {
	p := types.ProtectedTask{TaskArn: t.TaskArn}
	if t.ProtectedUntil != nil && s.opts.Now().Before(*t.ProtectedUntil) {
		p.ProtectionEnabled = true
		p.ExpirationDate = t.ProtectedUntil
	}
	return p
}

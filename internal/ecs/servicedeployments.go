package ecs

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// deploy starts a new PRIMARY deployment of a service, with its record and revision, under a request's span.
func (s *Service) deploy(tx *state.Tx, row *state.Service, td *state.TaskDefinition, span string) error {
	now := s.now()
	row.TaskDefinition = td.TaskDefinitionArn
	id := "ecs-svc/" + digits()
	source := row.Source()
	groups, err := targetGroups(row, source)
	if err != nil {
		return err
	}
	version, family := capacity.Platform(row.LaunchType, row.CapacityProviderStrategy)
	d := state.Deployment{
		Trace:             span,
		AlarmsIgnored:     len(tx.TriggeredAlarms(row)) > 0,
		LoadBalancers:     row.LoadBalancers,
		ServiceRegistries: row.ServiceRegistries,
		TargetGroups:      groups,
		Deployment: types.Deployment{
			Id:                          &id,
			Status:                      aws.String("PRIMARY"),
			TaskDefinition:              td.TaskDefinitionArn,
			CreatedAt:                   now,
			UpdatedAt:                   now,
			RolloutState:                types.DeploymentRolloutStateInProgress,
			RolloutStateReason:          aws.String("ECS deployment " + id + " in progress."),
			LaunchType:                  row.LaunchType,
			CapacityProviderStrategy:    row.CapacityProviderStrategy,
			PlatformVersion:             version,
			PlatformFamily:              family,
			NetworkConfiguration:        row.NetworkConfiguration,
			ServiceConnectConfiguration: row.ServiceConnect,
			VolumeConfigurations:        row.Volumes,
		},
	}
	if err := s.connect(tx, row, td, &d); err != nil {
		return err
	}
	d.Shift = newShift(row, source, &d)
	revision := s.newRevision(row, td)
	revision.ResolvedConfiguration = resolvedConfiguration(&d)
	record := s.newRecord(row, &d, revision)
	d.ServiceRevisionArn = *revision.ServiceRevisionArn
	d.ServiceDeploymentArn = *record.ServiceDeploymentArn
	for i := range row.Deployments {
		old := &row.Deployments[i]
		old.Status = aws.String("ACTIVE")
		s.supersede(tx, old)
		if old == source {
			old.Shift = nil // the new deployment may shift traffic away from it
		}
	}
	row.Deployments = append([]state.Deployment{d}, row.Deployments...)
	tx.ServiceRevisions.Put(revision)
	tx.ServiceDeployments.Put(record)
	return nil
}

// newRecord returns the record of a new deployment.
func (s *Service) newRecord(row *state.Service, d *state.Deployment, revision *state.ServiceRevision) *state.ServiceDeployment {
	record := &state.ServiceDeployment{DeploymentID: *d.Id, ServiceDeployment: types.ServiceDeployment{
		ServiceDeploymentArn:    new(state.InCluster(*row.ClusterArn, "service-deployment", *row.ServiceName, state.NewID()[:21])),
		ServiceArn:              row.ServiceArn,
		ClusterArn:              row.ClusterArn,
		CreatedAt:               d.CreatedAt,
		StartedAt:               d.CreatedAt,
		UpdatedAt:               d.CreatedAt,
		Status:                  types.ServiceDeploymentStatusInProgress,
		LifecycleStage:          types.ServiceDeploymentLifecycleStageScaleUp,
		DeploymentConfiguration: row.DeploymentConfiguration,
		TargetServiceRevision:   &types.ServiceRevisionSummary{Arn: revision.ServiceRevisionArn},
	}}
	if d.Shift != nil {
		record.LifecycleStage = types.ServiceDeploymentLifecycleStageReconcileService
	}
	for _, old := range row.Deployments {
		source := types.ServiceRevisionSummary{Arn: new(old.ServiceRevisionArn)}
		record.SourceServiceRevisions = append(record.SourceServiceRevisions, source)
	}
	return record
}

// supersede ends the record of a deployment that a newer one replaced before it finished. If only the old tasks hadn't gone yet, it has
// succeeded all the same.
func (s *Service) supersede(tx *state.Tx, d *state.Deployment) {
	record, ok := clone(tx.ServiceDeployments.Get(d.ServiceDeploymentArn))
	if !ok || record.FinishedAt != nil {
		return
	}
	now := s.now()
	record.FinishedAt = now
	record.UpdatedAt = now
	switch cleans := d.Shift != nil && d.Shift.Stage == types.ServiceDeploymentLifecycleStageCleanUp; {
	case cleans:
		d.RolloutState = types.DeploymentRolloutStateCompleted
		record.Status = types.ServiceDeploymentStatusSuccessful
		if record.Rollback != nil {
			record.Status = types.ServiceDeploymentStatusRollbackSuccessful
		}
	default:
		record.Status = types.ServiceDeploymentStatusStopped
		record.StatusReason = aws.String("A newer deployment of the service has taken its place.")
		record.StoppedAt = now
	}
	tx.ServiceDeployments.Put(record)
}

// newRevision returns a revision of the service as it is now.
func (s *Service) newRevision(row *state.Service, td *state.TaskDefinition) *state.ServiceRevision {
	version, family := capacity.Platform(row.LaunchType, row.CapacityProviderStrategy)
	r := &state.ServiceRevision{ServiceRevision: types.ServiceRevision{
		ServiceRevisionArn:          new(state.InCluster(*row.ClusterArn, "service-revision", *row.ServiceName, digits())),
		ServiceArn:                  row.ServiceArn,
		ClusterArn:                  row.ClusterArn,
		CreatedAt:                   s.now(),
		TaskDefinition:              td.TaskDefinitionArn,
		LaunchType:                  row.LaunchType,
		CapacityProviderStrategy:    row.CapacityProviderStrategy,
		PlatformVersion:             version,
		PlatformFamily:              family,
		NetworkConfiguration:        row.NetworkConfiguration,
		LoadBalancers:               row.LoadBalancers,
		ServiceRegistries:           row.ServiceRegistries,
		ServiceConnectConfiguration: row.ServiceConnect,
		VolumeConfigurations:        row.Volumes,
		Monitoring:                  row.Monitoring,
	}}
	for _, c := range td.ContainerDefinitions {
		r.ContainerImages = append(r.ContainerImages, types.ContainerImage{ContainerName: c.Name, Image: c.Image})
	}
	return r
}

// digits returns a random id of 19 digits, for a deployment, revision or task set.
func digits() string {
	var b strings.Builder
	for range 19 {
		b.WriteByte(byte('0' + rand.IntN(10)))
	}
	return b.String()
}

// maxDeployments bounds the deployments or revisions that one call describes: API_DescribeServiceDeployments.
const maxDeployments = 20

// ListServiceDeployments lists a service's deployments, newest first.
func (s *Service) ListServiceDeployments(
	_ context.Context, in *ecs.ListServiceDeploymentsInput,
) (*ecs.ListServiceDeploymentsOutput, error) {
	if aws.ToString(in.Service) == "" {
		return nil, invalidParameter("service must not be empty.")
	}
	for _, status := range in.Status {
		if !slices.Contains(status.Values(), status) {
			return nil, invalidParameter("status must be one of %v, not %q.", status.Values(), status)
		}
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	row := v.Services.Get(inCluster(*c.ClusterArn, "service", *in.Service))
	if row == nil || *row.ClusterArn != *c.ClusterArn {
		return nil, serviceNotFound()
	}
	var records []*state.ServiceDeployment
	for r := range v.ServiceDeployments.By(state.ServiceDeploymentsByService, *row.ServiceArn) {
		if deploymentMatches(r, in) {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b *state.ServiceDeployment) int {
		return cmp.Or(b.CreatedAt.Compare(*a.CreatedAt), cmp.Compare(*b.ServiceDeploymentArn, *a.ServiceDeploymentArn))
	})
	records, next, err := account.Ordered(listing("ListServiceDeployments"), records, in.MaxResults, in.NextToken,
		func(r *state.ServiceDeployment) string { return *r.ServiceDeploymentArn })
	if err != nil {
		return nil, err
	}
	out := &ecs.ListServiceDeploymentsOutput{ServiceDeployments: []types.ServiceDeploymentBrief{}, NextToken: next}
	for _, r := range records {
		out.ServiceDeployments = append(out.ServiceDeployments, types.ServiceDeploymentBrief{
			ServiceDeploymentArn:     r.ServiceDeploymentArn,
			ServiceArn:               r.ServiceArn,
			ClusterArn:               r.ClusterArn,
			CreatedAt:                r.CreatedAt,
			StartedAt:                r.StartedAt,
			FinishedAt:               r.FinishedAt,
			Status:                   r.Status,
			StatusReason:             r.StatusReason,
			TargetServiceRevisionArn: r.TargetServiceRevision.Arn,
		})
	}
	return out, nil
}

// deploymentMatches reports whether a deployment passes ListServiceDeployments' filters.
func deploymentMatches(r *state.ServiceDeployment, in *ecs.ListServiceDeploymentsInput) bool {
	if len(in.Status) > 0 && !slices.Contains(in.Status, r.Status) {
		return false
	}
	c := in.CreatedAt
	return c == nil || (c.After == nil || r.CreatedAt.After(*c.After)) && (c.Before == nil || r.CreatedAt.Before(*c.Before))
}

// DescribeServiceDeployments describes deployments. It reports deployments that don't exist as failures.
func (s *Service) DescribeServiceDeployments(
	_ context.Context, in *ecs.DescribeServiceDeploymentsInput,
) (*ecs.DescribeServiceDeploymentsOutput, error) {
	if n := len(in.ServiceDeploymentArns); n == 0 || n > maxDeployments {
		return nil, invalidParameter("serviceDeploymentArns must have between 1 and %d members, not %d.", maxDeployments, n)
	}
	v := s.store.View()
	out := &ecs.DescribeServiceDeploymentsOutput{ServiceDeployments: []types.ServiceDeployment{}, Failures: []types.Failure{}}
	for _, arn := range in.ServiceDeploymentArns {
		if r := v.ServiceDeployments.Get(arn); r != nil {
			out.ServiceDeployments = append(out.ServiceDeployments, describeDeployment(v, r))
		} else {
			out.Failures = append(out.Failures, missing(arn))
		}
	}
	return out, nil
}

// describeDeployment returns a deployment's record. If the service still has the deployment, it adds the task counts, circuit
// breaker and alarms.
func describeDeployment(v *state.View, r *state.ServiceDeployment) types.ServiceDeployment {
	out := r.ServiceDeployment
	row := v.Services.Get(*r.ServiceArn)
	if row == nil || row.Deployment(r.DeploymentID) == nil {
		addMonitors(&out)
	}
	if row == nil {
		return out
	}
	counts := countTasks(v, row)
	out.TargetServiceRevision = new(*r.TargetServiceRevision)
	if d := row.Deployment(r.DeploymentID); d != nil {
		c := counts[r.DeploymentID]
		out.TargetServiceRevision.RunningTaskCount = c.running
		out.TargetServiceRevision.PendingTaskCount = c.pending
		out.TargetServiceRevision.RequestedTaskCount = row.DesiredCount
		if out.DeploymentCircuitBreaker == nil {
			breaker := row.DeploymentConfiguration.DeploymentCircuitBreaker
			out.DeploymentCircuitBreaker = deployment.BreakerOf(breaker, int(row.DesiredCount), &d.Deployment)
		}
		if out.Alarms == nil {
			out.Alarms = row.AlarmsOf(d, nil)
		}
	}
	out.SourceServiceRevisions = slices.Clone(out.SourceServiceRevisions)
	for i, source := range out.SourceServiceRevisions {
		for _, d := range row.Deployments {
			if d.ServiceRevisionArn == *source.Arn {
				c := counts[*d.Id]
				out.SourceServiceRevisions[i].RunningTaskCount = c.running
				out.SourceServiceRevisions[i].PendingTaskCount = c.pending
			}
		}
	}
	return out
}

// addMonitors adds the circuit breaker and alarms of a deployment that its service no longer has, if it ended before they were recorded.
// Clients expect every deployment to have both.
func addMonitors(out *types.ServiceDeployment) {
	over := &state.Deployment{Deployment: types.Deployment{RolloutState: types.DeploymentRolloutStateCompleted}}
	if out.DeploymentCircuitBreaker == nil {
		breaker, desired := out.DeploymentConfiguration.DeploymentCircuitBreaker, out.TargetServiceRevision.RequestedTaskCount
		out.DeploymentCircuitBreaker = deployment.BreakerOf(breaker, int(desired), &over.Deployment)
	}
	if out.Alarms == nil {
		service := &state.Service{Service: types.Service{DeploymentConfiguration: out.DeploymentConfiguration}}
		out.Alarms = service.AlarmsOf(over, nil)
	}
}

// DescribeServiceRevisions describes service revisions. It reports revisions that don't exist as failures.
func (s *Service) DescribeServiceRevisions(
	_ context.Context, in *ecs.DescribeServiceRevisionsInput,
) (*ecs.DescribeServiceRevisionsOutput, error) {
	if n := len(in.ServiceRevisionArns); n == 0 || n > maxDeployments {
		return nil, invalidParameter("serviceRevisionArns must have between 1 and %d members, not %d.", maxDeployments, n)
	}
	v := s.store.View()
	out := &ecs.DescribeServiceRevisionsOutput{ServiceRevisions: []types.ServiceRevision{}, Failures: []types.Failure{}}
	for _, arn := range in.ServiceRevisionArns {
		if r := v.ServiceRevisions.Get(arn); r != nil {
			out.ServiceRevisions = append(out.ServiceRevisions, r.ServiceRevision)
		} else {
			out.Failures = append(out.Failures, missing(arn))
		}
	}
	return out, nil
}

// canRollBack reports whether a service has a deployment to go back to from its PRIMARY one.
func canRollBack(row *state.Service) bool {
	if shift := row.Deployments[0].Shift; shift != nil {
		return shift.Source != ""
	}
	return slices.ContainsFunc(row.Deployments, func(d state.Deployment) bool {
		return d.RolloutState == types.DeploymentRolloutStateCompleted
	})
}

// underWay returns the record of a service deployment, for a change, and its service, which is nil unless the deployment is under way.
func underWay(tx *state.Tx, arn string) (*state.ServiceDeployment, *state.Service, error) {
	record, ok := clone(tx.ServiceDeployments.Get(arn))
	if !ok {
		return nil, nil, &types.ServiceDeploymentNotFoundException{Message: account.Message("The service deployment %s was not found.", arn)}
	}
	service := tx.Services.Get(*record.ServiceArn)
	if service == nil || record.Status != types.ServiceDeploymentStatusInProgress || *service.Deployments[0].Id != record.DeploymentID {
		return record, nil, nil
	}
	return record, service, nil
}

// StopServiceDeployment asks package rollout to roll a service back from the deployment in progress to its last completed one.
func (s *Service) StopServiceDeployment(ctx context.Context, in *ecs.StopServiceDeploymentInput) (*ecs.StopServiceDeploymentOutput, error) {
	arn := aws.ToString(in.ServiceDeploymentArn)
	if arn == "" {
		return nil, invalidParameter("serviceDeploymentArn must not be empty.")
	}
	if t := in.StopType; t != "" && t != types.StopServiceDeploymentStopTypeRollback {
		return nil, invalidParameter("stopType must be ROLLBACK, not %q.", t)
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		record, old, err := underWay(tx, arn)
		if err != nil {
			return err
		}
		if old == nil {
			return &types.ConflictException{
				Message: account.Message("The service deployment %s is %s. Only an IN_PROGRESS one can be stopped.", arn, record.Status),
			}
		}
		if shift := old.Deployments[0].Shift; shift != nil && shift.Stage == types.ServiceDeploymentLifecycleStageCleanUp {
			return &types.ConflictException{
				Message: account.Message("The service deployment %s is in the stage CLEAN_UP: the tasks that it has replaced are stopping.", arn),
			}
		}
		if !canRollBack(old) {
			return &types.ConflictException{
				Message: account.Message("The service %s has no completed deployment to roll back to.", *old.ServiceName),
			}
		}
		row := old.Clone()
		row.Deployments[0].Stopped = true
		record.Status = types.ServiceDeploymentStatusRollbackRequested
		record.UpdatedAt = s.now()
		tx.Services.Put(row)
		tx.ServiceDeployments.Put(record)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.StopServiceDeploymentOutput{ServiceDeploymentArn: &arn}, nil
}

package ecs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// newTestService returns ECS over its own store, with the default cluster and the families "f" and "gpu" of two revisions each.
// No loop runs, so services stay as calls leave them.
func newTestService(t *testing.T) (*Service, *state.Store) {
	t.Helper()
	scheduler := scheduler.New(1)
	store := statetest.Open(t, scheduler)
	now := time.Now()
	tick := func() time.Time { // each call is later than the one before, however fast the disk is
		now = now.Add(time.Second)
		return now
	}
	s := New(store, scheduler, Options{Account: accounttest.New(tick)})
	if _, err := s.CreateCluster(t.Context(), &ecs.CreateClusterInput{}); err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"f", "f", "gpu", "gpu"} {
		c := types.ContainerDefinition{Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4)}
		if family == "gpu" {
			c.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}}
		}
		_, err := s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
			Family:               &family,
			ContainerDefinitions: []types.ContainerDefinition{c},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, store
}

// create creates the service "s" with a task of "f:1", unless change says otherwise.
func create(t *testing.T, s *Service, change func(*ecs.CreateServiceInput)) *types.Service {
	t.Helper()
	in := validService()
	if change != nil {
		change(in)
	}
	out, err := s.CreateService(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Service
}

func validService() *ecs.CreateServiceInput {
	return &ecs.CreateServiceInput{ServiceName: aws.String("s"), TaskDefinition: aws.String("f:1"), DesiredCount: aws.Int32(1)}
}

// complete completes the roll-out of the services' PRIMARY deployments, as the rollout loop does.
func complete(t *testing.T, store *state.Store) {
	t.Helper()
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for row := range tx.Services.All() {
			row = row.Clone()
			row.Deployments[0].RolloutState = types.DeploymentRolloutStateCompleted
			tx.Services.Put(row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expectRefused expects an AWS error with the code and a message that contains says, and that the store didn't change.
func expectRefused(t *testing.T, store *state.Store, before int64, err error, code, says string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), says) {
		t.Errorf("got %v, want %s that says %q", err, code, says)
	}
	if store.Revision() != before {
		t.Error("a refused call has changed something")
	}
}

const invalid = "InvalidParameterException"

func TestCreateServiceRefuses(t *testing.T) {
	s, store := newTestService(t)
	inZone := []types.PlacementConstraint{{
		Type:       types.PlacementConstraintTypeMemberOf,
		Expression: aws.String("attribute:ecs.availability-zone == a"),
	}}
	threshold := &types.DeploymentCircuitBreaker{ThresholdConfiguration: &types.ThresholdConfiguration{Type: types.ThresholdTypeCount}}
	deployment := func(c types.DeploymentConfiguration) func(*ecs.CreateServiceInput) {
		return func(in *ecs.CreateServiceInput) { in.DeploymentConfiguration = &c }
	}
	rebalanced := func(change func(*ecs.CreateServiceInput)) func(*ecs.CreateServiceInput) {
		return func(in *ecs.CreateServiceInput) {
			in.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingEnabled
			change(in)
		}
	}
	for name, c := range map[string]struct {
		change     func(*ecs.CreateServiceInput)
		code, says string
	}{
		"no name": {func(in *ecs.CreateServiceInput) { in.ServiceName = nil }, invalid, "serviceName"},
		"a long name": {
			func(in *ecs.CreateServiceInput) { in.ServiceName = aws.String(strings.Repeat("a", 256)) },
			invalid, "serviceName",
		},
		"a name with a slash": {func(in *ecs.CreateServiceInput) { in.ServiceName = aws.String("a/b") }, invalid, "serviceName"},
		"a long token": {
			func(in *ecs.CreateServiceInput) { in.ClientToken = aws.String(strings.Repeat("a", 37)) },
			invalid, "clientToken",
		},
		"no task definition": {func(in *ecs.CreateServiceInput) { in.TaskDefinition = nil }, invalid, "taskDefinition"},
		"an unknown definition": {
			func(in *ecs.CreateServiceInput) { in.TaskDefinition = aws.String("f:9") },
			"ClientException", "TaskDefinition",
		},
		"an unknown cluster": {func(in *ecs.CreateServiceInput) { in.Cluster = aws.String("x") }, "ClusterNotFoundException", ""},
		"no count":           {func(in *ecs.CreateServiceInput) { in.DesiredCount = nil }, invalid, "desiredCount"},
		"a negative count":   {func(in *ecs.CreateServiceInput) { in.DesiredCount = aws.Int32(-1) }, invalid, "desiredCount"},
		"a DAEMON with a count": {
			func(in *ecs.CreateServiceInput) { in.SchedulingStrategy = types.SchedulingStrategyDaemon },
			invalid, "desiredCount",
		},
		"a negative grace": {
			func(in *ecs.CreateServiceInput) { in.HealthCheckGracePeriodSeconds = aws.Int32(-1) },
			invalid, "healthCheckGracePeriodSeconds",
		},
		"over 100 percent": {
			deployment(types.DeploymentConfiguration{MinimumHealthyPercent: aws.Int32(101)}),
			invalid, "minimumHealthyPercent",
		},
		"under 100 percent": {deployment(types.DeploymentConfiguration{MaximumPercent: aws.Int32(50)}), invalid, "maximumPercent"},
		"no room to deploy": {deployment(types.DeploymentConfiguration{MaximumPercent: aws.Int32(100)}), invalid, "maximumPercent"},
		"a negative bake time": {
			deployment(types.DeploymentConfiguration{BakeTimeInMinutes: aws.Int32(-1)}),
			invalid, "bakeTimeInMinutes",
		},
		"a bake time over a day": {
			deployment(types.DeploymentConfiguration{BakeTimeInMinutes: aws.Int32(1441)}),
			invalid, "bakeTimeInMinutes",
		},
		"alarms without names": {
			deployment(types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{Enable: true}}),
			invalid, "alarmNames",
		},
		"an alarm without a name": {
			deployment(types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{AlarmNames: []string{""}}}),
			invalid, "alarmNames",
		},
		"too many alarms": {
			deployment(types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{AlarmNames: make([]string, 101)}}),
			invalid, "alarmNames",
		},
		"a threshold of 0": {
			deployment(types.DeploymentConfiguration{DeploymentCircuitBreaker: threshold}),
			invalid, "thresholdConfiguration.value",
		},
		"an unknown rebalancing": {
			func(in *ecs.CreateServiceInput) { in.AvailabilityZoneRebalancing = "ON" },
			invalid, "availabilityZoneRebalancing",
		},
		"rebalancing a DAEMON": {rebalanced(func(in *ecs.CreateServiceInput) {
			in.SchedulingStrategy = types.SchedulingStrategyDaemon
			in.DesiredCount = nil
		}), invalid, "does not support schedulingStrategy DAEMON"},
		"rebalancing without room": {rebalanced(func(in *ecs.CreateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{MinimumHealthyPercent: aws.Int32(0), MaximumPercent: aws.Int32(100)}
		}), invalid, "does not support maximumPercent <= 100%"},
		"rebalancing with binpack": {rebalanced(func(in *ecs.CreateServiceInput) {
			in.PlacementStrategy = []types.PlacementStrategy{{Type: types.PlacementStrategyTypeBinpack, Field: aws.String("memory")}}
		}), invalid, "placementStrategy"},
		"rebalancing with a constraint on zones": {
			rebalanced(func(in *ecs.CreateServiceInput) { in.PlacementConstraints = inZone }),
			invalid, "placementConstraints",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := validService()
			c.change(in)
			before := store.Revision()
			_, err := s.CreateService(t.Context(), in)
			expectRefused(t, store, before, err, c.code, c.says)
		})
	}
}

func TestRebalancingByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ecs.CreateServiceInput)
		want   types.AvailabilityZoneRebalancing
	}{
		"a service": {nil, types.AvailabilityZoneRebalancingEnabled},
		"disabled by the call": {
			func(in *ecs.CreateServiceInput) { in.AvailabilityZoneRebalancing = "DISABLED" },
			types.AvailabilityZoneRebalancingDisabled,
		},
		"spread over zones first": {func(in *ecs.CreateServiceInput) {
			in.PlacementStrategy = []types.PlacementStrategy{
				{Type: types.PlacementStrategyTypeSpread, Field: aws.String("attribute:ecs.availability-zone")},
				{Type: types.PlacementStrategyTypeRandom},
			}
		}, types.AvailabilityZoneRebalancingEnabled},
		"spread over nodes": {func(in *ecs.CreateServiceInput) {
			in.PlacementStrategy = []types.PlacementStrategy{{Type: types.PlacementStrategyTypeSpread, Field: aws.String("instanceId")}}
		}, types.AvailabilityZoneRebalancingDisabled},
		"without room": {func(in *ecs.CreateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{MinimumHealthyPercent: aws.Int32(0), MaximumPercent: aws.Int32(100)}
		}, types.AvailabilityZoneRebalancingDisabled},
		"a DAEMON": {func(in *ecs.CreateServiceInput) {
			in.SchedulingStrategy = types.SchedulingStrategyDaemon
			in.DesiredCount = nil
		}, types.AvailabilityZoneRebalancingDisabled},
		"tasks with GPUs": {
			func(in *ecs.CreateServiceInput) { in.TaskDefinition = aws.String("gpu") },
			types.AvailabilityZoneRebalancingDisabled,
		},
		"tasks with GPUs, enabled by the call": {func(in *ecs.CreateServiceInput) {
			in.TaskDefinition = aws.String("gpu")
			in.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingEnabled
		}, types.AvailabilityZoneRebalancingEnabled},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestService(t)
			if got := create(t, s, c.change).AvailabilityZoneRebalancing; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestEmptyClientToken: it is none, so it's taken, and of two calls the second isn't the first one's.
func TestEmptyClientToken(t *testing.T) {
	s, store := newTestService(t)
	empty := func(in *ecs.CreateServiceInput) { in.ClientToken = aws.String("") }
	create(t, s, empty)
	in := validService()
	empty(in)
	before := store.Revision()
	_, err := s.CreateService(t.Context(), in)
	expectRefused(t, store, before, err, invalid, "idempotent")
}

// TestCreateServiceIdempotency repeats a call, as a client does if it didn't get the answer.
func TestCreateServiceIdempotency(t *testing.T) {
	s, store := newTestService(t)
	token := func(in *ecs.CreateServiceInput) { in.ClientToken = aws.String("once") }
	first := create(t, s, token)
	if again := create(t, s, token); *again.Deployments[0].Id != *first.Deployments[0].Id {
		t.Error("a repeated call has made another deployment")
	}
	for name, change := range map[string]func(*ecs.CreateServiceInput){
		"without the token": func(*ecs.CreateServiceInput) {},
		"with another count": func(in *ecs.CreateServiceInput) {
			token(in)
			in.DesiredCount = aws.Int32(2)
		},
		"with another token": func(in *ecs.CreateServiceInput) { in.ClientToken = aws.String("twice") },
	} {
		t.Run(name, func(t *testing.T) {
			in := validService()
			change(in)
			before := store.Revision()
			_, err := s.CreateService(t.Context(), in)
			expectRefused(t, store, before, err, invalid, "idempotent")
		})
	}
}

func TestUpdateServiceRefuses(t *testing.T) {
	s, store := newTestService(t)
	create(t, s, nil)
	for name, c := range map[string]struct {
		in         ecs.UpdateServiceInput
		code, says string
	}{
		"no service":            {ecs.UpdateServiceInput{Service: aws.String("")}, invalid, "service"},
		"an unknown service":    {ecs.UpdateServiceInput{Service: aws.String("x")}, "ServiceNotFoundException", ""},
		"an unknown cluster":    {ecs.UpdateServiceInput{Cluster: aws.String("x")}, "ClusterNotFoundException", ""},
		"an empty definition":   {ecs.UpdateServiceInput{TaskDefinition: aws.String("")}, invalid, "taskDefinition"},
		"an unknown definition": {ecs.UpdateServiceInput{TaskDefinition: aws.String("f:9")}, "ClientException", "TaskDefinition"},
		"a negative count":      {ecs.UpdateServiceInput{DesiredCount: aws.Int32(-1)}, invalid, "desiredCount"},
		"a negative grace": {
			ecs.UpdateServiceInput{HealthCheckGracePeriodSeconds: aws.Int32(-1)},
			invalid, "healthCheckGracePeriodSeconds",
		},
		"no room": {
			ecs.UpdateServiceInput{DeploymentConfiguration: &types.DeploymentConfiguration{MaximumPercent: aws.Int32(100)}},
			invalid, "maximumPercent",
		},
		"alarms without names": {
			ecs.UpdateServiceInput{DeploymentConfiguration: &types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{Enable: true}}},
			invalid, "alarmNames",
		},
		"binpack with rebalancing": {
			ecs.UpdateServiceInput{
				PlacementStrategy: []types.PlacementStrategy{{Type: types.PlacementStrategyTypeBinpack, Field: aws.String("cpu")}},
			},
			invalid, "Availability Zone Rebalancing does not support",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in.Service == nil {
				c.in.Service = aws.String("s")
			}
			before := store.Revision()
			_, err := s.UpdateService(t.Context(), &c.in)
			expectRefused(t, store, before, err, c.code, c.says)
		})
	}
}

// TestUpdateServiceDeploys: only some updates start a deployment (API_UpdateService).
func TestUpdateServiceDeploys(t *testing.T) {
	for name, c := range map[string]struct {
		in      ecs.UpdateServiceInput
		deploys bool
	}{
		"another revision":  {ecs.UpdateServiceInput{TaskDefinition: aws.String("f:2")}, true},
		"the same revision": {ecs.UpdateServiceInput{TaskDefinition: aws.String("f:1")}, false},
		"force":             {ecs.UpdateServiceInput{ForceNewDeployment: true}, true},
		"a count":           {ecs.UpdateServiceInput{DesiredCount: aws.Int32(3)}, false},
		"a deployment's configuration": {
			ecs.UpdateServiceInput{DeploymentConfiguration: &types.DeploymentConfiguration{MaximumPercent: aws.Int32(150)}},
			false,
		},
		"a grace period": {ecs.UpdateServiceInput{HealthCheckGracePeriodSeconds: aws.Int32(30)}, false},
		"zone rebalancing": {
			ecs.UpdateServiceInput{AvailabilityZoneRebalancing: types.AvailabilityZoneRebalancingDisabled},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newTestService(t)
			create(t, s, nil)
			complete(t, store)
			c.in.Service = aws.String("s")
			out, err := s.UpdateService(t.Context(), &c.in)
			if err != nil {
				t.Fatal(err)
			}
			if deployed := len(out.Service.Deployments) == 2; deployed != c.deploys {
				t.Errorf("a new deployment: %t, want %t", deployed, c.deploys)
			}
		})
	}
}

// TestUpdateServiceKeeps: members that an update doesn't give keep their values.
func TestUpdateServiceKeeps(t *testing.T) {
	s, _ := newTestService(t)
	before := create(t, s, func(in *ecs.CreateServiceInput) {
		in.HealthCheckGracePeriodSeconds = aws.Int32(7)
		in.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingDisabled
		in.DeploymentConfiguration = &types.DeploymentConfiguration{
			MaximumPercent:           aws.Int32(150),
			BakeTimeInMinutes:        aws.Int32(3),
			Alarms:                   &types.DeploymentAlarms{AlarmNames: []string{"a"}, Enable: true, Rollback: true},
			DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true},
		}
	})
	out, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{
		Service:                 aws.String("s"),
		DesiredCount:            aws.Int32(5),
		DeploymentConfiguration: &types.DeploymentConfiguration{MinimumHealthyPercent: aws.Int32(50)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := *before
	c := *before.DeploymentConfiguration
	c.MinimumHealthyPercent = aws.Int32(50)
	want.DesiredCount = 5
	want.DeploymentConfiguration = &c
	want.Deployments = out.Service.Deployments
	want.CurrentServiceRevisions = out.Service.CurrentServiceRevisions
	if !reflect.DeepEqual(*out.Service, want) {
		t.Errorf("got %+v, want %+v", *out.Service, want)
	}
}

// TestAlarmsAtADeploymentsStart: a deployment doesn't watch alarms that were in ALARM before it started.
func TestAlarmsAtADeploymentsStart(t *testing.T) {
	s, store := newTestService(t)
	setAlarm := func(value cwtypes.StateValue) {
		err := store.Update(t.Context(), func(tx *state.Tx) error {
			tx.Alarms.Put(&state.Alarm{Metric: &cwtypes.MetricAlarm{AlarmName: aws.String("a"), StateValue: value}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	status := func(arn *string) types.ServiceDeploymentRollbackMonitorsStatus {
		in := &ecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*arn}}
		out, err := s.DescribeServiceDeployments(t.Context(), in)
		if err != nil || len(out.ServiceDeployments) != 1 {
			t.Fatal(out, err)
		}
		return out.ServiceDeployments[0].Alarms.Status
	}
	setAlarm(cwtypes.StateValueOk)
	row := create(t, s, func(in *ecs.CreateServiceInput) {
		in.DeploymentConfiguration = &types.DeploymentConfiguration{
			Alarms: &types.DeploymentAlarms{AlarmNames: []string{"a", "of no alarm yet"}, Enable: true},
		}
	})
	if got := status(row.CurrentServiceDeployment); got != types.ServiceDeploymentRollbackMonitorsStatusMonitoring {
		t.Errorf("the alarms are %s", got)
	}
	setAlarm(cwtypes.StateValueAlarm)
	out, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), ForceNewDeployment: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := status(out.Service.CurrentServiceDeployment); got != types.ServiceDeploymentRollbackMonitorsStatusDisabled {
		t.Errorf("the alarms are %s", got)
	}
}

// TestMonitorsOfADeploymentThatIsGone: a deployment that ended without being completed has a circuit breaker and alarms too, also when
// its service no longer has it. Clients read both without looking whether they are there.
func TestMonitorsOfADeploymentThatIsGone(t *testing.T) {
	s, store := newTestService(t)
	row := create(t, s, func(in *ecs.CreateServiceInput) {
		in.DeploymentConfiguration = &types.DeploymentConfiguration{
			Alarms:                   &types.DeploymentAlarms{AlarmNames: []string{"a"}, Enable: true},
			DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true},
		}
	})
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		gone := tx.Services.Get(*row.ServiceArn).Clone()
		gone.Deployments = nil
		tx.Services.Put(gone)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &ecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*row.CurrentServiceDeployment}}
	out, err := s.DescribeServiceDeployments(t.Context(), in)
	if err != nil || len(out.ServiceDeployments) != 1 {
		t.Fatal(out, err)
	}
	d, over := out.ServiceDeployments[0], types.ServiceDeploymentRollbackMonitorsStatusMonitoringComplete
	if b := d.DeploymentCircuitBreaker; b == nil || b.Status != over || b.Threshold != 3 {
		t.Errorf("the circuit breaker is %+v", b)
	}
	if a := d.Alarms; a == nil || a.Status != over || len(a.AlarmNames) != 1 {
		t.Errorf("the alarms are %+v", a)
	}
}

func TestDeleteService(t *testing.T) {
	s, store := newTestService(t)
	create(t, s, nil)
	for name, c := range map[string]struct {
		in         ecs.DeleteServiceInput
		code, says string
	}{
		"no service":         {ecs.DeleteServiceInput{}, invalid, "service"},
		"an unknown service": {ecs.DeleteServiceInput{Service: aws.String("x"), Force: aws.Bool(true)}, "ServiceNotFoundException", ""},
		"an unknown cluster": {ecs.DeleteServiceInput{Service: aws.String("s"), Cluster: aws.String("x")}, "ClusterNotFoundException", ""},
		"one with tasks":     {ecs.DeleteServiceInput{Service: aws.String("s")}, invalid, "scaled above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			before := store.Revision()
			_, err := s.DeleteService(t.Context(), &c.in)
			expectRefused(t, store, before, err, c.code, c.says)
		})
	}
	for range 2 { // deleting it again is allowed
		out, err := s.DeleteService(t.Context(), &ecs.DeleteServiceInput{Service: aws.String("s"), Force: aws.Bool(true)})
		if err != nil || *out.Service.Status != state.ServiceDraining || out.Service.DesiredCount != 0 {
			t.Fatal(out, err)
		}
	}
	before := store.Revision()
	_, err := s.CreateService(t.Context(), validService())
	expectRefused(t, store, before, err, invalid, "Draining")
	_, err = s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), DesiredCount: aws.Int32(1)})
	expectRefused(t, store, before, err, "ServiceNotActiveException", "")
}

// TestUpdateInactiveService: a deleted service that DescribeServices still shows can't be updated. That is API_UpdateService's
// ServiceNotActiveException.
func TestUpdateInactiveService(t *testing.T) {
	s, store := newTestService(t)
	arn := create(t, s, nil).ServiceArn
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		row := tx.Services.Get(*arn).Clone()
		row.Status = aws.String(state.ServiceInactive)
		row.Deployments = nil
		tx.Services.Put(row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := store.Revision()
	_, err = s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), DesiredCount: aws.Int32(1)})
	expectRefused(t, store, before, err, "ServiceNotActiveException", "")
}

func TestStopServiceDeployment(t *testing.T) {
	s, store := newTestService(t)
	stop := func(arn *string, how types.StopServiceDeploymentStopType) error {
		_, err := s.StopServiceDeployment(t.Context(), &ecs.StopServiceDeploymentInput{ServiceDeploymentArn: arn, StopType: how})
		return err
	}
	first := create(t, s, nil).CurrentServiceDeployment
	before := store.Revision()
	expectRefused(t, store, before, stop(nil, ""), invalid, "serviceDeploymentArn")
	expectRefused(t, store, before, stop(first, "HALT"), invalid, "stopType")
	expectRefused(t, store, before, stop(aws.String("x"), ""), "ServiceDeploymentNotFoundException", "x")
	expectRefused(t, store, before, stop(first, ""), "ConflictException", "no completed deployment")
	complete(t, store)
	out, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), ForceNewDeployment: true})
	if err != nil {
		t.Fatal(err)
	}
	second := out.Service.CurrentServiceDeployment
	before = store.Revision()
	expectRefused(t, store, before, stop(first, ""), "ConflictException", string(types.ServiceDeploymentStatusStopped))
	if err := stop(second, types.StopServiceDeploymentStopTypeRollback); err != nil {
		t.Fatal(err)
	}
	if got := store.View().ServiceDeployments.Get(*second).Status; got != types.ServiceDeploymentStatusRollbackRequested {
		t.Errorf("it is %s", got)
	}
	expectRefused(t, store, store.Revision(), stop(second, ""), "ConflictException", string(types.ServiceDeploymentStatusRollbackRequested))
}

// TestMonitoring: changing the resolution of a service's metrics starts no deployment, but shows in the next revision.
func TestMonitoring(t *testing.T) {
	s, _ := newTestService(t)
	every := func(seconds int32) *types.MonitoringConfiguration {
		return &types.MonitoringConfiguration{MetricConfigurations: []types.MetricConfiguration{
			{MetricNames: []string{"CPUUtilization"}, ResolutionSeconds: &seconds},
		}}
	}
	first := create(t, s, func(in *ecs.CreateServiceInput) { in.Monitoring = every(20) })
	out, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), Monitoring: every(60)})
	if err != nil || len(out.Service.Deployments) != 1 || *out.Service.Deployments[0].Id != *first.Deployments[0].Id {
		t.Fatalf("%v: %+v", err, out)
	}
	if _, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("s"), ForceNewDeployment: true}); err != nil {
		t.Fatal(err)
	}
	listed, err := s.ListServiceDeployments(t.Context(), &ecs.ListServiceDeploymentsInput{Service: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, d := range listed.ServiceDeployments { // newest first
		in := &ecs.DescribeServiceRevisionsInput{ServiceRevisionArns: []string{*d.TargetServiceRevisionArn}}
		r, err := s.DescribeServiceRevisions(t.Context(), in)
		if err != nil || len(r.ServiceRevisions) != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		got = append(got, *r.ServiceRevisions[0].Monitoring.MetricConfigurations[0].ResolutionSeconds)
	}
	if !reflect.DeepEqual(got, []int32{60, 20}) {
		t.Errorf("the revisions have metrics of %v seconds", got)
	}
}

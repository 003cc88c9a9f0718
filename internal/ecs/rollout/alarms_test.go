package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// alarm stores a metric alarm in a state. Its period is a minute, so it looks back two minutes, the current one
// included.
func (w *world) alarm(name string, value cwtypes.StateValue) {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		tx.Alarms.Put(&state.Alarm{Metric: &cwtypes.MetricAlarm{
			AlarmName:         &name,
			Period:            aws.Int32(60),
			EvaluationPeriods: aws.Int32(1),
			StateValue:        value,
		}})
	})
}

func watchedBy(rollback bool, names ...string) *types.DeploymentConfiguration {
	return &types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{AlarmNames: names, Enable: true, Rollback: rollback}}
}

// record returns the service's newest deployment.
func (w *world) record() types.ServiceDeployment {
	w.t.Helper()
	list, err := w.ecs.ListServiceDeployments(w.ctx, &awsecs.ListServiceDeploymentsInput{Service: aws.String("s")})
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := w.ecs.DescribeServiceDeployments(w.ctx,
		&awsecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*list.ServiceDeployments[0].ServiceDeploymentArn}})
	if err != nil || len(out.ServiceDeployments) != 1 {
		w.t.Fatal(out, err)
	}
	return out.ServiceDeployments[0]
}

func (w *world) expectRecord(status types.ServiceDeploymentStatus, alarms types.ServiceDeploymentRollbackMonitorsStatus,
	triggered ...string) {
	w.t.Helper()
	r := w.record()
	if r.Status != status || r.Alarms == nil || r.Alarms.Status != alarms || !slices.Equal(r.Alarms.TriggeredAlarmNames, triggered) {
		w.t.Errorf("the deployment is %s with %+v, want %s with %s and %v", r.Status, r.Alarms, status, alarms, triggered)
	}
}

const (
	monitoring = types.ServiceDeploymentRollbackMonitorsStatusMonitoring
	watched    = types.ServiceDeploymentRollbackMonitorsStatusMonitoringComplete
	triggered  = types.ServiceDeploymentRollbackMonitorsStatusTriggered
	disabled   = types.ServiceDeploymentRollbackMonitorsStatusDisabled
)

func TestAlarmRollsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.alarm("errors", cwtypes.StateValueOk)
		w.alarm("other", cwtypes.StateValueAlarm)
		w.create(2, func(in *awsecs.CreateServiceInput) {
			in.DeploymentConfiguration = watchedBy(true, "errors", "not there yet")
		})
		expect(t, w.after(time.Minute), 2, 0, 1, inProgress)
		w.expectRecord(types.ServiceDeploymentStatusInProgress, monitoring)
		if stage := w.record().LifecycleStage; stage != types.ServiceDeploymentLifecycleStageBakeTime {
			t.Errorf("it is in stage %s", stage)
		}
		expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
		w.expectRecord(types.ServiceDeploymentStatusSuccessful, watched)

		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(time.Minute), 2, 0, 2, inProgress) // the replaced deployment stays until this one has baked
		w.alarm("errors", cwtypes.StateValueAlarm)
		s := w.after(time.Second)
		if *s.TaskDefinition != *s.Deployments[0].TaskDefinition || s.Deployments[1].RolloutState != failed ||
			*s.Deployments[1].RolloutStateReason != "ECS deployment alarms: alarm detected." || s.Deployments[1].DesiredCount != 0 {
			t.Errorf("%+v", s.Deployments)
		}
		w.expectRecord(types.ServiceDeploymentStatusRollbackInProgress, triggered, "errors")
		s = w.after(2 * time.Minute)
		expect(t, s, 2, 0, 1, completed)
		w.expectRecord(types.ServiceDeploymentStatusRollbackSuccessful, triggered, "errors")
		if r := w.record().Rollback; r == nil || *r.Reason != "ECS deployment alarms: alarm detected." {
			t.Errorf("rolled back: %+v", r)
		}
		for _, want := range []string{"(service s) (deployment ID) deployment failed: alarm detected.",
			"(service s) rolling back to deployment ID."} {
			if !slices.Contains(events(s), want) {
				t.Errorf("no event %q in %q", want, events(s))
			}
		}

		// A deployment that starts while an alarm rings is meant to mend the cause, so alarms don't fail it.
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f:2")})
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		w.expectRecord(types.ServiceDeploymentStatusSuccessful, disabled)
	})
}

func TestAlarmWithoutRollback(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.alarm("errors", cwtypes.StateValueInsufficientData)
		w.create(2)
		w.after(time.Minute)
		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DeploymentConfiguration: watchedBy(false, "errors")})
		w.after(time.Second)
		w.alarm("errors", cwtypes.StateValueAlarm)
		s := w.after(10 * time.Minute)
		if s.Deployments[0].RolloutState != failed || s.RunningCount < 2 {
			t.Errorf("%d running, %+v", s.RunningCount, s.Deployments)
		}
		w.expectRecord(types.ServiceDeploymentStatusStopped, triggered, "errors")
	})
}

func TestBakeTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(1, func(in *awsecs.CreateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{BakeTimeInMinutes: aws.Int32(10)}
		})
		expect(t, w.after(10*time.Minute), 1, 0, 1, inProgress)
		w.report(w.ctx, w.tasks()[0], "STOPPED", aws.Int32(1)) // it's replaced before the deployment completes
		expect(t, w.after(30*time.Second), 1, 0, 1, inProgress)
		expect(t, w.after(time.Minute), 1, 0, 1, completed)
	})
}

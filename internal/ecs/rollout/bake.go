package rollout

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// Deployment alarms, and the bake time in which they go on watching a deployment whose tasks are all healthy:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-alarm-failure.html

// maxBake bounds the bake time that we derive from alarms: ECS's is less than 5 minutes.
const maxBake = 5 * time.Minute

// hasAlarms reports whether alarms can fail the PRIMARY deployment.
func (s *step) hasAlarms() bool {
	return s.row.AlarmsOf(&s.row.Deployments[0], nil).Status == types.ServiceDeploymentRollbackMonitorsStatusMonitoring
}

// checkAlarms finds the alarms that fail the PRIMARY deployment.
func (s *step) checkAlarms() deployment.Alarms {
	if !s.hasAlarms() {
		return deployment.Alarms{}
	}
	s.alarms = s.tx.TriggeredAlarms(s.row)
	return deployment.Alarms{Triggered: len(s.alarms) > 0, Rollback: s.row.DeploymentConfiguration.Alarms.Rollback}
}

// bake returns the bake time: the one that a deployment was configured with, or as long as the slowest alarm needs to see what happens now. How
// ECS derives it from alarms isn't documented.
func (s *step) bake(c *types.DeploymentConfiguration) time.Duration {
	if minutes := aws.ToInt32(c.BakeTimeInMinutes); minutes > 0 {
		return time.Duration(minutes) * time.Minute
	}
	if !s.hasAlarms() {
		return 0
	}
	var longest time.Duration
	for _, name := range s.row.DeploymentConfiguration.Alarms.AlarmNames {
		longest = max(longest, lookback(s.tx.Alarms.Get(name)))
	}
	return min(longest, maxBake)
}

// lookback returns the time that an alarm is evaluated over, plus the current period. A composite alarm, or one on
// queries, counts as five minutes.
func lookback(a *state.Alarm) time.Duration {
	switch {
	case a == nil:
		return 0
	case a.Metric == nil || a.Metric.Period == nil:
		return maxBake
	}
	return time.Duration(*a.Metric.Period) * time.Duration(aws.ToInt32(a.Metric.EvaluationPeriods)+1) * time.Second
}

// startBake begins the bake time of the PRIMARY deployment.
func (s *step) startBake() {
	d := &s.row.Deployments[0]
	d.BakesFrom = &s.now
	d.UpdatedAt = &s.now
	s.changed = true
	s.record(d, func(r *state.ServiceDeployment) { r.LifecycleStage = types.ServiceDeploymentLifecycleStageBakeTime })
}

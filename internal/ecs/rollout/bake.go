package rollout

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// Deployment alarms, and the bake time in which they go on watching a deployment that is all there:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-alarm-failure.html

// maxBake bounds the bake time that is made of alarms: ECS's is less than 5 minutes.
const maxBake = 5 * time.Minute

// watched says whether alarms can fail the PRIMARY deployment.
func (s *step) watched() bool {
	return s.row.AlarmsOf(&s.row.Deployments[0], nil).Status == types.ServiceDeploymentRollbackMonitorsStatusMonitoring
}

// watch finds the alarms that fail the PRIMARY deployment.
func (s *step) watch() deployment.Alarms {
	if !s.watched() {
		return deployment.Alarms{}
	}
	s.alarms = s.tx.TriggeredAlarms(s.row)
	return deployment.Alarms{Triggered: len(s.alarms) > 0, Rollback: s.row.DeploymentConfiguration.Alarms.Rollback}
}

// bake is the bake time: the one that was given, else as long as the slowest alarm takes to see what happens now.
// How ECS makes it of alarms is not documented.
func (s *step) bake() time.Duration {
	c := s.row.DeploymentConfiguration
	if minutes := aws.ToInt32(c.BakeTimeInMinutes); minutes > 0 {
		return time.Duration(minutes) * time.Minute
	}
	if !s.watched() {
		return 0
	}
	var longest time.Duration
	for _, name := range c.Alarms.AlarmNames {
		longest = max(longest, looksBack(s.tx.Alarms.Get(name)))
	}
	return min(longest, maxBake)
}

// looksBack is the time that an alarm is evaluated over, and the period that is under way. One that is made of
// others or of queries counts as one of five minutes.
func looksBack(a *state.Alarm) time.Duration {
	switch {
	case a == nil:
		return 0
	case a.Metric == nil || a.Metric.Period == nil:
		return maxBake
	}
	return time.Duration(*a.Metric.Period) * time.Duration(aws.ToInt32(a.Metric.EvaluationPeriods)+1) * time.Second
}

// startBake notes that the PRIMARY deployment is all there.
func (s *step) startBake() {
	d := &s.row.Deployments[0]
	d.BakesFrom, d.UpdatedAt, s.changed = &s.now, &s.now, true
	s.record(d, func(r *state.ServiceDeployment) { r.LifecycleStage = types.ServiceDeploymentLifecycleStageBakeTime })
}

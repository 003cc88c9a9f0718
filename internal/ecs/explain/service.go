package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/why"
	"github.com/pintle/pintle/internal/state"
)

// Service says why a service isn't where it should be, or that it is.
func Service(v *state.View, s *state.Service, o Options) Answer {
	q := serviceQuestion{view: v, row: s, opts: o}
	q.read()
	return Answer{Subject: "service " + *s.ServiceName, Status: aws.ToString(s.Status), Answer: q.answer()}
}

// serviceQuestion is a service with what its tasks do.
type serviceQuestion struct {
	view *state.View
	row  *state.Service
	opts Options

	running   int
	unhealthy *state.Task // one of those whose health checks fail
	waits     *state.Task // the oldest that waits for room
	starts    *state.Task // the oldest that starts
	old       int         // wanted tasks of deployments that are being replaced
}

func (q *serviceQuestion) read() {
	for t := range q.view.Tasks.By(state.TasksByService, *q.row.ServiceArn) {
		switch {
		case *t.DesiredStatus == "STOPPED":
		case t.Waiting != nil:
			q.waits = older(q.waits, t)
		case *t.LastStatus == "RUNNING":
			q.running++
			if _, unhealthy := q.view.TargetHealth(*t.TaskArn); unhealthy > 0 || t.HealthStatus == types.HealthStatusUnhealthy {
				q.unhealthy = older(q.unhealthy, t)
			}
		default:
			q.starts = older(q.starts, t)
		}
		if len(q.row.Deployments) > 0 && *t.DesiredStatus == "RUNNING" && aws.ToString(t.StartedBy) != *q.row.Deployments[0].Id {
			q.old++
		}
	}
}

func older(a, b *state.Task) *state.Task {
	if a == nil || b.CreatedAt.Before(*a.CreatedAt) {
		return b
	}
	return a
}

// answer looks for what keeps the service from its desired state, what somebody must do first.
func (q *serviceQuestion) answer() why.Answer {
	s := q.row
	has := fmt.Sprintf("%d of %d tasks run", q.running, s.DesiredCount)
	switch {
	case *s.Status == state.ServiceInactive:
		return why.Answer{Why: "It was deleted."}
	case *s.Status == state.ServiceDraining:
		return why.Answer{Why: "It is being deleted.", WaitsFor: "its tasks to stop"}
	case len(s.Deployments) == 0 && len(s.TaskSets) == 0:
		return why.Answer{Why: "Its deployment controller is EXTERNAL, and it has no task set yet.", Change: "aws ecs create-task-set"}
	case len(s.Deployments) == 0:
		return q.ofTask(has, q.worst())
	}
	d := &s.Deployments[0]
	if q.view.TaskDefinitions.Get(*d.TaskDefinition) == nil {
		return why.Answer{Why: "Its task definition " + *d.TaskDefinition + " is gone.", Change: "Update the service to one that exists."}
	}
	switch notBefore := aws.ToTime(d.NotBefore); {
	case d.Unplaced:
		a := q.unplaced(d)
		a.Why = has + ", and there is no place for another one. " + a.Why
		return a
	case notBefore.After(q.opts.Now):
		return q.delayed(has, d, notBefore)
	case d.RolloutState == types.DeploymentRolloutStateFailed:
		a := why.Answer{Why: has + ", and its deployment has failed: " + strings.TrimSuffix(aws.ToString(d.RolloutStateReason), "."), Change: "Mend the cause, and update the service."}
		q.addFailed(&a, d)
		return a
	}
	if t := q.worst(); t != nil {
		return q.ofTask(has, t)
	}
	return q.underWay(has, d)
}

// worst returns the task that says most about what is missing, or nil.
func (q *serviceQuestion) worst() *state.Task {
	for _, t := range []*state.Task{q.waits, q.unhealthy, q.starts} {
		if t != nil {
			return t
		}
	}
	return nil
}

func (q *serviceQuestion) ofTask(has string, t *state.Task) why.Answer {
	if t == nil {
		return why.Answer{Why: has + "."}
	}
	a := Task(q.view, t, q.opts)
	a.Why = has + ". Of " + a.Subject + " (" + a.Status + "): " + a.Why
	return a.Answer
}

// unplaced asks where another task could go.
func (q *serviceQuestion) unplaced(d *state.Deployment) why.Answer {
	l := rollout.LaunchOf(q.row, d, q.view.TaskDefinitions.Get(*d.TaskDefinition))
	l.CapacityProvider = capacity.Next(d.CapacityProviderStrategy, map[string]int{})
	a := question(q.view, l.Request(), nil, q.opts)
	served := map[string]bool{}
	for t := range q.view.Tasks.By(state.TasksByService, *q.row.ServiceArn) {
		served[aws.ToString(t.ContainerInstanceArn)] = served[aws.ToString(t.ContainerInstanceArn)] || t.Holds()
		a.Own = append(a.Own, state.NameOf(*t.TaskArn))
	}
	if q.row.SchedulingStrategy != types.SchedulingStrategyDaemon {
		return why.Placement(a)
	}
	a.Instances = slices.DeleteFunc(a.Instances, func(i why.Instance) bool { return served[i.Arn] })
	a.Which = "without its task"
	return why.Placement(a)
}

func (q *serviceQuestion) delayed(has string, d *state.Deployment, until time.Time) why.Answer {
	a := why.Answer{
		Why:      fmt.Sprintf("%s, and %d failed in a row", has, d.FailedTasks),
		WaitsFor: fmt.Sprintf("the next try, in %s", until.Sub(q.opts.Now).Round(time.Second)),
	}
	q.addFailed(&a, d)
	return a
}

// mayFail ends a sentence, and tells of the tasks of the deployment that have failed, if any have.
func (q *serviceQuestion) mayFail(a why.Answer, d *state.Deployment) why.Answer {
	if d.FailedTasks == 0 {
		a.Why += "."
		return a
	}
	a.Why += fmt.Sprintf("; %d failed in a row", d.FailedTasks)
	q.addFailed(&a, d)
	return a
}

// addFailed ends a sentence, and adds what the last task that has failed says, and what would help, where a deployment's tasks fail.
func (q *serviceQuestion) addFailed(a *why.Answer, d *state.Deployment) {
	a.Why += "."
	t := q.view.Tasks.Get(d.LastFailed)
	if t == nil {
		return
	}
	last := Task(q.view, t, q.opts)
	a.Why += " Of the last one, " + last.Subject + ": " + last.Why
	a.Change = cmp.Or(last.Change, "See what the task said: pintle logs "+state.NameOf(*t.TaskArn)+".")
}

// underWay says what a service whose tasks are all well is at.
func (q *serviceQuestion) underWay(has string, d *state.Deployment) why.Answer {
	desired := int(q.row.DesiredCount)
	switch {
	case d.Shift != nil && d.RolloutState == types.DeploymentRolloutStateInProgress:
		return why.Answer{Why: fmt.Sprintf("%s. Its deployment shifts traffic, and is at the stage %s since %s.", has, d.Shift.Stage, d.Shift.Since.UTC().Format(time.RFC3339)),
			WaitsFor: "the end of the stage: its tasks, its bake time, or a lifecycle hook"}
	case d.BakesFrom != nil && d.RolloutState == types.DeploymentRolloutStateInProgress:
		return why.Answer{Why: has + ", and its deployment is watched for its bake time before it's complete.", WaitsFor: "the end of the bake time"}
	case q.old > 0:
		return why.Answer{Why: fmt.Sprintf("%s, %d of them of the deployment before.", has, q.old), WaitsFor: "new tasks that count as healthy, then old ones stop"}
	case q.running < desired:
		return q.mayFail(why.Answer{Why: has, WaitsFor: "the next look at the service, which is due at once"}, d)
	case d.RolloutState == types.DeploymentRolloutStateInProgress:
		return q.mayFail(why.Answer{Why: has + ", and they don't count as healthy yet", WaitsFor: "their health checks, or that they have run for long enough"}, d)
	case desired == 0:
		return why.Answer{Why: "It wants no tasks: its desired count is 0.", Change: "Raise the desired count, or let Application Auto Scaling do so."}
	}
	return why.Answer{Why: "Nothing is missing: " + has + "."}
}

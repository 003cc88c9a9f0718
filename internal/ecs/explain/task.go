package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/why"
	"github.com/pintle/pintle/internal/state"
)

// Task says why a task is in its status.
func Task(v *state.View, t *state.Task, o Options) Answer {
	a := Answer{Subject: "task " + state.NameOf(*t.TaskArn), Status: aws.ToString(t.LastStatus)}
	switch {
	case a.Status == "STOPPED":
		a.Answer = stopped(v, t)
	case *t.DesiredStatus == "STOPPED":
		a.Answer = stopping(v, t)
	case t.Waiting != nil:
		a.Answer = waiting(v, t, o)
	case a.Status == "RUNNING":
		a.Answer = running(v, t)
	default:
		a.Answer = starting(v, t, o)
	}
	return a
}

func waiting(v *state.View, t *state.Task, o Options) why.Answer {
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return why.Answer{Why: "Its task definition " + *t.TaskDefinitionArn + " is gone.", Change: "Stop it, and run another one."}
	}
	return why.Placement(question(v, scheduler.RequestOf(td, t), t, o))
}

// stopped tells a task's end, and what its containers ended with.
func stopped(v *state.View, t *state.Task) why.Answer {
	reason := aws.ToString(t.StoppedReason)
	a := why.Answer{Why: "It has stopped: " + cmp.Or(reason, "no reason is known") + ended(t)}
	switch group, isTarget := strings.CutPrefix(reason, rollout.FailedTargetChecks); {
	case isTarget:
		addTargetChecks(&a, v, t, strings.TrimSuffix(strings.TrimPrefix(group, "(target-group "), ")"))
		return a
	case reason == rollout.FailedContainerChecks:
		addContainerChecks(&a, v, t)
		return a
	}
	for _, c := range t.Containers {
		if a.Change = remedy(c); a.Change != "" {
			break
		}
	}
	return a
}

// ended says what containers ended with, in brackets.
func ended(t *state.Task) string {
	var said []string
	for _, c := range t.Containers {
		text := ""
		if c.ExitCode != nil {
			text = fmt.Sprintf("exit code %d", *c.ExitCode)
		}
		if reason := aws.ToString(c.Reason); reason != "" {
			text = strings.TrimPrefix(text+", "+reason, ", ")
		}
		if text != "" {
			said = append(said, "container "+aws.ToString(c.Name)+": "+text)
		}
	}
	if said == nil {
		return "."
	}
	return " (" + strings.Join(said, "; ") + ")."
}

// remedy is what helps against the end of a container, if that's known.
func remedy(c types.Container) string {
	reason := aws.ToString(c.Reason)
	switch {
	case strings.HasPrefix(reason, "OutOfMemoryError"):
		return "Give container " + aws.ToString(c.Name) + " more memory."
	case strings.HasPrefix(reason, "CannotPull"):
		return "See that the image " + aws.ToString(c.Image) + " is there, and that the execution role or repositoryCredentials may pull it."
	case strings.HasPrefix(reason, "CannotStartContainer"), strings.HasPrefix(reason, "CannotCreateContainer"):
		return "See that the command, the entry point and the mounts of container " + aws.ToString(c.Name) + " exist in its image."
	case strings.HasPrefix(reason, "ResourceInitializationError"):
		return "See that the secrets, the log group and the volumes that the task names exist, and that its execution role may use them."
	}
	return ""
}

func stopping(v *state.View, t *state.Task) why.Answer {
	a := why.Answer{Why: "It is stopping: " + cmp.Or(aws.ToString(t.StoppedReason), "somebody wants it to") + "."}
	if away := awaySince(v, t); away != "" {
		a.Why += " " + away
	} else if t.Deregistering {
		a.WaitsFor = "its load balancers to let go of it: what is under way there ends first"
	} else {
		a.WaitsFor = "its containers to end, which they have stopTimeout for"
	}
	return a
}

// running says what is still missing of a task that runs.
func running(v *state.View, t *state.Task) why.Answer {
	a := why.Answer{Why: "It runs on instance " + state.NameOf(*t.ContainerInstanceArn) + "."}
	healthy, unhealthy := v.TargetHealth(*t.TaskArn)
	switch away := awaySince(v, t); {
	case away != "":
		a.Why += " " + away
	case t.HealthStatus == types.HealthStatusUnhealthy:
		a.Why = "It runs, but its containers' health checks fail."
		addContainerChecks(&a, v, t)
	case unhealthy > 0:
		a.Why = fmt.Sprintf("It runs, but its load balancers' health checks fail, at %d of its %d targets.", unhealthy, healthy+unhealthy)
		for target := range v.Targets.By(state.TargetsByTask, *t.TaskArn) {
			if target.IsUnhealthy() {
				addTargetChecks(&a, v, t, target.Group)
				break
			}
		}
	}
	return a
}

// starting says what a task that has its instance waits for there.
func starting(v *state.View, t *state.Task, o Options) why.Answer {
	instance := "instance " + state.NameOf(aws.ToString(t.ContainerInstanceArn))
	a := why.Answer{Why: "It is placed on " + instance + ", which hasn't begun with it."}
	switch away := awaySince(v, t); {
	case away != "":
		a.Why = away
		a.Change = "Start the agent of " + instance + "; a machine that stays away loses its tasks, and services start others."
	case t.PullStartedAt != nil && t.PullStoppedAt == nil:
		a.Why = fmt.Sprintf("It is placed on %s, which has been pulling its images for %s.", instance, o.Now.Sub(*t.PullStartedAt).Round(time.Second))
		a.WaitsFor = "its images"
	case t.PullStoppedAt != nil:
		a.Why = "Its images are on " + instance + ", and its containers are being started."
		a.WaitsFor = "its containers: each may wait for others by dependsOn, until they have started, are healthy or have ended"
	default:
		a.WaitsFor = "the instance's agent"
	}
	return a
}

// awaySince says that the agent of a task's instance is away, if it is.
func awaySince(v *state.View, t *state.Task) string {
	i := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
	if i == nil || i.AgentConnected {
		return ""
	}
	text := "The agent of its instance " + state.NameOf(*i.ContainerInstanceArn) + " is away"
	if i.DisconnectedAt != nil {
		text += " since " + i.DisconnectedAt.UTC().Format(time.RFC3339)
	}
	return text + "."
}

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/why"
	"github.com/pintle/pintle/internal/state"
)

// addContainerChecks adds which containers' health checks fail, what they do, and what would help.
func addContainerChecks(a *why.Answer, v *state.View, t *state.Task) {
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return
	}
	for _, c := range td.ContainerDefinitions {
		if c.HealthCheck == nil || isHealthy(t, *c.Name) {
			continue
		}
		a.Why += fmt.Sprintf(" The health check of container %s is %s, every %d s.", *c.Name, strings.Join(c.HealthCheck.Command, " "), cmp.Or(aws.ToInt32(c.HealthCheck.Interval), 30))
		if a.Change == "" {
			a.Change = fmt.Sprintf("See that this command ends with 0 in container %s within %d s, and is in its image; "+
				"if the container is slow to begin, raise its healthCheck.startPeriod, which is %d s.",
				*c.Name, cmp.Or(aws.ToInt32(c.HealthCheck.Timeout), 5), aws.ToInt32(c.HealthCheck.StartPeriod))
		}
	}
}

// isHealthy reports whether a container was healthy at last, so that another one failed.
func isHealthy(t *state.Task, name string) bool {
	return slices.ContainsFunc(t.Containers, func(c types.Container) bool {
		return aws.ToString(c.Name) == name && c.HealthStatus == types.HealthStatusHealthy
	})
}

// addTargetChecks adds what the health checks of a target group ask a task, what came of it, and what would help.
func addTargetChecks(a *why.Answer, v *state.View, t *state.Task, group string) {
	asks := "its port"
	if g := v.TargetGroups.Get(group); g != nil {
		asks = fmt.Sprintf("%s at port %s", g.HealthCheckProtocol, strings.Replace(aws.ToString(g.HealthCheckPort), "traffic-port", "of its traffic", 1))
		if path := aws.ToString(g.HealthCheckPath); path != "" {
			asks = path + " by " + asks
		}
		if g.Matcher != nil && g.Matcher.HttpCode != nil {
			asks += ", which is to answer " + *g.Matcher.HttpCode
		}
	}
	s := v.Services.Get(t.ServiceArn)
	a.Why += " The target group " + groupName(group) + " asks for " + asks
	if came := whatCame(v, s, t, group); came != "" {
		a.Why += ": " + came
	}
	a.Why += "."
	a.Change = "Mend what the task answers there, or what the target group asks: aws elbv2 modify-target-group"
	if s != nil {
		a.Change += fmt.Sprintf("; if the task is slow to begin, raise the service's healthCheckGracePeriodSeconds, which is %d",
			aws.ToInt32(s.HealthCheckGracePeriodSeconds))
	}
	a.Change += "."
}

// whatCame is what the checks of a target group said of a task, or for one that has left it, what the service's last event says of the group.
func whatCame(v *state.View, s *state.Service, t *state.Task, group string) string {
	for target := range v.Targets.By(state.TargetsByTask, *t.TaskArn) {
		if target.Group == group && target.Health != nil && target.Health.Description != nil {
			return strings.TrimSuffix(*target.Health.Description, ".")
		}
	}
	if s == nil {
		return ""
	}
	for _, e := range s.Events { // the newest first
		if _, reason, ok := strings.Cut(aws.ToString(e.Message), "(target-group "+group+") due to (reason "); ok {
			return strings.TrimRight(reason, ").")
		}
	}
	return ""
}

// groupName is the name in a target group's ARN: arn:aws:elasticloadbalancing:REGION:ACCOUNT:targetgroup/NAME/ID.
func groupName(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) > 1 {
		return parts[1]
	}
	return arn
}

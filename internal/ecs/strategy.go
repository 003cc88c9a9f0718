package ecs

import (
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/trafficshift"
	"github.com/pintle/pintle/internal/state"
)

// Deployment strategies that shift traffic: BLUE_GREEN, LINEAR and CANARY. Package trafficshift decides their steps, and package rollout
// carries them out:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-type-blue-green.html

func shiftsTraffic(c *types.DeploymentConfiguration) bool { return trafficshift.Shifts(c.Strategy) }

// The defaults and limits of API_LinearConfiguration and API_CanaryConfiguration.
const (
	defaultStepPercent   = 10.0
	defaultStepBake      = 6
	leastStepPercent     = 3.0
	defaultCanaryPercent = 5.0
	defaultCanaryBake    = 10
	leastCanaryPercent   = 0.1
)

// mergeStrategy overrides the old strategy with the given one. What belongs to another strategy goes.
func mergeStrategy(c *types.DeploymentConfiguration, in *types.DeploymentConfiguration) {
	if in.Strategy != "" && in.Strategy != c.Strategy {
		c.Strategy = in.Strategy
		c.LinearConfiguration = nil
		c.CanaryConfiguration = nil
		if !shiftsTraffic(c) {
			c.LifecycleHooks = nil
		}
	}
	if in.LifecycleHooks != nil {
		c.LifecycleHooks = in.LifecycleHooks
	}
	if in.LinearConfiguration != nil || c.Strategy == types.DeploymentStrategyLinear {
		c.LinearConfiguration = mergeLinear(c.LinearConfiguration, in.LinearConfiguration)
	}
	if in.CanaryConfiguration != nil || c.Strategy == types.DeploymentStrategyCanary {
		c.CanaryConfiguration = mergeCanary(c.CanaryConfiguration, in.CanaryConfiguration)
	}
}

func mergeLinear(old, in *types.LinearConfiguration) *types.LinearConfiguration {
	c := types.LinearConfiguration{StepPercent: aws.Float64(defaultStepPercent), StepBakeTimeInMinutes: aws.Int32(defaultStepBake)}
	for _, given := range []*types.LinearConfiguration{old, in} {
		if given != nil && given.StepPercent != nil {
			c.StepPercent = given.StepPercent
		}
		if given != nil && given.StepBakeTimeInMinutes != nil {
			c.StepBakeTimeInMinutes = given.StepBakeTimeInMinutes
		}
	}
	return &c
}

func mergeCanary(old, in *types.CanaryConfiguration) *types.CanaryConfiguration {
	c := types.CanaryConfiguration{CanaryPercent: aws.Float64(defaultCanaryPercent), CanaryBakeTimeInMinutes: aws.Int32(defaultCanaryBake)}
	for _, given := range []*types.CanaryConfiguration{old, in} {
		if given != nil && given.CanaryPercent != nil {
			c.CanaryPercent = given.CanaryPercent
		}
		if given != nil && given.CanaryBakeTimeInMinutes != nil {
			c.CanaryBakeTimeInMinutes = given.CanaryBakeTimeInMinutes
		}
	}
	return &c
}

// checkStrategy checks a service's deployment strategy, and what belongs to it.
func checkStrategy(row *types.Service) error {
	c := row.DeploymentConfiguration
	switch {
	case c.Strategy != "" && !slices.Contains(c.Strategy.Values(), c.Strategy):
		return invalidParameter("deploymentConfiguration.strategy must be one of %v, not %q.", c.Strategy.Values(), c.Strategy)
	case c.LinearConfiguration != nil && c.Strategy != types.DeploymentStrategyLinear:
		return invalidParameter("deploymentConfiguration.linearConfiguration must only be given with the strategy LINEAR.")
	case c.CanaryConfiguration != nil && c.Strategy != types.DeploymentStrategyCanary:
		return invalidParameter("deploymentConfiguration.canaryConfiguration must only be given with the strategy CANARY.")
	case !shiftsTraffic(c) && len(c.LifecycleHooks) > 0:
		return unsupported("deploymentConfiguration.lifecycleHooks: Pintle doesn't support them with the strategy ROLLING yet.")
	case shiftsTraffic(c) && isDaemon(row):
		return invalidParameter("deploymentConfiguration.strategy %s must not be given for a service with the scheduling strategy DAEMON.", c.Strategy)
	case shiftsTraffic(c) && isExternal(row.DeploymentController):
		return invalidParameter("deploymentConfiguration.strategy %s must not be given for a service with the deployment controller EXTERNAL.",
			c.Strategy)
	}
	if shiftsTraffic(c) {
		for _, b := range row.LoadBalancers {
			if b.AdvancedConfiguration == nil {
				return invalidParameter("loadBalancers.advancedConfiguration must be given with the deployment strategy %s, for target group %s too.",
					c.Strategy, aws.ToString(b.TargetGroupArn))
			}
		}
	}
	if err := checkSteps(c); err != nil {
		return err
	}
	for i := range c.LifecycleHooks {
		if err := checkHook(&c.LifecycleHooks[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkSteps checks the steps of LINEAR and CANARY.
func checkSteps(c *types.DeploymentConfiguration) error {
	if l := c.LinearConfiguration; l != nil {
		if !isPercent(*l.StepPercent, leastStepPercent) {
			return invalidParameter("deploymentConfiguration.linearConfiguration.stepPercent must be a multiple of 0.1 between %.1f and 100.0, not %v.",
				leastStepPercent, *l.StepPercent)
		}
		if n := *l.StepBakeTimeInMinutes; n < 0 || n > maxBake {
			return invalidParameter("deploymentConfiguration.linearConfiguration.stepBakeTimeInMinutes must be between 0 and %d, not %d.", maxBake, n)
		}
	}
	if l := c.CanaryConfiguration; l != nil {
		if !isPercent(*l.CanaryPercent, leastCanaryPercent) {
			return invalidParameter("deploymentConfiguration.canaryConfiguration.canaryPercent must be a multiple of 0.1 between %.1f and 100.0, not %v.",
				leastCanaryPercent, *l.CanaryPercent)
		}
		if n := *l.CanaryBakeTimeInMinutes; n < 0 || n > maxBake {
			return invalidParameter("deploymentConfiguration.canaryConfiguration.canaryBakeTimeInMinutes must be between 0 and %d, not %d.", maxBake, n)
		}
	}
	return nil
}

// isPercent reports whether a percentage is a multiple of 0.1 between least and 100.
func isPercent(p, least float64) bool {
	return p >= least && p <= 100 && math.Abs(p*10-math.Round(p*10)) < 1e-6
}

// checkAdvanced checks the form of load balancers' advanced configurations. A listener or a rule belongs to one of them, and a target group too.
func checkAdvanced(all []types.LoadBalancer) error {
	taken := map[string]bool{}
	for _, b := range all {
		a := b.AdvancedConfiguration
		if a == nil {
			continue
		}
		if aws.ToString(a.AlternateTargetGroupArn) == "" {
			return invalidParameter("loadBalancers.advancedConfiguration.alternateTargetGroupArn must not be empty.")
		}
		if aws.ToString(a.ProductionListenerRule) == "" {
			return invalidParameter("loadBalancers.advancedConfiguration.productionListenerRule must not be empty.")
		}
		for _, arn := range []*string{b.TargetGroupArn, a.AlternateTargetGroupArn, a.ProductionListenerRule, a.TestListenerRule} {
			if arn == nil {
				continue
			}
			if taken[*arn] {
				return invalidParameter("loadBalancers.advancedConfiguration: %s must not be given twice.", *arn)
			}
			taken[*arn] = true
		}
	}
	return nil
}

// resolveAdvanced checks a load balancer's advanced configuration against the target groups and listeners that there are.
func resolveAdvanced(v *state.View, b *types.LoadBalancer) error {
	a := b.AdvancedConfiguration
	if a == nil {
		return nil
	}
	g, other := v.TargetGroups.Get(*b.TargetGroupArn), v.TargetGroups.Get(*a.AlternateTargetGroupArn)
	switch {
	case other == nil:
		return invalidParameter("loadBalancers.advancedConfiguration.alternateTargetGroupArn: the target group %s does not exist.",
			*a.AlternateTargetGroupArn)
	case other.TargetType != g.TargetType || other.Protocol != g.Protocol || aws.ToString(other.ProtocolVersion) != aws.ToString(g.ProtocolVersion):
		return invalidParameter("loadBalancers.advancedConfiguration.alternateTargetGroupArn: the target group %s must have the target type and the "+
			"protocol of %s.", *a.AlternateTargetGroupArn, *b.TargetGroupArn)
	}
	if v.ForwardOf(*a.ProductionListenerRule) == nil {
		return invalidParameter("loadBalancers.advancedConfiguration.productionListenerRule: %s is neither a rule nor a network load balancer's "+
			"listener that forwards.", *a.ProductionListenerRule)
	}
	if a.TestListenerRule != nil && v.ForwardOf(*a.TestListenerRule) == nil {
		return invalidParameter("loadBalancers.advancedConfiguration.testListenerRule: %s is neither a rule nor a network load balancer's "+
			"listener that forwards.", *a.TestListenerRule)
	}
	return nil
}

// targetGroups returns where a new deployment's tasks are to be registered, for each load balancer. If traffic is to be shifted to them, that's
// another target group than the source's; otherwise it's the source's.
func targetGroups(row *state.Service, source *state.Deployment) ([]string, error) {
	used := map[string]bool{}
	if source != nil {
		for _, b := range source.Balancers() {
			used[*b.TargetGroupArn] = true
		}
	}
	groups := []string{}
	for _, b := range row.LoadBalancers {
		group := *b.TargetGroupArn
		switch a := b.AdvancedConfiguration; {
		case a == nil:
			if err := checkRemoved(&b, source); err != nil {
				return nil, err
			}
		case shiftsTraffic(row.DeploymentConfiguration) && used[group] && used[*a.AlternateTargetGroupArn]:
			return nil, invalidParameter("loadBalancers: the service's tasks are registered with both target groups, %s and %s.", group,
				*a.AlternateTargetGroupArn)
		case used[group] == shiftsTraffic(row.DeploymentConfiguration) && (used[group] || used[*a.AlternateTargetGroupArn]):
			group = *a.AlternateTargetGroupArn
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// checkRemoved refuses a load balancer without an advanced configuration whose listener sends the traffic to what was its alternate target group:
// tasks would be registered where no traffic goes.
func checkRemoved(b *types.LoadBalancer, source *state.Deployment) error {
	if source == nil {
		return nil
	}
	for i, is := range source.Balancers() {
		a := source.LoadBalancers[i].AdvancedConfiguration
		if a == nil || *is.TargetGroupArn == *b.TargetGroupArn {
			continue
		}
		if was := *source.LoadBalancers[i].TargetGroupArn; was == *b.TargetGroupArn || *a.AlternateTargetGroupArn == *b.TargetGroupArn {
			return invalidParameter("loadBalancers.targetGroupArn must be %s where no advancedConfiguration is given: the traffic goes there since "+
				"the last deployment.", *is.TargetGroupArn)
		}
	}
	return nil
}

// newShift returns how far a new deployment of a service has come, or nil for a rolling update that has nothing to clear away.
func newShift(row *state.Service, source *state.Deployment, now *state.Deployment) *state.Shift {
	unfinished := func(d state.Deployment) bool {
		return d.Shift != nil && d.RolloutState != types.DeploymentRolloutStateCompleted
	}
	if !shiftsTraffic(row.DeploymentConfiguration) && !slices.ContainsFunc(row.Deployments, unfinished) {
		return nil
	}
	shift := &state.Shift{Since: *now.CreatedAt}
	if source != nil {
		shift.Source = *source.Id
	}
	return shift
}

// resolvedConfiguration tells where a revision's tasks are registered: API_ServiceRevision.
func resolvedConfiguration(d *state.Deployment) *types.ResolvedConfiguration {
	if len(d.LoadBalancers) == 0 {
		return nil
	}
	c := &types.ResolvedConfiguration{}
	for i, b := range d.Balancers() {
		one := types.ServiceRevisionLoadBalancer{TargetGroupArn: b.TargetGroupArn}
		if a := d.LoadBalancers[i].AdvancedConfiguration; a != nil {
			one.ProductionListenerRule = a.ProductionListenerRule
		}
		c.LoadBalancers = append(c.LoadBalancers, one)
	}
	return c
}

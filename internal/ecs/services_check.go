package ecs

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/pattern"
)

// Client tokens are printable ASCII characters: up to 36 by API_CreateService and API_CreateTaskSet, 64 by API_RunTask.
// An empty one is none: Ansible's ecs_service sends it to AWS always.
var (
	clientTokens  = pattern.New(`^[!-~]+$`, 36)
	runTaskTokens = pattern.New(`^[!-~]+$`, 64)
)

// checkNewService checks a new service without looking at the store.
func checkNewService(in *ecs.CreateServiceInput) error {
	if !nameForm.MatchString(aws.ToString(in.ServiceName)) {
		return invalidParameter("serviceName %q must have up to 255 letters, numbers, hyphens and underscores.",
			aws.ToString(in.ServiceName))
	}
	if aws.ToString(in.ClientToken) != "" && !clientTokens.MatchString(*in.ClientToken) {
		return invalidParameter("clientToken must have up to 36 printable ASCII characters.")
	}
	if isExternal(in.DeploymentController) {
		if err := checkExternal(in); err != nil {
			return err
		}
	} else if aws.ToString(in.TaskDefinition) == "" {
		return invalidParameter("taskDefinition must not be empty.")
	}
	if err := checkLaunchTypeOrStrategy(in.LaunchType, in.CapacityProviderStrategy); err != nil {
		return err
	}
	if err := checkLoadBalancers(in.LoadBalancers); err != nil {
		return err
	}
	if err := checkRegistries(in.ServiceRegistries); err != nil {
		return err
	}
	if err := refuseFields([]field{
		{"vpcLatticeConfigurations", len(in.VpcLatticeConfigurations) > 0},
		{"gatewayConnectors", len(in.GatewayConnectors) > 0},
		{"role", aws.ToString(in.Role) != "" && len(in.LoadBalancers)+len(in.ServiceRegistries) == 0},
		{"deploymentController", isNotECS(in.DeploymentController) && !isExternal(in.DeploymentController)},
	}); err != nil {
		return err
	}
	if err := refuseEarlySuccess(in.DeploymentConfiguration); err != nil {
		return err
	}
	if err := checkVolumeConfigurations(taskvolume.OfService(in.VolumeConfigurations), serviceVolumeTags...); err != nil {
		return err
	}
	if err := checkServiceConnect(in.ServiceConnectConfiguration); err != nil {
		return err
	}
	if err := checkMonitoring(in.Monitoring); err != nil {
		return err
	}
	daemon := in.SchedulingStrategy == types.SchedulingStrategyDaemon
	if in.DesiredCount == nil && !daemon && !isExternal(in.DeploymentController) {
		return invalidParameter("desiredCount must be given for a service with the scheduling strategy REPLICA.")
	}
	if in.DesiredCount != nil && daemon {
		return invalidParameter("desiredCount must not be given for a service with the scheduling strategy DAEMON: it runs one task on " +
			"each instance.")
	}
	if err := checkTags(in.Tags); err != nil {
		return err
	}
	return checkService(&newService(in, "", "").Service)
}

// checkUpdate checks an update without looking at the store.
func checkUpdate(in *ecs.UpdateServiceInput) error {
	if aws.ToString(in.Service) == "" {
		return invalidParameter("service must not be empty.")
	}
	if in.TaskDefinition != nil && *in.TaskDefinition == "" {
		return invalidParameter("taskDefinition must not be empty.")
	}
	if err := checkLoadBalancers(in.LoadBalancers); err != nil {
		return err
	}
	if err := checkRegistries(in.ServiceRegistries); err != nil {
		return err
	}
	if err := refuseFields([]field{
		{"vpcLatticeConfigurations", len(in.VpcLatticeConfigurations) > 0},
		{"gatewayConnectors", len(in.GatewayConnectors) > 0},
		{"deploymentController", isNotECS(in.DeploymentController)},
	}); err != nil {
		return err
	}
	if err := checkVolumeConfigurations(taskvolume.OfService(in.VolumeConfigurations), serviceVolumeTags...); err != nil {
		return err
	}
	if err := checkServiceConnect(in.ServiceConnectConfiguration); err != nil {
		return err
	}
	if err := checkMonitoring(in.Monitoring); err != nil {
		return err
	}
	if err := checkProviderStrategy("capacityProviderStrategy", in.CapacityProviderStrategy); err != nil {
		return err
	}
	return refuseEarlySuccess(in.DeploymentConfiguration)
}

// checkMonitoring checks the resolution of metrics: API_MetricConfiguration. We keep it with the service's revisions, but it
// has no effect: Pintle keeps the metrics of all services by the second.
func checkMonitoring(c *types.MonitoringConfiguration) error {
	if c == nil {
		return nil
	}
	for _, m := range c.MetricConfigurations {
		if len(m.MetricNames) == 0 {
			return invalidParameter("monitoring.metricConfigurations.metricNames must not be empty.")
		}
		for _, name := range m.MetricNames {
			if name != "CPUUtilization" && name != "MemoryUtilization" {
				return invalidParameter("monitoring.metricConfigurations.metricNames must be CPUUtilization or MemoryUtilization, not %q.",
					name)
			}
		}
		if n := aws.ToInt32(m.ResolutionSeconds); n != 20 && n != 60 {
			return invalidParameter("monitoring.metricConfigurations.resolutionSeconds must be 20 or 60, not %d.", n)
		}
	}
	return nil
}

// field is a member of a call's input, and whether it was given.
type field struct {
	name  string
	given bool
}

// refuseFields refuses members that Pintle would have to ignore.
func refuseFields(fields []field) error {
	for _, f := range fields {
		if f.given {
			return unsupported("%s: Pintle's services do not support it yet. Leave it out.", f.name)
		}
	}
	return nil
}

func isNotECS(c *types.DeploymentController) bool {
	return c != nil && c.Type != types.DeploymentControllerTypeEcs
}

func isExternal(c *types.DeploymentController) bool {
	return c != nil && c.Type == types.DeploymentControllerTypeExternal
}

// refuseEarlySuccess refuses to call a deployment successful before all its tasks are there.
func refuseEarlySuccess(c *types.DeploymentConfiguration) error {
	return refuseFields([]field{
		{"deploymentConfiguration.earlySuccessCriteria", c != nil && c.EarlySuccessCriteria != nil && c.EarlySuccessCriteria.Enable},
	})
}

// checkService checks a new or updated service.
func checkService(row *types.Service) error {
	if s := row.SchedulingStrategy; !slices.Contains(s.Values(), s) {
		return invalidParameter("schedulingStrategy must be one of %v, not %q.", s.Values(), s)
	}
	if row.DesiredCount < 0 {
		return invalidParameter("desiredCount must not be negative.")
	}
	if aws.ToInt32(row.HealthCheckGracePeriodSeconds) < 0 {
		return invalidParameter("healthCheckGracePeriodSeconds must not be negative.")
	}
	if p := row.PropagateTags; !slices.Contains(p.Values(), p) {
		return invalidParameter("propagateTags must be one of %v, not %q.", p.Values(), p)
	}
	if isDaemon(row) && len(row.CapacityProviderStrategy) > 0 {
		return invalidParameter("capacityProviderStrategy must not be given for a service with the scheduling strategy DAEMON.")
	}
	if isDaemon(row) && len(row.PlacementStrategy) > 0 {
		return invalidParameter("placementStrategy must not be given for a service with the scheduling strategy DAEMON.")
	}
	if err := checkPlacement(row.PlacementConstraints, row.PlacementStrategy); err != nil {
		return err
	}
	if err := checkDeploymentConfiguration(row.DeploymentConfiguration); err != nil {
		return err
	}
	if err := checkStrategy(row); err != nil {
		return err
	}
	return checkRebalancing(row)
}

// zoneAttribute is the attribute with an instance's Availability Zone.
const zoneAttribute = "ecs.availability-zone"

// checkRebalancing refuses Availability Zone rebalancing for services that cannot have it:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-rebalancing.html
func checkRebalancing(row *types.Service) error {
	r := row.AvailabilityZoneRebalancing
	if !slices.Contains(r.Values(), r) {
		return invalidParameter("availabilityZoneRebalancing must be one of %v, not %q.", r.Values(), r)
	}
	if r == types.AvailabilityZoneRebalancingDisabled {
		return nil
	}
	if why := rebalancingObstacle(row); why != "" {
		return invalidParameter("Availability Zone Rebalancing does not support %s", why)
	}
	return nil
}

// rebalancingObstacle returns what rules out Availability Zone rebalancing for a service, or "".
func rebalancingObstacle(row *types.Service) string {
	switch {
	case isDaemon(row):
		return "schedulingStrategy DAEMON"
	case row.LaunchType == types.LaunchTypeExternal:
		return "launchType EXTERNAL"
	case isExternal(row.DeploymentController):
		return "deploymentController EXTERNAL"
	case *row.DeploymentConfiguration.MaximumPercent <= 100:
		return "maximumPercent <= 100%"
	case len(row.PlacementStrategy) > 0 && !spreadsZones(row.PlacementStrategy[0]):
		return "a placementStrategy whose first member is not spread over attribute:" + zoneAttribute
	case slices.ContainsFunc(row.PlacementConstraints, func(c types.PlacementConstraint) bool {
		return strings.Contains(aws.ToString(c.Expression), zoneAttribute)
	}):
		return "placementConstraints on attribute:" + zoneAttribute
	}
	return ""
}

func spreadsZones(p types.PlacementStrategy) bool {
	return p.Type == types.PlacementStrategyTypeSpread && aws.ToString(p.Field) == "attribute:"+zoneAttribute
}

// defaultDeploymentConfiguration returns the defaults of API_DeploymentConfiguration. The console's are different.
func defaultDeploymentConfiguration(s types.SchedulingStrategy) types.DeploymentConfiguration {
	c := types.DeploymentConfiguration{
		MinimumHealthyPercent:    aws.Int32(100),
		MaximumPercent:           aws.Int32(200),
		Strategy:                 types.DeploymentStrategyRolling,
		DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{},
		BakeTimeInMinutes:        aws.Int32(0),
	}
	if s == types.SchedulingStrategyDaemon {
		c.MinimumHealthyPercent = aws.Int32(0)
		c.MaximumPercent = aws.Int32(100)
	}
	return c
}

// mergeDeploymentConfiguration overrides the old configuration with the given members.
func mergeDeploymentConfiguration(old types.DeploymentConfiguration, in *types.DeploymentConfiguration) *types.DeploymentConfiguration {
	if in == nil {
		return &old
	}
	if in.MinimumHealthyPercent != nil {
		old.MinimumHealthyPercent = in.MinimumHealthyPercent
	}
	if in.MaximumPercent != nil {
		old.MaximumPercent = in.MaximumPercent
	}
	if in.DeploymentCircuitBreaker != nil {
		old.DeploymentCircuitBreaker = in.DeploymentCircuitBreaker
	}
	if in.Alarms != nil {
		old.Alarms = in.Alarms
	}
	if in.BakeTimeInMinutes != nil {
		old.BakeTimeInMinutes = in.BakeTimeInMinutes
	}
	mergeStrategy(&old, in)
	return &old
}

func checkDeploymentConfiguration(c *types.DeploymentConfiguration) error {
	low, high := *c.MinimumHealthyPercent, *c.MaximumPercent
	switch {
	case low < 0 || low > 100:
		return invalidParameter("deploymentConfiguration.minimumHealthyPercent must be between 0 and 100, not %d.", low)
	case high < 100:
		return invalidParameter("deploymentConfiguration.maximumPercent must be at least 100, not %d.", high)
	case low == 100 && high == 100:
		return invalidParameter("Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.")
	}
	if minutes := aws.ToInt32(c.BakeTimeInMinutes); minutes < 0 || minutes > maxBake {
		return invalidParameter("deploymentConfiguration.bakeTimeInMinutes must be between 0 and %d, not %d.", maxBake, minutes)
	}
	if err := checkAlarms(c.Alarms); err != nil {
		return err
	}
	t := c.DeploymentCircuitBreaker.ThresholdConfiguration
	if t == nil {
		return nil
	}
	if !slices.Contains(t.Type.Values(), t.Type) {
		return invalidParameter("deploymentConfiguration.deploymentCircuitBreaker.thresholdConfiguration.type must be one of %v, not %q.",
			t.Type.Values(), t.Type)
	}
	if t.Value < 1 {
		return invalidParameter("deploymentConfiguration.deploymentCircuitBreaker.thresholdConfiguration.value must be at least 1, not %d.",
			t.Value)
	}
	return nil
}

// maxAlarms bounds the alarms of a deployment: as many as one DescribeAlarms call, by which ECS checks them, can name.
const maxAlarms = 100

// maxBake is the longest bake time, in minutes: a day.
const maxBake = 1440

// checkAlarms checks the form of deployment alarms. The alarms needn't exist yet: templates create them after the service
// that they watch.
func checkAlarms(c *types.DeploymentAlarms) error {
	switch {
	case c == nil:
		return nil
	case len(c.AlarmNames) == 0 && c.Enable:
		return invalidParameter("deploymentConfiguration.alarms.alarmNames must not be empty where alarms are enabled.")
	case len(c.AlarmNames) > maxAlarms:
		return invalidParameter("deploymentConfiguration.alarms.alarmNames has %d members, at most %d are allowed.",
			len(c.AlarmNames), maxAlarms)
	case slices.Contains(c.AlarmNames, ""):
		return invalidParameter("deploymentConfiguration.alarms.alarmNames must not have empty members.")
	}
	return nil
}

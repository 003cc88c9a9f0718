package metering

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// namespaceGroups is the namespace of Auto Scaling groups' metrics:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-metrics.html
const namespaceGroups = "AWS/AutoScaling"

// countInstances adds the metrics of each Auto Scaling group that EnableMetricsCollection enabled.
func (m *Meter) countInstances(v *state.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for g := range v.AutoScalingGroups.All() {
		if len(g.EnabledMetrics) == 0 {
			continue
		}
		by := dimensions{metrics.Dimension{Name: "AutoScalingGroupName", Value: g.Name()}}
		for name, value := range groupSizes(v, g) {
			if g.MetricEnabled(name) {
				m.add(namespaceGroups, name, "None", value, by)
			}
		}
	}
}

// groupSizes returns a group's metrics. Every instance weighs one, so capacities equal numbers of instances.
func groupSizes(v *state.View, g *state.AutoScalingGroup) map[string]float64 {
	var all, in, pending, standby, out float64
	for i := range v.Instances.By(state.InstancesByGroup, g.Name()) {
		if i.Member.IsWarm() {
			continue
		}
		all++
		switch {
		case i.Member.IsLeaving():
			out++
		case i.Member.IsOnStandby():
			standby++
		case i.Member.LifecycleState == types.LifecycleStateInService:
			in++
		default:
			pending++
		}
	}
	sizes := map[string]float64{
		"GroupMinSize":         float64(aws.ToInt32(g.MinSize)),
		"GroupMaxSize":         float64(aws.ToInt32(g.MaxSize)),
		"GroupDesiredCapacity": float64(aws.ToInt32(g.DesiredCapacity)),

		"GroupInServiceInstances":   in,
		"GroupPendingInstances":     pending,
		"GroupStandbyInstances":     standby,
		"GroupTerminatingInstances": out,
		"GroupTotalInstances":       all,

		"GroupInServiceCapacity":   in,
		"GroupPendingCapacity":     pending,
		"GroupStandbyCapacity":     standby,
		"GroupTerminatingCapacity": out,
		"GroupTotalCapacity":       all,
	}
	if g.WarmPoolConfiguration != nil {
		maps.Copy(sizes, poolSizes(v, g))
		sizes["GroupAndWarmPoolDesiredCapacity"] = sizes["GroupDesiredCapacity"] + sizes["WarmPoolDesiredCapacity"]
		sizes["GroupAndWarmPoolTotalCapacity"] = all + sizes["WarmPoolTotalCapacity"]
	}
	return sizes
}

// poolSizes returns the metrics of a group's warm pool.
func poolSizes(v *state.View, g *state.AutoScalingGroup) map[string]float64 {
	var all, ready, pending, out float64
	for i := range v.Instances.By(state.InstancesByGroup, g.Name()) {
		if !i.Member.IsWarm() {
			continue
		}
		all++
		switch {
		case i.Member.IsLeaving():
			out++
		case i.Member.IsReady():
			ready++
		default:
			pending++
		}
	}
	return map[string]float64{
		"WarmPoolDesiredCapacity":     float64(g.WarmPoolTarget()),
		"WarmPoolWarmedCapacity":      ready,
		"WarmPoolPendingCapacity":     pending,
		"WarmPoolTerminatingCapacity": out,
		"WarmPoolTotalCapacity":       all,
	}
}

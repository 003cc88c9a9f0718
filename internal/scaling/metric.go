package scaling

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// OneOfAMetric is the message of both services' refusal of a second target tracking policy with an equal Metric.
const OneOfAMetric = "Only one TargetTrackingScaling policy for a given metric specification is allowed."

// Metric identifies the metric specification of a target tracking policy. A scalable target or Auto Scaling group has at most one
// such policy with each. The target's value and the cool-downs are no part of it.
type Metric string

// MetricOf reads the metric of a policy of a scalable target.
func MetricOf(c *types.TargetTrackingScalingPolicyConfiguration) Metric {
	if p := c.PredefinedMetricSpecification; p != nil {
		return metric(p.PredefinedMetricType, aws.ToString(p.ResourceLabel))
	}
	m := c.CustomizedMetricSpecification
	if len(m.Metrics) > 0 {
		return metric(m.Metrics)
	}
	dimensions := map[string]*string{}
	for _, d := range m.Dimensions {
		dimensions[aws.ToString(d.Name)] = d.Value
	}
	return metric(m.Namespace, m.MetricName, m.Statistic, dimensions)
}

// MetricOfGroup reads the metric of a policy of an Auto Scaling group.
func MetricOfGroup(c *grouptypes.TargetTrackingConfiguration) Metric {
	if p := c.PredefinedMetricSpecification; p != nil {
		return metric(p.PredefinedMetricType, aws.ToString(p.ResourceLabel))
	}
	m := c.CustomizedMetricSpecification
	if len(m.Metrics) > 0 {
		return metric(m.Metrics)
	}
	dimensions := map[string]*string{}
	for _, d := range m.Dimensions {
		dimensions[aws.ToString(d.Name)] = d.Value
	}
	return metric(m.Namespace, m.MetricName, m.Statistic, dimensions)
}

// metric is equal for equal parts: JSON has a map's keys in their order.
func metric(parts ...any) Metric {
	b, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings, numbers and lists of these
	}
	return Metric(b)
}

// SplitLabel splits the resource label of an ALBRequestCountPerTarget into load balancer and target group, as their metrics name them.
func SplitLabel(label string) (loadBalancer, targetGroup string, ok bool) {
	loadBalancer, rest, ok := strings.Cut(label, "/targetgroup/")
	return loadBalancer, "targetgroup/" + rest, ok && strings.HasPrefix(loadBalancer, "app/") && rest != ""
}

package metering

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/state"
)

const (
	namespaceALB = "AWS/ApplicationELB"
	namespaceNLB = "AWS/NetworkELB"
)

// loadBalancerDimension is the part of a load balancer's ARN that its metrics are found by, such as app/web/0123456789abcdef.
func loadBalancerDimension(arn string) metrics.Dimension {
	_, value, _ := strings.Cut(arn, ":loadbalancer/")
	return metrics.Dimension{Name: "LoadBalancer", Value: value}
}

// targetGroupDimension is the part of a target group's ARN that its metrics are found by, such as targetgroup/models/0123456789abcdef.
func targetGroupDimension(arn string) metrics.Dimension {
	return metrics.Dimension{Name: "TargetGroup", Value: arn[strings.LastIndexByte(arn, ':')+1:]}
}

// sampler collects samples of one time, each by one or more sets of dimensions.
type sampler struct {
	namespace string
	at        int64
	by        [][]metrics.Dimension
	out       *[]metrics.Sample
}

func (s sampler) add(name, unit string, set metrics.Set) {
	for _, by := range s.by {
		*s.out = append(*s.out, metrics.Sample{Metric: metrics.NewMetric(s.namespace, name, by...), Unit: unit, At: s.at, Fine: true, Set: set})
	}
}

func (s sampler) count(name string, n int64) {
	if n > 0 {
		s.add(name, "Count", metrics.One(float64(n)))
	}
}

// Requests returns the metrics of what a balancer process has counted: "CloudWatch metrics for your Application Load Balancer", by load balancer,
// and by load balancer and target group.
func Requests(counts []report.Count, v *state.View, at time.Time) (out []metrics.Sample) {
	for _, c := range counts {
		balancer := loadBalancerDimension(c.LoadBalancer)
		s := sampler{namespace: namespaceALB, at: at.Unix(), by: [][]metrics.Dimension{{balancer}}, out: &out}
		if strings.HasPrefix(balancer.Value, "net/") {
			s.namespace = namespaceNLB
		}
		if c.Bytes > 0 {
			s.add("ProcessedBytes", "Bytes", metrics.One(float64(c.Bytes)))
		}
		s.count("NewFlowCount", c.Flows)
		s.count("TargetConnectionErrorCount", c.NotConnected)
		if c.TargetGroup != "" {
			s.by = append(s.by, []metrics.Dimension{balancer, targetGroupDimension(c.TargetGroup)})
		}
		if s.namespace == namespaceALB {
			requests(s, &c, v)
		}
	}
	return out
}

// requests adds what application load balancers have. RequestCount has no requests that were for no target.
func requests(s sampler, c *report.Count, v *state.View) {
	if c.TargetGroup != "" {
		s.count("RequestCount", c.Requests)
	}
	for name, n := range c.Codes {
		s.count(name, n)
	}
	if len(c.Times) > 0 {
		var values []metrics.Value
		for micros, n := range c.Times {
			values = append(values, metrics.Value{Value: float64(micros) / 1e6, Count: float64(n)})
		}
		s.add("TargetResponseTime", "Seconds", metrics.Of(values))
	}
	if c.TargetGroup == "" {
		return
	}
	targets := int64(0)
	for t := range v.TargetsOf(c.TargetGroup) {
		if t.Draining == nil {
			targets++
		}
	}
	s.by = [][]metrics.Dimension{{targetGroupDimension(c.TargetGroup)}, s.by[len(s.by)-1]}
	s.add("RequestCountPerTarget", "Count", metrics.One(float64(c.Requests)/float64(max(targets, 1))))
}

// Hosts returns how many targets of each group in use are healthy, and how many not.
func Hosts(v *state.View, at time.Time) (out []metrics.Sample) {
	for group, balancers := range v.LoadBalancersOf() {
		healthy, unhealthy := 0, 0
		for t := range v.TargetsOf(group) {
			switch {
			case t.Draining != nil:
			case t.IsHealthy():
				healthy++
			case t.Health != nil && t.Health.State == types.TargetHealthStateEnumUnhealthy:
				unhealthy++
			}
		}
		for _, arn := range balancers {
			balancer := loadBalancerDimension(arn)
			s := sampler{
				namespace: namespaceALB, at: at.Unix(), out: &out,
				by: [][]metrics.Dimension{{balancer, targetGroupDimension(group)}},
			}
			if strings.HasPrefix(balancer.Value, "net/") {
				s.namespace = namespaceNLB
			}
			s.add("HealthyHostCount", "Count", metrics.One(float64(healthy)))
			s.add("UnHealthyHostCount", "Count", metrics.One(float64(unhealthy)))
		}
	}
	return out
}

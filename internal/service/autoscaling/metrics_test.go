package autoscaling

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// described is the group g, as DescribeAutoScalingGroups has it.
func (w *world) described() types.AutoScalingGroup {
	w.t.Helper()
	out, err := w.DescribeAutoScalingGroups(w.t.Context(), &api.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"g"}})
	w.must(err)
	return out.AutoScalingGroups[0]
}

func TestMetricsCollection(t *testing.T) {
	w, g := newWorld(t), aws.String("g")
	enabled := func() (names []string) {
		for _, m := range w.described().EnabledMetrics {
			if *m.Granularity != "1Minute" {
				t.Errorf("%s: %s", *m.Metric, *m.Granularity)
			}
			names = append(names, *m.Metric)
		}
		return names
	}
	enable := func(names ...string) {
		w.must(second(w.EnableMetricsCollection(t.Context(), &api.EnableMetricsCollectionInput{AutoScalingGroupName: g, Granularity: aws.String("1Minute"), Metrics: names})))
	}
	enable("GroupMinSize", "GroupMaxSize")
	enable("GroupMaxSize", "GroupTotalInstances")
	if got := enabled(); !slices.Equal(got, []string{"GroupMinSize", "GroupMaxSize", "GroupTotalInstances"}) {
		t.Errorf("enabled one after the other: %v", got)
	}
	w.must(second(w.DisableMetricsCollection(t.Context(), &api.DisableMetricsCollectionInput{AutoScalingGroupName: g, Metrics: []string{"GroupMinSize"}})))
	if got := enabled(); !slices.Equal(got, []string{"GroupMaxSize", "GroupTotalInstances"}) {
		t.Errorf("disabled: %v", got)
	}
	enable()
	kinds, err := w.DescribeMetricCollectionTypes(t.Context(), nil)
	w.must(err)
	if got := enabled(); len(got) != len(kinds.Metrics) {
		t.Errorf("all: %v", got)
	}
	w.must(second(w.DisableMetricsCollection(t.Context(), &api.DisableMetricsCollectionInput{AutoScalingGroupName: g})))
	if got := enabled(); len(got) != 0 {
		t.Errorf("disabled all: %v", got)
	}
	for name, in := range map[string]*api.EnableMetricsCollectionInput{
		"no granularity":      {AutoScalingGroupName: g},
		"another granularity": {AutoScalingGroupName: g, Granularity: aws.String("5Minute")},
		"another metric":      {AutoScalingGroupName: g, Granularity: aws.String("1Minute"), Metrics: []string{"GroupSize"}},
		"no such group":       {AutoScalingGroupName: aws.String("none"), Granularity: aws.String("1Minute")},
	} {
		if _, err := w.EnableMetricsCollection(t.Context(), in); err == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
}

// What UpdateAutoScalingGroup is given is what the group is described with.
func TestUpdateKeepsAll(t *testing.T) {
	w := newWorld(t)
	w.must(second(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("g"), CapacityRebalance: aws.Bool(true), ServiceLinkedRoleARN: aws.String("arn:aws:iam::1:role/r"),
	})))
	if g := w.described(); !aws.ToBool(g.CapacityRebalance) || *g.ServiceLinkedRoleARN != "arn:aws:iam::1:role/r" {
		t.Errorf("CapacityRebalance %v, ServiceLinkedRoleARN %s", g.CapacityRebalance, *g.ServiceLinkedRoleARN)
	}
}

// Terraform's provider sends a 0 of what a policy's type does not have.
func TestPolicyPassesOverZeros(t *testing.T) {
	w := newWorld(t)
	for _, in := range []*api.PutScalingPolicyInput{steps("steps", [3]float64{0, -1, 1}), tracking("load")} {
		in.ScalingAdjustment, in.Cooldown, in.MinAdjustmentMagnitude = aws.Int32(0), aws.Int32(0), aws.Int32(0)
		w.must(second(w.PutScalingPolicy(t.Context(), in)))
		out, err := w.DescribePolicies(t.Context(), &api.DescribePoliciesInput{PolicyNames: []string{*in.PolicyName}})
		w.must(err)
		if p := out.ScalingPolicies[0]; p.ScalingAdjustment != nil || p.Cooldown != nil || p.MinAdjustmentMagnitude != nil {
			t.Errorf("%s: %v", *in.PolicyName, p)
		}
	}
}

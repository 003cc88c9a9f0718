package autoscaling

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/wire/validation"
)

// described returns the group g from DescribeAutoScalingGroups.
func (w *world) described() types.AutoScalingGroup {
	w.t.Helper()
	out, err := w.DescribeAutoScalingGroups(w.t.Context(), &api.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"g"}})
	w.must(err)
	return out.AutoScalingGroups[0]
}

// TestListsAreThere: clients read what a group has none of without asking whether the list is there.
func TestListsAreThere(t *testing.T) {
	w := newWorld(t)
	g := w.described()
	if g.EnabledMetrics == nil || g.SuspendedProcesses == nil || g.Tags == nil || g.Instances == nil ||
		g.LoadBalancerNames == nil || g.TargetGroupARNs == nil || g.TrafficSources == nil {
		t.Errorf("a list of the group is missing: %+v", g)
	}
	_, err := w.PutScalingPolicy(t.Context(), &api.PutScalingPolicyInput{
		AutoScalingGroupName: aws.String("g"),
		PolicyName:           aws.String("p"),
		AdjustmentType:       aws.String("ChangeInCapacity"),
		ScalingAdjustment:    aws.Int32(1),
	})
	w.must(err)
	policies, err := w.DescribePolicies(t.Context(), &api.DescribePoliciesInput{})
	w.must(err)
	if p := policies.ScalingPolicies[0]; p.StepAdjustments == nil || p.Alarms == nil {
		t.Errorf("a list of the policy is missing: %+v", p)
	}
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
		w.must(errOf(w.EnableMetricsCollection(t.Context(), &api.EnableMetricsCollectionInput{
			AutoScalingGroupName: g,
			Granularity:          aws.String("1Minute"),
			Metrics:              names,
		})))
	}
	enable("GroupMinSize", "GroupMaxSize")
	enable("GroupMaxSize", "GroupTotalInstances")
	if got := enabled(); !slices.Equal(got, []string{"GroupMinSize", "GroupMaxSize", "GroupTotalInstances"}) {
		t.Errorf("enabled one after the other: %v", got)
	}
	w.must(errOf(w.DisableMetricsCollection(t.Context(), &api.DisableMetricsCollectionInput{
		AutoScalingGroupName: g,
		Metrics:              []string{"GroupMinSize"},
	})))
	if got := enabled(); !slices.Equal(got, []string{"GroupMaxSize", "GroupTotalInstances"}) {
		t.Errorf("disabled: %v", got)
	}
	enable()
	kinds, err := w.DescribeMetricCollectionTypes(t.Context(), nil)
	w.must(err)
	if got := enabled(); len(got) != len(kinds.Metrics) {
		t.Errorf("all: %v", got)
	}
	w.must(errOf(w.DisableMetricsCollection(t.Context(), &api.DisableMetricsCollectionInput{AutoScalingGroupName: g})))
	if got := enabled(); len(got) != 0 {
		t.Errorf("disabled all: %v", got)
	}
	for name, in := range map[string]*api.EnableMetricsCollectionInput{
		"no granularity":      {AutoScalingGroupName: g},
		"another granularity": {AutoScalingGroupName: g, Granularity: aws.String("5Minute")},
		"another metric":      {AutoScalingGroupName: g, Granularity: aws.String("1Minute"), Metrics: []string{"GroupSize"}},
		"no such group":       {AutoScalingGroupName: aws.String("none"), Granularity: aws.String("1Minute")},
	} {
		if _, err := validation.Checked(constraints, w.EnableMetricsCollection)(t.Context(), in); err == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
}

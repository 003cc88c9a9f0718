package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
	"github.com/pintle/pintle/internal/state"
)

// scalingView lists what scales: services and Auto Scaling groups.
func (p *Pages) scalingView() view {
	return view{
		path:  "/console/scaling",
		nav:   "Scaling",
		title: func(*visit) string { return "Scaling" },
		body:  scalingBody,
		reads: func(v *state.View) {
			watchAll(v.ScalableTargets, v.ScalingPolicies, v.AutoScalingGroups, v.Instances, v.Services)
		},
	}
}

func scalingBody(v *visit) ([]live.Fragment, error) {
	targets, err := ask[applicationautoscaling.DescribeScalableTargetsOutput](v, &applicationautoscaling.DescribeScalableTargetsInput{ServiceNamespace: scalingtypes.ServiceNamespaceEcs})
	services := []any{}
	if err != nil {
		services = append(services, failed(err))
	} else {
		var rows []markup.Node
		for _, t := range targets.ScalableTargets {
			if cluster, name, ok := serviceOf(aws.ToString(t.ResourceId)); ok {
				rows = append(rows, row(link(to("scaling", "services", cluster, name), name), cluster, aws.ToInt32(t.MinCapacity), aws.ToInt32(t.MaxCapacity)))
			}
		}
		services = append(services, table("Services that scale", columns("Service", "Cluster", "#Minimum", "#Maximum"), rows...))
	}
	groups, err := ask[autoscaling.DescribeAutoScalingGroupsOutput](v, &autoscaling.DescribeAutoScalingGroupsInput{})
	all := []any{}
	if err != nil {
		all = append(all, failed(err))
	} else {
		var rows []markup.Node
		for _, g := range groups.AutoScalingGroups {
			rows = append(rows, row(link(to("scaling", "groups", *g.AutoScalingGroupName), *g.AutoScalingGroupName), aws.ToInt32(g.MinSize),
				aws.ToInt32(g.DesiredCapacity), len(g.Instances), aws.ToInt32(g.MaxSize)))
		}
		all = append(all, table("Auto Scaling groups", columns("Group", "#Minimum", "#Desired", "#Instances", "#Maximum"), rows...))
	}
	return []live.Fragment{section("services", "Services", services...), section("groups", "Auto Scaling groups", all...)}, nil
}

// serviceOf returns the cluster and the name of a scalable target's service: service/CLUSTER/NAME.
func serviceOf(resource string) (cluster, name string, ok bool) {
	rest, ok := strings.CutPrefix(resource, "service/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// serviceScalingView shows how a service has scaled, and why.
func (p *Pages) serviceScalingView() view {
	return view{
		path:  "/console/scaling/services/{cluster}/{service}",
		title: func(v *visit) string { return "Scaling of " + v.path("service") },
		head:  chooseStretch,
		body:  serviceScalingBody,
		reads: func(v *state.View) { watchAll(v.ScalableTargets, v.ScalingPolicies, v.ScalingActivities, v.Alarms) },
		every: plotsEvery,
	}
}

// scaledService is a service and how it scales.
type scaledService struct {
	ecstypes.Service
	resource string
	targets  []scalingtypes.ScalableTarget
	policies []scalingtypes.ScalingPolicy
}

// scaledService returns the service that the path names.
func (v *visit) scaledService() (*scaledService, error) {
	cluster, name := v.path("cluster"), v.path("service")
	found, err := ask[ecs.DescribeServicesOutput](v, &ecs.DescribeServicesInput{Cluster: &cluster, Services: []string{name}})
	if err != nil {
		return nil, err
	}
	if len(found.Services) == 0 {
		return nil, errNotFound("The cluster " + cluster + " has no service " + name + ".")
	}
	s := &scaledService{Service: found.Services[0], resource: "service/" + cluster + "/" + name}
	targets, err := ask[applicationautoscaling.DescribeScalableTargetsOutput](v, &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: scalingtypes.ServiceNamespaceEcs, ResourceIds: []string{s.resource},
	})
	if err != nil {
		return nil, err
	}
	policies, err := ask[applicationautoscaling.DescribeScalingPoliciesOutput](v, &applicationautoscaling.DescribeScalingPoliciesInput{
		ServiceNamespace: scalingtypes.ServiceNamespaceEcs, ResourceId: &s.resource,
	})
	if err != nil {
		return nil, err
	}
	s.targets = targets.ScalableTargets
	s.policies = policies.ScalingPolicies
	return s, nil
}

func serviceScalingBody(v *visit) ([]live.Fragment, error) {
	service, err := v.scaledService()
	if err != nil {
		return nil, err
	}
	acts, err := ask[applicationautoscaling.DescribeScalingActivitiesOutput](v, &applicationautoscaling.DescribeScalingActivitiesInput{
		ServiceNamespace: scalingtypes.ServiceNamespaceEcs, ResourceId: &service.resource, IncludeNotScaledActivities: aws.Bool(true), MaxResults: aws.Int32(50),
	})
	if err != nil {
		return nil, err
	}
	s := v.stretch()
	cluster, name := v.path("cluster"), v.path("service")
	bounds := []fact{{"Service", link(to("services", cluster, name), name)}, {"Desired", int(service.DesiredCount)}, {"Running", int(service.RunningCount)}}
	if len(service.targets) == 0 {
		bounds = append(bounds, fact{"Scales", "no: it isn't a scalable target of Application Auto Scaling"})
	}
	for _, t := range service.targets {
		bounds = append(bounds, fact{"Minimum", int(aws.ToInt32(t.MinCapacity))}, fact{"Maximum", int(aws.ToInt32(t.MaxCapacity))})
	}
	var all []policy
	for _, p := range service.policies {
		all = append(all, policyOfService(p))
	}
	if len(service.targets) > 0 && slices.ContainsFunc(service.policies, tracks) {
		bounds = append(bounds, fact{"Replay", link(to("scaling", "services", cluster, name, "replay"), "the last hours with another policy")})
	}
	parts := []live.Fragment{section("facts", "Now", facts(bounds...)), v.serviceCounts(s, service.DesiredCount, acts.ScalingActivities)}
	return append(append(parts, v.policies(s, all)...), section("activities", "What was done, and why", serviceActivities(acts.ScalingActivities))), nil
}

// serviceCounts is the plot of a service's tasks. Container Insights counts them; what was desired is known from the activities, too.
func (v *visit) serviceCounts(s stretch, desired int32, acts []scalingtypes.ScalingActivity) live.Fragment {
	count := func(label, name string) metric {
		return metric{label: label, namespace: "ECS/ContainerInsights", name: name, by: []string{"ClusterName", v.path("cluster"), "ServiceName", v.path("service")}, stat: "Maximum", steps: true}
	}
	lines, err := v.lines(s, count("desired", "DesiredTaskCount"), count("running", "RunningTaskCount"))
	d := drawing{id: "tasks-over-time", title: "Tasks", marks: "scaled", Plot: plot.Plot{From: s.from, To: s.to, Lines: lines}}
	var set []plot.Point
	for _, a := range acts {
		row := v.view().ScalingActivities.Get(aws.ToString(a.ActivityId))
		if row == nil || row.Desired == nil || a.StartTime.Before(s.from) {
			continue
		}
		d.Marks = append(d.Marks, *a.StartTime)
		set = append(set, plot.Point{At: *a.StartTime, Value: float64(*row.Desired)})
	}
	var more []any
	if err == nil && len(lines) > 0 && len(lines[0].Points) == 0 {
		slices.Reverse(set)
		d.Lines[0].Points = append(set, plot.Point{At: s.to, Value: float64(desired)})
		d.Lines[0].Gap = 0
		more = append(more, markup.E("p", markup.Class("none"), "What was desired is drawn as Application Auto Scaling set it. All counts are kept where the cluster has Container Insights."))
	}
	return plots("counts", "Desired and running", []drawing{d}, err, more...)
}

func serviceActivities(acts []scalingtypes.ScalingActivity) markup.Node {
	var rows []markup.Node
	for _, a := range acts {
		why := aws.ToString(a.Cause)
		for _, r := range a.NotScaledReasons {
			why += " Not scaled: " + aws.ToString(r.Code) + "."
		}
		rows = append(rows, row(moment(a.StartTime), aws.ToString(a.Description), status(string(a.StatusCode)), aws.ToString(a.StatusMessage), why))
	}
	return table("Scaling activities, the newest first", columns("When", "What", "Status", "How it went", "Why"), rows...)
}

// policy is a scaling policy, whichever of the two services has it.
type policy struct {
	name   string
	kind   string
	target *float64
	alarms []string
}

func policyOfService(p scalingtypes.ScalingPolicy) policy {
	out := policy{name: aws.ToString(p.PolicyName), kind: string(p.PolicyType)}
	if c := p.TargetTrackingScalingPolicyConfiguration; c != nil {
		out.target = c.TargetValue
	}
	for _, a := range p.Alarms {
		out.alarms = append(out.alarms, aws.ToString(a.AlarmName))
	}
	return out
}

func policyOfGroup(p grouptypes.ScalingPolicy) policy {
	out := policy{name: aws.ToString(p.PolicyName), kind: aws.ToString(p.PolicyType)}
	if c := p.TargetTrackingConfiguration; c != nil {
		out.target = c.TargetValue
	}
	for _, a := range p.Alarms {
		out.alarms = append(out.alarms, aws.ToString(a.AlarmName))
	}
	return out
}

// policies shows each policy's metric beside what it aims for, and when its alarms went off.
func (v *visit) policies(s stretch, all []policy) []live.Fragment {
	if len(all) == 0 {
		return []live.Fragment{section("policies", "Policies", markup.E("p", markup.Class("none"), "None."))}
	}
	var parts []live.Fragment
	for i, p := range all {
		parts = append(parts, v.policy(fmt.Sprintf("policy-%d", i), s, p))
	}
	return parts
}

func (v *visit) policy(id string, s stretch, p policy) live.Fragment {
	title := "Policy " + p.name
	d := drawing{id: id + "-plot", title: title, Plot: plot.Plot{From: s.from, To: s.to}, unit: p.kind}
	if p.target != nil {
		d.Levels = append(d.Levels, plot.Level{Name: "target", Value: *p.target})
	}
	alarms, err := v.alarms(p.alarms)
	if err != nil || len(alarms) == 0 {
		return plots(id, title, nil, err, markup.E("p", markup.Class("none"), "It has no alarm."))
	}
	var rows []markup.Node
	for n, a := range alarms {
		spans, err := v.alarmSpans(s, a)
		if err != nil {
			return plots(id, title, nil, err)
		}
		for _, span := range spans {
			span.Row = n
			d.Spans = append(d.Spans, span)
		}
		if len(spans) > 0 {
			d.spans = append(d.spans, "ALARM of "+aws.ToString(a.AlarmName))
		}
		if p.target == nil && a.Threshold != nil {
			d.Levels = append(d.Levels, plot.Level{Name: "threshold of " + aws.ToString(a.AlarmName), Value: *a.Threshold})
		}
		rows = append(rows, row(aws.ToString(a.AlarmName), status(string(a.StateValue)), moment(a.StateTransitionedTimestamp), condition(a), aws.ToString(a.StateReason)))
	}
	d.Lines, err = v.answers(s, queriesOf(alarms[0], s.period))
	for i := range d.Lines {
		if len(d.Lines) == 1 && alarms[0].MetricName != nil {
			d.Lines[i].Name = *alarms[0].MetricName
		}
	}
	return plots(id, title, []drawing{d}, err, table("Alarms of "+p.name, columns("Alarm", "State", "Since", "Goes off", "Reason"), rows...))
}

// alarms returns metric alarms by their names, the one that scales out first.
func (v *visit) alarms(names []string) ([]types.MetricAlarm, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := ask[cloudwatch.DescribeAlarmsOutput](v, &cloudwatch.DescribeAlarmsInput{AlarmNames: names})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.MetricAlarms, func(a, b types.MetricAlarm) int {
		return cmp.Compare(slices.Index(names, *a.AlarmName), slices.Index(names, *b.AlarmName))
	})
	return out.MetricAlarms, nil
}

// condition says when an alarm goes off.
func condition(a types.MetricAlarm) string {
	if a.Threshold == nil {
		return string(a.ComparisonOperator)
	}
	return fmt.Sprintf("%s %s for %d × %d s", a.ComparisonOperator, short(*a.Threshold), aws.ToInt32(a.EvaluationPeriods), aws.ToInt32(a.Period))
}

// queriesOf returns what an alarm looks at, with points as far apart as they are drawn.
func queriesOf(a types.MetricAlarm, period time.Duration) []types.MetricDataQuery {
	seconds := aws.Int32(int32(max(period, time.Duration(aws.ToInt32(a.Period))*time.Second) / time.Second))
	if len(a.Metrics) == 0 {
		stat := string(a.Statistic)
		if a.ExtendedStatistic != nil {
			stat = *a.ExtendedStatistic
		}
		return []types.MetricDataQuery{{Id: aws.String("m0"), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: a.Namespace, MetricName: a.MetricName, Dimensions: a.Dimensions}, Stat: &stat, Period: seconds, Unit: a.Unit,
		}}}
	}
	queries := slices.Clone(a.Metrics)
	for i, q := range queries {
		if q.MetricStat != nil {
			stat := *q.MetricStat
			stat.Period = aws.Int32(max(aws.ToInt32(stat.Period), *seconds))
			queries[i].MetricStat = &stat
		}
	}
	return queries
}

// alarmSpans returns when an alarm was in the state ALARM.
func (v *visit) alarmSpans(s stretch, a types.MetricAlarm) ([]plot.Span, error) {
	out, err := ask[cloudwatch.DescribeAlarmHistoryOutput](v, &cloudwatch.DescribeAlarmHistoryInput{
		AlarmName: a.AlarmName, HistoryItemType: types.HistoryItemTypeStateUpdate, StartDate: &s.from, EndDate: &s.to, ScanBy: types.ScanByTimestampDescending,
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out.AlarmHistoryItems)
	return spansOf(out.AlarmHistoryItems, a.StateValue == types.StateValueAlarm, s.from, s.to), nil
}

// spansOf returns the times in the state ALARM, by an alarm's history between two times, oldest first, and by whether it's in that state at the end.
func spansOf(history []types.AlarmHistoryItem, atEnd bool, from, to time.Time) (spans []plot.Span) {
	since := from
	in := atEnd && len(history) == 0
	for i, h := range history {
		before, after, ok := strings.Cut(strings.TrimPrefix(aws.ToString(h.HistorySummary), "Alarm updated from "), " to ")
		if !ok {
			continue
		}
		if i == 0 {
			in = before == string(types.StateValueAlarm)
		}
		if in {
			spans = append(spans, plot.Span{From: since, To: *h.Timestamp})
		}
		since, in = *h.Timestamp, after == string(types.StateValueAlarm)
	}
	if in {
		spans = append(spans, plot.Span{From: since, To: to})
	}
	return spans
}

// groupView shows how an Auto Scaling group has scaled, and why.
func (p *Pages) groupView() view {
	return view{
		path:  "/console/scaling/groups/{group}",
		title: func(v *visit) string { return "Scaling of " + v.path("group") },
		head:  chooseStretch,
		body:  groupBody,
		reads: func(v *state.View) { watchAll(v.AutoScalingGroups, v.GroupActivities, v.GroupPolicies, v.Alarms) },
		every: plotsEvery,
	}
}

// scaledGroup returns the Auto Scaling group that the path names, and its policies.
func (v *visit) scaledGroup() (*grouptypes.AutoScalingGroup, []grouptypes.ScalingPolicy, error) {
	name := v.path("group")
	found, err := ask[autoscaling.DescribeAutoScalingGroupsOutput](v, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil {
		return nil, nil, err
	}
	if len(found.AutoScalingGroups) == 0 {
		return nil, nil, errNotFound("There is no Auto Scaling group " + name + ".")
	}
	policies, err := ask[autoscaling.DescribePoliciesOutput](v, &autoscaling.DescribePoliciesInput{AutoScalingGroupName: &name})
	if err != nil {
		return nil, nil, err
	}
	return &found.AutoScalingGroups[0], policies.ScalingPolicies, nil
}

func groupBody(v *visit) ([]live.Fragment, error) {
	name := v.path("group")
	g, policies, err := v.scaledGroup()
	if err != nil {
		return nil, err
	}
	acts, err := ask[autoscaling.DescribeScalingActivitiesOutput](v, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name})
	if err != nil {
		return nil, err
	}
	var all []policy
	for _, p := range policies {
		all = append(all, policyOfGroup(p))
	}
	s := v.stretch()
	now := []fact{
		{"Minimum", int(aws.ToInt32(g.MinSize))}, {"Desired", int(aws.ToInt32(g.DesiredCapacity))},
		{"Instances", len(g.Instances)}, {"Maximum", int(aws.ToInt32(g.MaxSize))},
	}
	if slices.ContainsFunc(policies, tracksGroup) {
		now = append(now, fact{"Replay", link(to("scaling", "groups", name, "replay"), "the last hours with another policy")})
	}
	parts := []live.Fragment{
		section("facts", "Now", facts(now...)),
		v.groupCounts(s, *g, acts.Activities),
	}
	return append(append(parts, v.policies(s, all)...), section("activities", "What was done, and why", groupActivities(acts.Activities))), nil
}

// groupCounts is the plot of a group's instances, by its metrics where they are collected, else by its activities.
func (v *visit) groupCounts(s stretch, g grouptypes.AutoScalingGroup, acts []grouptypes.Activity) live.Fragment {
	count := func(label, name string) metric {
		return metric{label: label, namespace: "AWS/AutoScaling", name: name, by: []string{"AutoScalingGroupName", v.path("group")}, stat: "Maximum", steps: true}
	}
	d := drawing{id: "instances-over-time", title: "Instances", marks: "scaled", Plot: plot.Plot{From: s.from, To: s.to}}
	lines, err := v.lines(s, count("desired", "GroupDesiredCapacity"), count("in service", "GroupInServiceInstances"))
	d.Lines = lines
	for _, a := range acts {
		if a.StartTime.After(s.from) {
			d.Marks = append(d.Marks, *a.StartTime)
		}
	}
	var more []any
	if len(g.EnabledMetrics) == 0 && err == nil {
		d.Lines = []plot.Line{{Name: "instances", Steps: true, Points: instancesOver(s, acts, len(g.Instances))}}
		more = append(more, markup.E("p", markup.Class("none"), "Drawn from the last 100 activities. EnableMetricsCollection has CloudWatch keep what is desired and in service."))
	}
	return plots("counts", "Desired and running", []drawing{d}, err, more...)
}

// instancesOver returns how many instances a group had, by its activities, newest first, and by how many it has at the end.
func instancesOver(s stretch, acts []grouptypes.Activity, now int) []plot.Point {
	points := []plot.Point{{At: s.to, Value: float64(now)}}
	count := now
	for _, a := range acts {
		change := 0
		switch {
		case a.StatusCode != grouptypes.ScalingActivityStatusCodeSuccessful || a.EndTime == nil:
		case strings.HasPrefix(aws.ToString(a.Description), "Launching "):
			change = 1
		case strings.HasPrefix(aws.ToString(a.Description), "Terminating "):
			change = -1
		}
		if change == 0 {
			continue
		}
		if a.EndTime.Before(s.from) {
			break
		}
		points = append(points, plot.Point{At: *a.EndTime, Value: float64(count)})
		count = max(0, count-change)
	}
	points = append(points, plot.Point{At: s.from, Value: float64(count)})
	slices.Reverse(points)
	return points
}

func groupActivities(acts []grouptypes.Activity) markup.Node {
	var rows []markup.Node
	for _, a := range acts[:min(len(acts), 50)] {
		rows = append(rows, row(moment(a.StartTime), aws.ToString(a.Description), status(string(a.StatusCode)), aws.ToString(a.StatusMessage), aws.ToString(a.Cause)))
	}
	return table("Scaling activities, the newest first", columns("When", "What", "Status", "How it went", "Why"), rows...)
}

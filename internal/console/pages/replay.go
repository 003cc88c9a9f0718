package pages

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
	"github.com/pintle/pintle/internal/scaling/hindsight"
)

const (
	// longestReplay is the most hours of a replay, and longestFine the most by periods of less than a minute: CloudWatch keeps those for three hours.
	longestReplay, longestFine = 24, 3
	// mostTasks is ECS's quota of a service.
	mostTasks = 5000
	// leastOfReplay is how many periods a replay takes at least, and knownOfReplay which part of them CloudWatch must know.
	leastOfReplay, knownOfReplay = 20, 0.9
)

// replayView shows what a service or an Auto Scaling group would have done under another target tracking policy.
func (p *Pages) replayView(path string) view {
	return view{
		path:  path,
		title: func(v *visit) string { return "Replay of " + v.path("service") + v.path("group") },
		head:  replayHead,
		body:  replayBody,
		every: time.Minute,
	}
}

// tracks reports whether a policy is one that can be replayed.
func tracks(p scalingtypes.ScalingPolicy) bool {
	return p.TargetTrackingScalingPolicyConfiguration != nil
}

func tracksGroup(p grouptypes.ScalingPolicy) bool { return p.TargetTrackingConfiguration != nil }

// replayed is a policy of a service or a group that can be replayed.
type replayed struct {
	name   string
	alarms []string
	is     hindsight.Policy
}

// words are what a replay calls what is scaled.
type words struct {
	one, many string
	counted   string // those that the load is of
	advice    string // how they get counted
}

// replaying is what a form asks to replay.
type replaying struct {
	words
	replayed
	policies []replayed // that there are to choose from
	count    metric     // how many of them ran
	hours    int
	typed    hindsight.Policy
}

// ofService is a replay of the service that the path names.
func (v *visit) ofService() (*replaying, error) {
	s, err := v.scaledService()
	if err != nil {
		return nil, err
	}
	r := &replaying{words: words{"task", "tasks", "running tasks",
		"It keeps one where the cluster has Container Insights: aws ecs update-cluster-settings --settings name=containerInsights,value=enabled."}}
	r.count = metric{label: "running", namespace: "ECS/ContainerInsights", name: "RunningTaskCount", by: []string{"ClusterName", v.path("cluster"), "ServiceName", v.path("service")}, stat: "Average"}
	for _, p := range s.policies {
		if tracks(p) && len(s.targets) > 0 {
			of := policyOfService(p)
			is := hindsight.PolicyOf(p.TargetTrackingScalingPolicyConfiguration, s.targets[0])
			is.Start = time.Minute
			r.policies = append(r.policies, replayed{of.name, of.alarms, is})
		}
	}
	return r, nil
}

// ofGroup is a replay of the Auto Scaling group that the path names.
func (v *visit) ofGroup() (*replaying, error) {
	g, policies, err := v.scaledGroup()
	if err != nil {
		return nil, err
	}
	r := &replaying{words: words{"instance", "instances", "instances in service",
		"It keeps one where the group's metrics are collected: aws autoscaling enable-metrics-collection --granularity 1Minute."}}
	r.count = metric{label: "in service", namespace: "AWS/AutoScaling", name: "GroupInServiceInstances", by: []string{"AutoScalingGroupName", v.path("group")}, stat: "Average"}
	for _, p := range policies {
		if tracksGroup(p) {
			of := policyOfGroup(p)
			is := hindsight.PolicyOfGroup(&p, g)
			is.Start = 2 * time.Minute
			r.policies = append(r.policies, replayed{of.name, of.alarms, is})
		}
	}
	return r, nil
}

// replaying reads the form. What isn't filled in is as the service or the group has it.
func (v *visit) replaying() (*replaying, error) {
	read := v.ofService
	if v.path("group") != "" {
		read = v.ofGroup
	}
	r, err := read()
	if err != nil {
		return nil, err
	}
	if len(r.policies) == 0 {
		return nil, errNotFound(v.path("service") + v.path("group") + " has no target tracking policy: only those can be replayed.")
	}
	r.replayed = r.policies[0]
	for _, p := range r.policies {
		if p.name == v.query("policy") {
			r.replayed = p
		}
	}
	r.typed = r.is
	form := queryForm{v: v}
	r.hours = form.number("hours", 1, 1, longestReplay)
	r.typed.Min = form.number("min", r.is.Min, 0, mostTasks)
	r.typed.Max = form.number("max", r.is.Max, max(1, r.typed.Min), mostTasks)
	r.typed.ScaleOutCooldown = form.seconds("out", r.is.ScaleOutCooldown)
	r.typed.ScaleInCooldown = form.seconds("in", r.is.ScaleInCooldown)
	r.typed.Warmup = form.seconds("warmup", r.is.Warmup)
	r.typed.Start = form.seconds("start", r.is.Start)
	r.is.Start = r.typed.Start
	r.typed.TargetValue = form.decimal("target", r.is.TargetValue)
	return r, form.err
}

// queryForm reads the values of an address, and keeps what was wrong first.
type queryForm struct {
	v   *visit
	err error
}

func (f *queryForm) number(name string, otherwise, least, most int) int {
	text := f.v.query(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if (err != nil || n < least || n > most) && f.err == nil {
		f.err = errBadForm(fmt.Sprintf("%s must be a whole number from %d to %d, not %q.", name, least, most, text))
	}
	return n
}

func (f *queryForm) seconds(name string, otherwise time.Duration) time.Duration {
	return time.Duration(f.number(name, int(otherwise.Seconds()), 0, longestReplay*3600)) * time.Second
}

func (f *queryForm) decimal(name string, otherwise float64) float64 {
	text := f.v.query(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseFloat(text, 64)
	if (err != nil || !(n > 0 && n <= math.MaxInt32)) && f.err == nil {
		f.err = errBadForm(fmt.Sprintf("%s must be a number above 0, not %q.", name, text))
	}
	return n
}

// replayHead is the form. It isn't kept up to date, so nobody's typing is lost.
func replayHead(v *visit) (markup.Node, error) {
	r, err := v.replaying()
	if err != nil {
		return nil, err
	}
	var options []markup.Node
	for _, p := range r.policies {
		options = append(options, markup.E("option", markup.A("value", p.name), markup.If("selected", p.name == r.name), p.name))
	}
	whole := func(label, name string, value int, least, most int) markup.Node {
		return field(label, name, "number", strconv.Itoa(value), markup.A("min", strconv.Itoa(least)), markup.A("max", strconv.Itoa(most)), markup.If("required", true))
	}
	day := longestReplay * 3600
	waits := markup.Group{
		whole("Scale-out cool-down (s)", "out", int(r.typed.ScaleOutCooldown.Seconds()), 0, day),
		whole("Scale-in cool-down (s)", "in", int(r.typed.ScaleInCooldown.Seconds()), 0, day),
	}
	if r.is.Group {
		waits = markup.Group{whole("Warm-up (s)", "warmup", int(r.typed.Warmup.Seconds()), 0, day)}
	}
	return markup.E("form", markup.Class("tools"), markup.A("method", "get"),
		whole("Hours", "hours", r.hours, 1, longestReplay),
		markup.E("label", "Policy ", markup.E("select", markup.A("name", "policy"), options)),
		field("Target", "target", "number", number(r.typed.TargetValue), markup.A("min", "0"), markup.A("step", "any"), markup.If("required", true)),
		waits,
		whole("Minimum", "min", r.typed.Min, 0, mostTasks),
		whole("Maximum", "max", r.typed.Max, 1, mostTasks),
		whole("Start of each "+r.one+" (s)", "start", int(r.typed.Start.Seconds()), 0, day),
		markup.E("button", "Replay"),
	), nil
}

func replayBody(v *visit) ([]live.Fragment, error) {
	r, err := v.replaying()
	if err != nil {
		return nil, err
	}
	past, err := v.past(r)
	if err != nil {
		return []live.Fragment{section("replay", "Replay", failed(err))}, nil
	}
	return []live.Fragment{past.replayed(r), section("assumptions", "What it assumes", past.assumptions(r))}, nil
}

// past is what CloudWatch keeps of a service, and how it's to be seen.
type past struct {
	hindsight.History
	metric    string
	full      float64 // the most that the metric can be
	saturated int     // in how many periods it was that
	atZero    bool    // the metric is known without tasks, too
}

// past reads what was, and tells the policies how their alarms see it. It refuses what isn't known well enough.
func (v *visit) past(r *replaying) (*past, error) {
	alarms, err := v.alarms(r.alarms)
	if err != nil {
		return nil, err
	}
	high := slices.IndexFunc(alarms, func(a types.MetricAlarm) bool {
		return a.ComparisonOperator == types.ComparisonOperatorGreaterThanThreshold
	})
	if high < 0 {
		return nil, errNotFound("The policy's alarms are gone, and they say what its metric is.")
	}
	for _, p := range []*hindsight.Policy{&r.is, &r.typed} {
		p.Out, p.In = int(aws.ToInt32(alarms[high].EvaluationPeriods)), 1
		for _, a := range alarms {
			if a.ComparisonOperator == types.ComparisonOperatorLessThanThreshold {
				p.In = int(aws.ToInt32(a.EvaluationPeriods))
			}
		}
	}
	queries := queriesOf(alarms[high], 0)
	s := v.stretchOfReplay(r.hours, queries)
	if err := mayReplay(s, queries, r.is.Group); err != nil {
		return nil, err
	}
	values, err := v.answers(s, queries)
	if err != nil {
		return nil, err
	}
	running, err := v.lines(s, r.count)
	if err != nil {
		return nil, err
	}
	if len(values) != 1 || len(running) != 1 {
		return nil, errNotFound("CloudWatch doesn't say how the policy's metric and its " + r.many + " were.")
	}
	p := &past{metric: aws.ToString(alarms[high].MetricName)}
	p.History = hindsight.History{From: s.from, Period: s.period, Metric: onGrid(values[0], s), Running: onGrid(running[0], s)}
	return p, p.isEnough(r.words)
}

// stretchOfReplay is the last hours, by the periods of queries.
func (v *visit) stretchOfReplay(hours int, queries []types.MetricDataQuery) stretch {
	s := stretch{length: time.Duration(hours) * time.Hour, period: time.Second}
	for _, q := range queries {
		seconds := aws.ToInt32(q.Period)
		if q.MetricStat != nil {
			seconds = max(seconds, aws.ToInt32(q.MetricStat.Period))
		}
		s.period = max(s.period, time.Duration(seconds)*time.Second)
	}
	s.to = v.pages.opts.Now().UTC().Truncate(s.period)
	s.from = s.to.Add(-s.length)
	return s
}

// mayReplay refuses what CloudWatch doesn't keep so long, and what isn't decided by alarms alone.
func mayReplay(s stretch, queries []types.MetricDataQuery, isGroup bool) error {
	if s.period >= time.Minute {
		return nil
	}
	if s.length > longestFine*time.Hour {
		return errBadForm(fmt.Sprintf("The policy's alarms look every %v, and CloudWatch keeps values that close together for three hours: replay no more than three.", s.period))
	}
	for _, q := range queries {
		if !isGroup && q.MetricStat != nil && aws.ToString(q.MetricStat.Metric.Namespace) == "AWS/SQS" {
			return errBadForm("With --reaction fast, a policy on a queue looks ahead at the queue itself, which a replay of its alarms doesn't show.")
		}
	}
	return nil
}

// onGrid returns a line's values by period, NaN where there is none.
func onGrid(l plot.Line, s stretch) []float64 {
	all := make([]float64, s.length/s.period)
	for i := range all {
		all[i] = math.NaN()
	}
	for _, p := range l.Points {
		if i := int(p.At.Sub(s.from) / s.period); !p.At.Before(s.from) && i < len(all) {
			all[i] = p.Value
		}
	}
	return all
}

// isEnough begins the history where it's first known how many ran, and refuses one that is too short or has too many holes.
func (p *past) isEnough(w words) error {
	first := slices.IndexFunc(p.Running, func(n float64) bool { return !math.IsNaN(n) })
	if first < 0 {
		return errNotFound("CloudWatch has no count of its " + w.counted + " in this time. " + w.advice)
	}
	p.From = p.From.Add(time.Duration(first) * p.Period)
	p.Metric, p.Running = p.Metric[first:], p.Running[first:]
	ran, known, counted := 0, 0, 0
	for i, n := range p.Running {
		has := !math.IsNaN(p.Metric[i])
		if !math.IsNaN(n) {
			counted++
		}
		if n > 0 {
			ran++
			if has {
				known++
			}
		}
		p.atZero = p.atZero || n == 0 && has
	}
	switch n := len(p.Running); {
	case n < leastOfReplay:
		return errNotFound(fmt.Sprintf("CloudWatch has counted its %s for %v, since %s. A replay takes %v at least.",
			w.counted, time.Duration(n)*p.Period, p.From.Format("15:04Z"), leastOfReplay*p.Period))
	case float64(counted) < knownOfReplay*float64(n):
		return errNotFound(fmt.Sprintf("CloudWatch counted its %s in %d of %d periods. A replay takes nine in ten.", w.counted, counted, n))
	case float64(known) < knownOfReplay*float64(ran) || ran == 0 && !p.atZero:
		return errNotFound(fmt.Sprintf("There were %s in %d periods, and CloudWatch has the policy's metric in %d of them. A replay takes nine in ten.", w.counted, ran, known))
	}
	p.findFull()
	return nil
}

// findFull finds out whether the metric is a percentage that has a most, and how often it was that: then the load may have been larger than it says.
func (p *past) findFull() {
	if !strings.HasSuffix(p.metric, "Utilization") && !strings.HasSuffix(p.metric, "_UTIL") {
		return
	}
	p.full = 100
	for _, m := range p.Metric {
		if m > 100 {
			p.full, p.saturated = 0, 0 // one of those that may burst
			return
		}
		if m >= 99.5 {
			p.saturated++
		}
	}
}

// replayed shows what was beside what would have been.
func (p *past) replayed(r *replaying) live.Fragment {
	for _, one := range []*hindsight.Policy{&r.is, &r.typed} {
		one.Full = p.full
		if !p.atZero {
			one.Min = max(1, one.Min)
		}
		one.Max = max(one.Max, one.Min)
	}
	asIs, typed := hindsight.Replay(p.History, r.is), hindsight.Replay(p.History, r.typed)
	over := func(name string, values []float64) plot.Line {
		l := plot.Line{Name: name, Gap: 3 * p.Period}
		for i, v := range values {
			if !math.IsNaN(v) {
				l.Points = append(l.Points, plot.Point{At: p.From.Add(time.Duration(i) * p.Period), Value: v})
			}
		}
		return l
	}
	draw := func(id, title string, was, would []float64) drawing {
		return drawing{id: id, title: title, Plot: plot.Plot{
			From: p.From, To: p.From.Add(time.Duration(len(p.Running)) * p.Period), Lines: []plot.Line{over("as it was", was), over("replayed", would)},
		}}
	}
	tasks := draw("replayed-tasks", capital(r.counted), p.Running, typed.Running)
	load := draw("replayed-metric", "The policy's metric", p.Metric, typed.Metric)
	load.unit = p.metric
	load.Levels = []plot.Level{{Name: "target", Value: r.typed.TargetValue}}
	said := func(name string, running, metric []float64, scalings any) markup.Node {
		f := hindsight.Sum(running, metric, p.Period, r.typed.TargetValue)
		return row(name, amount(f.TaskHours), numeric(short(f.Least)), numeric(short(f.Most)), numeric(fmt.Sprintf("%.0f %%", 100*f.Above)), scalings)
	}
	return plots("replay", "Replay", []drawing{tasks, load}, nil,
		table("What was and what would have been", columns(capital(r.many), "#Hours", "#Least", "#Most", "#Above "+short(r.typed.TargetValue), "#Changes"),
			said("As it was", p.Running, p.Metric, numeric("–")),
			said("Policy as it is", asIs.Running, asIs.Metric, asIs.Scalings),
			said("Policy above", typed.Running, typed.Metric, typed.Scalings)))
}

// assumptions says what a replay doesn't know.
func (p *past) assumptions(r *replaying) markup.Node {
	many := r.many
	all := []string{
		"The load is the metric times the " + r.counted + ", and " + many + " share it evenly. What waits isn't carried from one period to the next: a queue that fewer " + many + " would have left longer stays as it was.",
		capital(many) + " always find a place, and stop at once. How long they take to start is what the form says.",
		"The policy is alone: other policies, scheduled actions, deployments, refreshes and counts that were set by hand are left out.",
		"It begins with as many " + many + " as there were, and with alarms that have seen nothing yet.",
		"How near \"policy as it is\" comes to \"as it was\" says how far to trust the rest. Hours are of " + r.counted + ", changes of the desired count.",
	}
	if p.saturated > 0 {
		all = append(all, fmt.Sprintf("The metric was at 100 percent in %d of %d periods. The load may have been larger then than it says.", p.saturated, len(p.Metric)))
	}
	if !p.atZero {
		all = append(all, "There is no value of the metric from a time without "+many+", so a minimum of 0 is replayed as 1.")
	}
	var items []markup.Node
	for _, a := range all {
		items = append(items, markup.E("li", a))
	}
	return markup.E("ul", items)
}

// capital begins a word as a sentence does.
func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

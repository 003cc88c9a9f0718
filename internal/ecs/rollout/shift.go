package rollout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/ecs/lifecyclehook"
	"github.com/pintle/pintle/internal/ecs/trafficshift"
	"github.com/pintle/pintle/internal/state"
)

// shifts reports whether the PRIMARY deployment moves traffic to its tasks.
func (s *step) shifts() bool {
	return *s.row.Status == state.ServiceActive && len(s.row.Deployments) > 0 && s.row.Deployments[0].Shift != nil
}

// runShift makes the next step of a service whose PRIMARY deployment runs beside the one that it replaces, and takes over its traffic. Each
// deployment is a part of the service with its own number of tasks. What changes the deployment's stage is one step, in which listeners change
// as well: a restart finds either both or neither.
func (s *step) runShift() {
	s.read()
	service := s.desired()
	d := &s.row.Deployments[0]
	if d.Shift.Stage == "" {
		s.unshift()
	}
	if d.Shift.Stage != trafficshift.CleanUp {
		primary := deployment.Deployment{State: deployment.State(d.RolloutState), Failed: int(d.FailedTasks), Stopped: d.Stopped}
		if why := service.Failure(primary); why != 0 {
			s.failShift(service, why)
			return
		}
	}
	seen := s.scale()
	if d = &s.row.Deployments[0]; d.RolloutState == types.DeploymentRolloutStateFailed {
		return // it stays as it is until the next deployment
	}
	seen.HasSource = d.Shift.Source != ""
	seen.HasTest = slices.ContainsFunc(d.LoadBalancers, hasTest)
	seen.Routed = s.isRouted(d)
	c := s.shiftConfig(d)
	plan := trafficshift.Decide(c, stateOf(d.Shift), seen, s.now)
	s.wake = sooner(s.wake, plan.Wake)
	switch {
	case plan.RollBack:
		d.Shift = shiftOf(d.Shift.Source, plan.State)
		s.failShift(service, deployment.HookFailed)
	case plan.Done && c.Rolling:
		d.Shift = nil
		s.changed = true
		s.record(d, func(r *state.ServiceDeployment) { r.LifecycleStage = types.ServiceDeploymentLifecycleStageScaleUp })
	case plan.Done:
		d.Shift = nil
		s.row.Deployments = s.row.Deployments[:1]
		s.complete()
	case plan.Changed:
		s.move(service, plan)
	}
}

// shiftConfig returns what a deployment was started with. Later changes of the service's configuration are for its next one, except for alarms.
func (s *step) shiftConfig(d *state.Deployment) trafficshift.Config {
	c := s.row.DeploymentConfiguration
	if record := s.tx.ServiceDeployments.Get(d.ServiceDeploymentArn); record != nil {
		c = record.DeploymentConfiguration
	}
	return trafficshift.ConfigOf(c, s.bake(c))
}

func shiftOf(source string, t trafficshift.State) *state.Shift {
	shift := &state.Shift{
		Stage:      t.Stage,
		Since:      t.Since,
		Source:     source,
		Production: t.Production,
		Test:       t.Test,
	}
	for _, h := range t.Hooks {
		shift.Hooks = append(shift.Hooks, state.Hook(h))
	}
	return shift
}

func stateOf(shift *state.Shift) trafficshift.State {
	t := trafficshift.State{
		Stage:      shift.Stage,
		Since:      shift.Since,
		Production: shift.Production,
		Test:       shift.Test,
	}
	for _, h := range shift.Hooks {
		t.Hooks = append(t.Hooks, trafficshift.Hook(h))
	}
	return t
}

// scale makes the next step of each deployment towards the number of tasks that it's to have, and tells what there is to be seen then.
func (s *step) scale() trafficshift.Seen {
	seen := trafficshift.Seen{Reconciled: true, CleanedUp: true}
	shift := s.row.Deployments[0].Shift
	left := []state.Deployment{}
	for i := range s.row.Deployments {
		d := &s.row.Deployments[i]
		isSource := *d.Id == shift.Source && shift.Stage != trafficshift.CleanUp
		one := s.partOf(d, s.share(i, isSource))
		one.advance()
		s.row.Events = one.row.Events
		s.changed = s.changed || one.changed
		s.wake = sooner(s.wake, one.wake)
		after := &one.row.Deployments[0]
		d.FailedTasks = after.FailedTasks
		d.FailedAt = after.FailedAt
		d.LastFailed = after.LastFailed
		d.NotBefore = after.NotBefore
		d.Unplaced = after.Unplaced
		if i == 0 {
			seen.Ready = one.steady && one.row.DesiredCount == s.row.DesiredCount
			left = append(left, *d)
			continue
		}
		seen.CleanedUp = seen.CleanedUp && len(one.tasks) == 0
		seen.Reconciled = seen.Reconciled && (isSource || len(one.tasks) == 0 || s.standsIn(d, s.row.Deployment(shift.Source)))
		if isSource || len(one.tasks) > 0 {
			left = append(left, *d)
		}
	}
	s.changed = s.changed || len(left) != len(s.row.Deployments)
	s.row.Deployments = left
	return seen
}

// share returns how many tasks a deployment is to have. The source keeps all of its own until the clean-up.
func (s *step) share(i int, isSource bool) int32 {
	d := &s.row.Deployments[i]
	shift := s.row.Deployments[0].Shift
	begins := shift.Stage == "" || shift.Stage == trafficshift.ReconcileService
	switch {
	case isSource:
		return s.row.DesiredCount
	case i == 0 && !begins && shift.Stage != trafficshift.PreScaleUp:
		return s.row.DesiredCount
	case i > 0 && begins && s.helps(d, s.row.Deployment(shift.Source)),
		i > 0 && shift.Stage != trafficshift.CleanUp && s.standsIn(d, s.row.Deployment(shift.Source)):
		return s.countWanted(d, func(*state.Task) bool { return true })
	}
	return 0
}

// helps reports whether a deployment's tasks have to stay until the source has as many as desired: an unfinished rolling update's, which have a
// part of the same traffic.
func (s *step) helps(d, source *state.Deployment) bool {
	if !sharesTraffic(d, source) || source.Unplaced || s.isImpaired(source) {
		return false
	}
	return s.countWanted(source, func(t *state.Task) bool {
		status, _ := s.status(t)
		return status == deployment.Healthy
	}) < s.row.DesiredCount
}

// standsIn reports whether a deployment's tasks, which have a part of the source's traffic, stay until the clean-up: nobody can wait for a source
// whose tasks fail again and again, or the deployment that mends it would never begin.
func (s *step) standsIn(d, source *state.Deployment) bool {
	return sharesTraffic(d, source) && s.isImpaired(source)
}

func (s *step) isImpaired(d *state.Deployment) bool {
	return deployment.Rounds(int(d.FailedTasks), int(s.row.DesiredCount)) >= impaired
}

// sharesTraffic reports whether a deployment was replaced before it was complete, and has a part of the same traffic as the source.
func sharesTraffic(d, source *state.Deployment) bool {
	same := func(a, b types.LoadBalancer) bool { return *a.TargetGroupArn == *b.TargetGroupArn }
	return source != nil && source.RolloutState == types.DeploymentRolloutStateCompleted && slices.EqualFunc(d.Balancers(), source.Balancers(), same)
}

// countWanted counts a deployment's tasks that are to run.
func (s *step) countWanted(d *state.Deployment, which func(*state.Task) bool) (n int32) {
	for _, t := range s.tasks {
		if aws.ToString(t.StartedBy) == *d.Id && *t.DesiredStatus == "RUNNING" && which(t) {
			n++
		}
	}
	return n
}

// partOf returns the step of one deployment, which has as many tasks as desired or moves towards that. Zones aren't rebalanced meanwhile.
func (s *step) partOf(d *state.Deployment, desired int32) *step {
	part := *d
	part.ServiceDeploymentArn = "" // its record is the whole service's
	if part.RolloutState != types.DeploymentRolloutStateFailed {
		part.RolloutState = types.DeploymentRolloutStateCompleted
	}
	one := s.part(desired, part)
	one.row.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingDisabled
	for _, t := range s.tasks {
		if aws.ToString(t.StartedBy) == *d.Id {
			one.tasks = append(one.tasks, t)
		}
	}
	return one
}

// move takes the deployment to its next state, and listeners with it.
func (s *step) move(service deployment.Service, to trafficshift.Plan) {
	identify(to.Hooks)
	d := &s.row.Deployments[0]
	from := d.Shift
	d.Shift = shiftOf(from.Source, to.State)
	d.UpdatedAt = &s.now
	s.changed = true
	begins := from.Stage == ""
	if begins || from.Production != to.Production || from.Test != to.Test {
		if gone := s.route(d, s.row.Deployment(from.Source), to.Production, to.Test); gone != "" && !begins {
			d.Shift = from
			s.event("was unable to shift traffic because " + gone + " doesn't exist or doesn't forward.")
			s.failShift(service, deployment.ListenerGone)
			return
		}
	}
	if from.Production != to.Production {
		s.event(fmt.Sprintf("(deployment %s) has shifted production traffic to %g%%.", *d.Id, percentOf(to.Production)))
	}
	s.noteShift()
	s.invoke(to, to.Production)
}

// identify gives the hooks that are new their ids.
func identify(hooks []trafficshift.Hook) {
	for i := range hooks {
		hooks[i].HookId = cmp.Or(hooks[i].HookId, new(state.NewUUID()))
	}
}

// invoke owes the invocations of the hooks' functions, with the part of the production traffic that the deployment's target has from now on.
func (s *step) invoke(p trafficshift.Plan, production int) {
	record := s.tx.ServiceDeployments.Get(s.row.Deployments[0].ServiceDeploymentArn)
	if record == nil {
		return
	}
	for _, c := range p.Calls {
		detail := p.Hooks[c.Index]
		call := lifecyclehook.Call{
			Service:  *s.row.ServiceArn,
			Function: aws.ToString(c.Hook.HookTargetArn),
			Role:     aws.ToString(c.Hook.RoleArn),
			Event: lifecyclehook.Event{
				ExecutionID:      *detail.HookId,
				LifecycleStage:   string(c.Stage),
				ResourceARN:      *record.ServiceDeploymentArn,
				ExecutionDetails: s.executionDetails(record, c.Stage, production),
			},
		}
		if c.Hook.HookDetails != nil {
			call.Event.HookDetails, _ = c.Hook.HookDetails.MarshalSmithyDocument() //nolint:errcheck // it was read from JSON
		}
		s.tx.Owe(state.Delivery{Debt: delivery.Debt{
			ID:          *detail.HookId,
			Destination: *record.ServiceDeploymentArn,
			Body:        call.Text(),
			Until:       *detail.ExpiresAt,
			Remote:      true, // a function may take a quarter of an hour
			Host:        "lifecycle hooks",
		}}, s.now)
	}
}

// executionDetails tell a function of the deployment. Only where traffic moves or is about to does it hear of weights. Test traffic is all with the
// target, or none of it after a roll-back.
func (s *step) executionDetails(record *state.ServiceDeployment, stage trafficshift.Stage, production int) lifecyclehook.ExecutionDetails {
	d := &s.row.Deployments[0]
	target, source := *record.TargetServiceRevision.Arn, d.ServiceRevisionArn
	if source == target {
		source = ""
		if from := s.row.Deployment(d.Shift.Source); from != nil {
			source = from.ServiceRevisionArn
		}
	}
	weights := func(part int) map[string]float64 {
		all := map[string]float64{target: percentOf(part)}
		if source != "" {
			all[source] = percentOf(trafficshift.Whole - part)
		}
		return all
	}
	details := lifecyclehook.ExecutionDetails{
		ServiceARN:               *s.row.ServiceArn,
		TargetServiceRevisionARN: target,
		TestTrafficWeights:       map[string]float64{},
		ProductionTrafficWeights: map[string]float64{},
	}
	switch stage {
	case trafficshift.TestTrafficShift:
		test := trafficshift.Whole
		if record.Rollback != nil {
			test = 0
		}
		if len(d.LoadBalancers) == 0 || slices.ContainsFunc(d.LoadBalancers, hasTest) {
			details.TestTrafficWeights = weights(test)
		}
	case trafficshift.PreProductionTrafficShift, trafficshift.ProductionTrafficShift:
		details.ProductionTrafficWeights = weights(production)
	}
	return details
}

// route has the listeners of a deployment send parts of the traffic to its tasks, and the rest to the source's. It returns the first that is
// gone, or "".
func (s *step) route(d, source *state.Deployment, production, test int) (gone string) {
	groups := d.Balancers()
	for i, b := range d.LoadBalancers {
		a := b.AdvancedConfiguration
		if a == nil {
			continue
		}
		green := *groups[i].TargetGroupArn
		blue := *b.TargetGroupArn
		if blue == green {
			blue = *a.AlternateTargetGroupArn
		}
		// A listener whose traffic the source doesn't have is left alone until all of it is to move.
		shared := source != nil && slices.ContainsFunc(source.Balancers(), func(b types.LoadBalancer) bool { return *b.TargetGroupArn == blue })
		if (shared || production == trafficshift.Whole) && !s.tx.Forward(*a.ProductionListenerRule, weighted(green, blue, production)...) {
			gone = cmp.Or(gone, *a.ProductionListenerRule)
		}
		rule := aws.ToString(a.TestListenerRule)
		if rule != "" && (shared || test == trafficshift.Whole) && !s.tx.Forward(rule, weighted(green, blue, test)...) {
			gone = cmp.Or(gone, rule)
		}
	}
	return gone
}

// isRouted reports whether load balancers' processes have taken up what route has written last.
func (s *step) isRouted(d *state.Deployment) bool {
	if s.carriedOut == nil {
		return true
	}
	for _, b := range d.LoadBalancers {
		a := b.AdvancedConfiguration
		if a != nil && !s.carriedOut(s.tx.View, *a.ProductionListenerRule) || hasTest(b) && !s.carriedOut(s.tx.View, *a.TestListenerRule) {
			return false
		}
	}
	return true
}

// weighted returns the two target groups of a forward, of which the first gets a part of the traffic.
func weighted(green, blue string, part int) []elb.TargetGroupTuple {
	g, b := trafficshift.Weights(part)
	return []elb.TargetGroupTuple{{TargetGroupArn: &green, Weight: &g}, {TargetGroupArn: &blue, Weight: &b}}
}

func hasTest(b types.LoadBalancer) bool {
	return b.AdvancedConfiguration != nil && aws.ToString(b.AdvancedConfiguration.TestListenerRule) != ""
}

// unshift takes the traffic back from deployments that were replaced before they had all of it.
func (s *step) unshift() {
	source := s.row.Deployment(s.row.Deployments[0].Shift.Source)
	for i := range s.row.Deployments[1:] {
		if d := &s.row.Deployments[i+1]; d.Shift != nil {
			s.route(d, source, 0, 0)
			d.Shift = nil
			s.changed = true
		}
	}
}

// failShift ends the PRIMARY deployment as a failure. If that is to be rolled back, all traffic goes to the source's tasks at once, and the others
// are cleaned up. Otherwise everything stays where it is.
func (s *step) failShift(service deployment.Service, why deployment.Failure) {
	back := ""
	if service.RollsBack(why) {
		back = s.row.Deployments[0].Shift.Source
	}
	s.changed = true
	s.endHooks()
	s.noteShift()
	d := s.row.Deployments[0]
	s.failDeployment(why, back)
	source := s.row.Deployment(back)
	if source == nil {
		return
	}
	s.route(&d, source, 0, 0)
	plan := trafficshift.RollBack(s.shiftConfig(&d), stateOf(d.Shift), s.now)
	identify(plan.Hooks)
	source.Shift = shiftOf("", plan.State)
	for i := range s.row.Deployments[1:] {
		s.row.Deployments[i+1].Shift = nil
	}
	s.noteShift()
	s.invoke(plan, 0)
}

// endHooks ends the hooks that still wait, of a deployment that has failed.
func (s *step) endHooks() {
	shift := *s.row.Deployments[0].Shift
	shift.Hooks = slices.Clone(shift.Hooks)
	for i := range shift.Hooks {
		if h := &shift.Hooks[i]; trafficshift.Waits(h.Status) {
			h.Status = types.DeploymentLifecycleHookStatusFailed
		}
	}
	s.row.Deployments[0].Shift = &shift
}

// noteShift writes the stage, the hooks and the parts of the traffic to the deployment's record.
func (s *step) noteShift() {
	d := &s.row.Deployments[0]
	s.record(d, func(r *state.ServiceDeployment) {
		r.LifecycleStage = cmp.Or(d.Shift.Stage, r.LifecycleStage)
		r.LifecycleHookDetails = d.Shift.HookDetails()
		r.TargetServiceRevision = new(s.weigh(*r.TargetServiceRevision))
		r.SourceServiceRevisions = slices.Clone(r.SourceServiceRevisions)
		for i, source := range r.SourceServiceRevisions {
			r.SourceServiceRevisions[i] = s.weigh(source)
		}
	})
}

// weigh returns the summary of a revision with its part of the traffic.
func (s *step) weigh(r types.ServiceRevisionSummary) types.ServiceRevisionSummary {
	d := &s.row.Deployments[0]
	if len(d.LoadBalancers) == 0 {
		return r
	}
	production, test := 0, 0
	switch source := s.row.Deployment(d.Shift.Source); {
	case *r.Arn == d.ServiceRevisionArn:
		production = d.Shift.Production
		test = d.Shift.Test
	case source != nil && *r.Arn == source.ServiceRevisionArn:
		production = trafficshift.Whole - d.Shift.Production
		test = trafficshift.Whole - d.Shift.Test
	}
	r.RequestedProductionTrafficWeight = aws.Float64(percentOf(production))
	if slices.ContainsFunc(d.LoadBalancers, hasTest) {
		r.RequestedTestTrafficWeight = aws.Float64(percentOf(test))
	}
	return r
}

func percentOf(part int) float64 { return float64(part) / 10 }

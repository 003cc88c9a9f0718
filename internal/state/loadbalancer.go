package state

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of Elastic Load Balancing. They embed the SDK's structs, without what follows from other rows: a target group's row doesn't name
// the load balancers that use it.

// LoadBalancer is a load balancer. Its State is provisioning until a balancer process has said that it carries it out.
type LoadBalancer struct {
	types.LoadBalancer
	Attributes map[string]string `json:",omitempty"` // those that were set
	Tags       []types.Tag       `json:",omitempty"`
}

// AccessLogs returns where the access log goes, and whether there is to be one.
func (b *LoadBalancer) AccessLogs() (bucket, prefix string, enabled bool) {
	return b.Attributes["access_logs.s3.bucket"], b.Attributes["access_logs.s3.prefix"], b.Attributes["access_logs.s3.enabled"] == "true"
}

// Active returns the load balancer as it is once a process carries it out.
func (b *LoadBalancer) Active() *LoadBalancer {
	c := *b
	c.State = &types.LoadBalancerState{Code: types.LoadBalancerStateEnumActive}
	return &c
}

// Listener is a port of a load balancer. Its Certificates are the default one alone.
type Listener struct {
	types.Listener
	DefaultRule string            // the ARN of the rule that has the DefaultActions
	More        []string          `json:",omitempty"` // the ARNs of the other certificates
	Attributes  map[string]string `json:",omitempty"`
	Tags        []types.Tag       `json:",omitempty"`
	RuleTags    []types.Tag       `json:",omitempty"` // the default rule's
}

// ListenerRule is a rule of a listener. The default rule is the listener's own.
type ListenerRule struct {
	types.Rule
	Listener string
	Number   int32       // its priority
	Tags     []types.Tag `json:",omitempty"`
}

// TargetGroup is a target group.
type TargetGroup struct {
	types.TargetGroup
	Attributes map[string]string `json:",omitempty"`
	Tags       []types.Tag       `json:",omitempty"`
}

// Transport returns what a container's port in the group must be for; none if it may be for either.
func (g *TargetGroup) Transport() ecs.TransportProtocol {
	switch g.Protocol {
	case types.ProtocolEnumUdp:
		return ecs.TransportProtocolUdp
	case types.ProtocolEnumTcpUdp:
		return ""
	}
	return ecs.TransportProtocolTcp
}

// Target is a member of a target group: from its registration until it has drained.
type Target struct {
	Group      string // the target group's ARN
	ID         string
	Port       int32
	Zone       string `json:",omitempty"`
	Registered time.Time
	// Health is what the balancers' checks say, of one that isn't Draining. It's nil until one has said something.
	Health *types.TargetHealth `json:",omitempty"`
	Since  *time.Time          `json:",omitempty"` // since when its health has this state
	// Draining is until when it may finish what it has under way. It's nil while it's registered.
	Draining *time.Time `json:",omitempty"`
	// Task and Service are the ARNs of the task that a service of ECS has registered, and of the service, or "".
	Task    string `json:",omitempty"`
	Service string `json:",omitempty"`
	// AutoScalingGroup is the name of the group that has registered its instance, or "".
	AutoScalingGroup string `json:",omitempty"`
}

// Key returns the target's key: an instance may be there with several ports.
func (t *Target) Key() string { return TargetKey(t.Group, t.ID, t.Port) }

// TargetKey returns the key of a target.
func TargetKey(group, id string, port int32) string { return fmt.Sprintf("%s %s %d", group, id, port) }

// IsHealthy reports whether the target's last health check has passed, and it isn't draining.
func (t *Target) IsHealthy() bool {
	return t.Draining == nil && t.Health != nil && t.Health.State == types.TargetHealthStateEnumHealthy
}

// IsUnhealthy reports whether the target fails its health checks.
func (t *Target) IsUnhealthy() bool {
	return t.Draining == nil && t.Health != nil && t.Health.State == types.TargetHealthStateEnumUnhealthy
}

// Checked returns the target with what its health checks say.
func (t *Target) Checked(h types.TargetHealth, now time.Time) *Target {
	c := *t
	if t.Health == nil || t.Health.State != h.State {
		c.Since = &now
	}
	c.Health = &h
	return &c
}

// Balancer is a process that carries load balancers out.
type Balancer struct {
	ID string
	// By is the node's key that signs what the process reports, or "" for the owner's.
	By      string `json:",omitempty"`
	Started time.Time
	// Addresses are where the listeners are to be found, by the listener's ARN.
	Addresses map[string]string `json:",omitempty"`
	// Problems say why listeners are not, by the listener's ARN.
	Problems map[string]string `json:",omitempty"`
	// Lost is since when nobody has heard of it, or nil.
	Lost *time.Time `json:",omitempty"`
}

// Same reports whether nothing has changed.
func (b *Balancer) Same(other *Balancer) bool {
	return other != nil && b.By == other.By && b.Started.Equal(other.Started) && maps.Equal(b.Addresses, other.Addresses) &&
		maps.Equal(b.Problems, other.Problems) && (b.Lost == nil) == (other.Lost == nil)
}

// LoadBalancerNamed returns the load balancer with a name, or nil.
func (v *View) LoadBalancerNamed(name string) *LoadBalancer {
	for b := range v.LoadBalancers.By(loadBalancersByName, name) {
		return b
	}
	return nil
}

// TargetGroupNamed returns the target group with a name, or nil.
func (v *View) TargetGroupNamed(name string) *TargetGroup {
	for g := range v.TargetGroups.By(targetGroupsByName, name) {
		return g
	}
	return nil
}

// RulesOf returns a listener's rules by priority, without the default one.
func (v *View) RulesOf(listener string) []*ListenerRule {
	rules := slices.Collect(v.ListenerRules.By(RulesByListener, listener))
	slices.SortFunc(rules, func(a, b *ListenerRule) int { return cmp.Compare(a.Number, b.Number) })
	return rules
}

// TargetsOf returns a group's targets, also those that drain.
func (v *View) TargetsOf(group string) iter.Seq[*Target] {
	return func(yield func(*Target) bool) {
		for t := range v.Targets.Behind(group + " ") {
			if t.Group != group || !yield(t) {
				return
			}
		}
	}
}

// ForwardsTo returns the target groups of actions.
func ForwardsTo(actions []types.Action) (groups []string) {
	for _, a := range actions {
		if a.TargetGroupArn != nil {
			groups = append(groups, *a.TargetGroupArn)
		}
		if a.ForwardConfig == nil {
			continue
		}
		for _, g := range a.ForwardConfig.TargetGroups {
			if arn := aws.ToString(g.TargetGroupArn); !slices.Contains(groups, arn) {
				groups = append(groups, arn)
			}
		}
	}
	return groups
}

// LoadBalancersOf returns the ARNs of the load balancers that forward to each target group.
func (v *View) LoadBalancersOf() map[string][]string {
	users := map[string][]string{}
	note := func(l *Listener, actions []types.Action) {
		for _, group := range ForwardsTo(actions) {
			if !slices.Contains(users[group], *l.LoadBalancerArn) {
				users[group] = append(users[group], *l.LoadBalancerArn)
			}
		}
	}
	for l := range v.Listeners.All() {
		note(l, l.DefaultActions)
		for r := range v.ListenerRules.By(RulesByListener, *l.ListenerArn) {
			note(l, r.Actions)
		}
	}
	return users
}

// RegisterTarget registers a target, and reports whether it wasn't. One that drains comes back; one that is registered stays as it is. One of
// a task that runs isn't given to another task, which must wait: two tasks can't be told apart at one address.
func (tx *Tx) RegisterTarget(t Target) bool {
	old := tx.Targets.Get(t.Key())
	if old != nil && old.Draining == nil {
		sameOwner := old.Task == t.Task && old.AutoScalingGroup == t.AutoScalingGroup
		if sameOwner || t.Task == "" && t.AutoScalingGroup == "" || t.Task != "" && tx.isRunning(old.Task) {
			return false
		}
	}
	tx.Targets.Put(&t)
	if old != nil && old.Task != t.Task {
		tx.letStop(old.Task)
	}
	return true
}

// MemberTarget returns what a member of an Auto Scaling group is in one of the group's target groups, or nil.
func (v *View) MemberTarget(i *Instance, group string) *Target {
	g := v.TargetGroups.Get(group)
	if g == nil {
		return nil
	}
	t := v.Targets.Get(TargetKey(group, *i.InstanceId, aws.ToInt32(g.Port)))
	if t == nil || t.AutoScalingGroup != i.Member.Group {
		return nil
	}
	return t
}

// isRunning reports whether a task is there that is to run.
func (tx *Tx) isRunning(task string) bool {
	t := tx.Tasks.Get(task)
	return t != nil && *t.DesiredStatus == "RUNNING" && *t.LastStatus != "STOPPED"
}

// ForwardOf returns the forward of a listener's rule, of a listener's default rule or, for a network load balancer, of a listener, by its ARN.
// It returns nil if there is none.
func (v *View) ForwardOf(arn string) *types.ForwardActionConfig {
	if r := v.ListenerRules.Get(arn); r != nil {
		return forwardIn(r.Actions)
	}
	if l := v.listenerWith(arn); l != nil {
		return forwardIn(l.DefaultActions)
	}
	return nil
}

// listenerWith returns the listener whose default rule has an ARN, or a network load balancer's that has it itself, or nil.
func (v *View) listenerWith(arn string) *Listener {
	listener := arn
	if i := strings.LastIndex(arn, "/"); i > 0 && strings.Contains(arn, ":listener-rule/") {
		listener = strings.Replace(arn[:i], ":listener-rule/", ":listener/", 1)
	}
	l := v.Listeners.Get(listener)
	switch {
	case l == nil:
		return nil
	case l.DefaultRule == arn:
		return l
	}
	if b := v.LoadBalancers.Get(aws.ToString(l.LoadBalancerArn)); arn == listener && b != nil && b.Type == types.LoadBalancerTypeEnumNetwork {
		return l
	}
	return nil
}

func forwardIn(actions []types.Action) *types.ForwardActionConfig {
	for _, a := range actions {
		switch {
		case a.ForwardConfig != nil:
			return a.ForwardConfig
		case a.TargetGroupArn != nil:
			return &types.ForwardActionConfig{TargetGroups: []types.TargetGroupTuple{{TargetGroupArn: a.TargetGroupArn}}}
		}
	}
	return nil
}

// Forward has a rule or a listener, named as ForwardOf has it, forward to target groups by weight, and reports whether there is such a forward.
func (tx *Tx) Forward(arn string, groups ...types.TargetGroupTuple) bool {
	if r := tx.ListenerRules.Get(arn); r != nil && forwardIn(r.Actions) != nil {
		c := *r
		c.Actions = forwarding(r.Actions, groups)
		tx.ListenerRules.Put(&c)
		return true
	}
	if l := tx.listenerWith(arn); l != nil && forwardIn(l.DefaultActions) != nil {
		c := *l
		c.DefaultActions = forwarding(l.DefaultActions, groups)
		tx.Listeners.Put(&c)
		return true
	}
	return false
}

// forwarding returns actions whose forward goes to other groups.
func forwarding(actions []types.Action, groups []types.TargetGroupTuple) []types.Action {
	out := slices.Clone(actions)
	for i := range out {
		if out[i].Type != types.ActionTypeEnumForward {
			continue
		}
		c := *forwardIn(out[i : i+1])
		c.TargetGroups = groups
		out[i].ForwardConfig = &c
		out[i].TargetGroupArn = nil
	}
	return out
}

// TargetHealth counts a task's targets that its load balancers find healthy, and those that they find unhealthy.
func (v *View) TargetHealth(task string) (healthy, unhealthy int) {
	for target := range v.Targets.By(TargetsByTask, task) {
		switch {
		case target.IsHealthy():
			healthy++
		case target.IsUnhealthy():
			unhealthy++
		}
	}
	return healthy, unhealthy
}

// DeleteTarget forgets a target, which has drained or was lost. If it's the last of a task that waits for that, the task may stop now.
func (tx *Tx) DeleteTarget(t *Target) {
	tx.Targets.Delete(t.Key())
	tx.letStop(t.Task)
}

// letStop lets a task stop that has waited for its targets to drain, if it has none anymore.
func (tx *Tx) letStop(arn string) {
	t := tx.Tasks.Get(arn)
	if arn == "" || t == nil || !t.Deregistering {
		return
	}
	for range tx.Targets.By(TargetsByTask, arn) {
		return
	}
	c := *t
	c.Deregistering = false
	tx.Tasks.Put(&c)
}

// StopTask requests a task's stop, and returns the row that it put. A task that is registered with target groups is deregistered, and goes on
// running until it has drained.
func (tx *Tx) StopTask(t *Task, code ecs.TaskStopCode, reason string, now time.Time) *Task {
	c := t.Stopping(code, reason, now)
	for _, target := range slices.Collect(tx.Targets.By(TargetsByTask, *t.TaskArn)) {
		if aws.ToString(c.LastStatus) != "RUNNING" {
			tx.Targets.Delete(target.Key())
			continue
		}
		tx.DeregisterTarget(target, now)
		c.Deregistering = true
	}
	tx.Tasks.Put(c)
	return c
}

// ForgetTask deletes the targets of a task that has ended.
func (tx *Tx) ForgetTask(arn string) {
	for _, target := range slices.Collect(tx.Targets.By(TargetsByTask, arn)) {
		tx.Targets.Delete(target.Key())
	}
}

// DeregisterTarget lets a target drain for its group's time.
func (tx *Tx) DeregisterTarget(t *Target, now time.Time) {
	if t.Draining != nil {
		return
	}
	c := *t
	c.Draining = new(now.Add(tx.DrainTime(t.Group)))
	tx.Targets.Put(&c)
}

// DrainTime is how long a group's targets may drain.
func (v *View) DrainTime(group string) time.Duration {
	delay := 300 * time.Second
	if g := v.TargetGroups.Get(group); g != nil {
		if d, err := time.ParseDuration(g.Attributes["deregistration_delay.timeout_seconds"] + "s"); err == nil {
			delay = d
		}
	}
	return delay
}

// DeleteListener deletes a listener with its rules.
func (tx *Tx) DeleteListener(arn string) {
	for r := range tx.ListenerRules.By(RulesByListener, arn) {
		tx.ListenerRules.Delete(*r.RuleArn)
	}
	tx.Listeners.Delete(arn)
}

// LoadBalancerName returns the name in the ARN of a load balancer, of one of its listeners or rules, or of a target group.
func LoadBalancerName(arn string) string {
	_, resource, _ := strings.Cut(arn, "/")
	for _, kind := range []string{"app/", "net/"} {
		resource = strings.TrimPrefix(resource, kind)
	}
	name, _, _ := strings.Cut(resource, "/")
	return name
}

var (
	loadBalancersByName = Index[*LoadBalancer]{Name: "name", Value: func(b *LoadBalancer) string { return aws.ToString(b.LoadBalancerName) }}
	targetGroupsByName  = Index[*TargetGroup]{Name: "name", Value: func(g *TargetGroup) string { return aws.ToString(g.TargetGroupName) }}
	// ListenersByLoadBalancer finds a load balancer's listeners.
	ListenersByLoadBalancer = Index[*Listener]{Name: "load_balancer", Value: func(l *Listener) string { return aws.ToString(l.LoadBalancerArn) }}
	// RulesByListener finds a listener's rules, without the default one.
	RulesByListener = Index[*ListenerRule]{Name: "listener", Value: func(r *ListenerRule) string { return r.Listener }}
	// TargetsByTask finds what a task of a service is registered as.
	TargetsByTask = Index[*Target]{Name: "task", Value: func(t *Target) string { return t.Task }}
)

// keepLost is how long a process is shown that nobody has heard of.
const keepLost = time.Hour

var (
	loadBalancers = &store.Definition[*LoadBalancer]{
		Name:    "load_balancers",
		Key:     func(b *LoadBalancer) string { return aws.ToString(b.LoadBalancerArn) },
		Indexes: []Index[*LoadBalancer]{loadBalancersByName},
	}

	listeners = &store.Definition[*Listener]{
		Name:    "listeners",
		Key:     func(l *Listener) string { return aws.ToString(l.ListenerArn) },
		Indexes: []Index[*Listener]{ListenersByLoadBalancer},
	}

	listenerRules = &store.Definition[*ListenerRule]{
		Name:    "listener_rules",
		Key:     func(r *ListenerRule) string { return aws.ToString(r.RuleArn) },
		Indexes: []Index[*ListenerRule]{RulesByListener},
	}

	targetGroups = &store.Definition[*TargetGroup]{
		Name:    "target_groups",
		Key:     func(g *TargetGroup) string { return aws.ToString(g.TargetGroupArn) },
		Indexes: []Index[*TargetGroup]{targetGroupsByName},
	}

	targets = &store.Definition[*Target]{Name: "targets", Key: (*Target).Key, Indexes: []Index[*Target]{TargetsByTask}}

	balancers = &store.Definition[*Balancer]{
		Name:     "balancers",
		Key:      func(b *Balancer) string { return b.ID },
		Lifetime: store.KeepFor(keepLost, func(b *Balancer) *time.Time { return b.Lost }),
	}
)

// loadBalancerTables are the tables of Elastic Load Balancing.
type loadBalancerTables struct {
	Balancers     Table[*Balancer]
	ListenerRules Table[*ListenerRule]
	Listeners     Table[*Listener]
	LoadBalancers Table[*LoadBalancer]
	TargetGroups  Table[*TargetGroup]
	Targets       Table[*Target]
}

// newLoadBalancerTables binds the tables to a view.
func newLoadBalancerTables(v *store.View) loadBalancerTables {
	return loadBalancerTables{
		Balancers:     balancers.In(v),
		ListenerRules: listenerRules.In(v),
		Listeners:     listeners.In(v),
		LoadBalancers: loadBalancers.In(v),
		TargetGroups:  targetGroups.In(v),
		Targets:       targets.In(v),
	}
}

package keeper

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/state"
)

// waitingNeeds returns the needs of the tasks that wait for a capacity provider's instances.
func waitingNeeds(v *state.View, p *state.CapacityProvider) (out []group.Size) {
	if p == nil {
		return nil
	}
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting != nil && aws.ToString(t.CapacityProviderName) == *p.Name {
			out = append(out, group.Size{CPU: t.Waiting.CPU, MemoryMiB: t.Waiting.MemoryMiB, GPUs: t.Waiting.GPUs})
		}
	}
	return out
}

// manage sets the desired capacity of each group whose capacity provider has managed scaling, and puts the provider's metric.
func (l *Loop) manage(ctx context.Context, now time.Time) error {
	for p := range l.store.View().CapacityProviders.All() {
		var reservation float64
		var managed bool
		err := l.store.Update(ctx, func(tx *state.Tx) error {
			if row := tx.CapacityProviders.Get(*p.CapacityProviderArn); row != nil {
				adopt(tx, row)
				reservation, managed = l.grow(tx, row, now)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if managed {
			if err := l.measure(p, reservation, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupOf returns a capacity provider's Auto Scaling group, or nil if it isn't one of Pintle's.
func groupOf(v *state.View, p *state.CapacityProvider) *state.AutoScalingGroup {
	for g := range v.AutoScalingGroups.All() {
		if provides(p, g) {
			return g
		}
	}
	return nil
}

// provides reports whether a group is the capacity provider's. Providers name their group by ARN or by name.
func provides(p *state.CapacityProvider, g *state.AutoScalingGroup) bool {
	arn := *p.AutoScalingGroupProvider.AutoScalingGroupArn
	return arn == *g.AutoScalingGroupARN || arn == g.Name()
}

// adopt sets the capacity provider of the container instances in its group.
func adopt(tx *state.Tx, p *state.CapacityProvider) {
	g := groupOf(tx.View, p)
	if g == nil {
		return
	}
	for i := range tx.Instances.By(state.InstancesByGroup, g.Name()) {
		if c := containerInstance(tx.View, *i.InstanceId); c != nil && aws.ToString(c.CapacityProviderName) != *p.Name {
			row := *c
			row.CapacityProviderName = p.Name
			tx.ContainerInstances.Put(&row)
		}
	}
}

// grow sets the desired capacity of a provider's group: at once if its use is above the target, and only after a while if
// fewer instances are needed. It returns the provider's CapacityProviderReservation.
func (l *Loop) grow(tx *state.Tx, p *state.CapacityProvider, now time.Time) (reservation float64, managed bool) {
	scaling := p.AutoScalingGroupProvider.ManagedScaling
	old := groupOf(tx.View, p)
	if scaling.Status != ecstypes.ManagedScalingStatusEnabled || old == nil || old.Deleting {
		return 0, false
	}
	m, warming := managedOf(tx.View, p, old, l.opts.Prices, now)
	target, before := int(aws.ToInt32(scaling.TargetCapacity)), int(*old.DesiredCapacity)
	desired := m.Desired(target)
	row := *p
	switch low := desired < before; {
	case m.Reservation() > float64(target):
		row.LowSince = nil
		desired = max(desired, before)
	case !low || warming:
		row.LowSince = nil
		desired = before
	case row.LowSince == nil:
		row.LowSince = &now
		desired = before
	case now.Sub(*row.LowSince) < l.opts.ScaleIn:
		desired = before
	case l.opts.ScaleInPause > 0:
		desired = capacity.ScaleIn(before, desired)
		row.LowSince = new(now.Add(l.opts.ScaleInPause - l.opts.ScaleIn))
	default:
		row.LowSince = nil
	}
	if g := old.Clone(); desired != before {
		because := "managed scaling of the capacity provider " + *p.Name + ", whose tasks need " + itoa(m.Needed()) + " instances,"
		setDesired(g, desired, because, now)
		if *g.DesiredCapacity != *old.DesiredCapacity { // else the group's bounds forbid it
			tx.AutoScalingGroups.Put(g)
		}
	}
	if row.LowSince != p.LowSince {
		tx.CapacityProviders.Put(&row)
	}
	return m.Reservation(), true
}

// managedOf returns what a provider has and needs, and whether instances are still coming up.
func managedOf(
	v *state.View, p *state.CapacityProvider, g *state.AutoScalingGroup, prices map[string]float64, now time.Time,
) (m capacity.Managed, warming bool) {
	scaling := p.AutoScalingGroupProvider.ManagedScaling
	m.MinStep = int(aws.ToInt32(scaling.MinimumScalingStepSize))
	m.MaxStep = int(aws.ToInt32(scaling.MaximumScalingStepSize))
	warmup := time.Duration(aws.ToInt32(scaling.InstanceWarmupPeriod)) * time.Second
	for _, i := range v.ActiveMembers(g.Name()) {
		c := containerInstance(v, *i.InstanceId)
		at := i.Member.InServiceAt
		comes := isComing(i, c, max(registers, warmup), now)
		warming = warming || comes || now.Before(at.Add(warmup))
		switch {
		case busy(v, c, false):
			m.Registered++
			m.Busy++
		case !comes:
			m.Registered++
		}
	}
	needs := waitingNeeds(v, p)
	for _, n := range needs {
		m.Waiting = append(m.Waiting, capacity.Size{CPU: n.CPU, MemoryMiB: n.MemoryMiB, GPUs: n.GPUs})
	}
	if all := sizes(v, g, prices); len(all) > 0 {
		one := group.Pick(all, group.Need(all, needs), wantsCheapest(g))
		m.Instance = capacity.Size{CPU: one.CPU, MemoryMiB: one.MemoryMiB, GPUs: one.GPUs}
	}
	return m, warming
}

// isComing reports whether an instance has yet to take its first tasks, so that the tasks that wait for it don't count twice. It has
// to get into service, register and connect, within a while. Then the tasks have to be placed.
func isComing(i *state.Instance, c *state.ContainerInstance, while time.Duration, now time.Time) bool {
	at := i.Member.InServiceAt
	switch {
	case at == nil:
		return true
	case c == nil || !c.AgentConnected:
		return now.Before(at.Add(while))
	}
	return now.Sub(aws.ToTime(c.RegisteredAt)) < settles
}

// settles is how long a registered instance still counts as coming.
const settles = 5 * time.Second

// registers is the least time that an instance in service has to register and connect, whatever its warm-up. After that it counts as
// one without tasks, and another is launched for those that wait.
const registers = time.Minute

// measure puts CapacityProviderReservation, once a minute.
func (l *Loop) measure(p *state.CapacityProvider, reservation float64, now time.Time) error {
	minute := now.Truncate(time.Minute)
	if !l.measured[*p.Name].Before(minute) {
		return nil
	}
	l.measured[*p.Name] = minute
	var samples []metrics.Sample
	for c := range l.store.View().Clusters.All() {
		if slices.Contains(c.CapacityProviders, *p.Name) {
			metric := metrics.NewMetric("AWS/ECS/ManagedScaling", "CapacityProviderReservation",
				metrics.Dimension{Name: "CapacityProviderName", Value: *p.Name},
				metrics.Dimension{Name: "ClusterName", Value: *c.ClusterName})
			samples = append(samples, metrics.Sample{Metric: metric, Unit: "Percent", At: now.Unix(), Set: metrics.One(reservation)})
		}
	}
	if len(samples) == 0 {
		return nil
	}
	return l.opts.Put(samples)
}

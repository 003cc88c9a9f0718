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
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

// waitingTasks returns what the tasks need that wait for a capacity provider's instances.
func waitingTasks(v *state.View, p *state.CapacityProvider) (out []capacity.Task) {
	if p == nil {
		return nil
	}
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting == nil || aws.ToString(t.CapacityProviderName) != *p.Name {
			continue
		}
		size := capacity.Size{CPU: t.Waiting.CPU, MemoryMiB: t.Waiting.MemoryMiB, GPUs: t.Waiting.GPUs}
		needs := capacity.Task{Size: size}
		if td := v.TaskDefinitions.Get(aws.ToString(t.TaskDefinitionArn)); td != nil {
			needs = capacity.NewTask(size, td.RequiredAttributes(), t.Waiting.MemberOf(td))
		}
		out = append(out, needs)
	}
	return out
}

// demand is what waits for a capacity provider, and the group's types that can help.
type demand struct {
	needs []group.Size // of the tasks that some type takes
	trial bool         // of others only an instance can tell whether one would take them
	sizes []group.Size // the types that may take one of the tasks; all if no task waits
}

// demandOf returns what waits for a group's instances. A task that no new instance of the group could take doesn't count.
func demandOf(v *state.View, p *state.CapacityProvider, g *state.AutoScalingGroup, prices map[string]float64) (d demand) {
	var kinds []capacity.Kind
	var offered []group.Size
	for _, o := range v.Offers(p, g) {
		i, err := instancetype.Lookup(o.Type)
		if err != nil {
			continue
		}
		k := capacity.NewKind(o.Type, g.AvailabilityZones, i.VCPUs, i.MemoryMiB, i.GPUs, o.Seen)
		kinds = append(kinds, k)
		offered = append(offered, group.Size{Type: o.Type, CPU: k.CPU, MemoryMiB: k.MemoryMiB, GPUs: k.GPUs, Price: prices[o.Type]})
	}
	tasks := slices.DeleteFunc(waitingTasks(v, p), func(t capacity.Task) bool {
		return !slices.ContainsFunc(kinds, func(k capacity.Kind) bool { return k.Takes(t) })
	})
	for _, t := range tasks {
		if capacity.IsTrial(kinds, t) {
			d.trial = true
			continue
		}
		d.needs = append(d.needs, group.Size{CPU: t.CPU, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs})
	}
	for i, k := range kinds {
		if len(tasks) == 0 || slices.ContainsFunc(tasks, k.Takes) {
			d.sizes = append(d.sizes, offered[i])
		}
	}
	return d
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

// adopt sets the capacity provider of the container instances in its group.
func adopt(tx *state.Tx, p *state.CapacityProvider) {
	g := tx.GroupOf(p)
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
	old := tx.GroupOf(p)
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
	d := demandOf(v, p, g, prices)
	m.Trial = d.trial
	for _, n := range d.needs {
		m.Waiting = append(m.Waiting, capacity.Size{CPU: n.CPU, MemoryMiB: n.MemoryMiB, GPUs: n.GPUs})
	}
	if len(d.sizes) > 0 {
		one := group.Pick(d.sizes, group.Need(d.sizes, d.needs), wantsCheapest(g))
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

package deployment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a service whose plans are carried out. Its tasks come up, fail and stop at random.
type world struct {
	service     Service
	deployments []Deployment
	tasks       []Task
	now         time.Time
	made        int // tasks and deployments so far
}

// step decides on a plan and carries it out. It reports whether there was anything to do.
func (w *world) step(r *rapid.T) bool {
	before := slices.Clone(w.tasks)
	p := Decide(w.service, w.deployments, w.tasks, w.now)
	w.check(r, before, p)
	for _, s := range p.Stop {
		i := slices.IndexFunc(w.tasks, func(t Task) bool { return t.ID == s.ID })
		w.tasks[i].Status = Stopping
	}
	for range p.Start {
		w.start(rapid.SampledFrom([]string{"i0", "i1", "i2"}).Draw(r, "where"))
	}
	if len(p.StartIn) > 0 {
		w.start(p.StartIn[0])
	}
	w.service.Rebalancing = p.Rebalancing
	if p.Bakes {
		w.deployments[0].BakesFrom = w.now
	}
	for _, instance := range p.StartOn {
		w.start(instance)
	}
	if p.Rollout != "" {
		w.deployments[0].State = p.Rollout
	}
	if p.Rollout == Completed {
		w.deployments = w.deployments[:1]
	}
	if p.RollBackTo != "" {
		i := slices.IndexFunc(w.deployments, func(d Deployment) bool { return d.ID == p.RollBackTo })
		back := w.deployments[i]
		back.State = InProgress
		back.Failed = 0
		back.BakesFrom = time.Time{}
		w.deployments = append([]Deployment{back}, slices.Delete(slices.Clone(w.deployments), i, i+1)...)
	}
	return p.Start+len(p.StartOn)+len(p.StartIn)+len(p.Stop) > 0 || p.Rollout != "" || p.Bakes
}

func (w *world) start(instance string) {
	w.made++
	w.tasks = append(w.tasks, Task{
		ID:         fmt.Sprint("t", w.made),
		Deployment: w.deployments[0].ID,
		Instance:   instance,
		Zone:       instance,
	})
}

// check fails the test if a plan breaks one of the service's limits.
func (w *world) check(r *rapid.T, tasks []Task, p Plan) {
	healthy, stopped := 0, 0
	for _, t := range tasks {
		if t.Status == Healthy {
			healthy++
		}
	}
	desired := w.service.Desired
	if w.service.Daemon {
		desired = len(w.service.Instances)
	}
	for _, t := range p.Stop {
		if t.Status == Stopping {
			r.Fatalf("%s is stopped twice", t.ID)
		}
		if w.now.Before(t.ProtectedUntil) {
			r.Fatalf("%s is protected", t.ID)
		}
		if t.Status == Healthy && (!w.service.Daemon || slices.Contains(w.service.Instances, t.Instance)) {
			stopped++
		}
	}
	if left := healthy - stopped; stopped > 0 && left*100 < desired*w.service.MinimumHealthyPercent {
		r.Fatalf("%d of %d healthy tasks are stopped, of %d desired, at %d percent",
			stopped, healthy, desired, w.service.MinimumHealthyPercent)
	}
	if len(p.StartIn) > 0 && (p.Start+len(p.Stop) > 0 || (len(tasks)+1)*100 > w.service.Desired*w.service.MaximumPercent) {
		r.Fatalf("%+v moves a task of %d", p, len(tasks))
	}
	if p.Start > 0 && (len(tasks)+p.Start)*100 > w.service.Desired*w.service.MaximumPercent {
		r.Fatalf("%d tasks beside %d, of %d desired, at %d percent", p.Start, len(tasks), desired, w.service.MaximumPercent)
	}
	for _, instance := range p.StartOn {
		if slices.ContainsFunc(tasks, func(t Task) bool { return t.Instance == instance }) {
			r.Fatalf("a second task on %s", instance)
		}
	}
	if p.Start+len(p.StartOn) > 0 && w.deployments[0].State == Failed {
		r.Fatal("a failed deployment starts tasks")
	}
}

// progress brings each task one status closer to Healthy or to its end.
func (w *world) progress() {
	var left []Task
	for _, t := range w.tasks {
		switch t.Status {
		case Pending, Running:
			t.Status++
		case Stopping:
			continue
		}
		left = append(left, t)
	}
	w.tasks = left
}

// disturb does at random what users, nodes and containers do.
func (w *world) disturb(r *rapid.T) {
	if len(w.tasks) > 0 {
		i := rapid.IntRange(0, len(w.tasks)-1).Draw(r, "task")
		t := &w.tasks[i]
		switch rapid.IntRange(0, 6).Draw(r, "what") {
		case 0: // it ends
			w.tasks = slices.Delete(w.tasks, i, i+1)
		case 1: // it fails
			if t.Deployment == w.deployments[0].ID {
				w.deployments[0].Failed++
				w.deployments[0].NotBefore = w.now.Add(Delay(w.deployments[0].Failed, w.service.Desired))
			}
			w.tasks = slices.Delete(w.tasks, i, i+1)
		case 2:
			if t.Status != Stopping {
				t.Status = Unhealthy
			}
		case 3:
			t.ProtectedUntil = w.now.Add(10 * time.Second)
		case 4:
			t.Draining = true
		case 5: // a user stops it
			t.Status = Stopping
		}
	}
	switch rapid.IntRange(0, 6).Draw(r, "wish") {
	case 0:
		w.service.Desired = rapid.IntRange(0, 12).Draw(r, "desired")
	case 1:
		w.made++
		w.deployments = append([]Deployment{{ID: fmt.Sprint("d", w.made), State: InProgress}}, w.deployments...)
	case 2:
		w.deployments[0].Unplaced = !w.deployments[0].Unplaced
	case 3:
		w.service.Alarms.Triggered = !w.service.Alarms.Triggered
	case 4:
		if w.service.Daemon {
			w.service.Instances = rapid.SampledFrom([][]string{{"i0"}, {"i0", "i1", "i2"}, {"i1", "i3"}, {}}).Draw(r, "instances")
		}
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(r, "seconds")) * time.Second)
}

// TestConverges disturbs a service at random and checks each plan against the service's limits. Left alone, the service must
// reach its desired state and stay there.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &world{now: now, deployments: []Deployment{{ID: "first", State: InProgress}}}
		w.service.MinimumHealthyPercent = rapid.SampledFrom([]int{0, 25, 50, 100}).Draw(r, "minimum")
		w.service.MaximumPercent = rapid.SampledFrom([]int{100, 125, 150, 200, 300}).Draw(r, "maximum")
		w.service.Desired = rapid.IntRange(0, 12).Draw(r, "desired")
		w.service.Bake = rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(r, "bake")
		w.service.Zones = rapid.SampledFrom([][]string{nil, {"i0", "i1"}, {"i0", "i1", "i2"}}).Draw(r, "zones")
		w.service.Breaker = Breaker{Enabled: rapid.Bool().Draw(r, "breaker"), Rollback: rapid.Bool().Draw(r, "rollback"), Threshold: 3}
		if w.service.Daemon = rapid.IntRange(0, 2).Draw(r, "daemon") == 0; w.service.Daemon {
			w.service.Zones = nil
			w.service.MaximumPercent = 100
			w.service.Instances = []string{"i0", "i1"}
			w.service.MinimumHealthyPercent = rapid.SampledFrom([]int{0, 25, 50}).Draw(r, "daemon's minimum")
		}
		for range rapid.IntRange(0, 30).Draw(r, "steps") {
			w.disturb(r)
			if rapid.Bool().Draw(r, "decide") {
				w.step(r)
			}
			if rapid.Bool().Draw(r, "progress") {
				w.progress()
			}
		}
		w.settle(r)
	})
}

// settle leaves the service alone, and checks that it reaches its desired state.
func (w *world) settle(r *rapid.T) {
	for i := range w.deployments {
		w.deployments[i].Unplaced = false
	}
	w.service.Alarms.Triggered = false
	for i := range w.tasks {
		w.tasks[i].Draining = false
	}
	for range 200 {
		w.now = w.now.Add(time.Hour)
		if !w.step(r) && !slices.ContainsFunc(w.tasks, func(t Task) bool { return t.Status != Healthy && t.Status != Unhealthy }) {
			break
		}
		w.progress()
	}
	if w.step(r) {
		r.Fatalf("it does not come to rest: %+v of %+v with %+v", w.service, w.deployments, w.tasks)
	}
	if w.deployments[0].State == Failed || w.isStuck() {
		return
	}
	want := w.service.Desired
	if w.service.Daemon {
		want = len(w.service.Instances)
	}
	for _, t := range w.tasks {
		if t.Deployment != w.deployments[0].ID || t.Status != Healthy {
			r.Fatalf("%+v is left", t)
		}
	}
	if len(w.tasks) != want || w.deployments[0].State != Completed {
		r.Fatalf("%d tasks, want %d, %s", len(w.tasks), want, w.deployments[0].State)
	}
	w.checkZones(r)
}

// checkZones expects no zone to have two tasks fewer than another, if tasks may be moved.
func (w *world) checkZones(r *rapid.T) {
	if w.service.Desired*w.service.MaximumPercent/100 <= w.service.Desired {
		return
	}
	in := map[string]int{}
	most := 0
	for _, t := range w.tasks {
		in[t.Zone]++
		most = max(most, in[t.Zone])
	}
	for _, zone := range w.service.Zones {
		if in[zone] < most-1 {
			r.Fatalf("the tasks in zones are %v", in)
		}
	}
}

// isStuck reports whether the rounded percentages allow neither a start nor a stop. ECS gets stuck there, too.
func (w *world) isStuck() bool {
	s := w.service
	if s.Daemon {
		return (len(s.Instances)*s.MinimumHealthyPercent+99)/100 >= len(s.Instances) && len(s.Instances) > 0
	}
	return s.Desired > 0 && s.Desired*s.MaximumPercent/100 <= s.Desired && (s.Desired*s.MinimumHealthyPercent+99)/100 >= s.Desired
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			tasks := append(many("a", n, Healthy), many("b", n/2, Healthy)...)
			service := Service{Desired: n, MinimumHealthyPercent: 50, MaximumPercent: 200}
			b.ReportAllocs()
			for b.Loop() {
				Decide(service, two, tasks, now)
			}
		})
	}
}

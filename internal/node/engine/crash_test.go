package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/acs"
)

// A scenario is what happens to a machine: tasks come, some are told to stop, time passes, and agents
// die after so many steps, each followed by another.
type scenario struct {
	tasks  []acs.Task
	stops  []bool
	lives  []int // steps of each agent; the last lives on
	pauses []time.Duration
}

func drawScenario(t *rapid.T) scenario {
	images := []string{
		"run",
		"run",
		"exit:0",
		"exit:0@2s",
		"exit:1@3s",
		"oom@1s",
		"pullfail",
		"createfail",
		"startfail",
		"stubborn",
		"slowpull@2s",
	}
	conditions := []string{"START", "COMPLETE", "SUCCESS"}
	var s scenario
	for i := range rapid.IntRange(1, 4).Draw(t, "tasks") {
		task := newFakeTask(fmt.Sprintf("t%d", i))
		for j := range rapid.IntRange(1, 3).Draw(t, "containers") {
			c := box(fmt.Sprintf("c%d", j), rapid.SampledFrom(images).Draw(t, "image"))
			c.Essential = rapid.Bool().Draw(t, "essential")
			if j > 0 && rapid.Bool().Draw(t, "waits") {
				c.DependsOn = []acs.ContainerDependency{
					{ContainerName: "c0", Condition: rapid.SampledFrom(conditions).Draw(t, "condition")},
				}
			}
			if rapid.Bool().Draw(t, "port") {
				c.PortMappings = []acs.PortMapping{{ContainerPort: 80}}
			}
			if rapid.IntRange(0, 3).Draw(t, "restarts") == 0 {
				c.RestartPolicy = &acs.RestartPolicy{Enabled: true, RestartAttemptPeriod: 1}
			}
			task.Containers = append(task.Containers, c)
		}
		if rapid.Bool().Draw(t, "gpu") {
			task = pinned(task, rapid.SampledFrom([]string{"GPU-0", "GPU-1"}).Draw(t, "which"))
		}
		if rapid.IntRange(0, 3).Draw(t, "network") == 0 {
			task.NetworkMode = "awsvpc"
		}
		s.tasks = append(s.tasks, task)
		s.stops = append(s.stops, rapid.Bool().Draw(t, "stop"))
	}
	for range rapid.IntRange(0, 6).Draw(t, "deaths") {
		s.lives = append(s.lives, rapid.IntRange(1, 40).Draw(t, "steps"))
		s.pauses = append(s.pauses, time.Duration(rapid.IntRange(0, 4000).Draw(t, "pause"))*time.Millisecond)
	}
	s.lives = append(s.lives, 0)
	s.pauses = append(s.pauses, 2*time.Minute)
	return s
}

// play plays a scenario, and returns what went wrong.
func (s scenario) play(t *testing.T, dir string) (wrong []string) {
	w := newWorld()
	acked := make([]bool, len(s.tasks))
	stopAcked := make([]bool, len(s.tasks))
	for life, steps := range s.lives {
		a := w.start(t, dir)
		a.mu.Lock()
		a.left = steps
		a.mu.Unlock()
		for i, task := range s.tasks { // the control plane says it again until it is acknowledged
			acked[i] = a.engine.Take(task) == nil || acked[i]
		}
		time.Sleep(s.pauses[life] / 2)
		for i, task := range s.tasks {
			if s.stops[i] && acked[i] {
				stopAcked[i] = a.engine.Take(stopOf(task)) == nil || stopAcked[i]
			}
		}
		time.Sleep(s.pauses[life])
		synctest.Wait()
		if life == len(s.lives)-1 {
			wrong = append(w.check(s.tasks, stopAcked), a.miscounted()...)
		}
		a.kill()
	}
	return wrong
}

// check says what is wrong with how the tasks stand.
func (w *world) check(tasks []acs.Task, stopped []bool) (wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clash != "" {
		wrong = append(wrong, "two tasks had "+w.clash)
	}
	for i, task := range tasks {
		var statuses []string
		for _, r := range w.reports {
			if r.TaskArn == task.Arn {
				statuses = append(statuses, r.Status)
			}
		}
		running := w.running(task.Arn)
		ended := len(statuses) > 0 && statuses[len(statuses)-1] == "STOPPED"
		if at := slices.Index(statuses, "STOPPED"); at >= 0 && slices.Contains(statuses[at:], "RUNNING") {
			wrong = append(wrong, task.Arn+" came back to life")
		}
		switch {
		case ended && len(running) > 0:
			wrong = append(wrong, fmt.Sprintf("%s is reported STOPPED, but %v run", task.Arn, running))
		case stopped[i] && !ended:
			wrong = append(wrong, fmt.Sprintf("%s does not stop: %v", task.Arn, statuses))
		case !ended && len(running) == 0 && !w.gpusInUse(tasks): // else it may wait for one
			wrong = append(wrong, fmt.Sprintf("%s neither runs nor ends: %v", task.Arn, statuses))
		}
	}
	return wrong
}

// miscounted lists the containers that were started more often than their policies say, or less.
func (a *agent) miscounted() (wrong []string) {
	for _, t := range a.engine.all() {
		for name := range t.rec.Containers {
			c, id := t.container(name)
			a.mu.Lock()
			n := a.starts[id]
			a.mu.Unlock()
			if n > c.Restarts+1 || n < c.Restarts || n == c.Restarts && c.Status == Running {
				wrong = append(wrong, fmt.Sprintf("%s was started %d times, with %d restarts", id, n, c.Restarts))
			}
		}
	}
	return wrong
}

// running lists the running containers of a task.
func (w *world) running(arn string) (ids []string) {
	for id, c := range w.containers {
		if c.status == "RUNNING" && c.spec.Labels["com.amazonaws.ecs.task-arn"] == arn {
			ids = append(ids, id)
		}
	}
	return ids
}

// gpusInUse reports whether a task that has GPUs runs, be it in a container without them.
func (w *world) gpusInUse(tasks []acs.Task) bool {
	return slices.ContainsFunc(tasks, func(t acs.Task) bool { return len(t.Associations) > 0 && len(w.running(t.Arn)) > 0 })
}

// Whenever agents die, no container runs twice, no GPU has two tasks, and every task that was taken
// runs on, or ends and is reported so.
func TestNoDeathOfAnAgentLosesATask(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScenario(rt)
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = s.play(t, t.TempDir()) })
		if len(wrong) > 0 {
			rt.Fatal(wrong)
		}
	})
}

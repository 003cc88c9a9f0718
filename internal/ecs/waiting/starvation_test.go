package waiting

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
)

// launch runs a task of a definition on a provider, for a service.
func (w *world) launch(definition, provider, service string) string {
	w.Helper()
	var task *state.Task
	w.change(func(tx *state.Tx) {
		l := launchOf(tx, definition, provider)
		l.Group, l.ServiceArn = "service:"+service, service
		task, _ = w.scheduler.Launch(tx, l)
	})
	if task == nil {
		w.Fatal("the task is refused")
	}
	return *task.TaskArn
}

// instanceOf returns where a task is, or "".
func (w *world) instanceOf(task string) string {
	return aws.ToString(w.store.View().Tasks.Get(task).ContainerInstanceArn)
}

// TestStreamsDoNotStarve: a task of four GPUs gets a machine of four although a service asks for every GPU that becomes free, and has fewer
// tasks than the other.
func TestStreamsDoNotStarve(t *testing.T) {
	running(t, func(w *world) {
		w.provider("p")
		w.node("small", "p", 1, nil)
		w.node("large", "p", 4, nil)
		var stream []string
		for range 5 {
			stream = append(stream, w.launch("one", "p", "stream"))
		}
		large := w.launch("four", "p", "large")
		for range 20 { // one task ends every 30 seconds, and another one comes
			time.Sleep(30 * time.Second)
			for len(stream) < 7 {
				stream = append(stream, w.launch("one", "p", "stream"))
			}
			for i, task := range stream {
				if w.instanceOf(task) != "" {
					w.stop(task)
					stream = append(stream[:i:i], stream[i+1:]...)
					break
				}
			}
		}
		w.expect(large, "PENDING", "large")
	})
}

// full fills a node of four GPUs and has tasks of one and four GPUs wait for a minute.
func (w *world) full() (on []string, one, four string) {
	w.provider("p")
	w.node("large", "p", 4, nil)
	for range 4 {
		on = append(on, w.launch("one", "p", "small"))
	}
	four = w.launch("four", "p", "large")
	one = w.launch("one", "p", "small")
	time.Sleep(time.Minute)
	return on, one, four
}

// TestRoomIsKept: what becomes free on the chosen instance is kept for the task.
func TestRoomIsKept(t *testing.T) {
	running(t, func(w *world) {
		on, one, four := w.full()
		for i, task := range on {
			w.stop(task)
			time.Sleep(time.Minute)
			if i < 3 {
				w.expect(one, "PROVISIONING", "")
			}
		}
		w.expect(four, "PENDING", "large")
		w.expect(one, "PROVISIONING", "")
	})
}

// TestRoomIsKeptForAWhile: if no other task ends on the instance, those that are left may run for ever. What is free there is given to others.
func TestRoomIsKeptForAWhile(t *testing.T) {
	running(t, func(w *world) {
		on, one, four := w.full()
		w.stop(on[0])
		time.Sleep(9 * time.Minute)
		w.expect(one, "PROVISIONING", "")
		w.stop(on[1])
		time.Sleep(9 * time.Minute)
		w.expect(one, "PROVISIONING", "")
		time.Sleep(2 * time.Minute)
		w.expect(one, "PENDING", "large")
		w.expect(four, "PROVISIONING", "")
	})
}

// TestKeptRoomGoesWithItsTask: a task that is stopped keeps nothing from others.
func TestKeptRoomGoesWithItsTask(t *testing.T) {
	running(t, func(w *world) {
		on, one, four := w.full()
		w.stop(on[0])
		time.Sleep(time.Minute)
		w.expect(one, "PROVISIONING", "")
		w.stop(four)
		time.Sleep(recheckEvery)
		synctest.Wait()
		w.expect(one, "PENDING", "large")
	})
}

// TestKeptRoomIsWhereTheTaskMayGo: nothing is kept for a task on an instance that could never take it.
func TestKeptRoomIsWhereTheTaskMayGo(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*state.ContainerInstance)
	}{
		{"too few GPUs", func(i *state.ContainerInstance) { i.GPUs = i.GPUs[:3] }},
		{"a faulty GPU", func(i *state.ContainerInstance) { i.GPUs[3].Fault = &state.GPUFault{Reason: "Xid 79"} }},
		{"another provider's", func(i *state.ContainerInstance) { i.CapacityProviderName = aws.String("q") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			running(t, func(w *world) {
				w.provider("p")
				w.provider("q")
				w.node("large", "p", 4, c.change)
				provider := *w.store.View().ContainerInstances.Get("large").CapacityProviderName
				var on []string
				for range 3 {
					on = append(on, w.launch("one", provider, "small"))
				}
				w.launch("four", "p", "large")
				w.node("tiny", "p", 0, nil)
				time.Sleep(2 * time.Minute)
				w.stop(on[0])
				time.Sleep(recheckEvery)
				one := w.launch("one", provider, "small")
				time.Sleep(recheckEvery)
				synctest.Wait()
				w.expect(one, "PENDING", "large")
			})
		})
	}
}

// TestEveryTaskIsPlaced: with tasks that end, no order of sizes, owners and times keeps any task waiting for ever, whoever asks for what is
// free.
func TestEveryTaskIsPlaced(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := open(t, t.TempDir())
		defer w.store.Close() //nolint:errcheck // the test is over
		w.provider("p")
		now := time.Now()
		w.node("n0", "p", 4, nil)
		for i := range rapid.IntRange(0, 1).Draw(r, "more nodes") {
			w.node(fmt.Sprint("n", i+1), "p", rapid.IntRange(1, 4).Draw(r, "gpus"), nil)
		}
		since, ends := map[string]time.Time{}, map[string]time.Time{}
		add := func(definition string, n int) {
			services := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), n, n).Draw(r, "services")
			w.change(func(tx *state.Tx) {
				for _, service := range services {
					l := launchOf(tx, definition, "p")
					l.Group, l.ServiceArn, l.Now = "service:"+service, service, now
					task, _ := w.scheduler.Launch(tx, l)
					since[*task.TaskArn] = now
				}
			})
		}
		add("one", 12)
		const longest, rounds = 2 * time.Minute, 30
		large := rapid.IntRange(1, 2).Draw(r, "large")
		for round := range rounds {
			now = now.Add(20 * time.Second)
			if round == 1 {
				add("four", large)
			}
			w.change(func(tx *state.Tx) {
				for id, at := range ends {
					if !at.After(now) {
						tx.Tasks.Put(tx.Tasks.Get(id).Stopped(types.TaskStopCodeEssentialContainerExited, "", now))
						delete(ends, id)
					}
				}
				Place(tx, w.scheduler, now, now)
			})
			waiting := 0
			for id, came := range since {
				task := w.store.View().Tasks.Get(id)
				switch {
				case task.ContainerInstanceArn != nil:
					delete(since, id)
					ends[id] = now.Add(time.Duration(rapid.IntRange(1, int(longest/time.Second)).Draw(r, "seconds")) * time.Second)
				case now.Sub(came) > starves:
					r.Fatalf("%s waits since %s", *task.TaskDefinitionArn, now.Sub(came))
				default:
					waiting++
				}
			}
			add("one", max(0, 4-waiting))
		}
	})
}

// starves is longer than any task of TestEveryTaskIsPlaced has to wait.
const starves = 9 * time.Minute

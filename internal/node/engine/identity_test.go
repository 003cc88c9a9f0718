package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// naming is a runtime that has its own ids for containers.
type naming struct{ *agent }

func (n naming) Identify(_ context.Context, id string) (runtime.Container, error) {
	return runtime.Container{ID: id, RuntimeID: "own-" + id, ImageID: "sha256:1"}, nil
}

func (n naming) List(ctx context.Context, owner string) ([]runtime.Container, error) {
	out, err := n.agent.List(ctx, owner)
	for i := range out {
		out[i].RuntimeID, out[i].ImageID = "own-"+out[i].ID, "sha256:1"
	}
	return out, err
}

func named(o *Options) { o.Runtime = naming{o.Runtime.(*agent)} }

// TestRuntimesOwnIDs: what the runtime calls a container is told, also by the next agent of one that had not noted it. The agent still finds the container by its own id.
func TestRuntimesOwnIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, w := t.TempDir(), newWorld()
		first := w.start(t, dir)
		one, two := newFakeTask("t", box("a", "run")), newFakeTask("u", box("b", "run"))
		first.take(t, one)
		if got := w.last(one.Arn).Containers[0].RuntimeID; got != "t-a" {
			t.Errorf("a runtime without ids of its own: %q", got)
		}
		first.kill()
		second := w.start(t, dir, named)
		second.take(t, two)
		if got := w.last(two.Arn).Containers[0].RuntimeID; got != "own-u-b" {
			t.Errorf("told %q", got)
		}
		rec, _ := second.engine.Task(one.Arn)
		if rec.RuntimeID("a") != "own-t-a" || rec.ContainerID("a") != "t-a" || rec.Containers["a"].ImageID != "sha256:1" {
			t.Errorf("the next agent knows it as %s and %s", rec.RuntimeID("a"), rec.ContainerID("a"))
		}
		second.kill()
	})
}

// TestAnIDOutlastsARestart: a container that its policy restarts stays the same one.
func TestAnIDOutlastsARestart(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		c := box("a", "exit:1@70s")
		c.RestartPolicy = &acs.RestartPolicy{Enabled: true, RestartAttemptPeriod: 60}
		a.take(t, newFakeTask("t", c))
		later(3 * time.Minute)
		rec, _ := a.engine.Task(arnPrefix + "t")
		if rec.Containers["a"].Restarts == 0 || rec.RuntimeID("a") != "own-t-a" {
			t.Errorf("%d restarts, known as %s", rec.Containers["a"].Restarts, rec.RuntimeID("a"))
		}
	}, named)
}

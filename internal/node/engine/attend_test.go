package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// brief is a runtime whose containers have a namespace once they run, for some more questions.
type brief struct {
	*agent
	questions *int
}

func (b brief) NetNS(_ context.Context, id string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.containers[id].status == runtime.Created {
		return "", nil
	}
	if *b.questions--; *b.questions < 0 {
		return "", nil
	}
	return "/proc/7/ns/net", nil
}

// TestNobodyIsWarnedOfTheDead: a container that has ended before the agent could serve it is no reason to warn, and one that runs is.
func TestNobodyIsWarnedOfTheDead(t *testing.T) {
	for questions, want := range map[int]bool{1: false, 2: true} {
		var log bytes.Buffer
		alone(t, func(t *testing.T, a *agent) {
			task := newFakeTask("t", box("a", "run"))
			task.NetworkMode = "bridge"
			a.take(t, task)
			if got := strings.Contains(log.String(), "cannot be served"); got != want {
				t.Errorf("%d: %s", questions, &log)
			}
		}, func(o *Options) {
			o.Runtime = brief{o.Runtime.(*agent), &questions}
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Attend = func(string, *acs.Task, string) (func(), error) { return nil, errors.New("no such file or directory") }
		})
	}
}

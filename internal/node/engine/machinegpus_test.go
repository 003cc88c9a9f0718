package engine

import (
	"slices"
	"testing"
)

// TestGPUsOfTheMachine: a privileged container without GPUs of its own sees all of its node's, unless it asks for others.
func TestGPUsOfTheMachine(t *testing.T) {
	machine := []string{"GPU-1", "GPU-2"}
	for _, c := range []struct {
		name        string
		host        string
		environment map[string]string
		own         bool
		want        []string
	}{
		{"not privileged", `{}`, nil, false, nil},
		{"privileged", `{"Privileged":true}`, nil, false, machine},
		{"asks for all", `{"Privileged":true}`, map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"}, false, machine},
		{"asks for none", `{"Privileged":true}`, map[string]string{"NVIDIA_VISIBLE_DEVICES": "none"}, false, nil},
		{"has one", `{"Privileged":true}`, nil, true, nil},
	} {
		alone(t, func(t *testing.T, a *agent) {
			task := newFakeTask("t", box("a", "run"))
			if c.own {
				task = pinned(task, "GPU-1")
			}
			task.Containers[0].DockerConfig.HostConfig = c.host
			task.Containers[0].Environment = c.environment
			a.take(t, task)
			if got := a.containers["t-a"].spec.MachineGPUs; !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}, func(o *Options) { o.GPUs = machine })
	}
}

package docker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestVisibleGPUs checks which devices a container gets of the engine, and what it is told of them.
func TestVisibleGPUs(t *testing.T) {
	machine := []string{"GPU-1", "GPU-2"}
	for _, c := range []struct {
		name     string
		spec     runtime.Spec
		env      string // the value; "-" is none
		requests string
	}{
		{"none", runtime.Spec{}, "void", "[]"},
		{"its own", runtime.Spec{GPUs: machine[:1]}, "GPU-1", "[[GPU-1] 0]"},
		{"its own, simulated", runtime.Spec{GPUs: machine[:1], SimulatedGPUs: true}, "GPU-1", "[]"},
		{"privileged", runtime.Spec{Privileged: true, MachineGPUs: machine}, "all", "[[] -1]"},
		{"privileged, simulated", runtime.Spec{Privileged: true, MachineGPUs: machine, SimulatedGPUs: true}, "GPU-1,GPU-2", "[]"},
		{"privileged with its own", runtime.Spec{Privileged: true, GPUs: machine[:1]}, "GPU-1", "[[GPU-1] 0]"},
		{"privileged, asks itself", runtime.Spec{Privileged: true}, "-", "[]"},
	} {
		config, host := &container.Config{}, &container.HostConfig{}
		addGPUs(&c.spec, config, host)
		requests := []any{}
		for _, r := range host.DeviceRequests {
			requests = append(requests, r.DeviceIDs, r.Count)
		}
		want := []string{"NVIDIA_VISIBLE_DEVICES=" + c.env}
		if c.env == "-" {
			want = nil
		}
		if got := fmt.Sprint(requests); got != c.requests || !slices.Equal(config.Env, want) {
			t.Errorf("%s: %q and requests %s, want %q and %s", c.name, config.Env, got, want, c.requests)
		}
	}
}

// TestCheckGPUs: an engine that can't give containers GPUs is known before a task fails.
func TestCheckGPUs(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // whatever this machine has
	for _, c := range []struct {
		name, info string
		want       string // of the error; "" is none
	}{
		{"no toolkit", `{"Runtimes":{"runc":{}},"CDISpecDirs":["/etc/cdi"]}`, "install nvidia-container-toolkit"},
		{"a runtime", `{"Runtimes":{"runc":{},"nvidia":{"path":"nvidia-container-runtime"}}}`, ""},
		{"CDI", `{"Runtimes":{"runc":{}},"DiscoveredDevices":[{"Source":"cdi","ID":"nvidia.com/gpu=0"}]}`, ""},
		{"CDI of another vendor", `{"DiscoveredDevices":[{"Source":"cdi","ID":"amd.com/gpu=0"}]}`, "install nvidia-container-toolkit"},
	} {
		rt := fakeEngine(t, func(*http.Request) string { return c.info })
		err := rt.CheckGPUs(t.Context(), []string{"GPU-1"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

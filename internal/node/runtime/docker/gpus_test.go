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
		byCDI    string
	}{
		{"none", runtime.Spec{}, "void", "[]", "[]"},
		{"its own", runtime.Spec{GPUs: machine[:1]}, "GPU-1", "[ [GPU-1] 0]", "[cdi [nvidia.com/gpu=GPU-1] 0]"},
		{"its own, simulated", runtime.Spec{GPUs: machine[:1], SimulatedGPUs: true}, "GPU-1", "[]", "[]"},
		{
			"privileged", runtime.Spec{Privileged: true, MachineGPUs: machine}, "all", "[ [] -1]",
			"[cdi [nvidia.com/gpu=GPU-1 nvidia.com/gpu=GPU-2] 0]",
		},
		{"privileged, simulated", runtime.Spec{Privileged: true, MachineGPUs: machine, SimulatedGPUs: true}, "GPU-1,GPU-2", "[]", "[]"},
		{
			"privileged with its own", runtime.Spec{Privileged: true, GPUs: machine[:1]}, "GPU-1", "[ [GPU-1] 0]",
			"[cdi [nvidia.com/gpu=GPU-1] 0]",
		},
		{"privileged, asks itself", runtime.Spec{Privileged: true}, "-", "[]", "[]"},
	} {
		config, host := &container.Config{}, &container.HostConfig{}
		addGPUs(&c.spec, config, host, true)
		if got := fmt.Sprint(requested(host)); got != c.byCDI {
			t.Errorf("%s, by CDI: requests %s, want %s", c.name, got, c.byCDI)
		}
		config, host = &container.Config{}, &container.HostConfig{}
		addGPUs(&c.spec, config, host, false)
		want := []string{"NVIDIA_VISIBLE_DEVICES=" + c.env}
		if c.env == "-" {
			want = nil
		}
		if got := fmt.Sprint(requested(host)); got != c.requests || !slices.Equal(config.Env, want) {
			t.Errorf("%s: %q and requests %s, want %q and %s", c.name, config.Env, got, want, c.requests)
		}
	}
}

// requested returns drivers, devices and counts of what a container asks the engine for.
func requested(host *container.HostConfig) []any {
	out := []any{}
	for _, r := range host.DeviceRequests {
		out = append(out, r.Driver, r.DeviceIDs, r.Count)
	}
	return out
}

// TestCheckGPUs: an engine that can't give containers GPUs is known before a task fails.
func TestCheckGPUs(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // whatever this machine has
	for _, c := range []struct {
		name, info string
		want       string // of the error; "" is none
		cdi        bool   // whether GPUs are asked for by their names there
	}{
		{"no toolkit", `{"Runtimes":{"runc":{}},"CDISpecDirs":["/etc/cdi"]}`, "install nvidia-container-toolkit", false},
		{"a runtime", `{"Runtimes":{"runc":{},"nvidia":{"path":"nvidia-container-runtime"}}}`, "", false},
		{"CDI", `{"Runtimes":{"runc":{}},"DiscoveredDevices":[{"Source":"cdi","ID":"nvidia.com/gpu=GPU-1"}]}`, "", true},
		{"CDI by numbers", `{"DiscoveredDevices":[{"Source":"cdi","ID":"nvidia.com/gpu=0"}]}`, "nvidia.com/gpu=GPU-1: nvidia-ctk cdi generate", true},
		{"CDI of another vendor", `{"DiscoveredDevices":[{"Source":"cdi","ID":"amd.com/gpu=0"}]}`, "install nvidia-container-toolkit", false},
	} {
		rt := fakeEngine(t, func(*http.Request) string { return c.info })
		err := rt.CheckGPUs(t.Context(), []string{"GPU-1"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if rt.cdi != c.cdi {
			t.Errorf("%s: CDI %t", c.name, rt.cdi)
		}
	}
}

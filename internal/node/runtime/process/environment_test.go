package process

import (
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestGPUsInTheEnvironment: CUDA keeps to its own variable, whatever the task asks for. An empty one hides all GPUs.
func TestGPUsInTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		gpus, machine        []string
		wantNVIDIA, wantCUDA string
	}{
		{nil, nil, "void", ""},
		{[]string{"GPU-1"}, nil, "GPU-1", "GPU-1"},
		{[]string{"GPU-1", "MIG-2"}, nil, "GPU-1,MIG-2", "GPU-1,MIG-2"},
		{nil, []string{"GPU-1", "GPU-2"}, "GPU-1,GPU-2", "GPU-1,GPU-2"},
	} {
		env := environment(&runtime.Spec{GPUs: c.gpus, MachineGPUs: c.machine, Env: []string{"CUDA_VISIBLE_DEVICES=0,1", "NVIDIA_VISIBLE_DEVICES=all"}})
		for name, want := range map[string]string{"NVIDIA_VISIBLE_DEVICES=": c.wantNVIDIA, "CUDA_VISIBLE_DEVICES=": c.wantCUDA} {
			got := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, name) })
			if !slices.Equal(got, []string{name + want}) { // of two, C's getenv reads the first
				t.Errorf("with %v: %q, want %s", c.gpus, got, want)
			}
		}
	}
}

package docker

import (
	"net/http"
	"strings"
	"testing"
)

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

package docker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/info") {
				fmt.Fprint(w, c.info) //nolint:errcheck // a test
				return
			}
			fmt.Fprint(w, `{"ApiVersion":"1.51"}`) //nolint:errcheck // a test
		}))
		rt, err := New(t.Context(), "tcp://"+server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		err = rt.CheckGPUs(t.Context(), []string{"GPU-1"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		server.Close()
		rt.Close() //nolint:errcheck // a test
	}
}

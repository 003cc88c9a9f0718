package docker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLateOOM: where an engine tells the end of a container before the kernel's reason for it, the reason is found all the same, and only for
// those that can have run out of memory.
func TestLateOOM(t *testing.T) {
	tests := []struct {
		name, state, memory, events string
		want                        bool
	}{
		{"told at once", `"ExitCode":137,"OOMKilled":true`, "64000000", "", true},
		{"told later", `"ExitCode":137`, "64000000", `{"Type":"container","Action":"oom"}`, true},
		{"killed", `"ExitCode":137`, "64000000", "", false},
		{"no limit", `"ExitCode":137`, "0", `{"Type":"container","Action":"oom"}`, false},
		{"another exit", `"ExitCode":1`, "64000000", `{"Type":"container","Action":"oom"}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rt := fakeEngine(t, func(r *http.Request) string {
				switch {
				case strings.HasSuffix(r.URL.Path, "/wait"):
					return `{"StatusCode":137}`
				case strings.HasSuffix(r.URL.Path, "/events"):
					return test.events
				}
				return fmt.Sprintf(`{"Id":"c","State":{%s},"HostConfig":{"Memory":%s}}`, test.state, test.memory)
			})
			exit, err := rt.Wait(t.Context(), "c")
			if err != nil || exit.OOMKilled != test.want {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}

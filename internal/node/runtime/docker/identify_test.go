package docker

import (
	"net/http"
	"strings"
	"testing"
)

// TestIdentify: a container is found by the agent's id, and has the engine's own too.
func TestIdentify(t *testing.T) {
	id := strings.Repeat("4f", 32)
	rt := fakeEngine(t, func(r *http.Request) string {
		if !strings.HasSuffix(r.URL.Path, "/containers/task-main/json") {
			return `{}`
		}
		return `{"Id":"` + id + `","Name":"/task-main","Image":"sha256:1","State":{"Status":"created"},"Config":{"Labels":{"dev.pintle.id":"task-main"}}}`
	})
	c, err := rt.Identify(t.Context(), "task-main")
	if err != nil || c.ID != "task-main" || c.RuntimeID != id || c.ImageID != "sha256:1" {
		t.Errorf("%+v, %v", c, err)
	}
}

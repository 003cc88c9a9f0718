package docker

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestHungPull: a pull in which the engine reports no progress is given up. The engine is a fake one: the real one reports progress for as
// long as its own requests to the registry take.
func TestHungPull(t *testing.T) {
	over := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/images/create") {
			return
		}
		w.Write([]byte(`{"status":"Pulling"}` + "\n")) //nolint:errcheck // a test
		w.(http.Flusher).Flush()
		<-over
	}))
	defer server.Close()
	defer close(over)
	api, err := client.New(client.WithHost("tcp://" + server.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	err = (&Runtime{api: api}).pullWatched(t.Context(), "registry.example.com/app:1", client.ImagePullOptions{}, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "sent nothing for 50ms") {
		t.Errorf("got %v", err)
	}
}

// TestUnavailable: calls that don't reach the engine, or are cut off by its end, are told from those that fail. The engine is a fake one.
func TestUnavailable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close() //nolint:errcheck // as meant
		}
	}))
	api, err := client.New(client.WithHost("tcp://" + server.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{api: api}
	for _, state := range []string{"ending", "gone"} {
		_, pull := r.Pull(t.Context(), "registry.example.com/app:1", nil)
		for call, err := range map[string]error{
			"pull":   pull,
			"create": r.Create(t.Context(), &runtime.Spec{ID: "c", Image: "i", Network: runtime.Network{Mode: "none"}}),
			"start":  r.Start(t.Context(), "c"),
		} {
			if !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("%s of an engine that is %s: %v", call, state, err)
			}
		}
		server.Close()
	}
}

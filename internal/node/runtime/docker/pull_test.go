package docker

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
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

package docker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestLastLines: where an engine ends the stream of a container's output before the last lines, they are read all the same, and none twice.
func TestLastLines(t *testing.T) {
	const first, rest = "2026-11-22T10:00:00.000000001Z one\r\n2026-11-22T10:00:00.000000001Z two\r\n", "2026-11-22T10:00:00.000000002Z three\r\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"ApiVersion":"1.51"}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/json"):
			answer = `{"Id":"c","Config":{"Tty":true}}`
		case strings.HasSuffix(r.URL.Path, "/logs") && r.URL.Query().Get("follow") == "1":
			answer = first
		case strings.HasSuffix(r.URL.Path, "/logs"):
			answer = first + rest
		}
		fmt.Fprint(w, answer) //nolint:errcheck // a test
	}))
	defer server.Close()
	rt, err := New(t.Context(), "tcp://"+server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close() //nolint:errcheck // a test
	var got []string
	err = rt.Logs(t.Context(), "c", "", true, func(l runtime.Line) error {
		got = append(got, l.Text)
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q, %v", got, err)
	}
}

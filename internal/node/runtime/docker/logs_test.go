package docker

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestLastLines: where an engine ends the stream of a container's output before the last lines, they are read all the same, and none twice.
func TestLastLines(t *testing.T) {
	const first, rest = "2026-11-22T10:00:00.000000001Z one\r\n2026-11-22T10:00:00.000000001Z two\r\n", "2026-11-22T10:00:00.000000002Z three\r\n"
	rt := fakeEngine(t, func(r *http.Request) string {
		switch {
		case strings.HasSuffix(r.URL.Path, "/json"):
			return `{"Id":"c","Config":{"Tty":true}}`
		case r.URL.Query().Get("follow") == "1":
			return first
		}
		return first + rest
	})
	var got []string
	err := rt.Logs(t.Context(), "c", "", true, func(l runtime.Line) error {
		got = append(got, l.Text)
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q, %v", got, err)
	}
}

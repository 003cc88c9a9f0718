package console

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDashboards: whatever the dashboards and the documentation ask for is on the page, or among what only GPUs have.
func TestDashboards(t *testing.T) {
	w := httptest.NewRecorder()
	metricsConsole(t, nil, "").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
	known := map[string]bool{utilization.Name: true, gpus.Name: true, instances.Name: true, groupSizes.Name: true}
	for _, g := range gauges {
		known[g.Name] = true
	}
	for line := range strings.Lines(w.Body.String()) {
		if fields := strings.Fields(line); fields[0] == "#" && fields[1] == "TYPE" {
			known[fields[2]] = true
		}
	}
	agents, err := os.ReadFile("../node/scrape.go") // agents have pages of their own
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`Name: "(pintle_[a-z_]+)"`).FindAllSubmatch(agents, -1) {
		known[string(found[1])] = true
	}
	files, err := filepath.Glob("../../examples/grafana/*.json")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	name := regexp.MustCompile(`\b(pintle_[a-z_]+|DCGM_[A-Z_]+|process_[a-z_]+|go_[a-z]+)\b`)
	for _, path := range append(files, "../../docs/observability.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range name.FindAllString(string(text), -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(found, "_count"), "_bucket")
			if !known[base] && base != "process_" {
				t.Errorf("%s asks for %s, which there isn't", path, found)
			}
		}
	}
}

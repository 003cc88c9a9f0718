package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/console/bill"
	"github.com/pintle/pintle/internal/console/costs"
)

// TestCost: what the control plane tells is printed in lines, or as it came; a type without a price has none, and names are text.
func TestCost(t *testing.T) {
	price := 3.0
	time := costs.Time{
		Since: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Saved: 9, GPUHours: 5, GPUHoursHeld: 1,
		Bill: bill.Of([]bill.Use{{Type: "p3.2xlarge", Hours: 5, Most: 4}, {Type: "own\x1b[31m", Hours: 2, Most: 1}}, map[string]float64{"p3.2xlarge": 3}, 2*time.Hour),
	}
	r := costs.Report{Priced: true, Today: time, Month: time, Now: costs.Rate{Cost: 3, Machines: []costs.Machines{
		{Type: "own\x1b[31m", Count: 1}, {Type: "p3.2xlarge", Count: 1, Price: &price, Cost: 3},
	}}}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == costs.Path {
			w.Write(body) //nolint:errcheck // a test
		}
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	ask := func(asJSON bool) string {
		return printed(t, func() error { return (&costCmd{endpointFlags{server.URL}, asJSON}).Run(t.Context()) })
	}
	got := ask(false)
	for _, want := range []string{
		"now    p3.2xlarge   1          -      3.00   3.00/h  -\n", "today  p3.2xlarge   4 at most  5.00   3.00   15.00   24.00\n",
		`month  own\x1b[31m  1 at most  2.00   -      -       -` + "\n",
		"now    3.00 an hour\n", "today  15.00, 9.00 saved by scaling; tasks held 1.00 of 5.00 GPU-hours (20 %); counted since 2026-03-01T00:00:00Z\n", "doesn't have own",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("an escape is printed: %q", got)
	}
	if got := ask(true); got != string(body) {
		t.Errorf("as JSON it's %s", got)
	}
}

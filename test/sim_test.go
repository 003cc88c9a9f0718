package test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSim replays a trace with the examples' policies and reads the result as a user would.
func TestSim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.csv")
	text := "at,tokens\n"
	for minute := range 10 { // ten quiet seconds, then fifty busy ones
		for second := range 60 {
			n := 1
			if second >= 10 {
				n = 8
			}
			text += strings.Repeat(fmt.Sprintf("%d,100\n", 60*minute+second), n)
		}
	}
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	picture, file := filepath.Join(dir, "sim.svg"), filepath.Join(dir, "sim.json")
	simulate := func(args ...string) (string, error) {
		out, err := exec.Command(bin(t, "pintle"), append([]string{"sim", "--trace", trace, "--work", "tokens=20ms", "--slots", "4",
			"--max", "20",
			"--policy", "../examples/sim/backlog.json", "--policy", "../examples/sim/gpu.json"}, args...)...).CombinedOutput()
		return string(out), err
	}
	out, err := simulate("--plot", picture, "--json", file, "--price", "0.5", "--timeline", "--length", "1h")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"POLICY", "COST", "backlog, faithful", "backlog, fast", "gpu, faithful", "gpu, fast", "clairvoyant",
		"peak, fixed", "desired 2", "messages wait and"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(drawn, new(struct{})); err != nil || strings.Count(string(drawn), `<path class="steps"`) != 9 {
		t.Errorf("%v: the plot needs two lines for each of four policies, and what was needed:\n%s", err, drawn)
	}
	var result struct {
		Clairvoyant struct{ MostTasks int }
		Policies    []struct {
			Policy              string
			Requests, WithinSLO int
			GPUHours, Cost      float64
			Timeline            []struct{ Running int }
		}
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &result)
	}
	if err != nil || len(result.Policies) != 4 || result.Clairvoyant.MostTasks != 4 {
		t.Fatalf("%v: %+v", err, result)
	}
	for _, p := range result.Policies {
		if p.Requests != 24600 || p.GPUHours <= 0 || p.Cost != p.GPUHours/2 || len(p.Timeline) != 60 {
			t.Errorf("%s: %d requests, %v GPU-hours, cost %v, %d minutes", p.Policy, p.Requests, p.GPUHours, p.Cost, len(p.Timeline))
		}
	}
	if fast, faithful := result.Policies[1], result.Policies[0]; fast.WithinSLO <= faithful.WithinSLO || fast.WithinSLO < 23000 {
		t.Errorf("within the SLO: %d fast, %d faithful", fast.WithinSLO, faithful.WithinSLO)
	}
	for want, args := range map[string][]string{
		`no column "x"`:         {"--work", "x=1s"},
		"unknown instance type": {"--fleet", "g4dn.huge"},
		"the bounds must be":    {"--min", "30"},
		"ends in .svg":          {"--plot", filepath.Join(dir, "sim.png")},
	} {
		if out, err := simulate(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"TargetValue": 1, "Cooldown": 5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := simulate("--policy", broken); err == nil || !strings.Contains(out, `unknown field "Cooldown"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

package internal

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/pintle/pintle/internal/"

// mayKnow is the house's rule: which of our packages each of them may import. A name stands for the
// package and all below it.
var mayKnow = map[string][]string{
	"sqs":            {"sqs", "wal", "file", "pattern", "wire/call"},
	"iam":            {},
	"s3":             {"s3", "groupcommit", "file", "checksum", "wire/call"},
	"logs":           {"logs", "cloudwatch", "wal", "file", "pattern"},
	"cloudwatch":     {"cloudwatch", "acs", "sqs", "state", "wal", "file", "pattern"},
	"scaling":        {"scaling", "cloudwatch", "state"},
	"appautoscaling": {"appautoscaling", "scaling", "cloudwatch", "state", "pattern"},
	"ecs":            {"ecs", "state", "pattern", "acs", "wire/call"},
	"autoscaling":    {"autoscaling", "scaling", "ecs/capacity", "state", "cloudwatch", "instancetype", "pattern"},
	"ec2":            {"ec2", "state", "instancetype", "file", "pattern"},
	"wire":           {"wire", "checksum"}, "checksum": {}, "groupcommit": {}, "file": {}, "wal": {"wal", "file"}, "pattern": {}, "state": {"state", "groupcommit"}, "acs": {}, "instancetype": {},
	"node": {"node", "acs", "instancetype", "file", "pattern"}, "sidecar": {}, "worker": {},
	"sim": {"scaling", "appautoscaling", "ecs", "state", "cloudwatch", "instancetype"},
}

// TestWhoKnowsWhom checks the imports of every package against the rule, and that no service knows
// another.
func TestWhoKnowsWhom(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, ok := strings.CutPrefix(fields[0], module)
		if !ok {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		allowed, known := mayKnow[top]
		if !known {
			t.Errorf("package %s is not in the house's rule", name)
			continue
		}
		for _, path := range fields[1:] {
			if other, ours := strings.CutPrefix(path, module); ours && !permits(allowed, other) {
				t.Errorf("%s imports %s, which it may not know", name, other)
			}
		}
	}
}

func permits(allowed []string, name string) bool {
	for _, a := range allowed {
		if name == a || strings.HasPrefix(name, a+"/") {
			return true
		}
	}
	return false
}

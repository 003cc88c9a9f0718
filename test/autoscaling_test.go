package test

import (
	"regexp"
	"testing"
)

// TestGPUServiceFollowsItsLoad walks through examples/0-gpu-service with the AWS CLI: target tracking on
// the utilisation of GPUs grows a service whose tasks keep theirs busy, and shrinks it when they no longer
// do.
func TestGPUServiceFollowsItsLoad(t *testing.T) {
	p := Up(t, "p3.16xlarge", "--reaction", "fast", "--settle", "1s")
	out, err := p.Command("../examples/0-gpu-service/scale.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`TargetTracking-service/default/gpu-service-AlarmHigh-\S+\s+TargetTracking-service/default/gpu-service-AlarmLow-`,
		`(?s)desired and running: 4\t4.*desired and running: 1\t1`,
		`Setting desired count to 4\.\tmonitor alarm TargetTracking-service/default/gpu-service-AlarmHigh-\S+ in state ALARM triggered policy gpu`,
		`Setting desired count to 1\.\tmonitor alarm TargetTracking-service/default/gpu-service-AlarmLow-\S+ in state ALARM triggered policy gpu`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the script's output lacks %s:\n%s", want, out)
		}
	}
}

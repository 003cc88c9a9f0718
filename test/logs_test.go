package test

import "testing"

// TestLogFilters puts events into a log group with a metric filter and a subscription, begins an export, and kills Pintle at once: an alarm
// sees the metric, the queue gets the events, and the bucket the export all the same.
func TestLogFilters(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	script := func(part string) {
		t.Helper()
		if out, err := p.Command(python, "logs.py", part).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", part, err, out)
		}
	}
	script("before")
	p.Kill()
	p.Start()
	script("after")
}

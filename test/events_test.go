package test

import "testing"

// TestEvents: the ECS events of a deployment with failures reach a rule's queue in order and complete, with the members that AWS documents, a
// schedule runs a task as its role, and events that were acknowledged survive a SIGKILL.
func TestEvents(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.12xlarge", "--settle", "2s")
	if out, err := p.Command(python, "events.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.Kill()
	p.Start()
	if out, err := p.Command(python, "events.py", "again").CombinedOutput(); err != nil {
		t.Fatalf("after the SIGKILL: %v\n%s", err, out)
	}
}

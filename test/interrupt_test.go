package test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestASecondInterrupt: the first Ctrl-C says what is waited for, and the second ends pintle up without it. The next one takes over what was
// left, and ends it.
func TestASecondInterrupt(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	p.AWS("ecs", "register-task-definition", "--family", "deaf", "--container-definitions",
		`[{"name":"main","image":"none","memory":64,"stopTimeout":30,"command":["sh","-c","trap '' TERM; while :; do sleep 0.1; done"]}]`)
	task := p.AWS("ecs", "run-task", "--task-definition", "deaf", "--query", "tasks[0].taskArn", "--output", "text")
	p.Await(task, "RUNNING")
	id := task[strings.LastIndexByte(task, '/')+1:]

	p.signal(syscall.SIGINT)
	Eventually(t, "it says what it waits for", func() bool {
		return strings.Contains(p.Printed(), "Ctrl-C once more") && strings.Contains(p.Printed(), "waiting for container "+id)
	})
	p.signal(syscall.SIGINT)
	Eventually(t, "what is left is named", func() bool { return strings.Contains(p.Printed(), "takes them over") })
	p.cmd.Wait() //nolint:errcheck // its exit code is what counts
	if code := p.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("it ended with %d", code)
	}
	left := regexp.MustCompile("left running: container " + id + `-main of node-1 \(process (\d+)\)`).FindStringSubmatch(p.Printed())
	if left == nil {
		t.Fatalf("it printed\n%s", p.Printed())
	}
	pid, _ := strconv.Atoi(left[1])
	if b, err := os.ReadFile("/proc/" + left[1] + "/cmdline"); err != nil || !strings.Contains(string(b), "trap") {
		t.Errorf("process %s is %q, %v", left[1], b, err)
	}
	p.Start()
	p.AWS("ecs", "stop-task", "--task", task)
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil { // it would take its stopTimeout
		t.Error(err)
	}
	p.Await(task, "STOPPED")
}

func (p *Pintle) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

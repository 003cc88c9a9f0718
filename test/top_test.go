package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hinshun/vt10x"

	"github.com/pintle/pintle/internal/node/runtime"
)

// topScreen is pintle top at a terminal of 80 by 24, as one has it over SSH.
type topScreen struct{ *at }

func (p *Pintle) top(args ...string) topScreen {
	cmd := p.Command(bin(p.t, "pintle"), append([]string{"top"}, args...)...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	return topScreen{atTerminalOf(p.t.(*testing.T), runtime.Size{Cols: 80, Rows: 24}, cmd)}
}

// now is what is on the screen.
func (s topScreen) now() string {
	terminal := vt10x.New(vt10x.WithSize(80, 24))
	fmt.Fprint(terminal, s.shown()) //nolint:errcheck // it's in memory
	return terminal.String()
}

// has waits until all of these texts are on the screen at once.
func (s topScreen) has(texts ...string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Log("the screen:\n" + s.now())
		}
	}()
	Eventually(s.t, fmt.Sprintf("%q on the screen of pintle top", texts), func() bool {
		now := s.now()
		for _, text := range texts {
			if !strings.Contains(now, text) {
				return false
			}
		}
		return true
	})
}

// press types keys, and waits for what they lead to.
func (s topScreen) press(keys string, has ...string) {
	s.t.Helper()
	s.types(keys)
	s.has(has...)
}

// TestTop: an engineer looks at a cluster over SSH: its nodes, GPUs, tasks and services, why something waits, logs, a shell, and stops a task. What
// tasks call themselves and write commands nobody's terminal.
func TestTop(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.16xlarge=1")
	const evil = "\x1b]0;evil\x07\x1b[31mred"
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"talk","containerDefinitions":[{"name":"main","image":"busybox","memory":64,
		"command":["sh","-c","while true; do printf '\\033]0;evil\\007\\033[31mred line\\n'; sleep 0.3; done"],"resourceRequirements":[{"type":"GPU","value":"1"}],
		"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"/talk","awslogs-create-group":"true","awslogs-stream-prefix":"s","awslogs-region":"us-east-1"}}}]}`)
	p.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"huge","containerDefinitions":[{"name":"main","image":"busybox","memory":64,
		"command":["true"],"resourceRequirements":[{"type":"GPU","value":"16"}]}]}`)
	gone := p.AWS("ecs", "run-task", "--task-definition", "talk", "--query", "tasks[0].taskArn", "--output", "text")
	p.AWS("ecs", "stop-task", "--task", gone, "--reason", evil)
	p.Await(gone, "STOPPED")
	task := p.AWS("ecs", "run-task", "--task-definition", "talk", "--enable-execute-command", "--query", "tasks[0].taskArn", "--output", "text")
	p.Await(task, "RUNNING")
	p.AWS("ecs", "create-service", "--service-name", "huge", "--task-definition", "huge", "--desired-count", "1")
	short := task[strings.LastIndexByte(task, '/')+1:][:8]

	s := p.top()
	s.has("default  1 node, 8 GPUs (7 free), 1 task, 1 service", "1 nodes 1", "p3.16xlarge", "ACTIVE", "q: quit")
	s.press("2", "TEMP", "simulated Te", short+"/m", "/16384  ")
	s.press("3", short, "talk:1", "RUNNING", "STOPPED", `\x1b]0;evil`)
	s.press("/"+short+"\r", "filter: "+short)
	if strings.Contains(s.now(), "STOPPED") {
		t.Errorf("the filter lets others through:\n%s", s.now())
	}
	s.press("w", "It runs on instance")
	s.press("\x1b", "q: quit")
	s.press("l", `\x1b]0;evil\a\x1b[31mred line`)
	s.press("qe", "#")
	s.press("echo shell $((6*7)); stty size\r", "shell 42", "24 80")
	s.press("exit\r", "DEFINITION", short)
	s.press("s", "? y or n")
	s.press("n", "not done")
	s.press("sy", "0 tasks", "STOPPED")
	s.press("\x1b", "/: filter")
	s.press("4", "huge", "WANTED")
	s.press("w", "task", "wants:", "16 GPUs", "Ask for at most 8 GPUs")
	s.press("qv", "unable to place a task")
	s.press("q?", "ctrl-C")
	s.press("x", "WANTED")
	s.types("q")
	if code := s.ends(); code != 0 {
		t.Errorf("pintle top ends with %d", code)
	}
	if all := s.shown(); strings.Contains(all, "\x1b]0;") || strings.Contains(all, "\x1b[31mred") || !strings.Contains(all, "\x1b[?1049l") {
		t.Errorf("what tasks write commands the terminal, or it isn't left as it was: %q", all)
	}
}

package test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
)

// sessionPlugin builds AWS's session-manager-plugin, and returns its directory.
func sessionPlugin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "session-manager-plugin"),
		"github.com/aws/session-manager-plugin/src/sessionmanagerplugin-main")
	build.Dir = "testdata/plugin"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("Session Manager's plugin can't be built: %v\n%s", err, out)
	}
	return dir
}

// at is a program at a terminal.
type at struct {
	t      *testing.T
	keys   *io.PipeWriter
	sizes  chan runtime.Size
	screen output
	ended  chan error
}

// atTerminal runs a program at a terminal of 99 by 33.
func atTerminal(t *testing.T, cmd *exec.Cmd) *at {
	return atTerminalOf(t, runtime.Size{Cols: 99, Rows: 33}, cmd)
}

// atTerminalOf runs a program at a terminal of a size.
func atTerminalOf(t *testing.T, size runtime.Size, cmd *exec.Cmd) *at {
	in, keys := io.Pipe()
	a := &at{t: t, keys: keys, sizes: make(chan runtime.Size), ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); keys.Close() })
	go func() {
		e := runtime.Exec{Stdin: in, Stdout: &a.screen, Size: size, Resize: a.sizes}
		a.ended <- terminal.Run(ctx, cmd, e, false)
	}()
	return a
}

func (a *at) types(keys string) { io.WriteString(a.keys, keys) } //nolint:errcheck // the program may have ended

// shows waits until the terminal shows a text.
func (a *at) shows(text string) {
	a.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(a.shown(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("the terminal shows no %q, but\n%s", text, a.shown())
		}
	}
}

func (a *at) shown() string {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	return string(a.screen.text)
}

// ends waits for the program's end, and returns its exit code.
func (a *at) ends() int {
	a.t.Helper()
	select {
	case err := <-a.ended:
		return exitCodeOf(err)
	case <-time.After(2 * time.Minute):
		a.t.Fatalf("the program at the terminal never ends; it shows\n%s", a.shown())
		return 0
	}
}

func exitCodeOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// runForExec runs a task in which commands can be executed, and waits until it runs.
func (p *Pintle) runForExec(definition string, more ...string) (task string) {
	p.t.Helper()
	p.AWS("ecs", "register-task-definition", "--cli-input-json", definition)
	task = p.AWS(append([]string{"ecs", "run-task", "--task-definition", "exec", "--query", "tasks[0].taskArn", "--output", "text"}, more...)...)
	p.Await(task, "RUNNING")
	return task[strings.LastIndexByte(task, '/')+1:]
}

const sleeper = `{"family":"exec","containerDefinitions":[{"name":"main","image":"i","memory":64,
	"command":["sh","-c","trap 'exit 0' TERM; sleep 3000 & wait"],"environment":[{"name":"MINE","value":"its own"}]}]}`

// TestExecuteCommand has a shell in a container by the AWS CLI and the plugin that AWS makes for it: a terminal with its size, ctrl-C, vi,
// the end; and what pintle exec adds, exit codes.
func TestExecuteCommand(t *testing.T) {
	t.Parallel()
	plugin := sessionPlugin(t)
	p := Up(t, "g4dn.xlarge=1")
	task := p.runForExec(sleeper, "--enable-execute-command")
	cmd := p.Command(python, "-m", "awscli", "--endpoint-url", p.Endpoint, "ecs", "execute-command", "--task", task, "--interactive", "--command", "/bin/sh")
	cmd.Env = append(cmd.Env, "PATH="+plugin+":"+os.Getenv("PATH"))
	a := atTerminal(t, cmd)
	a.shows("Starting session with SessionId: ecs-execute-command-")
	a.types("stty size; echo \"<$MINE> $((40+2))\"\r")
	a.shows("33 99")
	a.shows("<its own> 42")
	a.sizes <- runtime.Size{Cols: 50, Rows: 20}
	for range 100 { // the plugin looks twice a second
		if strings.Contains(a.shown(), "20 50") {
			break
		}
		a.types("stty size\r")
		time.Sleep(200 * time.Millisecond)
	}
	a.shows("20 50")
	a.types("trap : INT; echo wait\"ing\"; sleep 600; echo inter\"rupted\"\r")
	a.shows("waiting")
	a.types("\x03")
	a.shows("interrupted")
	a.types("cd " + t.TempDir() + "; busybox vi text\r")
	a.shows("\x1b[20;1H") // its last line, where the terminal ends by now
	a.types("iwritten in vi\x1b")
	a.shows("- text [Modified] 1/1") // a key that comes sooner would belong to the escape
	a.types(":wq\r")
	a.types("echo \"<$(cat text)>\"\r")
	a.shows("<written in vi>")
	a.types("exit 4\r")
	a.shows("Exiting session with sessionId: ")
	if code := a.ends(); code != 0 {
		t.Errorf("the AWS CLI ends with %d; AWS's plugin knows no exit codes", code)
	}
	if got := p.exec(task, "", "sh", "-c", "test -t 0 && exit 7"); got.code != 7 {
		t.Errorf("pintle exec ends with %d: %s", got.code, got.out)
	}
}

// agent starts an agent in a process of its own, which outlives the control plane.
func (p *Pintle) agent(more ...string) {
	p.t.Helper()
	cmd := p.Command(bin(p.t, "pintle"), append([]string{"agent", "--data", p.t.TempDir(), "--endpoint", p.Endpoint, "--runtime", "process",
		"--instance-type", "c5.large", "--metrics=", "--ephemeral"}, more...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
		cmd.Wait()                         //nolint:errcheck // it was asked to end
	})
	Eventually(p.t, "the agent registers", func() bool {
		return strings.Count(p.AWS("ecs", "list-container-instances", "--query", "containerInstanceArns", "--output", "text"), "arn:") == 2
	})
}

// TestExecOutlivesAgent kills an agent in the middle of a session, which goes on without it, and with the next one, until its command ends, or its
// task.
func TestExecOutlivesAgent(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	data := t.TempDir()
	start := func() *exec.Cmd {
		cmd := p.Command(bin(t, "pintle"), "agent", "--data", data, "--endpoint", p.Endpoint, "--runtime", "process",
			"--instance-type", "c5.large", "--metrics=", "--attribute", "mine=yes")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd, by os.Signal) {
		cmd.Process.Signal(by) //nolint:errcheck // it may have ended
		cmd.Wait()             //nolint:errcheck // it was told to end
	}
	agent := start()
	defer func() { kill(agent, syscall.SIGTERM) }()
	Eventually(t, "the agent registers", func() bool {
		return strings.Count(p.AWS("ecs", "list-container-instances", "--query", "containerInstanceArns", "--output", "text"), "arn:") == 2
	})
	task := p.runForExec(sleeper, "--enable-execute-command", "--placement-constraints", "type=memberOf,expression=attribute:mine exists")
	defer p.AWS("ecs", "stop-task", "--task", task)
	a := atTerminal(t, p.Command(bin(t, "pintle"), "exec", task, "--", "sh"))
	b := atTerminal(t, p.Command(bin(t, "pintle"), "exec", task, "--", "sh"))
	for _, by := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, x := range []*at{a, b} {
			x.types("mine=" + by.String()[:4] + "; echo before-$mine\r")
			x.shows("before-" + by.String()[:4])
		}
		kill(agent, by)
		a.types("echo without-$mine\r")
		a.shows("without-" + by.String()[:4])
		agent = start()
		a.types("echo after-$mine\r")
		a.shows("after-" + by.String()[:4])
	}
	p.Kill()
	p.Start()
	a.types("echo after-all-$((1+2)); exit 6\r")
	a.shows("after-all-3")
	if code := a.ends(); code != 6 {
		t.Errorf("it ends with %d:\n%s", code, a.shown())
	}
	Eventually(t, "the agent is back", func() bool {
		return strings.Count(p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].connectivity"), "CONNECTED") == 1
	})
	p.AWS("ecs", "stop-task", "--task", task)
	if code := b.ends(); code == 0 {
		t.Errorf("it ends with 0 with its task:\n%s", b.shown())
	}
}

// executed is what came of a pintle exec.
type executed struct {
	out  string
	code int
}

// exec runs a command in a task by pintle exec, with an input.
func (p *Pintle) exec(task, input string, command ...string) executed {
	cmd := p.Command(bin(p.t, "pintle"), append([]string{"exec", task, "--"}, command...)...)
	cmd.Stdin = strings.NewReader(input)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	return executed{string(out) + errors.String(), exitCodeOf(err)}
}

// TestExecSessions has twenty sessions at once, much output of all bytes, a control plane that dies in the middle of one, and tasks that don't
// let anybody in, or stop meanwhile.
func TestExecSessions(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	p.agent("--attribute", "mine=yes")
	task := p.runForExec(sleeper, "--enable-execute-command", "--placement-constraints", "type=memberOf,expression=attribute:mine exists")

	var sessions sync.WaitGroup
	for range 20 {
		sessions.Go(func() {
			if got := p.exec(task, "typed\n", "sh", "-c", "stty -echo; echo ready; read x; sleep 1; echo \"<$x>\"; exit 9"); got.code != 9 || !strings.Contains(got.out, "<typed>") {
				t.Errorf("one of twenty: %+v", got)
			}
		})
	}
	sessions.Wait()

	file := filepath.Join(t.TempDir(), "bytes")
	got := p.exec(task, "", "sh", "-c", "stty -opost; head -c 5000000 /dev/urandom | tee "+file)
	if want, err := os.ReadFile(file); err != nil || len(want) != 5000000 || got.out != string(want) {
		t.Errorf("%d bytes came of %d, %v", len(got.out), len(want), err)
	}

	a := atTerminal(t, p.Command(bin(t, "pintle"), "exec", task, "--", "sh"))
	a.types("echo before-$((1+1))\r")
	a.shows("before-2")
	p.Kill()
	p.Start()
	a.types("echo after-$((1+2))\r")
	a.shows("after-3")
	a.types("exit 6\r")
	if code := a.ends(); code != 6 {
		t.Errorf("after a restart of the control plane it ends with %d:\n%s", code, a.shown())
	}

	a = atTerminal(t, p.Command(bin(t, "pintle"), "exec", task, "--", "sh"))
	a.types("echo in-$((1+3))\r")
	a.shows("in-4")
	p.AWS("ecs", "stop-task", "--task", task)
	a.ends()
	if got := p.exec(task, "", "sh"); got.code == 0 || !strings.Contains(got.out, "stop") {
		t.Errorf("in a stopped task: %+v", got)
	}

	closed := p.runForExec(sleeper)
	if got := p.exec(closed, "", "sh"); got.code == 0 || !strings.Contains(got.out, "execute command was not enabled") {
		t.Errorf("in a task without it: %+v", got)
	}
}

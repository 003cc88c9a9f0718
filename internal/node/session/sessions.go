package session

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
)

// most is how many sessions an agent starts at once.
const most = 128

// Assignment is what a session's process reads first from its standard input: all that it needs to go on without the agent that has started it.
// While that is there, more of the task role's credentials follow, before the last ones expire.
type Assignment struct {
	Execute   *acs.PintleExecute
	Container string                  // the runtime's id
	Role      *acs.IAMRoleCredentials // the task's; nil if it has none
	Cluster   string
	Instance  string // the ARN of the node's
	Endpoint  string // of the control plane
	Region    string
	Key       aws.Credentials // the node's
	Authority string          // path of the certificate of the control plane's authority, or ""
}

// Sessions are those that an agent has started.
type Sessions struct {
	program []string
	log     *slog.Logger

	mu       sync.Mutex
	all      map[*process]bool
	waiting  sync.WaitGroup // for the processes' ends
	isClosed bool
}

// process is a session's.
type process struct {
	task  string // its ARN
	cmd   *exec.Cmd
	begun chan struct{} // closed once it was told its assignment, which comes first
	mu    sync.Mutex    // held to write
	in    io.WriteCloser
}

// New returns the sessions of an agent, of which there are none yet. program is the command line of their processes; nil refuses all.
func New(program []string, log *slog.Logger) *Sessions {
	return &Sessions{program: program, log: log, all: map[*process]bool{}}
}

// Begin begins a session, unless the node takes no more; then nobody connects for it, and the control plane says so.
func (s *Sessions) Begin(a *Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed || len(s.program) == 0 || len(s.all) >= most || len(a.Execute.Command) == 0 {
		s.log.Warn("refused a session", "session", a.Execute.SessionID, "task", a.Execute.TaskArn, "sessions", len(s.all))
		return
	}
	p, err := s.start(a)
	if err != nil {
		s.log.Error("cannot start a session's process", "session", a.Execute.SessionID, "error", err)
		return
	}
	s.all[p] = true
	s.waiting.Go(func() {
		p.tell(a)
		close(p.begun)
		if err := p.cmd.Wait(); err != nil {
			s.log.Error("a session's process has failed", "session", a.Execute.SessionID, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, p)
	})
}

// start starts a process, detached from this one. What it has to say is for this one's log.
func (s *Sessions) start(a *Assignment) (*process, error) {
	words := append(s.program[1:len(s.program):len(s.program)], a.Execute.SessionID)
	p := &process{task: a.Execute.TaskArn, cmd: exec.Command(s.program[0], words...), begun: make(chan struct{})}
	p.cmd.Args[0] = "pintle"
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.Stderr = &lines{s.log.With("session", a.Execute.SessionID)}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// tell tells the process something more. One that has ended needn't know.
func (p *process) tell(what any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	json.NewEncoder(p.in).Encode(what) //nolint:errcheck // see above
}

// Renew tells the sessions in a task of the role's new credentials.
func (s *Sessions) Renew(task string, role *acs.IAMRoleCredentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.all {
		if p.task == task {
			s.waiting.Go(func() {
				<-p.begun
				p.tell(role)
			})
		}
	}
}

// Drain ends all sessions and waits until their clients were told and their transcripts are kept, or until ctx ends. There are none afterwards.
func (s *Sessions) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.isClosed = true
	for p := range s.all {
		p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.waiting.Wait()
		close(done)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// lines logs what a process says.
type lines struct{ log *slog.Logger }

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.log.Warn("a session's process says", "what", strings.TrimSpace(string(b)))
	return len(b), nil
}

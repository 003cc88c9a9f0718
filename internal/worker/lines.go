package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"
)

// Lines is a runner whose command keeps running, so that it loads its model only once. The command reads a line of JSON for each input and
// writes one for each in return.
type Lines struct {
	Args   []string
	Stdout io.Writer // as in Command
	Stderr io.Writer
	Log    *slog.Logger

	process  *process
	failures int // processes in a row that ended without an answer
}

// The bounds of a process.
const (
	maxLine     = 16 << 20
	maxFailures = 5 // then the worker gives up
	restartTime = time.Second
)

// request is a line that the process reads.
type request struct {
	ID           string `json:"id"`
	Path         string `json:"path"`
	Bucket       string `json:"bucket,omitempty"`
	Key          string `json:"key"`
	Size         int64  `json:"size"`
	ResultDir    string `json:"result_dir"`
	MessageID    string `json:"message_id"`
	ReceiveCount int    `json:"receive_count"`
	// More is how many further lines of the same batch follow.
	More int `json:"more"`
}

// answer is a line that the process writes, with the request's ID.
type answer struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *string         `json:"error"`
}

// process is one run of the command.
type process struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stderr   *tail
	kill     context.CancelFunc
	lines    chan answer   // closed after the last answer
	ended    chan struct{} // closed when the process has ended
	err      error         // why it ended
	answered bool
}

// Batches implements Runner.
func (l *Lines) Batches() bool { return true }

// Ready starts the process unless it is running.
func (l *Lines) Ready(ctx context.Context) error {
	if l.process != nil {
		select {
		case <-l.process.ended:
			l.Log.Warn("the command has ended while it had no work", "error", l.process.err)
			l.drop()
		default:
			return nil
		}
	}
	if l.failures >= maxFailures {
		return fmt.Errorf("%s has ended %d times in a row without an answer", l.Args[0], l.failures)
	}
	if l.failures > 0 {
		sleep(ctx, backoff(restartTime, l.failures-1, time.Minute))
	}
	if ctx.Err() != nil {
		return nil
	}
	return l.start()
}

func (l *Lines) start() error {
	ctx, kill := context.WithCancel(context.Background())
	p := &process{stderr: &tail{}, kill: kill, lines: make(chan answer), ended: make(chan struct{})}
	p.cmd = newCommand(ctx, l.Args, io.MultiWriter(l.Stderr, p.stderr))
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		kill()
		return err
	}
	stdout, write := io.Pipe()
	p.stdin = stdin
	p.cmd.Stdout = write
	if err := p.cmd.Start(); err != nil {
		kill()
		return fmt.Errorf("start %s: %w", l.Args[0], err)
	}
	go func() {
		err := p.cmd.Wait()
		killGroup(p.cmd)
		write.Close() //nolint:errcheck // a pipe in memory
		if err == nil {
			err = errors.New("it ended")
		}
		p.err = p.stderr.explain(l.Args[0], err)
		close(p.ended)
	}()
	go func() {
		defer close(p.lines)
		defer stdout.Close() //nolint:errcheck // as above
		l.read(ctx, p, stdout)
	}()
	l.process = p
	return nil
}

// read passes on the process's answers. Lines that aren't JSON objects were printed by libraries, and go to Stderr.
func (l *Lines) read(ctx context.Context, p *process, stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if !bytes.HasPrefix(line, []byte("{")) {
			fmt.Fprintf(l.Stderr, "%s\n", line) //nolint:errcheck // there's nowhere to report it
			continue
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			a = answer{} // matches no request
		}
		select {
		case p.lines <- a:
		case <-ctx.Done():
			return
		}
	}
}

// drop kills the process, and counts it as a failure unless it answered anything.
func (l *Lines) drop() {
	l.failures++
	if l.process.answered {
		l.failures = 0
	}
	l.process.kill()
	<-l.process.ended
	l.process = nil
}

// Run implements Runner.
func (l *Lines) Run(ctx context.Context, inputs []*Input) []error {
	errs := make([]error, len(inputs))
	open := map[string]int{}
	for i, in := range inputs {
		open[in.ID] = i
	}
	err := l.exchange(ctx, inputs, open, errs)
	if err != nil {
		for _, i := range open {
			errs[i] = broken{err}
		}
	}
	return errs
}

// exchange writes requests and takes answers until none are open. An error means that the process is gone.
func (l *Lines) exchange(ctx context.Context, inputs []*Input, open map[string]int, errs []error) error {
	if l.process == nil {
		if err := l.start(); err != nil {
			return err
		}
	}
	p := l.process
	written := make(chan struct{})
	go func() { // writes while we read: a process may answer before it has read everything
		defer close(written)
		p.write(inputs)
	}()
	err := l.take(ctx, p, inputs, open, errs)
	if err != nil {
		l.drop()
	}
	<-written
	return err
}

func (p *process) write(inputs []*Input) {
	e := json.NewEncoder(p.stdin)
	for i, in := range inputs {
		r := request{in.ID, in.Path, in.Bucket, in.Key, in.Size, in.ResultDir, in.MessageID, in.ReceiveCount, len(inputs) - 1 - i}
		if err := e.Encode(r); err != nil {
			return // the process has ended; the reader notices
		}
	}
}

func (l *Lines) take(ctx context.Context, p *process, inputs []*Input, open map[string]int, errs []error) error {
	for len(open) > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case a, ok := <-p.lines:
			if !ok {
				select {
				case <-p.ended:
					return p.err
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(killAfter):
					return fmt.Errorf("%s has written a line of more than %d bytes, or has closed its output", l.Args[0], maxLine)
				}
			}
			i, ok := open[a.ID]
			if !ok {
				return fmt.Errorf("%s has written a line that answers none of those it was given, with id %q", l.Args[0], a.ID)
			}
			p.answered = true
			delete(open, a.ID)
			errs[i] = l.store(inputs[i], a)
		}
	}
	return nil
}

// store stores an answer's result.
func (l *Lines) store(in *Input, a answer) error {
	switch {
	case a.Error != nil:
		return errors.New(*a.Error)
	case in.Output != "":
		if len(a.Result) == 0 {
			return nil
		}
		return os.WriteFile(in.Output, append(a.Result, '\n'), 0o600)
	}
	b, err := json.Marshal(a)
	if err == nil {
		_, err = fmt.Fprintf(l.Stdout, "%s\n", b)
	}
	return err
}

// Close closes the process's input, and terminates the process if it doesn't end by itself.
func (l *Lines) Close() {
	if l.process == nil {
		return
	}
	l.process.stdin.Close() //nolint:errcheck // it may have ended
	select {
	case <-l.process.ended:
	case <-time.After(killAfter):
	}
	l.process.kill()
	<-l.process.ended
	l.process = nil
}

package docker

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pintle/pintle/internal/node/runtime"
)

// Exec implements runtime.Runtime.
func (r *Runtime) Exec(ctx context.Context, id string, e runtime.Exec) (int, error) {
	made, err := r.api.ExecCreate(ctx, id, client.ExecCreateOptions{
		User:         e.User,
		TTY:          e.Tty,
		Env:          e.Env,
		Cmd:          e.Command,
		AttachStdin:  e.Stdin != nil,
		AttachStdout: true,
		AttachStderr: true,
		ConsoleSize:  client.ConsoleSize{Height: uint(e.Size.Rows), Width: uint(e.Size.Cols)},
	})
	if err != nil {
		return 0, cmp.Or(ctx.Err(), err)
	}
	attached, err := r.api.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: e.Tty, ConsoleSize: client.ConsoleSize{Height: uint(e.Size.Rows), Width: uint(e.Size.Cols)}})
	if err != nil {
		return 0, cmp.Or(ctx.Err(), err)
	}
	defer attached.Close()
	stop := context.AfterFunc(ctx, func() {
		if e.Tty {
			r.hangUp(made.ID)
		}
		attached.Close()
	})
	defer stop()
	if e.Tty {
		sizing, end := context.WithCancel(context.WithoutCancel(ctx))
		var resizing sync.WaitGroup
		resizing.Go(func() { r.resize(sizing, made.ID, e.Size, e.Resize) })
		defer resizing.Wait()
		defer end()
	}
	if e.Stdin != nil {
		go func() {
			io.Copy(attached.Conn, e.Stdin) //nolint:errcheck // the command may not read it all
			attached.CloseWrite()           //nolint:errcheck // it may be closed already
		}()
	}
	if err := copyOutput(e, attached.Reader); err != nil && ctx.Err() == nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	done, err := r.api.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	return done.ExitCode, err
}

// resize makes a command's terminal as large as its user's. Engines before version 23 don't know the size that a command begins with.
func (r *Runtime) resize(ctx context.Context, exec string, size runtime.Size, sizes <-chan runtime.Size) {
	for {
		if size != (runtime.Size{}) {
			o := client.ExecResizeOptions{Height: uint(size.Rows), Width: uint(size.Cols)}
			r.api.ExecResize(ctx, exec, o) //nolint:errcheck // the command may have ended
		}
		select {
		case <-ctx.Done():
			return
		case size = <-sizes:
		}
	}
}

// hangUpTimeout bounds the engine's answer to who a command is.
const hangUpTimeout = 5 * time.Second

// hangUp tells a command that its terminal is gone, which Docker's engine doesn't.
func (r *Runtime) hangUp(exec string) {
	ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
	defer cancel()
	of, err := r.api.ExecInspect(ctx, exec, client.ExecInspectOptions{})
	if err == nil && of.Running && of.PID > 1 {
		syscall.Kill(-of.PID, syscall.SIGHUP) //nolint:errcheck // it may have ended, and only root may
		syscall.Kill(of.PID, syscall.SIGHUP)  //nolint:errcheck // as above
	}
}

func copyOutput(e runtime.Exec, from io.Reader) error {
	stdout, stderr := orDiscard(e.Stdout), orDiscard(e.Stderr)
	if e.Tty {
		_, err := io.Copy(stdout, from)
		return err
	}
	_, err := stdcopy.StdCopy(stdout, stderr, from)
	return err
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// Logs implements runtime.Runtime.
func (r *Runtime) Logs(ctx context.Context, id, from string, follow bool, emit func(runtime.Line) error) error {
	c, err := r.inspect(ctx, id)
	if err != nil {
		return err
	}
	at, err := r.copyLogs(ctx, c, parseCursor(from), follow, emit)
	if err != nil || !follow {
		return err
	}
	// A busy engine may end the stream of a container that ends before its last lines, but it has them.
	if _, err = r.copyLogs(ctx, c, at, false, emit); errdefs.IsNotFound(err) {
		return nil // it was removed meanwhile
	}
	return err
}

// copyLogs emits the lines behind a cursor, and returns the cursor of the last one.
func (r *Runtime) copyLogs(
	ctx context.Context, c container.InspectResponse, at cursor, follow bool, emit func(runtime.Line) error,
) (cursor, error) {
	stream, err := r.api.ContainerLogs(ctx, c.ID, client.ContainerLogsOptions{
		ShowStdout: true,
		ShowStderr: true,
		Timestamps: true,
		Follow:     follow,
		Since:      at.at,
	})
	if err != nil {
		return at, err
	}
	defer stream.Close()
	lines := &lineWriter{emit: emit, after: at}
	if c.Config.Tty {
		terminal := &unframed{to: lines.stream(false)}
		_, err = io.Copy(terminal, stream)
		io.WriteString(terminal.to, terminal.rest) //nolint:errcheck // flush returns it
	} else {
		_, err = stdcopy.StdCopy(lines.stream(false), lines.stream(true), stream)
	}
	if ctx.Err() != nil {
		return at, ctx.Err()
	}
	if err != nil {
		return at, err
	}
	err = lines.flush()
	return cmp.Or(lines.last, at), err
}

// lineWriter splits the engine's output, which has a time before each line, into lines.
type lineWriter struct {
	emit  func(runtime.Line) error
	after cursor // the last line that the caller already has
	last  cursor

	streams []*lineStream
}

func (w *lineWriter) stream(stderr bool) *lineStream {
	s := &lineStream{lines: w, stderr: stderr}
	w.streams = append(w.streams, s)
	return s
}

// flush emits last lines that have no newline.
func (w *lineWriter) flush() error {
	for _, s := range w.streams {
		if err := s.end(); err != nil {
			return err
		}
	}
	return nil
}

// lineStream is one of the two streams.
type lineStream struct {
	lines  *lineWriter
	stderr bool
	at     string // time of the unfinished line
	text   string // of the unfinished line
}

// Write implements io.Writer. Each call gets one of the engine's messages: a time and a line, or part of a line that is longer than 16 KiB.
func (s *lineStream) Write(p []byte) (int, error) {
	at, text, _ := strings.Cut(string(p), " ")
	if s.at == "" {
		s.at = at
	}
	whole := strings.HasSuffix(text, "\n")
	s.text += strings.TrimRight(text, "\r\n")
	if !whole && len(s.text) < maxLine {
		return len(p), nil
	}
	return len(p), s.end()
}

// maxLine is how much of a line is kept in memory. A longer line becomes several.
const maxLine = 256 << 10

func (s *lineStream) end() error {
	at, text := s.at, s.text
	s.at = ""
	s.text = ""
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return nil // not one of the engine's lines
	}
	return s.lines.line(when, at, text, s.stderr)
}

// unframed splits a terminal's output, which comes as a plain stream, into messages for Write.
type unframed struct {
	to   io.Writer
	rest string // the unfinished line
}

// Write implements io.Writer.
func (u *unframed) Write(p []byte) (int, error) {
	in := bufio.NewReader(strings.NewReader(u.rest + string(p)))
	for {
		line, err := in.ReadString('\n')
		if err != nil && len(line) < maxLine {
			u.rest = line
			return len(p), nil
		}
		if _, err := io.WriteString(u.to, line); err != nil {
			return 0, err
		}
		if err != nil { // a line that never ends, such as a progress bar's
			u.rest = ""
			return len(p), nil
		}
	}
}

func (w *lineWriter) line(when time.Time, at, text string, stderr bool) error {
	if at == w.last.at {
		w.last.lines++
	} else {
		w.last = cursor{at, 1}
	}
	if at == w.after.at && w.last.lines <= w.after.lines {
		return nil // the caller has it already
	}
	return w.emit(runtime.Line{At: when, Stderr: stderr, Text: text, Cursor: w.last.String()})
}

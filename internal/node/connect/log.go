package connect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// What a proxy says is in a file of its directory, which the proxy itself can't open: its agent has. It's read from there while the process
// writes, by one agent after the other.

// A proxy gives the beginning of its log back to the disk, so that this takes no more than keptLog and trimEvery. What stays keeps its
// offset, so that a reader isn't disturbed.
const (
	keptLog   = 4 << 20
	trimEvery = 1 << 20
)

// boundedLog is the log as the proxy writes it.
type boundedLog struct {
	file *os.File

	mu    sync.Mutex
	since int // bytes since the beginning was given back
}

// Write implements io.Writer.
func (l *boundedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.Write(b)
	if l.since += n; l.since >= trimEvery {
		l.since = 0
		l.trim()
	}
	return n, err
}

// trim needs a regular file on a file system that knows holes. On others the log grows.
func (l *boundedLog) trim() {
	info, err := l.file.Stat()
	if err == nil && info.Size() > keptLog {
		unix.Fallocate(int(l.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, info.Size()-keptLog) //nolint:errcheck // see above
	}
}

// ship sends what the proxy says to where its service wants it, from where the last agent has come to. shipped waits for the rest, for a
// while, once the process has ended; stop ends it at once.
func (x *proxy) ship() (shipped, stop func()) {
	source := engine.ProxyLog(x.task)
	if source == nil || x.proxies.opts.Shippers[source.Driver] == nil {
		return func() {}, func() {}
	}
	over := make(chan struct{})
	source.Output = &said{path: filepath.Join(x.dir, logFile), over: over}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.shipFrom(ctx, source)
	}()
	shipped = func() {
		close(over)
		select {
		case <-done:
		case <-time.After(shipGrace):
			x.proxies.opts.Log.Warn("the end of what a proxy of Service Connect says wasn't taken", "proxy", filepath.Base(x.dir))
		}
	}
	stop = func() {
		cancel()
		<-done
	}
	return shipped, stop
}

// shipGrace is how long the end of a task's container may wait for the proxy's last words to be taken.
const shipGrace = 3 * time.Second

func (x *proxy) shipFrom(ctx context.Context, source *engine.LogSource) {
	path := filepath.Join(x.dir, cursorFile)
	cursor, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		x.proxies.opts.Log.Warn("cannot read how far the log of a proxy is shipped", "error", err)
	}
	save := func(cursor string) {
		if err := file.Replace(path, []byte(cursor), false); err != nil {
			x.proxies.opts.Log.Error("cannot note how far the log of a proxy is shipped", "error", err)
		}
	}
	err = x.proxies.opts.Shippers[source.Driver].Ship(ctx, source, string(cursor), save)
	if err != nil && ctx.Err() == nil {
		x.proxies.opts.Log.Error("cannot ship what a proxy of Service Connect says", "proxy", filepath.Base(x.dir), "error", err)
	}
}

// said is an engine.Output: a proxy's log, which is at its end once over is closed. A cursor is an offset in it.
type said struct {
	path string
	over <-chan struct{}
}

// How often a quiet log is looked at.
const (
	minPoll = 50 * time.Millisecond
	maxPoll = 500 * time.Millisecond
)

// Logs implements engine.Output.
func (s *said) Logs(ctx context.Context, _, cursor string, _ bool, emit func(runtime.Line) error) error {
	offset := int64(0)
	if cursor != "" {
		n, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return fmt.Errorf("log cursor %q: %w", cursor, err)
		}
		offset = n
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		last := isClosed(s.over) // asked before reading, so that all that was said before is read
		next, err := readLines(f, offset, emit)
		if err != nil {
			return err
		}
		if last {
			return nil
		}
		if next > offset {
			wait = minPoll
		}
		offset = next
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.over:
		case <-time.After(wait):
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// readLines emits the lines from an offset on, and returns where the next one begins.
func readLines(f *os.File, offset int64, emit func(runtime.Line) error) (next int64, err error) {
	switch begin, err := unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA); {
	case errors.Is(err, unix.ENXIO):
		return offset, nil // nothing was said since
	case err != nil:
		return offset, err
	default:
		offset = begin // after what was given back to the disk
	}
	in := bufio.NewReader(f)
	for {
		b, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return offset, nil // a line that isn't complete is for later
		}
		if err != nil {
			return offset, err
		}
		offset += int64(len(b))
		text := string(bytes.Trim(b, "\x00\r\n")) // what was given back of a block that is still there is zeros
		l := runtime.Line{At: saidAt(text), Stderr: true, Text: text, Cursor: strconv.FormatInt(offset, 10)}
		if err := emit(l); err != nil {
			return offset, err
		}
	}
}

// saidAt returns the time with which slog begins a line, so that it's the same should the line be sent again, or now.
func saidAt(text string) time.Time {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(text, "time="), " ")
	if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		return t
	}
	return time.Now()
}

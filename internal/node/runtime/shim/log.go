package shim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// A container's output is kept in numbered files of JSON lines. The last two are kept, so it takes at
// most twice maxLogFile on disk; a cursor names a file and a place in it.

const (
	maxLogFile = 16 << 20
	maxLine    = 256 << 10 // a longer line is cut into several
)

// Line is one line of output.
type Line struct {
	At     time.Time `json:"time"`
	Stream string    `json:"stream"` // stdout or stderr
	Log    string    `json:"log"`
	Cursor string    `json:"-"`
}

// logWriter writes both streams of one container.
type logWriter struct {
	dir string

	mu      sync.Mutex
	file    *os.File
	number  int
	size    int64
	streams []*stream
}

func openLog(dir string) (*logWriter, error) {
	l := &logWriter{dir: dir, number: newest(dir)}
	return l, l.open()
}

func (l *logWriter) open() (err error) {
	l.file, err = os.OpenFile(logPath(l.dir, l.number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	l.size = 0
	return err
}

func logPath(dir string, number int) string {
	return filepath.Join(dir, "log."+strconv.Itoa(number))
}

// newest is the number of the newest log file; the first is 1.
func newest(dir string) int {
	highest := 1
	matches, _ := file.Glob(dir, "log.*")
	for _, m := range matches {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(m), "log.")); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// stream is the writer for one of the container's streams; it cuts what comes into lines.
type stream struct {
	log  *logWriter
	name string
	rest []byte
}

func (l *logWriter) stream(name string) io.Writer {
	s := &stream{log: l, name: name}
	l.streams = append(l.streams, s)
	return s
}

// Write is io.Writer's. It takes everything: a full disk must not stop a container.
func (s *stream) Write(p []byte) (int, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		at := bytes.IndexByte(s.rest, '\n')
		if at < 0 && len(s.rest) < maxLine {
			return len(p), nil
		}
		if at < 0 || at > maxLine {
			s.log.line(s.name, s.rest[:maxLine])
			s.rest = s.rest[maxLine:]
			continue
		}
		s.log.line(s.name, s.rest[:at])
		s.rest = s.rest[at+1:]
	}
}

func (l *logWriter) line(stream string, text []byte) {
	b, err := json.Marshal(Line{At: time.Now().UTC(), Stream: stream, Log: strings.ToValidUTF8(strings.TrimSuffix(string(text), "\r"), "\uFFFD")})
	if err != nil {
		return
	}
	n, _ := l.file.Write(append(b, '\n'))
	if l.size += int64(n); l.size < maxLogFile {
		return
	}
	l.file.Close()
	os.Remove(logPath(l.dir, l.number-1))
	l.number++
	l.open() //nolint:errcheck // without a file the lines are lost, which a full disk costs anyway
}

// Close writes what has no newline at its end, and closes the file.
func (l *logWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		if len(s.rest) > 0 {
			l.line(s.name, s.rest)
			s.rest = nil
		}
	}
	return l.file.Close()
}

// readLog hands the container's lines from the cursor on to emit. With follow it goes on until done
// says that no more will come; without, it stops at the end.
func readLog(ctx context.Context, dir, cursor string, follow bool, done func() bool, emit func(Line) error) error {
	number, offset, err := parseCursor(cursor)
	if err != nil {
		return err
	}
	if number == 0 {
		number = oldest(dir)
	}
	r := &logReader{dir: dir, number: number, offset: offset, emit: emit}
	defer r.close()
	wait := minPoll
	for {
		ended := !follow || done() // asked before reading: what was written before the end is read
		n, err := r.read()
		if err != nil {
			return err
		}
		if n == 0 && ended {
			return nil
		}
		if n > 0 {
			wait = minPoll
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, maxPoll)
		}
	}
}

// How often a quiet log is looked at.
const (
	minPoll = 20 * time.Millisecond
	maxPoll = 500 * time.Millisecond
)

// logReader reads lines over several files.
type logReader struct {
	dir    string
	number int
	offset int64
	emit   func(Line) error
	file   *os.File
}

// read emits the lines that there are, and says how many.
func (r *logReader) read() (lines int, err error) {
	if r.file == nil {
		r.file, err = os.Open(logPath(r.dir, r.number))
		if errors.Is(err, os.ErrNotExist) {
			return 0, r.skip()
		}
		if err != nil {
			return 0, err
		}
	}
	if _, err := r.file.Seek(r.offset, io.SeekStart); err != nil {
		return 0, err
	}
	in := bufio.NewReader(r.file)
	for {
		b, err := in.ReadBytes('\n')
		if err != nil { // a line that is being written is left for the next time
			break
		}
		r.offset += int64(len(b))
		var l Line
		if json.Unmarshal(b, &l) != nil {
			continue // a line that a crash has cut
		}
		l.Cursor = fmt.Sprintf("%d:%d", r.number, r.offset)
		if err := r.emit(l); err != nil {
			return lines, err
		}
		lines++
	}
	if lines == 0 && newest(r.dir) > r.number {
		r.close()
		r.number, r.offset = r.number+1, 0
		return r.read()
	}
	return lines, nil
}

// skip goes on with the oldest file where the reader's own is gone already.
func (r *logReader) skip() error {
	if first := oldest(r.dir); first > r.number {
		r.number, r.offset = first, 0
	}
	return nil
}

func (r *logReader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

func oldest(dir string) int {
	n := newest(dir)
	if _, err := os.Stat(logPath(dir, n-1)); n > 1 && err == nil {
		return n - 1
	}
	return n
}

func parseCursor(cursor string) (number int, offset int64, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	if _, err := fmt.Sscanf(cursor, "%d:%d", &number, &offset); err != nil {
		return 0, 0, fmt.Errorf("log cursor %q: %w", cursor, err)
	}
	return number, offset, nil
}

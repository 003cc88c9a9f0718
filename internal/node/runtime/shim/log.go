package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// Line is one line of output. A container's output is kept in numbered files of JSON lines; a cursor is a file's number and an offset in
// it.
type Line struct {
	At     time.Time `json:"time"`
	Stream string    `json:"stream"` // stdout or stderr
	Log    string    `json:"log"`
	Cursor string    `json:"-"`
}

// readLog calls emit for the container's lines after the cursor. With follow, it goes on until done reports that no more will come;
// without, it stops at the end.
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
		ended := !follow || done() // checked before reading, so that we read everything written before the end
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

// How often a quiet log is polled.
const (
	minPoll = 20 * time.Millisecond
	maxPoll = 500 * time.Millisecond
)

// logReader reads lines across several files.
type logReader struct {
	dir    string
	number int
	offset int64
	emit   func(Line) error
	file   *os.File
}

// read emits the available lines, and returns how many.
func (r *logReader) read() (lines int, err error) {
	if r.file == nil {
		r.file, err = os.Open(program.LogPath(r.dir, r.number))
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
		if err != nil { // an unfinished line is left for the next read
			break
		}
		r.offset += int64(len(b))
		var l Line
		if json.Unmarshal(b, &l) != nil {
			continue // a crash cut this line short
		}
		l.Cursor = fmt.Sprintf("%d:%d", r.number, r.offset)
		if err := r.emit(l); err != nil {
			return lines, err
		}
		lines++
	}
	if lines == 0 && program.NewestLog(r.dir) > r.number {
		r.close()
		r.number++
		r.offset = 0
		return r.read()
	}
	return lines, nil
}

// skip moves to the oldest file if the reader's own is already gone.
func (r *logReader) skip() error {
	if first := oldest(r.dir); first > r.number {
		r.number = first
		r.offset = 0
	}
	return nil
}

func (r *logReader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// oldest returns the number of the oldest log file. At most two exist.
func oldest(dir string) int {
	n := program.NewestLog(dir)
	if _, err := os.Stat(program.LogPath(dir, n-1)); n > 1 && err == nil {
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

package program

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A container's output is kept in numbered files of JSON lines. Only the last two are kept, so it takes at most twice maxLogFile on disk.
const (
	maxLogFile = 16 << 20
	maxLine    = 256 << 10 // a longer line is split into several
)

// LogPath returns the path of one of the files of a container's output.
func LogPath(dir string, number int) string { return dir + "/log." + strconv.Itoa(number) }

// NewestLog returns the number of the newest log file. The first is 1.
func NewestLog(dir string) int {
	highest := 1
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		number, isLog := strings.CutPrefix(e.Name(), "log.")
		if n, err := strconv.Atoi(number); isLog && err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// logWriter writes both streams of one container.
type logWriter struct {
	dir string

	mu      sync.Mutex
	file    *os.File
	number  int
	size    int64
	streams []*stream
	buffer  []byte // the line being written
}

func openLog(dir string) (*logWriter, error) {
	l := &logWriter{dir: dir, number: NewestLog(dir)}
	return l, l.open()
}

func (l *logWriter) open() (err error) {
	l.file, err = os.OpenFile(LogPath(l.dir, l.number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	l.size = 0
	return err
}

// stream splits one of the container's streams into lines and writes them to the log.
type stream struct {
	log  *logWriter
	name string
	rest []byte
}

func (l *logWriter) stream(name string) *stream {
	s := &stream{log: l, name: name}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams = append(l.streams, s)
	return s
}

// write never fails, because a full disk must not stop a container.
func (s *stream) write(p []byte) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.rest = append(s.rest, p...)
	text := s.rest
	for {
		at := bytes.IndexByte(text, '\n')
		if at < 0 && len(text) < maxLine {
			break
		}
		if at < 0 || at > maxLine {
			s.log.line(s.name, text[:maxLine])
			text = text[maxLine:]
			continue
		}
		s.log.line(s.name, text[:at])
		text = text[at+1:]
	}
	s.rest = append(reuse(s.rest, len(text)), text...)
}

// maxReused is the largest capacity at which a buffer is reused for fewer bytes.
const maxReused = 64 << 10

// reuse empties a buffer for need bytes. If a long line made it grow, it returns nil, so that the memory is freed.
func reuse(b []byte, need int) []byte {
	if cap(b) > maxReused && need < maxReused {
		return nil
	}
	return b[:0]
}

func (l *logWriter) line(stream string, text []byte) {
	b := append(reuse(l.buffer, len(text)), `{"time":`...)
	b = appendTime(b, time.Now().UTC())
	b = append(b, `,"stream":"`...)
	b = append(b, stream...)
	b = append(b, `","log":`...)
	b = appendString(b, bytes.TrimSuffix(text, []byte("\r")))
	b = append(b, '}', '\n')
	n, _ := l.file.Write(b)
	l.buffer = b
	if l.size += int64(n); l.size < maxLogFile {
		return
	}
	l.file.Close()
	os.Remove(LogPath(l.dir, l.number-1))
	l.number++
	l.open() //nolint:errcheck // without a file the lines are lost, as on a full disk anyway
}

// Close writes last lines that have no newline, and closes the file.
func (l *logWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		if len(s.rest) > 0 {
			l.line(s.name, s.rest)
		}
		s.rest = nil
	}
	return l.file.Close()
}

// output copies what a container writes to its log.
type output struct {
	log     *logWriter
	writers [2]int // the ends that the container writes to: stdout, stderr
	readers []*os.File
	copying sync.WaitGroup
}

func openOutput(log *logWriter) (*output, error) {
	o := &output{log: log}
	for i, name := range []string{"stdout", "stderr"} {
		var ends [2]int
		if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
			return nil, os.NewSyscallError("pipe2", err)
		}
		o.writers[i] = ends[1]
		if err := o.read(ends[0], name); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// read copies what comes from a pipe or a terminal to the log.
func (o *output) read(fd int, name string) error {
	if err := syscall.SetNonblock(fd, true); err != nil { // otherwise drain's Close wouldn't end a pending read
		return err
	}
	r := os.NewFile(uintptr(fd), name)
	o.readers = append(o.readers, r)
	to := o.log.stream(name)
	o.copying.Go(func() { to.copy(r) })
	return nil
}

// copy copies until the container's end of the pipe is closed, or drain closes this one.
func (s *stream) copy(r *os.File) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := r.Read(buffer)
		s.write(buffer[:n])
		if err != nil {
			return
		}
	}
}

// closeWriters closes the shim's copies of the container's ends.
func (o *output) closeWriters() {
	for _, fd := range o.writers {
		syscall.Close(fd) //nolint:errcheck // a pipe's end
	}
}

// drainTime is how long drain waits for the end of a container's output. A process that has left its container and keeps the pipes open
// must not keep the shim alive.
const drainTime = 2 * time.Second

// drain waits until everything that the container wrote is in the log.
func (o *output) drain() {
	late := time.AfterFunc(drainTime, func() {
		for _, f := range o.readers {
			f.Close()
		}
	})
	defer late.Stop()
	o.copying.Wait()
}

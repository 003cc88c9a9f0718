// Package accesslog writes the access logs of application load balancers: a balancer process observes its requests with a Spool, which keeps
// their lines in files until somebody has taken each of them. Lines wait while nobody takes them, also for the next process, until the
// room for them is used up; what is dropped then is counted. Package carrier hands it on; the control plane puts it into a bucket.
package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/proxy"
)

const (
	// every is the time that one file has lines of, counted from the full hour: AWS publishes one each 5 minutes.
	every = 5 * time.Minute
	// maxFile is how long a file may get before the next one begins. Compressed or not it fits into one message.
	maxFile = 8 << 20
	// maxWaiting is how many lines may wait for the one that writes them.
	maxWaiting = 1 << 14
	// maxLine is how long a line may be; the longest URL and user agent make less.
	maxLine = 128 << 10
)

// File is a part of a load balancer's log.
type File struct {
	LoadBalancer string // its ARN
	End          time.Time
	ID           string // 8 random letters and digits: the same file has the same
	Dropped      int64  // lines of any load balancer that there was no room for, since the file before
	Data         []byte // compressed
}

// Options say where lines are kept, and who takes them.
type Options struct {
	Dir  string
	Room int64 // how many bytes may be kept; 256 MiB if 0
	Now  func() time.Time
	// Send hands a file on. After an error it's tried again.
	Send func(context.Context, File) error
	Log  *slog.Logger
}

// Spool keeps the lines. It is an Observer of a proxy, which it never holds up.
type Spool struct {
	opts    Options
	lines   chan line
	wanted  atomic.Pointer[map[string]Certificates] // by the load balancer's ARN
	changed chan struct{}
	dropped atomic.Int64
	kept    atomic.Int64 // bytes in files
	ready   chan struct{}
	open    map[string]*part // by the load balancer's ARN; the writer's alone
	period  time.Time        // that the open files are of
	said    int64            // how many of dropped the log has told
	handed  int64            // how many of dropped were handed on; the sender's alone
}

// Certificates returns the ARN of the certificate that a listener shows a client, by the name that it asks for.
type Certificates func(listener, name string) string

// line is a line for a load balancer's log.
type line struct {
	balancer string
	text     []byte
}

// part is a file that is being written.
type part struct {
	path   string
	file   *os.File
	writer *bufio.Writer
	size   int64
}

// The names of files: URL.ID.log while it's written, and URL.END.ID.done afterwards, with the load balancer's ARN as the path of a URL has it.
const (
	writing = ".log"
	done    = ".done"
)

// New returns a spool that wants nothing yet.
func New(o Options) *Spool {
	if o.Room == 0 {
		o.Room = 256 << 20
	}
	return &Spool{
		opts:    o,
		lines:   make(chan line, maxWaiting),
		changed: make(chan struct{}, 1),
		ready:   make(chan struct{}, 1),
		open:    map[string]*part{},
	}
}

// Set makes the spool keep the lines of these load balancers. What it has of others is handed on.
func (s *Spool) Set(wanted map[string]Certificates) {
	s.wanted.Store(&wanted)
	wake(s.changed)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it's awake
	}
}

// Request implements proxy.Observer.
func (s *Spool) Request(r *proxy.Request) {
	wanted := s.wanted.Load()
	if wanted == nil {
		return
	}
	certificates, ok := (*wanted)[r.Balancer]
	if !ok {
		return
	}
	certificate := ""
	if r.TLSVersion != 0 && certificates != nil {
		certificate = certificates(r.Listener, r.ServerName)
	}
	select {
	case s.lines <- line{r.Balancer, Line(r, certificate)}:
	default:
		s.dropped.Add(1)
	}
}

// Flow implements proxy.Observer. Network load balancers log TLS connections alone, of which there are none.
func (s *Spool) Flow(*proxy.Flow) {}

// lastWords is how long files may take to be handed on when all ends. What is left is for the next process.
const lastWords = 5 * time.Second

// Run writes lines and hands files on until ctx ends. What was observed by then is written, and handed on if that goes quickly.
func (s *Spool) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return err
	}
	if err := s.recover(); err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.sendAll(sending)
	}()
	s.write(ctx)
	stop()
	<-sent
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := s.send(last); err != nil {
		s.opts.Log.Warn("access logs are left for the next process", "error", err)
	}
	return nil
}

// recover takes up what an earlier process has left: it counts what is there, and closes what was being written.
func (s *Spool) recover() error {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.kept.Add(info.Size())
		if name, ok := strings.CutSuffix(e.Name(), writing); ok {
			arn, id, _ := cut(name)
			if err := s.finish(filepath.Join(s.opts.Dir, e.Name()), arn, id, info.ModTime()); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut splits a file's name before its last dot.
func cut(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// finish gives a file its last name.
func (s *Spool) finish(path, arn, id string, end time.Time) error {
	return os.Rename(path, filepath.Join(s.opts.Dir, fmt.Sprintf("%s.%d.%s%s", arn, end.Unix(), id, done)))
}

// write writes lines until ctx ends.
func (s *Spool) write(ctx context.Context) {
	flush := time.NewTicker(time.Second)
	defer flush.Stop()
	s.period = s.opts.Now().Truncate(every)
	for {
		select {
		case l := <-s.lines:
			s.add(l)
		case <-s.changed:
			s.closeUnwanted()
		case <-flush.C:
			s.tick()
		case <-ctx.Done():
			for len(s.lines) > 0 {
				s.add(<-s.lines)
			}
			s.closeAll(s.opts.Now())
			s.tell()
			return
		}
	}
}

// tick writes out what waits in memory, and begins new files when it's time.
func (s *Spool) tick() {
	if now := s.opts.Now(); now.Truncate(every).After(s.period) {
		s.period = now.Truncate(every)
		s.closeAll(s.period)
	}
	for arn, p := range s.open {
		if err := p.writer.Flush(); err != nil {
			s.fail(arn, p, err)
		}
	}
	s.tell()
}

// tell says how many lines were dropped.
func (s *Spool) tell() {
	if n := s.dropped.Load(); n > s.said {
		s.opts.Log.Warn("lines of access logs are dropped", "lines", n-s.said)
		s.said = n
	}
}

// add writes a line.
func (s *Spool) add(l line) {
	if len(l.text) > maxLine || s.kept.Load()+int64(len(l.text)) > s.opts.Room {
		s.dropped.Add(1)
		return
	}
	p, err := s.part(l.balancer)
	if err != nil {
		s.opts.Log.Error("access log", "error", err)
		s.dropped.Add(1)
		return
	}
	if _, err := p.writer.Write(l.text); err != nil {
		s.fail(l.balancer, p, err)
		s.dropped.Add(1)
		return
	}
	p.size += int64(len(l.text))
	s.kept.Add(int64(len(l.text)))
	if p.size+maxLine > maxFile {
		s.close(l.balancer, p, s.opts.Now())
	}
}

// part returns the file that a load balancer's lines go into.
func (s *Spool) part(balancer string) (*part, error) {
	if p := s.open[balancer]; p != nil {
		return p, nil
	}
	path := filepath.Join(s.opts.Dir, url.PathEscape(balancer)+"."+strings.ToLower(rand.Text()[:8])+writing)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &part{path: path, file: f, writer: bufio.NewWriterSize(f, 64<<10)}
	s.open[balancer] = p
	return p, nil
}

// fail gives up a file that can't be written. What it has is handed on.
func (s *Spool) fail(balancer string, p *part, err error) {
	s.opts.Log.Error("access log", "error", err)
	p.writer.Reset(p.file) // what it still held is lost
	s.close(balancer, p, s.opts.Now())
}

// close ends a file. It's on the disk before anybody is told of it.
func (s *Spool) close(balancer string, p *part, end time.Time) {
	delete(s.open, balancer)
	name := strings.TrimSuffix(filepath.Base(p.path), writing)
	arn, id, _ := cut(name)
	err := errors.Join(p.writer.Flush(), p.file.Sync())
	if info, failed := p.file.Stat(); failed == nil {
		s.kept.Add(info.Size() - p.size) // less than it should have, if it couldn't be written
	}
	err = errors.Join(err, p.file.Close())
	if err := errors.Join(err, s.finish(p.path, arn, id, end)); err != nil {
		s.opts.Log.Error("access log", "error", err)
	}
	wake(s.ready)
}

func (s *Spool) closeAll(end time.Time) {
	for arn, p := range s.open {
		s.close(arn, p, end)
	}
}

func (s *Spool) closeUnwanted() {
	wanted := *s.wanted.Load()
	for arn, p := range s.open {
		if _, ok := wanted[arn]; !ok {
			s.close(arn, p, s.opts.Now())
		}
	}
}

// sendAll hands files on as they come, until ctx ends.
func (s *Spool) sendAll(ctx context.Context) {
	pause := time.Second
	failed := false
	for ctx.Err() == nil {
		err := s.send(ctx)
		again := time.After(every)
		if err != nil && ctx.Err() == nil {
			if !failed {
				s.opts.Log.Warn("access logs aren't taken; they wait", "error", err)
			}
			again = time.After(pause)
			pause = min(2*pause, 30*time.Second)
		} else {
			pause = time.Second
		}
		failed = err != nil
		ready := s.ready
		if failed {
			ready = nil // the pause counts
		}
		select {
		case <-ctx.Done():
		case <-ready:
		case <-again:
		}
	}
}

// send hands on the files that there are, the oldest first.
func (s *Spool) send(ctx context.Context) error {
	names, err := filepath.Glob(filepath.Join(escape(s.opts.Dir), "*"+done))
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int { return endOf(a).Compare(endOf(b)) })
	for _, name := range names {
		if err := s.sendOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// escape makes a directory's name stand for itself in a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// endOf returns when a file ended, as its name says.
func endOf(path string) time.Time {
	name, _, _ := cut(strings.TrimSuffix(filepath.Base(path), done))
	_, end, _ := cut(name)
	seconds, _ := strconv.ParseInt(end, 10, 64) //nolint:errcheck // it's ours, or else as good as any
	return time.Unix(seconds, 0).UTC()
}

func (s *Spool) sendOne(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	rest, id, _ := cut(strings.TrimSuffix(filepath.Base(path), done))
	escaped, _, _ := cut(rest)
	arn, err := url.PathUnescape(escaped)
	if err != nil {
		return err
	}
	size := int64(len(text))
	text = text[:bytes.LastIndexByte(text, '\n')+1] // a process that was killed may have left half a line
	dropped := s.dropped.Load()
	if len(text) > 0 {
		var data bytes.Buffer
		z := gzip.NewWriter(&data)
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		f := File{LoadBalancer: arn, End: endOf(path), ID: id, Dropped: dropped - s.handed, Data: data.Bytes()}
		if err := s.opts.Send(ctx, f); err != nil {
			return err
		}
		s.handed = dropped
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	s.kept.Add(-size)
	return nil
}

// Package forward is the awsfirelens log driver. It sends a container's output to the log router of its task, in Fluentd's forward
// protocol and in the records that Docker's fluentd driver makes:
// https://github.com/fluent/fluentd/wiki/Forward-Protocol-Specification-v1
// Its buffer is the container's log on the node, so a router may start later than others, or again.
package forward

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/firelens"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Driver is an engine.Shipper.
type Driver struct{ log *slog.Logger }

var _ engine.Shipper = (*Driver)(nil)

// New returns the driver.
func New(log *slog.Logger) *Driver { return &Driver{log} }

// Prepare implements engine.Shipper. The router need not listen yet.
func (*Driver) Prepare(context.Context, *engine.LogSource) (note string, err error) { return "", nil }

// How often the driver tries to connect, how long it waits for a router to take a batch, and how many lines that has.
const (
	minPause  = 100 * time.Millisecond
	maxPause  = 5 * time.Second
	patience  = 10 * time.Second
	readTime  = 5 * time.Second // for the rest, at the end
	maxLines  = 256
	maxLength = 1 << 20 // bytes in a batch
)

// Ship implements engine.Shipper.
func (d *Driver) Ship(ctx context.Context, c *engine.LogSource, cursor string, saved func(cursor string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, read := c.Follow(ctx, cursor, maxLines)
	s := &sender{source: c, log: d.log}
	defer s.close()
	for l := range lines {
		batch := gather(l, lines)
		if err := s.send(ctx, batch); err != nil {
			return err
		}
		saved(batch[len(batch)-1].Cursor)
	}
	s.finish(ctx)
	return <-read
}

// gather returns a line and those that wait behind it, as one batch.
func gather(first runtime.Line, lines <-chan runtime.Line) []runtime.Line {
	batch, length := []runtime.Line{first}, len(first.Text)
	for len(batch) < maxLines && length < maxLength {
		select {
		case l, ok := <-lines:
			if !ok {
				return batch
			}
			batch, length = append(batch, l), length+len(l.Text)
		default:
			return batch
		}
	}
	return batch
}

// sender holds the connection to a router.
type sender struct {
	source *engine.LogSource
	log    *slog.Logger
	conn   net.Conn // nil if there is none
}

func (s *sender) close() {
	if s.conn != nil {
		s.conn.Close() //nolint:errcheck // nothing more is sent
	}
	s.conn = nil
}

// finish waits a while until the router has read everything, which it shows by hanging up. It's told to end next, and what it hasn't read
// by then is lost.
func (s *sender) finish(ctx context.Context) {
	conn, ok := s.conn.(*net.UnixConn)
	if !ok || conn.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(readTime)) != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })() //nolint:errcheck // it only hurries the end
	io.Copy(io.Discard, conn)                                                   //nolint:errcheck // either way it's over
}

// send sends a batch, and tries again until the router takes it or ctx ends.
func (s *sender) send(ctx context.Context, batch []runtime.Line) error {
	message := encode(s.source, batch)
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		err := s.write(ctx, message)
		if err == nil {
			return nil
		}
		s.close()
		s.log.Debug("a log router does not take logs yet; trying again", "container", s.source.ID, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the log router did not take all of the output: %w", err)
		case <-time.After(wait):
		}
	}
}

func (s *sender) write(ctx context.Context, message []byte) (err error) {
	if s.conn == nil {
		if s.conn, err = dial(ctx, s.source.Socket); err != nil {
			return err
		}
	}
	conn := s.conn // the function below may still run when s has closed it
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.SetWriteDeadline(time.Now()) })() //nolint:errcheck // it only hurries the end
	_, err = conn.Write(message)
	return err
}

// dial connects to a router's socket. The router can put anything there, also a link to a socket of the machine's, so links aren't
// followed; and the path may be longer than a socket's address can be, so the open socket is named instead.
func dial(ctx context.Context, path string) (net.Conn, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // it was open for its name
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%s is not a socket", path)
	}
	return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
}

// encode makes a message of the protocol's forward mode: a tag, and pairs of a time and a record.
func encode(c *engine.LogSource, batch []runtime.Line) []byte {
	taskID := c.TaskArn[strings.LastIndexByte(c.TaskArn, '/')+1:]
	b := appendArray(nil, 2)
	b = appendString(b, firelens.Tag(c.Container, taskID))
	b = appendArray(b, len(batch))
	for _, l := range batch {
		stream := "stdout"
		if l.Stderr {
			stream = "stderr"
		}
		b = appendArray(b, 2)
		b = appendTime(b, l.At)
		b = appendMap(b, "container_id", c.ID, "container_name", "/"+c.ID, "source", stream, "log", l.Text)
	}
	return b
}

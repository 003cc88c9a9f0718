package pages

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/screen"
	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/datachannel/client"
	"github.com/pintle/pintle/internal/wire/call"
)

const (
	// shellColumns and shellRows are the size of a screen before its page has told its own, and the next four its limits.
	shellColumns, shellRows = 110, 32
	minColumns, minRows     = 20, 5
	maxColumns, maxRows     = 300, 100
	// shellIdleness is how long a shell lasts that nobody types in, and maxShells how many there may be.
	shellIdleness, maxShells = 30 * time.Minute, 100
	maxKeys                  = 64 << 10
	// maxAnswers is how many of the emulator's answers may wait for a program to read them.
	maxAnswers = 64
)

// shells are the shells that are open.
type shells struct {
	mu  sync.Mutex
	all map[string]*shell
}

// shell is a session of execute-command, of which the console is the client.
type shell struct {
	of     call.Identity
	key    string // the access key of whoever opened it
	title  string // says where it is
	screen *screen.Screen
	keys   *io.PipeWriter
	sizes  chan datachannel.Size // the last one that the session hasn't heard of yet
	idle   *time.Timer

	mu    sync.Mutex
	ended string // how it ended; "" while it hasn't
}

// resize makes the screen and the command's terminal as large as told, within limits.
func (s *shell) resize(columns, rows int) {
	columns = min(max(columns, minColumns), maxColumns)
	rows = min(max(rows, minRows), maxRows)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.Resize(columns, rows)
	select {
	case <-s.sizes:
	default:
	}
	s.sizes <- datachannel.Size{Cols: uint16(columns), Rows: uint16(rows)}
}

// openShell is the form that opens a shell in a task, if it has execute command enabled.
func openShell(v *visit, t types.Task, values hidden) markup.Node {
	if !t.EnableExecuteCommand || aws.ToString(t.LastStatus) != "RUNNING" {
		return nil
	}
	var options []markup.Node
	for _, c := range t.Containers {
		options = append(options, markup.E("option", aws.ToString(c.Name)))
	}
	return v.confirm("open-shell", "Open a shell", "A command in a container, as by aws ecs execute-command.", values,
		markup.E("label", "Container ", markup.E("select", markup.A("name", "container"), options)),
		field("Command", "command", "text", "sh", markup.If("required", true)))
}

// shellView shows a shell's screen and takes keys.
func (p *Pages) shellView() view {
	return view{
		path: "/console/shell/{shell}",
		title: func(v *visit) string {
			if s, err := p.shellOf(v); err == nil {
				return s.title
			}
			return "Shell"
		},
		body: p.shellBody,
		arm: func(v *visit) func(context.Context) error {
			s, err := p.shellOf(v)
			if err != nil {
				return func(ctx context.Context) error { <-ctx.Done(); return nil }
			}
			changed := s.screen.Changed()
			return func(ctx context.Context) error {
				select {
				case <-changed:
				case <-ctx.Done():
				}
				return nil
			}
		},
		does: map[string]action{"open-shell": p.beginShell},
	}
}

func (p *Pages) shellBody(v *visit) ([]live.Fragment, error) {
	s, err := p.shellOf(v)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	lines := live.Fragment{
		ID: "terminal", End: "</div>",
		HTML: markup.Start("div", markup.ID("terminal"), markup.Class("terminal"), markup.A("tabindex", "0"), markup.A("role", "application"),
			markup.A("aria-label", "Terminal; shift and tab leave it"), markup.A("data-keys", to("keys", v.path("shell"))),
			markup.A("data-size", to("size", v.path("shell")))),
	}
	for i, l := range s.screen.Lines() {
		id := fmt.Sprintf("r-%d", i)
		lines.Children = append(lines.Children, live.Fragment{ID: id, HTML: markup.String(markup.E("div", markup.ID(id), l))})
	}
	return []live.Fragment{lines, {ID: "ended", HTML: markup.String(markup.E("p", markup.ID("ended"), markup.A("role", "status"), ended))}}, nil
}

// shellOf returns the shell of a page, to whoever opened it.
func (p *Pages) shellOf(v *visit) (*shell, error) {
	p.shells.mu.Lock()
	defer p.shells.mu.Unlock()
	s := p.shells.all[v.path("shell")]
	if s == nil || s.of != v.session.Identity || s.key != v.session.AccessKeyID {
		return nil, errNotFound("There is no such shell. It may have been closed because nobody typed for half an hour.")
	}
	return s, nil
}

// beginShell asks ECS for a session, and is its client from then on.
func (p *Pages) beginShell(v *visit) (string, error) {
	out, err := ask[ecs.ExecuteCommandOutput](v, &ecs.ExecuteCommandInput{
		Cluster: aws.String(v.form("cluster")), Task: aws.String(v.form("task")), Container: aws.String(v.form("container")),
		Command: aws.String(v.form("command")), Interactive: true,
	})
	if err != nil {
		return "", err
	}
	id := strings.ToLower(rand.Text())
	typed, keys := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx))
	s := &shell{
		of:    v.session.Identity,
		key:   v.session.AccessKeyID,
		title: "Shell in " + v.form("container") + " of task " + v.form("task"),
		keys:  keys,
		sizes: make(chan datachannel.Size, 1),
		idle:  time.AfterFunc(shellIdleness, cancel),
	}
	asked := make(answers, maxAnswers)
	s.screen = screen.New(shellColumns, shellRows, asked)
	if err := p.shells.add(id, s); err != nil {
		cancel()
		return "", err
	}
	stop := context.AfterFunc(p.ended, cancel)
	go asked.typeTo(ctx, keys)
	go func() {
		defer stop()
		defer cancel()
		p.attach(ctx, s, out, typed)
		time.AfterFunc(time.Minute, func() { p.shells.remove(id) }) // until then its end can be seen
	}()
	return to("shell", id), nil
}

// attach is the client of a session until that is over.
func (p *Pages) attach(ctx context.Context, s *shell, out *ecs.ExecuteCommandOutput, typed *io.PipeReader) {
	end, err := client.Run(ctx, client.Session{
		URL:   "ws://console/v1/data-channel/" + *out.Session.SessionId + "?role=publish_subscribe",
		Token: *out.Session.TokenValue,
		In:    typed,
		Out:   s.screen,
		Size:  datachannel.Size{Cols: shellColumns, Rows: shellRows},
		Sizes: s.sizes,
		HTTP:  &http.Client{Transport: within(p.opts.DataChannels)},
		Resume: func(context.Context) (string, error) {
			return "", errors.New("the connection is within the process")
		},
	})
	typed.CloseWithError(io.ErrClosedPipe) //nolint:errcheck // it never fails
	text := "The command has ended."
	switch {
	case err != nil:
		text = "The session has ended: " + err.Error()
		p.opts.Services.Call(context.WithoutCancel(ctx), &ssm.TerminateSessionInput{SessionId: out.Session.SessionId}) //nolint:errcheck // it may be over
	case end.Output != "":
		text = end.Output
	case end.ExitCode != nil:
		text = fmt.Sprintf("The command has ended with exit code %d.", *end.ExitCode)
	}
	s.mu.Lock()
	s.ended = text
	s.mu.Unlock()
	s.screen.Write(nil) //nolint:errcheck // it tells those who look
}

// answers are what the emulator answers to programs that ask it. Those that ask faster than they read get none.
type answers chan []byte

// Write implements io.Writer, and waits for nobody.
func (a answers) Write(b []byte) (int, error) {
	select {
	case a <- bytes.Clone(b):
	default:
	}
	return len(b), nil
}

// typeTo sends the answers as if they were typed, until ctx ends or the shell is over.
func (a answers) typeTo(ctx context.Context, keys io.Writer) {
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-a:
			if _, err := keys.Write(b); err != nil {
				return
			}
		}
	}
}

func (s *shells) add(id string, one *shell) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxShells {
		return errBadForm("There are too many shells. Close some.")
	}
	if s.all == nil {
		s.all = map[string]*shell{}
	}
	s.all[id] = one
	return nil
}

func (s *shells) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// forShell serves what a shell's page posts.
func (p *Pages) forShell(serve func(w http.ResponseWriter, v *visit, s *shell, posted []byte)) http.Handler {
	return p.forVisitors(func(w http.ResponseWriter, v *visit) {
		if !v.session.Knows(v.r.Header.Get("X-Token")) || p.opts.ReadOnly {
			p.refuse(w, http.StatusForbidden, "This isn't from one of the console's pages, or the console is read-only.")
			return
		}
		s, err := p.shellOf(v)
		if err != nil {
			p.refuse(w, http.StatusNotFound, err.Error())
			return
		}
		b, err := io.ReadAll(http.MaxBytesReader(w, v.r.Body, maxKeys))
		if err != nil {
			p.refuse(w, http.StatusRequestEntityTooLarge, err.Error())
			return
		}
		serve(w, v, s, b)
	})
}

// serveKeys types what is posted.
func serveKeys(w http.ResponseWriter, v *visit, s *shell, keys []byte) {
	s.idle.Reset(shellIdleness)
	if _, err := s.keys.Write(keys); err != nil {
		v.pages.refuse(w, http.StatusGone, "The shell is over.")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveSize resizes a shell to the columns and rows that are posted.
func serveSize(w http.ResponseWriter, v *visit, s *shell, size []byte) {
	var columns, rows int
	if _, err := fmt.Sscan(string(size), &columns, &rows); err != nil {
		v.pages.refuse(w, http.StatusBadRequest, "A size is columns and rows.")
		return
	}
	s.resize(columns, rows)
	w.WriteHeader(http.StatusNoContent)
}

// within is a transport whose connections lead to a handler in this process.
func within(h http.Handler) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		go server.Serve(&oneConnection{Conn: theirs, done: make(chan struct{})}) //nolint:errcheck // it ends with the connection
		return ours, nil
	}}
}

// oneConnection is a listener to which one connection comes, and no other.
type oneConnection struct {
	net.Conn
	once sync.Once
	done chan struct{}
}

// Accept implements net.Listener.
func (l *oneConnection) Accept() (c net.Conn, err error) {
	l.once.Do(func() { c = closing{l.Conn, sync.OnceFunc(func() { close(l.done) })} })
	if c != nil {
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

// Addr implements net.Listener.
func (l *oneConnection) Addr() net.Addr { return l.LocalAddr() }

// closing is a connection that tells of its end.
type closing struct {
	net.Conn
	tell func()
}

func (c closing) Close() error {
	c.tell()
	return c.Conn.Close()
}

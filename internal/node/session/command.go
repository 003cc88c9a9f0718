package session

import (
	"context"
	"io"
	"sync"

	"github.com/pintle/pintle/internal/node/runtime"
)

// command is a session's command at its terminal.
type command struct {
	words  []string
	size   runtime.Size
	ctx    context.Context
	cancel context.CancelFunc // gives it up
	typed  *typist
	sizes  chan runtime.Size
	shown  chan []byte
	done   chan result // gets one, after all output
}

// result is how a command ended.
type result struct {
	code int
	err  error
}

// defaultSize is that of the terminal of a client that doesn't tell.
var defaultSize = runtime.Size{Cols: 80, Rows: 24}

func newCommand(words []string, size runtime.Size) *command {
	if size == (runtime.Size{}) {
		size = defaultSize
	}
	c := &command{words: words, size: size, sizes: make(chan runtime.Size, 1), shown: make(chan []byte), done: make(chan result, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// start starts the command in a container, as root whoever the container runs as, as on AWS.
func (c *command) start(tasks *sync.WaitGroup, rt Runtime, id string) {
	in, keys := io.Pipe()
	c.typed = newTypist(keys)
	tasks.Go(c.typed.run)
	tasks.Go(func() {
		defer c.cancel()
		defer in.Close()
		code, err := rt.Exec(c.ctx, id, runtime.Exec{
			Command: c.words,
			User:    "0",
			Env:     []string{"TERM=xterm-256color"},
			Stdin:   in,
			Stdout:  screen{c.shown},
			Tty:     true,
			Size:    c.size,
			Resize:  c.sizes,
		})
		c.done <- result{code, err}
	})
}

// resize changes the terminal's size. Of several that come at once the last counts.
func (c *command) resize(size runtime.Size) {
	select {
	case <-c.sizes:
	default:
	}
	c.sizes <- size
}

// screen passes on what a terminal shows, in pieces of the size that clients expect.
type screen struct{ shown chan<- []byte }

// pieceOfScreen is the most bytes of a message with output.
const pieceOfScreen = 1024

// Write implements io.Writer. It waits until each piece was taken, so that the program waits too.
func (s screen) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), pieceOfScreen)
		s.shown <- append([]byte(nil), rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

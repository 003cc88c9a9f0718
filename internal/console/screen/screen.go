// Package screen shows what a terminal's programs write as lines of HTML. It keeps no history.
package screen

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hinshun/vt10x"

	"github.com/pintle/pintle/internal/console/markup"
)

// Screen is a terminal's screen. It's an io.Writer for what programs write.
type Screen struct {
	mu       sync.Mutex
	terminal vt10x.Terminal
	filter   filter
	changed  chan struct{} // closed at the next change
}

// New returns an empty screen. What it answers, such as where the cursor is, goes to reply.
func New(columns, rows int, reply interface{ Write([]byte) (int, error) }) *Screen {
	return &Screen{terminal: vt10x.New(vt10x.WithSize(columns, rows), vt10x.WithWriter(reply)), changed: make(chan struct{})}
}

// Write implements io.Writer. It never fails. What the emulator can't bear is lost: a container chooses it.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed(s.filter.pass(b))
	s.changeLocked()
	return len(b), nil
}

func (s *Screen) feed(b []byte) {
	defer s.survive()
	s.terminal.Write(b) //nolint:errcheck // it fails only for what is in b
}

// survive has a terminal go on whose emulator has failed.
func (s *Screen) survive() {
	if p := recover(); p != nil {
		s.terminal.Write(fmt.Appendf(nil, "\r\n[the terminal's emulator failed: %v]\r\n", p)) //nolint:errcheck // as Write
	}
}

// Resize makes the screen as large as told.
func (s *Screen) Resize(columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changeLocked()
	defer s.survive()
	s.terminal.Resize(columns, rows)
}

// changeLocked tells those who look of a change.
func (s *Screen) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change.
func (s *Screen) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// The modes of a cell, as vt10x has them without names.
const (
	reverse = 1 << 0
	bold    = 1 << 2
)

// Lines returns the screen's lines.
func (s *Screen) Lines() (lines []markup.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.terminal.Size()
	cursor := s.terminal.Cursor()
	for y := range rows {
		at := -1
		if s.terminal.CursorVisible() && cursor.Y == y {
			at = cursor.X
		}
		lines = append(lines, s.lineLocked(y, columns, at))
	}
	return lines
}

// lineLocked returns a line as spans of cells that look the same.
func (s *Screen) lineLocked(y, columns, cursor int) markup.Node {
	var spans []markup.Node
	var text strings.Builder
	class := ""
	flush := func() {
		if text.Len() > 0 {
			spans = append(spans, markup.E("span", markup.Class(class), text.String()))
			text.Reset()
		}
	}
	for x := range columns {
		cell := s.terminal.Cell(x, y)
		look := classOf(cell)
		if x == cursor {
			look += " cursor"
		}
		if look != class {
			flush()
			class = look
		}
		if cell.Char == 0 {
			cell.Char = ' '
		}
		text.WriteRune(cell.Char)
	}
	flush()
	return markup.Group(spans)
}

// classOf returns the classes of how a cell looks.
func classOf(g vt10x.Glyph) string {
	var classes []string
	if g.Mode&reverse != 0 {
		classes = append(classes, "inverse")
	}
	if g.Mode&bold != 0 {
		classes = append(classes, "bold")
	}
	if n, ok := basic(g.FG); ok {
		classes = append(classes, "f"+n)
	}
	if n, ok := basic(g.BG); ok {
		classes = append(classes, "b"+n)
	}
	return strings.Join(classes, " ")
}

// basic returns which of the sixteen colours is like one, if it isn't the default: styles can't be made for all 16 million.
func basic(c vt10x.Color) (string, bool) {
	switch {
	case c >= vt10x.DefaultFG:
		return "", false
	case c < 16:
		return strconv.Itoa(int(c)), true
	case c >= 232 && c < 244:
		return "8", true
	case c >= 244 && c < 256:
		return "7", true
	case c < 256:
		c -= 16
		return strconv.Itoa(int(c/36/3 + c/6%6/3*2 + c%6/3*4)), true
	}
	return strconv.Itoa(int(c>>23&1 + c>>15&1*2 + c>>7&1*4)), true
}

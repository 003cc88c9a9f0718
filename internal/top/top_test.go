package top

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-runewidth"
)

// screenOf is a model on a small screen, with a reading of two tables.
func screenOf(t *testing.T, rows int) (m *model, stopped *[]string) {
	t.Helper()
	stopped = new([]string)
	source := func(context.Context) (Reading, error) {
		nodes := Table{Name: "nodes", Titles: []string{"NODE", "STATUS"}, Rows: []Row{{ID: "n1", Cells: []Cell{{Text: "n1"}, {Text: "ACTIVE", Tone: Good}}}}}
		tasks := Table{Name: "tasks", Titles: []string{"TASK", "REASON"}, Actions: []Action{
			{Key: "w", Name: "why", Text: func(_ context.Context, id string) (string, error) {
				return id + " waits\n" + strings.Repeat("x", 50), nil
			}},
			{Key: "l", Name: "logs", IsLog: true, Text: func(context.Context, string) (string, error) {
				var b strings.Builder
				for i := range 30 {
					fmt.Fprintf(&b, "line %d\n", i)
				}
				return b.String(), nil
			}},
			{Key: "e", Name: "shell", Program: func(string) *exec.Cmd { return exec.Command("true") }},
			{Key: "s", Name: "stop", Asks: "stop", Do: func(_ context.Context, id string) error {
				*stopped = append(*stopped, id)
				return errors.New("refused")
			}},
		}}
		for i := range rows {
			id := fmt.Sprintf("t%02d", i)
			tasks.Rows = append(tasks.Rows, Row{ID: id, Cells: []Cell{{Text: id}, {Text: "日本 a reason that is much longer than the screen is wide " + id}}})
		}
		return Reading{Title: "default", Tables: []Table{nodes, tasks}}, nil
	}
	m = newModel(t.Context(), source, Options{Every: time.Second})
	m.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	m.Update(m.read())
	return m, stopped
}

// press types keys, and does what comes of them but timers.
func press(m *model, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		switch k {
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			m.Update(cmd())
		}
	}
}

// check compares the screen with what must be on it, and its size with the terminal's.
func check(t *testing.T, m *model, has ...string) {
	t.Helper()
	s := m.screen()
	for _, part := range has {
		if !strings.Contains(s, part) {
			t.Errorf("%q isn't on the screen:\n%s", part, s)
		}
	}
	lines := strings.Split(s, "\n")
	if len(lines) != m.height {
		t.Errorf("%d lines on a screen of %d:\n%s", len(lines), m.height, s)
	}
	for _, l := range lines {
		for _, style := range []string{bold, reverse} {
			l = strings.ReplaceAll(l, "\x1b["+style+"m", "")
		}
		if l = strings.ReplaceAll(l, "\x1b[0m", ""); runewidth.StringWidth(l) > m.width {
			t.Errorf("a line is %d wide: %q", runewidth.StringWidth(l), l)
		}
	}
}

func TestTables(t *testing.T) {
	m, _ := screenOf(t, 20)
	check(t, m, "default", "1 nodes 1", "2 tasks 20", "ACTIVE")
	press(m, "2")
	check(t, m, "t00", "t05")
	press(m, "j", "j", "end")
	check(t, m, "t19")
	press(m, "g")
	check(t, m, "t00")
	press(m, "/", "t", "1", "3", "enter")
	check(t, m, "t13", "filter: t13")
	if got := len(m.rows(1)); got != 1 {
		t.Errorf("the filter lets %d rows through", got)
	}
	press(m, "esc", "?")
	check(t, m, "tasks: w: why, l: logs")
	press(m, "x", "2")
	for _, size := range [][2]int{{1, 1}, {5, 3}, {200, 60}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		check(t, m)
	}
}

// TestTheCursorFollowsItsRow has rows come before the one under the cursor, and that one go.
func TestTheCursorFollowsItsRow(t *testing.T) {
	m, stopped := screenOf(t, 20)
	press(m, "2", "j", "j", "j")
	all := m.reading.Tables[1].Rows
	next := m.reading
	next.Tables = []Table{next.Tables[0], next.Tables[1]}
	next.Tables[1].Rows = all[2:]
	m.Update(readMsg{reading: next})
	press(m, "s", "y")
	if len(*stopped) != 1 || (*stopped)[0] != "t03" {
		t.Errorf("stopped %v", *stopped)
	}
	check(t, m, "stop t03: refused")
	next.Tables[1].Rows = nil
	m.Update(readMsg{reading: next})
	check(t, m, "none")
	press(m, "s", "j", "k")
	check(t, m)
}

func TestWhatIsAskedNeedsAYes(t *testing.T) {
	m, stopped := screenOf(t, 3)
	press(m, "2", "s")
	check(t, m, "stop t00? y or n")
	press(m, "n")
	check(t, m, "not done")
	if len(*stopped) != 0 {
		t.Errorf("stopped %v", *stopped)
	}
}

func TestTexts(t *testing.T) {
	m, _ := screenOf(t, 3)
	press(m, "2", "w")
	check(t, m, "why t00", "t00 waits", strings.Repeat("x", 40)+"\n"+strings.Repeat("x", 10)+"\n")
	press(m, "esc", "l")
	check(t, m, "line 29")
	press(m, "k")
	if m.Update(m.fetch(m.shown)()); m.shown.isEnd || strings.Contains(m.screen(), "line 29") {
		t.Error("it moves on while it's being read")
	}
	press(m, "g")
	check(t, m, "line 0")
	press(m, "q")
	check(t, m, "2 tasks 3")
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	m, _ := screenOf(t, 3)
	m.Update(readMsg{err: errors.New("connection refused")})
	check(t, m, "not read: connection refused", "ACTIVE") // with what was read before
}

// TestErrorsArePlain: an error may have words of others in it, and commands no terminal.
func TestErrorsArePlain(t *testing.T) {
	m, _ := screenOf(t, 1)
	m.Update(readMsg{err: errors.New("no cluster \x1b]0;title\a\x1b[2J\nof\tthis name")})
	check(t, m, "no cluster  ]0;title")
	m.Update(doneMsg{what: "stop t", err: errors.New("\x1b[2Jrefused")})
	check(t, m, "stop t:  [2Jrefused")
	if s := m.screen(); strings.Contains(s, "\x1b]") || strings.Contains(s, "\x1b[2J") {
		t.Errorf("the screen has commands: %q", s)
	}
}

// Package top is what pintle top shows: tables that are read again and again, whose rows can be looked at and acted upon, in a terminal of any
// size. It knows nothing of ECS; package main says what the tables are. What it shows is text from others, which never commands the terminal:
// whoever fills a table or a text has made it plain.
package top

import (
	"context"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Tone is what a cell says besides its text. Without colors nothing is lost: the text says it too.
type Tone int

// Tones of cells.
const (
	Plain Tone = iota
	Good
	Waiting
	Bad
	Faint
)

// Cell is a row's part under a title.
type Cell struct {
	Text string
	Tone Tone
}

// Row is what a table has a line of.
type Row struct {
	ID    string // what actions are called with; the same in each reading
	Cells []Cell
}

// Table is a page.
type Table struct {
	Name    string
	Titles  []string
	Rows    []Row
	Actions []Action
}

// Action is what can be done with a row. One of its functions is set.
type Action struct {
	Key  string
	Name string
	Asks string // what is to be confirmed first, such as "stop the task"; "" does it at once
	Do   func(ctx context.Context, id string) error
	// Text returns what is shown of the row in place of the table, and again every moment while it's shown.
	Text func(ctx context.Context, id string) (string, error)
	// IsLog is set if a text's end is what matters, so that it's shown, and stays on the screen while lines come.
	IsLog bool
	// Program returns a program that gets the terminal until it ends.
	Program func(id string) *exec.Cmd
}

// Reading is all that is shown at a moment.
type Reading struct {
	Title  string // the first line's
	Notice string // what everybody who looks should know, or ""
	Tables []Table
}

// Source reads everything anew.
type Source func(ctx context.Context) (Reading, error)

// Options are what the view needs besides what it shows.
type Options struct {
	Every  time.Duration // between two readings
	Colors bool
}

// Run shows a source's readings until the user leaves or the context ends.
func Run(ctx context.Context, source Source, o Options) error {
	_, err := tea.NewProgram(newModel(ctx, source, o), tea.WithContext(ctx)).Run()
	if ctx.Err() != nil {
		return nil // whoever ends the context knows that
	}
	return err
}

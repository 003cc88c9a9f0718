package top

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// place is where the user is in a table.
type place struct {
	id  string // of the row under the cursor: rows move, and the cursor with them
	at  int    // its index
	top int    // the first row on the screen
}

// text is what is shown of a row in place of the table.
type text struct {
	action Action
	id     string
	lines  []string
	top    int
	isEnd  bool // the end is shown, also when more lines come
}

// model is the view's state, which Update changes and View shows.
type model struct {
	ctx     context.Context
	source  Source
	options Options

	width, height int
	reading       Reading
	failure       string // of the last reading
	page          int
	places        []place
	filter        string
	isFiltering   bool // the filter is being typed
	asked         *text
	shown         *text
	isHelp        bool
	said          string // what the last action has to say
}

func newModel(ctx context.Context, source Source, o Options) *model {
	return &model{ctx: ctx, source: source, options: o, width: 80, height: 24}
}

// Messages that come from commands.
type (
	readMsg struct {
		reading Reading
		err     error
	}
	textMsg struct {
		id, key string
		text    string
		err     error
	}
	doneMsg struct {
		what string
		err  error
	}
	againMsg struct{}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.read }

// read reads the source.
func (m *model) read() tea.Msg {
	ctx, cancel := context.WithTimeout(m.ctx, max(10*time.Second, m.options.Every))
	defer cancel()
	r, err := m.source(ctx)
	return readMsg{r, err}
}

// later has everything read again.
func (m *model) later() tea.Cmd {
	return tea.Tick(m.options.Every, func(time.Time) tea.Msg { return againMsg{} })
}

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case readMsg:
		return m, m.take(msg)
	case againMsg:
		return m, m.read
	case textMsg:
		m.takeText(msg)
	case doneMsg:
		m.said = msg.what
		if msg.err != nil {
			m.said = msg.what + ": " + inALine(msg.err)
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// take shows a reading, with the cursors on the rows on which they were.
func (m *model) take(msg readMsg) tea.Cmd {
	m.failure = ""
	if msg.err != nil {
		m.failure = inALine(msg.err)
		return m.later()
	}
	m.reading = msg.reading
	if len(m.places) != len(m.reading.Tables) {
		m.places = make([]place, len(m.reading.Tables))
		m.page = min(m.page, max(0, len(m.places)-1))
	}
	for i := range m.places {
		m.follow(i)
	}
	if m.shown != nil {
		return tea.Batch(m.later(), m.fetch(m.shown))
	}
	return m.later()
}

// follow puts a table's cursor on its row again, or where that was.
func (m *model) follow(page int) {
	p, rows := &m.places[page], m.rows(page)
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == p.id }); i >= 0 {
		p.at = i
	}
	m.moveTo(page, p.at)
}

// moveTo puts a table's cursor on a row.
func (m *model) moveTo(page, at int) {
	p, rows := &m.places[page], m.rows(page)
	p.at = max(0, min(at, len(rows)-1))
	p.id = ""
	if len(rows) > 0 {
		p.id = rows[p.at].ID
	}
	p.top = max(0, min(max(p.top, p.at-m.body()+1), p.at))
}

// rows returns a table's rows that the filter lets through.
func (m *model) rows(page int) []Row {
	all := m.reading.Tables[page].Rows
	if m.filter == "" {
		return all
	}
	wanted := strings.ToLower(m.filter)
	return slices.DeleteFunc(slices.Clone(all), func(r Row) bool {
		has := func(c Cell) bool { return strings.Contains(strings.ToLower(c.Text), wanted) }
		return !strings.Contains(strings.ToLower(r.ID), wanted) && !slices.ContainsFunc(r.Cells, has)
	})
}

// takeText shows what was fetched of a row, if that is still what is looked at.
func (m *model) takeText(msg textMsg) {
	if m.shown == nil || m.shown.id != msg.id || m.shown.action.Key != msg.key {
		return
	}
	if msg.err != nil {
		msg.text = msg.err.Error()
	}
	m.shown.lines = folded(msg.text, m.width)
	m.scrollTo(m.shown.top)
}

// scrollTo shows the text from a line on. At the end it stays at the end.
func (m *model) scrollTo(line int) {
	last := max(0, len(m.shown.lines)-m.body())
	if m.shown.isEnd {
		line = last
	}
	m.shown.top = max(0, min(line, last))
}

// fetch fetches the text that an action shows.
func (m *model) fetch(t *text) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		s, err := t.action.Text(ctx, t.id)
		return textMsg{t.id, t.action.Key, s, err}
	}
}

// start does an action, or asks first.
func (m *model) start(a Action, id string) tea.Cmd {
	switch {
	case a.Text != nil:
		m.shown = &text{action: a, id: id, lines: []string{"…"}, isEnd: a.IsLog}
		return m.fetch(m.shown)
	case a.Program != nil:
		return tea.ExecProcess(a.Program(id), func(err error) tea.Msg { return doneMsg{a.Name, err} })
	case a.Asks != "":
		m.asked = &text{action: a, id: id}
		return nil
	}
	return m.do(a, id)
}

func (m *model) do(a Action, id string) tea.Cmd {
	m.said = a.Name + " …"
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
		defer cancel()
		return doneMsg{a.Name + " " + id, a.Do(ctx, id)}
	}
}

// inALine is an error as one line. It may have others' words in it, so what doesn't print is left out.
func inALine(err error) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
}

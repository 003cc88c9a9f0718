package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-runewidth"
)

// body is how many lines there are for rows or a text: all but the titles above, and the line below.
func (m *model) body() int { return max(1, m.height-4) }

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

// screen is the whole screen: as many lines as it has.
func (m *model) screen() string {
	lines := []string{m.head(), m.tabs()}
	switch {
	case m.isHelp:
		lines = append(lines, m.help()...)
	case m.shown != nil:
		lines = append(lines, m.paint(bold, fit(m.shown.action.Name+" "+m.shown.id, m.width)))
		end := min(len(m.shown.lines), m.shown.top+m.body())
		lines = append(lines, m.shown.lines[min(m.shown.top, end):end]...)
	case len(m.reading.Tables) > 0:
		lines = append(lines, m.table()...)
	case m.failure == "":
		lines = append(lines, "reading …")
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:max(0, m.height-1)], m.foot()), "\n")
}

// head is what everybody should know.
func (m *model) head() string {
	switch {
	case m.failure != "":
		return m.paint(bad, fit("not read: "+m.failure, m.width))
	case m.reading.Notice != "":
		return m.paint(bad, fit(m.reading.Notice, m.width))
	}
	return m.paint(bold, fit(m.reading.Title, m.width))
}

// tabs are the tables' names.
func (m *model) tabs() string {
	var b strings.Builder
	used := 0
	for i, t := range m.reading.Tables {
		name := fmt.Sprintf(" %d %s %d ", i+1, t.Name, len(t.Rows))
		if used += runewidth.StringWidth(name); used > m.width {
			break
		}
		style := faint
		if i == m.page {
			style = reverse
		}
		b.WriteString(m.paint(style, name))
	}
	return b.String()
}

// table is the table under its titles. Columns are as wide as their cells on the screen, the last one gets what is left.
func (m *model) table() []string {
	t, p, rows := m.reading.Tables[m.page], m.places[m.page], m.rows(m.page)
	end := min(len(rows), p.top+m.body())
	seen := rows[min(p.top, end):end]
	widths := make([]int, len(t.Titles))
	for i, title := range t.Titles {
		widths[i] = runewidth.StringWidth(title)
		for _, r := range seen {
			widths[i] = max(widths[i], runewidth.StringWidth(r.Cells[i].Text))
		}
	}
	shrink(widths, m.width)
	titles := make([]Cell, len(t.Titles))
	for i, title := range t.Titles {
		titles[i].Text = title
	}
	lines := []string{m.line(titles, widths, bold)}
	for i, r := range seen {
		style := ""
		if p.top+i == p.at {
			style = reverse
		}
		lines = append(lines, m.line(r.Cells, widths, style))
	}
	if len(rows) == 0 {
		lines = append(lines, m.paint(faint, "none"))
	}
	return lines
}

// shrink makes columns narrower until they fit, the widest first.
func shrink(widths []int, width int) {
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= 1 {
			return
		}
		widths[widest]--
	}
}

// line is a row. A style of the whole line comes before those of cells.
func (m *model) line(cells []Cell, widths []int, style string) string {
	var b strings.Builder
	used := 0
	for i, c := range cells {
		part := runewidth.FillRight(fit(c.Text, widths[i]), widths[i])
		if i > 0 {
			part = "  " + part
		}
		used += runewidth.StringWidth(part)
		if style != "" {
			b.WriteString(part)
		} else {
			b.WriteString(m.paint(tones[c.Tone], part))
		}
	}
	if style == "" {
		return b.String()
	}
	return m.paint(style, fit(b.String()+strings.Repeat(" ", max(0, m.width-used)), m.width))
}

// foot says what can be done, or what was.
func (m *model) foot() string {
	switch {
	case m.asked != nil:
		return m.paint(bold, fit(fmt.Sprintf("%s %s? y or n", m.asked.action.Asks, m.asked.id), m.width))
	case m.isFiltering:
		return fit("/"+m.filter+"▏", m.width)
	case m.said != "":
		return fit(m.said, m.width)
	case m.shown != nil:
		return m.paint(faint, fit("↑↓ pgup pgdn g G: move · esc: back", m.width))
	}
	words := []string{"q: quit", "?: help", "/: filter"}
	if m.filter != "" {
		words[2] = "filter: " + m.filter + " (esc: none)"
	}
	if len(m.reading.Tables) > 0 {
		for _, a := range m.reading.Tables[m.page].Actions {
			words = append(words, a.Key+": "+a.Name)
		}
	}
	return m.paint(faint, fit(strings.Join(words, " · "), m.width))
}

// help explains the keys.
func (m *model) help() []string {
	lines := []string{
		"1 2 3 …, tab, ←, →   another table",
		"↑ ↓ pgup pgdn g G    move (j and k too)",
		"/                    show only rows that have what you type; esc ends that",
		"q, ctrl-C            leave",
	}
	for _, t := range m.reading.Tables {
		var words []string
		for _, a := range t.Actions {
			words = append(words, a.Key+": "+a.Name)
		}
		if len(words) > 0 {
			lines = append(lines, t.Name+": "+strings.Join(words, ", "))
		}
	}
	for i := range lines {
		lines[i] = fit(lines[i], m.width)
	}
	return lines
}

// Styles, as what commands a terminal. Those of tones are colors that any terminal has.
const (
	bold    = "1"
	faint   = "2"
	reverse = "7"
	bad     = "31"
)

var tones = map[Tone]string{Good: "32", Waiting: "33", Bad: bad, Faint: faint}

// paint gives text a style. Bold and reverse are no colors.
func (m *model) paint(style, s string) string {
	if style == "" || !m.options.Colors && style != bold && style != reverse {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// fit cuts a text that is too wide, and shows that it's cut.
func fit(s string, width int) string { return runewidth.Truncate(s, width, "…") }

// folded breaks a text's lines where the screen ends.
func folded(s string, width int) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		line = strings.ReplaceAll(line, "\t", "    ")
		lines = append(lines, strings.Split(runewidth.Wrap(line, max(2, width)), "\n")...)
	}
	return lines
}

package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// key does what a key says, which depends on what is on the screen.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case m.isHelp:
		m.isHelp = false
		return nil
	case m.isFiltering:
		m.typeFilter(k)
		return nil
	case m.asked != nil:
		return m.answer(k)
	case m.shown != nil:
		m.readOn(k.String())
		return nil
	}
	return m.choose(k.String())
}

// typeFilter adds to the filter.
func (m *model) typeFilter(k tea.KeyPressMsg) {
	switch k.Code {
	case tea.KeyEnter:
		m.isFiltering = false
	case tea.KeyEscape:
		m.isFiltering, m.filter = false, ""
	case tea.KeyBackspace:
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		m.filter += k.Text
	}
	for i := range m.places {
		m.follow(i)
	}
}

// answer does what was asked about, if the answer is y.
func (m *model) answer(k tea.KeyPressMsg) tea.Cmd {
	asked := m.asked
	m.asked = nil
	if strings.ToLower(k.String()) != "y" {
		m.said = "not done"
		return nil
	}
	return m.do(asked.action, asked.id)
}

// readOn moves through a text, or leaves it.
func (m *model) readOn(key string) {
	t := m.shown
	to, known := moved(key, t.top, m.body(), len(t.lines)-m.body())
	switch {
	case known:
		t.isEnd = t.action.IsLog && to >= len(t.lines)-m.body()
		m.scrollTo(to)
	case key == "esc", key == "q", key == "left":
		m.shown = nil
	}
}

// choose moves between tables and rows, and starts actions.
func (m *model) choose(key string) tea.Cmd {
	m.said = ""
	switch key {
	case "q":
		return tea.Quit
	case "?":
		m.isHelp = true
		return nil
	case "/":
		m.isFiltering = true
		return nil
	case "esc":
		m.filter = ""
	case "tab", "right":
		m.page++
	case "shift+tab", "left":
		m.page--
	}
	pages := len(m.reading.Tables)
	if pages == 0 {
		return nil
	}
	if len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < pages {
		m.page = int(key[0] - '1')
	}
	m.page = (m.page + pages) % pages
	p := &m.places[m.page]
	if to, known := moved(key, p.at, m.body(), len(m.rows(m.page))-1); known {
		m.moveTo(m.page, to)
		return nil
	}
	m.follow(m.page)
	for _, a := range m.reading.Tables[m.page].Actions {
		if a.Key == key && p.id != "" {
			return m.start(a, p.id)
		}
	}
	return nil
}

// moved returns where a key leads from a line, when there are so many lines on the screen and so many in all.
func moved(key string, from, screen, last int) (to int, known bool) {
	switch key {
	case "up", "k":
		return from - 1, true
	case "down", "j":
		return from + 1, true
	case "pgup", "ctrl+b":
		return from - screen, true
	case "pgdown", "ctrl+f", "space":
		return from + screen, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return last, true
	}
	return from, false
}

package pages

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
)

// section is a part of a page that is sent again as a whole when anything in it changes.
func section(id, title string, parts ...any) live.Fragment {
	all := append([]any{markup.ID(id), markup.E("h2", title)}, parts...)
	return live.Fragment{ID: id, HTML: markup.String(markup.E("section", all...))}
}

// blank is a section that has nothing to say for now.
func blank(id string) live.Fragment {
	return live.Fragment{ID: id, HTML: markup.String(markup.E("section", markup.ID(id)))}
}

// to is the address of one of the console's pages: the parts of its path, each of which may have anything in it.
func to(parts ...string) string {
	var b strings.Builder
	b.WriteString("/console")
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// with adds values to an address: names and values in turn. Empty ones are left out.
func with(address string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return address
	}
	return address + "?" + q.Encode()
}

func link(address, text string) markup.Node {
	return markup.E("a", markup.A("href", address), text)
}

// idLink is a link whose text is an id, which stays in one piece: half an id is none.
func idLink(address, id string) markup.Node {
	return markup.E("a", markup.Class("id"), markup.A("href", address), id)
}

// column is a column of a table: its head, and whether it has numbers.
type column struct {
	head    string
	numbers bool
}

// columns are columns with texts.
func columns(heads ...string) (all []column) {
	for _, h := range heads {
		h, numbers := strings.CutPrefix(h, "#")
		all = append(all, column{h, numbers})
	}
	return all
}

// table is a table with a caption that only screen readers tell. It can be moved sideways where it doesn't fit.
func table(caption string, heads []column, rows ...markup.Node) markup.Node {
	if len(rows) == 0 {
		return markup.E("p", markup.Class("none"), "None.")
	}
	return tableFrame(caption, markup.E("table", tableHead(caption, heads), markup.E("tbody", rows)))
}

func tableHead(caption string, heads []column) markup.Node {
	var cells []markup.Node
	for _, h := range heads {
		class := markup.Class("")
		if h.numbers {
			class = markup.Class("number")
		}
		cells = append(cells, markup.E("th", markup.A("scope", "col"), class, h.head))
	}
	return markup.Group{
		markup.E("caption", markup.Class("unseen"), caption),
		markup.E("thead", markup.E("tr", cells)),
	}
}

func tableFrame(caption string, content markup.Node) markup.Node {
	return markup.E("div", markup.Class("scroll"), markup.A("tabindex", "0"), markup.A("role", "region"), markup.A("aria-label", caption), content)
}

// row is a table's row. Its cells are nodes, texts and numbers.
func row(cells ...any) markup.Node { return rowOf(markup.Class(""), cells...) }

func rowOf(attr markup.Attr, cells ...any) markup.Node {
	var all []markup.Node
	for _, c := range cells {
		all = append(all, cell(c))
	}
	return markup.E("tr", attr, all)
}

// numeric is a number as it's to be written.
type numeric string

// tooFew is a number that is smaller than it should be.
type tooFew int32

func cell(c any) markup.Node {
	switch c := c.(type) {
	case tooFew:
		return markup.E("td", markup.Class("number short"), markup.A("title", "fewer than desired"), int(c))
	case int:
		return markup.E("td", markup.Class("number"), c)
	case int32:
		return markup.E("td", markup.Class("number"), int(c))
	case float64:
		return markup.E("td", markup.Class("number"), number(c))
	case numeric:
		return markup.E("td", markup.Class("number"), string(c))
	}
	return markup.E("td", c)
}

// number writes a number as short as it may be.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// badge is a status. Its class says how good that is.
func badge(class, text string) markup.Node {
	return markup.E("span", markup.Class("badge "+class), text)
}

// status is the badge of a status as AWS's APIs have them.
func status(s string) markup.Node {
	switch s {
	case "RUNNING", "ACTIVE", "COMPLETED", "OK", "SUCCESSFUL", "HEALTHY", "InService", "Successful":
		return badge("good", s)
	case "PENDING", "PROVISIONING", "ACTIVATING", "DRAINING", "DEPROVISIONING", "STOPPING", "DEACTIVATING", "IN_PROGRESS", "INSUFFICIENT_DATA", "InProgress":
		return badge("busy", s)
	case "FAILED", "ALARM", "UNHEALTHY", "STOPPED_BY_ALARM", "Failed":
		return badge("bad", s)
	}
	switch {
	case strings.HasSuffix(s, "_FAILED") || strings.HasSuffix(s, "ROLLBACK_COMPLETE"):
		return badge("bad", s)
	case strings.HasSuffix(s, "_COMPLETE"):
		return badge("good", s)
	case strings.HasSuffix(s, "_IN_PROGRESS"):
		return badge("busy", s)
	}
	return badge("", s)
}

// moment is a time, which the script shows as how long ago that was.
func moment(t *time.Time) markup.Node {
	if t == nil || t.IsZero() {
		return markup.Text("–")
	}
	utc := t.UTC()
	return markup.E("time", markup.A("datetime", utc.Format(time.RFC3339)), utc.Format("2006-01-02 15:04:05Z"))
}

// fact is a name and what is to be said of it.
type fact struct {
	name  string
	value any
}

// facts is a list of names and values. Empty ones are left out.
func facts(all ...fact) markup.Node {
	var parts []markup.Node
	for _, f := range all {
		if f.value == nil || f.value == "" {
			continue
		}
		parts = append(parts, markup.E("div", markup.E("dt", f.name), markup.E("dd", f.value)))
	}
	return markup.E("dl", markup.Class("facts"), parts)
}

// hidden are values that a form has besides what is typed.
type hidden map[string]string

// confirm is a button that asks before it does something. It's nil where nothing can be done.
func (v *visit) confirm(action, label, question string, values hidden, fields ...any) markup.Node {
	if !v.mayAct() {
		return nil
	}
	parts := []any{markup.A("method", "post"), markup.A("action", "/console/do/"+action)}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, markup.E("input", markup.A("type", "hidden"), markup.A("name", name), markup.A("value", values[name])))
	}
	parts = append(parts, markup.E("p", question))
	parts = append(parts, fields...)
	parts = append(parts, markup.E("button", label))
	return markup.E("details", markup.Class("confirm"), markup.E("summary", label+"…"), markup.E("form", parts...))
}

// field is a field of a form with its label.
func field(label, name, kind, value string, more ...any) markup.Node {
	parts := append([]any{markup.A("name", name), markup.A("type", kind), markup.A("value", value)}, more...)
	return markup.E("label", label, " ", markup.E("input", parts...))
}

// choice is a switch between pages: what each is called and its address.
func choice(label, current string, pairs ...string) markup.Node {
	var links []markup.Node
	for i := 0; i+1 < len(pairs); i += 2 {
		here := markup.If("aria-current", false)
		if pairs[i] == current {
			here = markup.A("aria-current", "true")
		}
		links = append(links, markup.E("a", markup.A("href", pairs[i+1]), here, pairs[i]))
	}
	return markup.E("nav", markup.Class("choice"), markup.A("aria-label", label), markup.E("span", label+" "), links)
}

// pager leads to the pages of a list, of which this is one.
func pager(page, pages int, address func(page int) string) markup.Node {
	if pages < 2 {
		return nil
	}
	pairs := []string{}
	for n := max(1, page-4); n <= min(pages, page+4); n++ {
		pairs = append(pairs, strconv.Itoa(n), address(n))
	}
	return choice(fmt.Sprintf("Page %d of %d", page, pages), strconv.Itoa(page), pairs...)
}

// gib writes MiB as GiB.
func gib(mib int64) string { return strconv.FormatFloat(float64(mib)/1024, 'f', 1, 64) + " GiB" }

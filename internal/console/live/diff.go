package live

import "strings"

// Fragment is an element of a page that is replaced where it changes. One with children is replaced child by child as long as they only come at
// the end and go.
type Fragment struct {
	ID       string // the element's; unique in the page
	HTML     string // the element, or its start tag if it has children or may get some
	End      string // the end tag of one with children
	Children []Fragment
}

// Write writes a fragment's HTML.
func (f Fragment) Write(b *strings.Builder) {
	b.WriteString(f.HTML)
	for _, c := range f.Children {
		c.Write(b)
	}
	b.WriteString(f.End)
}

// String returns a fragment's HTML.
func (f Fragment) String() string {
	var b strings.Builder
	f.Write(&b)
	return b.String()
}

// Op is a change of a page.
type Op struct {
	Do   string `json:"do"` // set, append, remove
	ID   string `json:"id"` // of the element that is set or removed, or to whose children one is appended
	HTML string `json:"html,omitempty"`
}

// diff returns what makes a page with one fragment a page with another.
func diff(old, now Fragment) []Op {
	if old.HTML != now.HTML || old.End != now.End {
		return []Op{{"set", now.ID, now.String()}}
	}
	ops, matches := diffChildren(old, now)
	if !matches {
		return []Op{{"set", now.ID, now.String()}}
	}
	return ops
}

// diffChildren returns what makes a fragment's children others, if that takes no more than to remove, change and append some.
func diffChildren(old, now Fragment) (ops []Op, matches bool) {
	wanted := make(map[string]bool, len(now.Children))
	for _, c := range now.Children {
		wanted[c.ID] = true
	}
	next := 0
	for _, c := range old.Children {
		switch {
		case !wanted[c.ID]:
			ops = append(ops, Op{Do: "remove", ID: c.ID})
		case now.Children[next].ID != c.ID:
			return nil, false
		default:
			ops = append(ops, diff(c, now.Children[next])...)
			next++
		}
	}
	for _, c := range now.Children[next:] {
		ops = append(ops, Op{"append", now.ID, c.String()})
	}
	return ops, true
}

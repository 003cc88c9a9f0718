package screen

import (
	"io"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/console/markup"
)

func shown(s *Screen) string {
	var b strings.Builder
	for _, l := range s.Lines() {
		b.WriteString(strings.TrimRight(markup.String(l), " ") + "\n")
	}
	return b.String()
}

func TestLines(t *testing.T) {
	s := New(20, 3, io.Discard)
	changed := s.Changed()
	s.Write([]byte("<b>\r\n\x1b[31;1mred\x1b[0m plain\x1b[?25l")) //nolint:errcheck // it never fails
	select {
	case <-changed:
	default:
		t.Error("nobody is told of the change")
	}
	got := shown(s)
	for _, want := range []string{"&lt;b&gt;", `<span class="bold f9">red</span>`, " plain"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

// FuzzWrite: a container chooses what is written, and may harm nothing.
func FuzzWrite(f *testing.F) {
	f.Add([]byte("\x1b[99999999999999I\x1b]4;1;#fff\x07\x1b(0q"))
	f.Add([]byte("\x1b[999;999H\x1b[2J\x1b[5;2r\x1b[-1L\x1b]0;x\x07"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(10, 4, io.Discard)
		for _, size := range [][2]int{{10, 4}, {3, 1}, {40, 9}} {
			s.Resize(size[0], size[1])
			s.Write(b) //nolint:errcheck // it never fails
			if got := s.Lines(); len(got) != size[1] || strings.ContainsRune(shown(s), 0x1b) {
				t.Errorf("%q", shown(s))
			}
		}
	})
}

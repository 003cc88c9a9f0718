package screen

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/console/markup"
)

// TestFilter: each text is written at once, and byte by byte.
func TestFilter(t *testing.T) {
	for in, want := range map[string]string{
		"plain ż ┌─┐":                                 "plain ż ┌─┐",
		"\x1b[1;31mred\x1b[0m":                        "\x1b[1;31mred\x1b[0m",
		"\x1b[?25h\x1b7\x1b(0q\x1b(B":                 "\x1b[?25h\x1b7\x1b(0q\x1b(B",
		"a\x1b]0;title\ab":                            "ab",
		"a\x1b]4;7;#fff\x1b\\b":                       "a\x1b\\b",
		"a\x1bPstring\nwith lines\x1b\\b":             "a\x1b\\b",
		"a\x1b)0b":                                    "ab",
		"\x1b[3I\x1b[999Z":                            "\x1b[3I\x1b[999Z",
		"a\x1b[9223372036854775807Ib":                 "ab",
		"a\x1b[1000Zb":                                "ab",
		"a\x1b[\r99999Ib":                             "a\rb",
		"a\x1b[99999ŉb":                               "ab", // as a number its last byte is I
		"a\x1b\r]4;7;#fff\ab":                         "a\rb",
		"\x1b[1\x1b[2m":                               "\x1b[2m",
		"\x1b[" + strings.Repeat("1", 255) + "ab":     "ab",
		"\x1b]never ends" + strings.Repeat("x", 1000): "",
	} {
		var f, slow filter
		if got := string(f.pass([]byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		got := ""
		for i := range len(in) {
			got += string(slow.pass([]byte{in[i]}))
		}
		if got != want {
			t.Errorf("%q, byte by byte, became %q, want %q", in, got, want)
		}
	}
}

// TestHostilePrograms: whatever a container writes, the emulator is done with it soon.
func TestHostilePrograms(t *testing.T) {
	for _, b := range []string{"\x1b[9223372036854775807I", "\x1b[999999999999Z", "\x1b[9223372036854775807ŉ", "\x1b[\x009999999999I"} {
		done := make(chan struct{})
		go func() {
			New(110, 32, io.Discard).Write([]byte(b)) //nolint:errcheck // it never fails
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("the emulator isn't done with %q", b)
		}
	}
}

// TestHalvesOfCharacters: what comes in pieces is put together.
func TestHalvesOfCharacters(t *testing.T) {
	s := New(12, 1, io.Discard)
	for _, b := range []byte("zażółć ┌─┐") {
		s.Write([]byte{b}) //nolint:errcheck // it never fails
	}
	if got := markup.String(s.Lines()[0]); !strings.Contains(got, "zażółć ┌─┐") {
		t.Errorf("got %q", got)
	}
}

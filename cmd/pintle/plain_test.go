package main

import (
	"strings"
	"testing"
)

// TestPlain: text for a terminal can't command it.
func TestPlain(t *testing.T) {
	for _, c := range []struct{ in, keep, want string }{
		{"Scaling activity initiated, 10 °C …", "", "Scaling activity initiated, 10 °C …"},
		{"\x1b[2Jgone", "", `\x1b[2Jgone`},
		{"a\nb\tc", "", `a\nb\tc`},
		{"a\nb\tc", "\n\t", "a\nb\tc"},
		{"50 %\rok", "\n\t", `50 %\rok`},
		{"\u009b31m", "", `\u009b31m`}, // CSI in one character
		{"\x9b\xff", "\n\t", `\x9b\xff`},
		{"exe\u202etxt", "", `exe\u202etxt`}, // written from right to left
		{"\ufffd", "", "\ufffd"},
	} {
		if got := plain(c.in, c.keep); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.in, got, c.want)
		}
	}
	var out strings.Builder
	if n, err := (plainWriter{&out}).Write([]byte("\x1b]0;x\a\n")); n != 7 || err != nil || out.String() != "\\x1b]0;x\\a\n" {
		t.Errorf("wrote %q, %d, %v", out.String(), n, err)
	}
}

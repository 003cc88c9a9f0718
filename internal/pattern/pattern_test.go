package pattern

import (
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	p := New(`^[a-zé]+$`, 3)
	for name, want := range map[string]bool{
		"a": true, "abc": true, "éée": true, "": false, "abcd": false, "a1": false, strings.Repeat("a", 1000): false,
	} {
		if p.MatchString(name) != want {
			t.Errorf("%q matches: %v, want %v", name, !want, want)
		}
	}
}

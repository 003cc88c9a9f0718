package fleet

import (
	"strings"
	"testing"
)

// TestBounded checks that the output of a program that writes on and on is cut off, and that cut-off output is no
// answer.
func TestBounded(t *testing.T) {
	var heard bounded
	for range 3 {
		if n, err := heard.Write(make([]byte, maxOutput/2+1)); n != maxOutput/2+1 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if n := len(heard.b); n != maxOutput {
		t.Errorf("%d bytes were kept, want %d", n, maxOutput)
	}
	endless := Command{Program: script(t, `printf '{"instanceIds":["i-1"]'; head -c 2000000 /dev/zero | tr '\0' ' '; printf '}'`)}
	if ids, err := endless.List(t.Context()); err == nil || !strings.Contains(err.Error(), "unexpected end of JSON input") {
		t.Errorf("listed %v, %v", ids, err)
	}
	loud := Command{Program: script(t, `echo no quota >&2; head -c 2000000 /dev/zero | tr '\0' 'x' >&2; exit 1`)}
	if err := loud.Terminate(t.Context(), "i-1"); err == nil || !strings.Contains(err.Error(), "no quota xxx") || len(err.Error()) > 1000 {
		t.Errorf("got %.100v", err)
	}
}

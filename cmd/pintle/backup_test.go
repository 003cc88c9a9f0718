package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/backup"
)

// TestSayOfARestore: an archive puts nothing into a command that somebody copies, and no escapes into a terminal.
func TestSayOfARestore(t *testing.T) {
	for _, c := range []struct {
		about backup.About
		want  string
	}{
		{backup.About{Region: "us-east-1", Account: "000000000000"}, "--region us-east-1 --account 000000000000"},
		{backup.About{Region: "x; rm -rf /", Account: "000000000000"}, ""},
		{backup.About{Region: "us-east-1", Account: "\x1b]0;title\a"}, ""},
		{backup.About{Region: "--listen", Account: "0"}, ""},
	} {
		var b bytes.Buffer
		(&restoreCmd{Data: "d"}).say(plainWriter{&b}, c.about)
		if got := b.String(); !strings.Contains(got, c.want) || strings.Contains(got, "serve") != (c.want != "") {
			t.Errorf("%+v: %s", c.about, got)
		}
	}
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestOldBackupsGo: the nightly backup's unit removes all but the newest, and that one never, whatever the settings say.
func TestOldBackupsGo(t *testing.T) {
	unit, err := os.ReadFile("../../packaging/pintle-backup.service")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(unit), "ExecStart=/bin/sh -c '")
	command, _, found := strings.Cut(command, "'\n")
	if !found {
		t.Fatal("the unit removes nothing")
	}
	for keep, want := range map[string]int{"3": 3, "7": 4, "1": 1, "0": 1, "-1": 1, "": 1, "seven": 1} {
		dir := t.TempDir()
		for i := range 4 {
			name := filepath.Join(dir, fmt.Sprintf("pintle-%d.tar", i))
			at := time.Unix(int64(i), 0)
			if err := cmp.Or(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		sh := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.NewReplacer("$$", "$", "/var/backups/pintle", dir).Replace(command))
		sh.Env = append(os.Environ(), "PINTLE_BACKUP_KEEP="+keep)
		sh.Run()                                          //nolint:errcheck // some shells refuse words; what is left tells
		left, _ := filepath.Glob(filepath.Join(dir, "*")) //nolint:errcheck // the pattern is right
		if len(left) < want || len(left) > want && keep != "seven" || filepath.Base(left[len(left)-1]) != "pintle-3.tar" {
			t.Errorf("%q leaves %v", keep, left)
		}
	}
}

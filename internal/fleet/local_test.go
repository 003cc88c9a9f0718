package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script writes a shell script and gives its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLaunchSaysWhy: an agent that ends at once is no machine, and the last line of its log is the reason.
func TestLaunchSaysWhy(t *testing.T) {
	l := NewLocal(LocalOptions{Program: script(t, "echo starting >&2; echo 'pintle: no runtime' >&2; exit 1\n"), Dir: t.TempDir(), Most: 1})
	if err := l.Launch(t.Context(), Machine{InstanceID: "i-1"}); err == nil || !strings.HasSuffix(err.Error(), "pintle: no runtime") {
		t.Errorf("got %v", err)
	}
	if err := l.Terminate(t.Context(), "i-1"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(l.opts.Dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

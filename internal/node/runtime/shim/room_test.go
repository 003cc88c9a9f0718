package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoomForThreads: no container is started where the kernel soon has no number for another thread, whichever limit that is.
func TestRoomForThreads(t *testing.T) {
	for name, c := range map[string]struct{ load, pids, threads, want string }{
		"a quiet machine":     {"0.10 0.20 0.30 1/420 12345\n", "32768\n", "192729\n", ""},
		"nearly all numbers":  {"6.31 6.59 5.32 8/29065 22564\n", "32768\n", "192729\n", "29065 threads, which leaves too little room for more containers: kernel.pid_max is 32768"},
		"as many as may be":   {"6.31 6.59 5.32 8/28672 22564\n", "32768\n", "192729\n", ""},
		"little memory":       {"6.31 6.59 5.32 8/7500 22564\n", "4194304\n", "8000\n", "kernel.threads-max is 8000"},
		"nobody says":         {"", "", "", ""},
		"something else says": {"6.31 6.59 5.32 many 22564\n", "few\n", "few\n", ""},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "sys/kernel"), 0o700); err != nil {
			t.Fatal(err)
		}
		for at, text := range map[string]string{"loadavg": c.load, "sys/kernel/pid_max": c.pids, "sys/kernel/threads-max": c.threads} {
			if err := os.WriteFile(filepath.Join(dir, at), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkRoom(dir); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkRoom(t.TempDir()); err != nil {
		t.Error(err)
	}
}

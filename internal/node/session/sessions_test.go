package session

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// TestSessions: a session's process reads what to do, then its role's new credentials, is told when the agent drains, and waited for.
// Afterwards no session begins.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	read, ended := filepath.Join(dir, "read"), filepath.Join(dir, "ended")
	s := New([]string{"/bin/sh", "-c", `exec 3<&0; cat <&3 >` + read + ` & trap 'kill $!; echo "$0" >` + ended + `; exit 0' TERM; while :; do sleep 0.1; done`},
		slog.New(slog.DiscardHandler))
	s.Begin(&Assignment{Execute: &acs.PintleExecute{SessionID: "one", TaskArn: "t", Command: []string{"true"}}, Container: "c"})
	s.Renew("another", &acs.IAMRoleCredentials{AccessKeyID: "not for it"})
	s.Renew("t", &acs.IAMRoleCredentials{AccessKeyID: "renewed"})
	text := ""
	for deadline := time.Now().Add(time.Minute); !strings.Contains(text, "renewed"); time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile(read) // it isn't there at first
		if text = string(b); time.Now().After(deadline) {
			t.Fatalf("the process has read %q", text)
		}
	}
	in := json.NewDecoder(strings.NewReader(text))
	var a Assignment
	var role acs.IAMRoleCredentials
	if err := in.Decode(&a); err != nil || a.Execute.SessionID != "one" || a.Container != "c" {
		t.Errorf("it's told %+v, %v", a, err)
	}
	if err := in.Decode(&role); err != nil || role.AccessKeyID != "renewed" {
		t.Errorf("its role has %+v, %v", role, err)
	}
	if err := in.Decode(&role); err != io.EOF {
		t.Errorf("it's told more: %+v", role)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(ended); string(b) != "one\n" {
		t.Errorf("the process's end is %q, %v", b, err)
	}
	s.Begin(&Assignment{Execute: &acs.PintleExecute{SessionID: "late", Command: []string{"true"}}})
	if len(s.all) != 0 {
		t.Error("a session has begun afterwards")
	}
}

// TestSessionsFail: a process that can't be started, or fails, is no session, and what it says is in the log.
func TestSessionsFail(t *testing.T) {
	var log told
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for program, says := range map[string]string{"/no/such/program": "cannot start", "/bin/cat": "No such file"} {
		s := New([]string{program}, logger)
		s.Begin(&Assignment{Execute: &acs.PintleExecute{SessionID: "/no/such/session", Command: []string{"true"}}})
		s.waiting.Wait()
		if len(s.all) != 0 || !strings.Contains(log.String(), says) {
			t.Errorf("%s: %d sessions, and the log says %q", program, len(s.all), log.String())
		}
	}
}

// told is what was logged.
type told struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *told) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

package load

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestStart: a server that ends instead of answering isn't waited for, and errors of one that ends later say so.
func TestStart(t *testing.T) {
	refused := errors.New("connection refused")
	_, err := Start(exec.Command("sh", "-c", "exit 3"), t.TempDir(), func() error { return refused })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a server that ended: %v", err)
	}
	p, err := Start(exec.Command("sleep", "60"), t.TempDir(), func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Explain(refused); err != refused {
		t.Errorf("while it runs: %v", err)
	}
	p.Cmd.Process.Kill() //nolint:errcheck // it's running
	<-p.ended
	if err := p.Explain(refused); !errors.Is(err, refused) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("when it has ended: %v", err)
	}
	if err := p.Explain(nil); err != nil {
		t.Errorf("of no error it makes %v", err)
	}
	p.Stop()
}

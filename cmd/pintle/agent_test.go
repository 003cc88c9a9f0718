package main

import (
	"bytes"
	stdlog "log"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestOneLog: what an agent warns of while it looks at its machine looks like all else that it logs.
func TestOneLog(t *testing.T) {
	before := slog.Default()
	defer func() {
		slog.SetDefault(before)
		stdlog.SetOutput(os.Stderr)
		stdlog.SetFlags(stdlog.LstdFlags)
	}()
	var out bytes.Buffer
	log := new(agentCmd).logger(&out)
	log.Warn("one")
	slog.Warn("two")
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("a line of another form: %s", line)
		}
	}
	if strings.Count(out.String(), "level=WARN") != 2 {
		t.Errorf("logged %s", &out)
	}
}

// TestTaskIDs: what can't be a task's id is refused with a word of where ids are.
func TestTaskIDs(t *testing.T) {
	id := strings.Repeat("a1", 16)
	for task, ok := range map[string]bool{id: true, "arn:aws:ecs:us-east-1:000000000000:task/default/" + id: true, "a1a1a1a1": false, "X": false} {
		if err := checkTaskID(task); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "pintle ps -a") {
			t.Errorf("%s: %v", task, err)
		}
	}
}

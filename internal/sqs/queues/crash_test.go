package queues

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const crashDir = "PINTLE_QUEUES_CRASH_DIR"

// TestMain lets the test binary be the process that TestNothingAcknowledgedIsLost kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		sendUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// sendUntilKilled sends, receives and deletes, while the log is cleaned all the time, and says what it did.
func sendUntilKilled(dir string) {
	s, err := Open(dir, Options{MaxSegment: 20_000, Slack: 1})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	s.CreateQueue(Queue{Name: "q", Retention: 1e9}) //nolint:errcheck // it may be there
	var mu sync.Mutex
	say := func(what, body string) {
		mu.Lock()
		defer mu.Unlock()
		os.Stdout.WriteString(what + " " + body + ".\n")
	}
	run := time.Now().UnixNano()
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				body := fmt.Sprintf("%d-%d-%d", run, w, i)
				if _, err := s.Send("q", []Message{{Body: []byte(body)}}); err != nil {
					say("error:", err.Error())
					return
				}
				say("sent", body)
				if w%2 == 0 {
					continue
				}
				got, err := s.Receive(context.Background(), "q", Want{Limit: 1, Visibility: time.Millisecond})
				if err != nil {
					say("error:", err.Error())
					return
				}
				for _, m := range got {
					say("deleting", string(m.Body))
					if errs, err := s.Delete("q", []Receipt{m.Receipt}); err == nil && errs[0] == nil {
						say("deleted", string(m.Body))
					}
				}
			}
		}()
	}
	select {}
}

// TestNothingAcknowledgedIsLost kills a process that sends and deletes at random moments: what it had sent is there once, unless it was
// being deleted, and what it had deleted is not.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	dir := t.TempDir()
	said := map[string]map[string]bool{"sent": {}, "deleting": {}, "deleted": {}}
	for range 5 {
		runUntilKilled(t, dir, said)
	}
	s := open(t, dir, Options{})
	there := map[string]int{}
	for {
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1000, Visibility: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			there[string(m.Body)]++
		}
	}
	for body := range said["sent"] {
		if n := there[body]; n > 1 || n == 0 && !said["deleting"][body] {
			t.Errorf("%s was sent, and is there %d times", body, n)
		}
	}
	for body := range said["deleted"] {
		if there[body] > 0 {
			t.Errorf("%s was deleted, and is there", body)
		}
	}
	if len(said["sent"]) < 50 || len(said["deleted"]) < 10 {
		t.Errorf("only %d were sent and %d deleted: the test shows nothing", len(said["sent"]), len(said["deleted"]))
	}
}

// runUntilKilled runs such a process for a while, and notes what it says.
func runUntilKilled(t *testing.T, dir string, said map[string]map[string]bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n++; n == 50 { // however slow the disk is
			time.AfterFunc(time.Duration(20+rand.IntN(200))*time.Millisecond, func() { cmd.Process.Kill() })
		}
		what, body, ok := strings.Cut(lines.Text(), " ")
		if what == "error:" {
			cmd.Process.Kill() //nolint:errcheck // it ends anyway
			t.Error(lines.Text())
		}
		if ok && strings.HasSuffix(body, ".") && said[what] != nil { // the kill may cut the last line short
			said[what][strings.TrimSuffix(body, ".")] = true
		}
	}
	cmd.Wait() //nolint:errcheck // it was killed
}

package state

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

const crashDir = "PINTLE_STATE_CRASH_DIR"

// TestMain lets the test binary be the process that TestNothingAcknowledgedIsLost kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled commits from eight goroutines and prints each row's name once it is acknowledged.
func writeUntilKilled(dir string) {
	j, err := OpenSQLite(context.Background(), dir)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	s, err := Open(context.Background(), j)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	run := time.Now().UnixNano()
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d-%d-%d", run, w, i)
				err := s.Update(context.Background(), func(tx *Tx) error {
					tx.Clusters.Put(cluster(name))
					tx.Clusters.Put(cluster(name + "-twin"))
					return nil
				})
				if err == nil {
					mu.Lock()
					os.Stdout.WriteString(name + "\n")
					mu.Unlock()
				}
			}
		}()
	}
	select {}
}

// TestNothingAcknowledgedIsLost kills a writing process at random moments. Whatever it had
// acknowledged is there afterwards, and no transaction is there by half.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	dir := t.TempDir()
	acknowledged := 0
	for round := range 10 {
		names := killAWriter(t, dir, time.Duration(20+rand.IntN(150))*time.Millisecond)
		acknowledged += len(names)
		j, err := OpenSQLite(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		v := s.View()
		for _, name := range names {
			if v.Clusters.Get("arn:cluster/"+name) == nil {
				t.Errorf("round %d: %s was acknowledged and is lost", round, name)
			}
		}
		for c := range v.Clusters.All() {
			if !strings.HasSuffix(*c.ClusterName, "-twin") && v.Clusters.Get(*c.ClusterArn+"-twin") == nil {
				t.Errorf("round %d: %s is there without its twin", round, *c.ClusterName)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if acknowledged < 100 {
		t.Fatalf("only %d transactions were acknowledged: the test shows nothing", acknowledged)
	}
}

// killAWriter runs a writer, kills it a moment after its tenth acknowledgement, and returns what it
// had acknowledged.
func killAWriter(t *testing.T, dir string, after time.Duration) (names []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var killer *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if killer == nil && len(names) == 9 { // however slow the disk is
			killer = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		if strings.HasPrefix(lines.Text(), "error:") {
			t.Fatal(lines.Text())
		}
		names = append(names, lines.Text())
	}
	cmd.Wait() //nolint:errcheck // it was killed
	if n := len(names); n > 0 && strings.Count(names[n-1], "-") != 2 {
		names = names[:n-1] // the line that the kill cut short
	}
	return names
}

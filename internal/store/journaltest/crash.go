package journaltest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/store"
)

const (
	// placeVariable makes the test binary a process that writes to the journal at the place.
	placeVariable = "PINTLE_JOURNALTEST_PLACE"
	// limitVariable bounds the size of that process's files; "" is no bound.
	limitVariable = "PINTLE_JOURNALTEST_FULL"
	fileLimit     = 2 << 20
)

// Main lets the test binary be the process that RunDurable kills. TestMain calls it.
func Main(m *testing.M, open Opener) {
	place := os.Getenv(placeVariable)
	if place == "" {
		os.Exit(m.Run())
	}
	j, err := open(context.Background(), place)
	if err != nil {
		fail(err)
	}
	s, err := store.Open(context.Background(), j, schema, store.Options{})
	if err != nil {
		fail(err)
	}
	if os.Getenv(limitVariable) != "" {
		writeUntilFull(s)
		os.Exit(0)
	}
	writeUntilKilled(s)
}

func fail(err error) {
	fmt.Println("error:", err)
	os.Exit(1)
}

// RunDurable tests a journal that outlives its process.
func RunDurable(t *testing.T, open Opener) {
	t.Run("Killed", func(t *testing.T) { testKilled(t, open) })
}

// RunOnFiles tests a journal that is kept in files of this machine.
func RunOnFiles(t *testing.T, open Opener) {
	t.Run("Full", func(t *testing.T) { testFull(t, open) })
}

// putTwins commits a row and its twin.
func putTwins(s *store.Store, name string) error {
	return s.Update(context.Background(), func(tx *store.Tx) error {
		rows.In(&tx.View).Put(&row{Name: name})
		rows.In(&tx.View).Put(&row{Name: name + "-twin"})
		return nil
	})
}

// writeUntilKilled commits from eight goroutines and prints each row's name once it is acknowledged.
func writeUntilKilled(s *store.Store) {
	var mu sync.Mutex
	run := time.Now().UnixNano()
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d-%d-%d", run, w, i)
				if err := putTwins(s, name); err != nil {
					fail(err)
				}
				mu.Lock()
				os.Stdout.WriteString(name + "\n")
				mu.Unlock()
			}
		}()
	}
	select {}
}

// writeUntilFull commits until a write fails because files may not grow, and prints each row's name once it is acknowledged, then
// "full". With room again it writes on for a while.
func writeUntilFull(s *store.Store) {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fail(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fileLimit, Max: limit.Max}); err != nil {
		fail(err)
	}
	write := func(run string) error {
		for i := range 2000 {
			name := fmt.Sprintf("%s-%d-%s", run, i, strings.Repeat("x", 200))
			if err := putTwins(s, name); err != nil {
				return err
			}
			fmt.Println(name)
		}
		return nil
	}
	if write("a") != nil {
		fmt.Println("full")
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fail(err)
	}
	if err := write("b"); err != nil {
		fail(err)
	}
}

// testKilled kills a writing process at random moments. Afterwards everything acknowledged is there, no transaction is there by
// half, and a follower from before hears of all of it.
func testKilled(t *testing.T, open Opener) {
	place, follower, seen := t.TempDir(), model{}, int64(0)
	acknowledged := 0
	for range 10 {
		names := killAWriter(t, place, time.Duration(20+rand.IntN(150))*time.Millisecond)
		acknowledged += len(names)
		j := opened(t, open, place)
		changes, last := since(t, j, seen)
		follower.apply(changes)
		seen = last
		checkTwins(t, follower, names)
		all, _ := since(t, j, 0)
		if len(all) != len(follower) {
			t.Errorf("the follower has %d rows, the journal %d", len(follower), len(all))
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if acknowledged < 100 {
		t.Fatalf("only %d transactions were acknowledged: the test shows nothing", acknowledged)
	}
}

// testFull fills up the disk under a writing process. Everything acknowledged is there afterwards.
func testFull(t *testing.T, open Opener) {
	place := t.TempDir()
	cmd := writer(place)
	cmd.Env = append(cmd.Env, limitVariable+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := strings.Fields(string(out))
	full := 0
	for i, name := range names {
		if name == "full" {
			full = i
		}
	}
	if full < 10 {
		t.Fatalf("the disk was full after %d of %d writes: the test shows nothing", full, len(names))
	}
	s, err := store.Open(t.Context(), opened(t, open, place), schema, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	held := model{}
	for r := range rows.In(s.View()).All() {
		held[[2]string{"rows", r.Name}] = r.Name
	}
	checkTwins(t, held, append(names[:full:full], names[full+1:]...))
	if err := putTwins(s, "next"); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// checkTwins: the rows that were acknowledged are there, and none without its twin.
func checkTwins(t *testing.T, held model, names []string) {
	t.Helper()
	for _, name := range names {
		if _, ok := held[[2]string{"rows", name}]; !ok {
			t.Errorf("%.40s was acknowledged and is lost", name)
		}
	}
	for k := range held {
		if _, ok := held[[2]string{"rows", k[1] + "-twin"}]; !ok && !strings.HasSuffix(k[1], "-twin") {
			t.Errorf("%.40s is there without its twin", k[1])
		}
	}
}

func writer(place string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), placeVariable+"="+place)
	return cmd
}

// killAWriter runs a writer, kills it a moment after its tenth acknowledgement, and returns what it
// had acknowledged.
func killAWriter(t *testing.T, place string, after time.Duration) (names []string) {
	cmd := writer(place)
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
			killer = time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
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

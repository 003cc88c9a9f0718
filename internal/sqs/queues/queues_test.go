package queues

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/wal"
	"github.com/pintle/pintle/internal/wal/waltest"
)

func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t testing.TB, s *Store, q Queue) {
	t.Helper()
	if q.Retention == 0 {
		q.Retention = 4 * 24 * 60 * 60 * 1000
	}
	if _, err := s.CreateQueue(q); err != nil {
		t.Fatal(err)
	}
}

func send(t testing.TB, s *Store, queue string, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		if _, err := s.Send(queue, []Message{{Body: []byte(b), Size: len(b)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReceiveWaits: a receive that waits returns when a message is sent, becomes visible, or the time is over; each message
// wakes one.
func TestReceiveWaits(t *testing.T) {
	for _, test := range []struct {
		name  string
		do    func(t *testing.T, s *Store)
		wants []time.Duration // after which each of the waiting receives returns
		got   int
	}{
		{"nothing", func(*testing.T, *Store) {}, []time.Duration{20 * time.Second, 20 * time.Second}, 0},
		{"a message for one of two, and then for the other", func(t *testing.T, s *Store) {
			time.Sleep(3 * time.Second)
			send(t, s, "q", "a")
		}, []time.Duration{3 * time.Second, 8 * time.Second}, 2},
		{"a delayed message, and a sooner one", func(t *testing.T, s *Store) {
			for _, delay := range []time.Duration{9 * time.Second, 4 * time.Second} {
				if _, err := s.Send("q", []Message{{Body: []byte("a"), Delay: delay}}); err != nil {
					t.Error(err)
				}
			}
		}, []time.Duration{4 * time.Second, 9 * time.Second}, 2},
		{"a message that times out", func(t *testing.T, s *Store) {
			send(t, s, "q", "a")
			time.Sleep(8 * time.Second) // the first receive has it for five
		}, []time.Duration{0, 5 * time.Second}, 2},
		{"the store ends waits", func(_ *testing.T, s *Store) {
			time.Sleep(2 * time.Second)
			s.EndWaits()
		}, []time.Duration{2 * time.Second, 2 * time.Second}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, t.TempDir(), Options{NoSync: true})
				create(t, s, Queue{Name: "q"})
				began := time.Now()
				var mu sync.Mutex
				var took []time.Duration
				got := 0
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						r, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: 5 * time.Second, Wait: 20 * time.Second})
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						took, got = append(took, time.Since(began)), got+len(r)
					})
				}
				synctest.Wait()
				test.do(t, s)
				wg.Wait()
				if !reflect.DeepEqual(took, test.wants) || got != test.got {
					t.Errorf("receives returned %d messages after %v, not %d after %v", got, took, test.got, test.wants)
				}
				s.Close()
			})
		})
	}
}

// TestReceiveHandsOn: a message that woke a receive whose caller is gone goes to another.
func TestReceiveHandsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), Options{NoSync: true})
		create(t, s, Queue{Name: "q"})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Receive(ctx, "q", Want{Limit: 1, Visibility: time.Minute, Wait: 20 * time.Second}); !errors.Is(
				err,
				context.Canceled,
			) {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Minute, Wait: 20 * time.Second})
			if err != nil || len(got) != 1 {
				t.Error(got, err)
			}
		})
		synctest.Wait()
		cancel()
		send(t, s, "q", "a")
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("the message waited for %s", took)
		}
		s.Close()
	})
}

// TestSeconds: what a queue does is told under the second in which it happened, also what time alone does.
func TestSeconds(t *testing.T) {
	now := time.UnixMilli(100_500)
	s := open(t, t.TempDir(), Options{Now: func() time.Time { return now }, NoSync: true})
	create(t, s, Queue{Name: "q"})
	send(t, s, "q", "abc", "abcde")
	now = now.Add(2 * time.Second) // 102
	if _, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(4 * time.Second) // 106; at 105 it is visible again
	want := []Second{
		{Queue: "q", At: 100, Sent: 2, Bytes: 8, Least: 3, Most: 5, Visible: 2, Changed: true},
		{Queue: "q", At: 102, Received: 1, Visible: 1, NotVisible: 1, Oldest: 2, Changed: true},
		{Queue: "q", At: 105, Visible: 2, Oldest: 5, Changed: true},
	}
	if got := s.Seconds(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	told := 0
	for range 10 * 60 { // it is in use for a minute, and then told of once a minute while there are messages
		now = now.Add(time.Second)
		told += len(s.Seconds())
	}
	if told < 60+8 || told > 60+12 {
		t.Errorf("a queue that stands still was told of %d times in ten minutes", told)
	}
}

// TestMove moves dead letters back to where they came from, as new messages, across a restart.
func TestMove(t *testing.T) {
	now := time.UnixMilli(1e9)
	opts := Options{Now: func() time.Time { return now }, NoSync: true}
	dir := t.TempDir()
	s := open(t, dir, opts)
	create(t, s, Queue{Name: "dead"})
	create(t, s, Queue{Name: "q", MaxReceives: 1, DeadLetter: "dead"})
	send(t, s, "q", "a", "b", "c")
	for range 2 {
		if _, err := s.Receive(t.Context(), "q", Want{Limit: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if c, _ := s.Counts("dead"); c.Visible != 3 {
		t.Fatalf("the dead-letter queue has %+v", c)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opts)
	if err := s.StartMove(Move{ID: "m", From: "dead"}); err != nil {
		t.Fatal(err)
	}
	s.tasks.Wait()
	got := s.Moves("dead")
	if len(got) != 1 || got[0].Status != MoveCompleted || got[0].Moved != 3 || got[0].ToMove != 3 {
		t.Errorf("the move is %+v", got)
	}
	r, err := s.Receive(t.Context(), "q", Want{Limit: 10})
	if err != nil || len(r) != 3 || r[0].Receives != 1 || string(r[2].Body) != "c" {
		t.Errorf("back in the queue: %+v %v", r, err)
	}
	if _, err := s.CancelMove("m"); !errors.Is(err, ErrNoMove) {
		t.Error("a move that is over was cancelled:", err)
	}
}

// TestTornLog kills the store and cuts the log at every byte behind what was acknowledged: that is there.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	create(t, s, Queue{Name: "q"})
	path := filepath.Join(dir, "000000001.log")
	var ends []int64
	killed := ""
	for i := range 5 {
		send(t, s, "q", fmt.Sprint("message ", i))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
		if i == 0 {
			killed = waltest.Copy(t, dir)
		}
	}
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := ends[0]; cut <= int64(len(whole)); cut++ {
		dir := waltest.Copy(t, killed)
		if err := os.WriteFile(filepath.Join(dir, "000000001.log"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, Options{NoSync: true})
		want := 0
		for _, end := range ends {
			if end <= cut {
				want++
			}
		}
		if c, err := s.Counts("q"); err != nil || c.Visible != want {
			t.Fatalf("cut at %d: %+v %v, not %d messages", cut, c, err, want)
		}
		s.Close()
	}
}

// TestDamagedLog refuses a log with a hole in it, and says where.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, MaxSegment: 100})
	create(t, s, Queue{Name: "q"})
	send(t, s, "q", "one", "two", "three", "four")
	s.Close()
	path := filepath.Join(dir, "000000001.log")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	if damage := new(file.Damage); !errors.As(err, &damage) || damage.Path != path {
		t.Errorf("a damaged log: %v", err)
	}
}

// TestInFlightLimit: a standard queue refuses to have more in flight, where nobody waits.
func TestInFlightLimit(t *testing.T) {
	s := open(t, t.TempDir(), Options{NoSync: true})
	create(t, s, Queue{Name: "q"})
	batch := make([]Message, 1000)
	for i := range batch {
		batch[i] = Message{Body: []byte("x")}
	}
	for range MaxInFlight/len(batch) + 1 {
		if _, err := s.Send("q", batch); err != nil {
			t.Fatal(err)
		}
	}
	for range MaxInFlight / 1000 {
		if got, err := s.Receive(t.Context(), "q", Want{Limit: 1000, Visibility: time.Hour}); err != nil || len(got) != 1000 {
			t.Fatal(len(got), err)
		}
	}
	if _, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour}); !errors.Is(err, ErrInFlight) {
		t.Errorf("one more: %v", err)
	}
	if got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour, Wait: time.Millisecond}); err != nil || len(got) != 0 {
		t.Errorf("one more, with a wait: %d %v", len(got), err)
	}
}

// TestCleaning: a log whose messages are gone does not grow, and what is left of it is whole.
func TestCleaning(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, MaxSegment: 10_000, Slack: 20_000})
	create(t, s, Queue{Name: "q"})
	send(t, s, "q", "the first stays")
	first, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		send(t, s, "q", "a message that goes")
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete("q", []Receipt{got[0].Receipt}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); s.isWasteful() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	var size int64
	paths, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 40_000 {
		t.Errorf("the log has %d bytes", size)
	}
	s = open(t, dir, Options{NoSync: true})
	if _, err := s.ChangeVisibility("q", []Visibility{{first[0].Receipt, 0}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
	if err != nil || len(got) != 1 || string(got[0].Body) != "the first stays" || got[0].Receives != 2 {
		t.Errorf("what stayed is %+v %v", got, err)
	}
}

// FuzzParsePayload: whatever lies in a frame, it is read or refused; and what is read is written the same.
func FuzzParsePayload(f *testing.F) {
	records := []record{
		{kind: queueIs, queue: 1, json: []byte(`{"Name":"q"}`)},
		{
			kind:    messageIs,
			queue:   1,
			seq:     2,
			message: message{sent: 3, entered: 4, group: "g", from: "f"},
			key:     "k",
			body:    []byte("body"),
			meta:    []byte("meta"),
		},
		{kind: receivedAt, queue: 1, seq: 2, at: 5, until: 6}, {kind: redriven, queue: 1, seq: 2, to: 3, toSeq: 4, key: "q"},
		{kind: sentBefore, queue: 1, seq: 2, at: 3, key: "k"}, {kind: queueGone, queue: 1},
	}
	f.Add(appendRecords(nil, records))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := parsePayload(b)
		if err != nil {
			return
		}
		again := appendRecords(nil, records)
		back, err := parsePayload(again)
		if err != nil || len(back) != len(records) {
			t.Fatalf("%d records became %d: %v", len(records), len(back), err)
		}
		if third := appendRecords(nil, back); !bytes.Equal(again, third) {
			t.Fatal("what was written is read otherwise")
		}
	})
}

// TestAttempt: the same attempt at receiving gets the same messages, while they are in flight.
func TestAttempt(t *testing.T) {
	now := time.UnixMilli(1e9)
	s := open(t, t.TempDir(), Options{Now: func() time.Time { return now }, NoSync: true})
	create(t, s, Queue{Name: "q", FIFO: true})
	send(t, s, "q", "a", "b")
	receive := func(attempt string) string {
		t.Helper()
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Minute, Attempt: attempt})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			return ""
		}
		return string(got[0].Body) + fmt.Sprint(got[0].Receipt.Number)
	}
	for i, step := range []struct {
		attempt, want string
		after         time.Duration
	}{{"x", "a1", 0}, {"x", "a1", 50 * time.Second}, {"y", "", 0}, {"x", "a1", 50 * time.Second}, {"y", "a2", 61 * time.Second}, {"x", "", 0}} {
		now = now.Add(step.after)
		if got := receive(step.attempt); got != step.want {
			t.Errorf("step %d got %q, not %q", i, got, step.want)
		}
	}
}

// TestWriteFails: on a full disk what was acknowledged is there, changes are refused, and the store goes on once there is room.
func TestWriteFails(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	s := open(t, dir, Options{})
	create(t, s, Queue{Name: "q"})
	send(t, s, "q", "kept")
	free := filetest.Fill(t, uint64(s.log.End().Offset+5))
	for range 2 {
		if _, err := s.Send("q", []Message{{Body: []byte("in doubt")}}); !errors.Is(err, disk.ErrUnwritable) {
			t.Errorf("a message that could not be written: %v", err)
		}
	}
	if _, err := s.Receive(t.Context(), "q", Want{Limit: 1}); !errors.Is(err, disk.ErrUnwritable) {
		t.Errorf("a store that cannot be written gives messages out: %v", err)
	}
	if got := s.Queues(); len(got) != 1 {
		t.Errorf("queues: %v", got)
	}
	free()
	for s.log.Stalled() != nil {
		time.Sleep(time.Millisecond)
	}
	send(t, s, "q", "afterwards")
	s.Close()
	s = open(t, dir, Options{})
	if c, err := s.Counts("q"); err != nil || c.Visible != 3 { // the first that was refused was in doubt
		t.Errorf("after a restart: %+v %v", c, err)
	}
}

// TestAllExpireAtOnce: however many messages are over at a moment, what is written of it can be read again.
func TestAllExpireAtOnce(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	opts := Options{NoSync: true, Now: func() time.Time { return now }}
	s := open(t, dir, opts)
	create(t, s, Queue{Name: "q", Retention: 60_000})
	if _, err := s.Send("q", make([]Message, 2*maxSettled+1)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if c, err := s.Counts("q"); err != nil || c != (Counts{}) {
		t.Fatalf("a minute later: %+v %v", c, err)
	}
	s.Close()
	ends := 0
	log, err := wal.Open(dir, wal.Options{Kind: logKind, NoSync: true}, func(_ wal.Position, payload []byte) error {
		records, err := parsePayload(payload)
		if err != nil || records[0].kind != messageGone {
			return err
		}
		if ends += len(records); len(records) > maxSettled {
			t.Errorf("a frame has the ends of %d messages", len(records))
		}
		return nil
	})
	if err == nil {
		err = log.Close()
	}
	if err != nil || ends != 2*maxSettled+1 {
		t.Errorf("%d messages ended, %v", ends, err)
	}
}

// TestExistsOnceOnDisk: nobody is told that there is a queue which a crash could still take back.
func TestExistsOnceOnDisk(t *testing.T) {
	s := open(t, t.TempDir(), Options{NoSync: true})
	create(t, s, Queue{Name: "q"})
	s.mu.Lock()
	s.before = wal.Refused(os.ErrInvalid) // in which the queue could not be written
	s.mu.Unlock()
	if _, err := s.CreateQueue(Queue{Name: "q"}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("it says %v", err)
	}
}

// TestClockGoesBack: a message that had become visible stays so over a restart, even if the clock went back meanwhile, and none is in
// flight for longer than it was.
func TestClockGoesBack(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_000_000, 0)
	opts := Options{Now: func() time.Time { return now }}
	s := open(t, dir, opts)
	create(t, s, Queue{Name: "q"})
	receive := func(visibility time.Duration) int {
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: visibility})
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	send(t, s, "q", "short")
	receive(10 * time.Second)
	send(t, s, "q", "long")
	receive(100 * time.Second)
	now = now.Add(20 * time.Second)
	send(t, s, "q", "later") // by now the first message is visible
	s.Close()
	now = now.Add(-time.Hour)
	s = open(t, dir, opts)
	if c, _ := s.Counts("q"); c != (Counts{Visible: 2, InFlight: 1}) {
		t.Errorf("after the clock went back there are %+v", c)
	}
	now = now.Add(80 * time.Second)
	if c, _ := s.Counts("q"); c.Visible != 3 {
		t.Errorf("a message is in flight for longer than it was: %+v", c)
	}
}

// TestDeletedRecently: a name is free again a minute after its queue was deleted.
func TestDeletedRecently(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := open(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	create(t, s, Queue{Name: "q"})
	if err := s.DeleteQueue("q"); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, 59 * time.Second} {
		now = now.Add(wait)
		if _, err := s.CreateQueue(Queue{Name: "q"}); !errors.Is(err, ErrDeleted) {
			t.Errorf("after %s: %v", wait, err)
		}
	}
	now = now.Add(time.Second)
	create(t, s, Queue{Name: "q"})
}

// TestClockSetBack: messages in flight come back after their time-out, though the clock was set back meanwhile.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := neverBack(func() time.Time { return now })
	before := clock()
	now = now.Add(-3 * time.Hour)
	if got := clock(); got.Before(before) {
		t.Errorf("the clock goes from %s back to %s", before, got)
	}
	now = now.Add(20 * time.Second)
	if got := clock().Sub(before); got != 20*time.Second {
		t.Errorf("of 20 s it counts %s", got)
	}
	now = now.Add(time.Hour)
	if got := clock().Sub(before); got != time.Hour+20*time.Second {
		t.Errorf("then it counts %s", got)
	}
}

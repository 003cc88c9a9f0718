package streams

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/wal"
	"github.com/pintle/pintle/internal/wal/waltest"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func withGroup(t testing.TB, dir string, streams ...string) *Store {
	t.Helper()
	s := open(t, dir)
	if err := s.CreateGroup(Group{Name: "g", CreatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	for _, st := range streams {
		if err := s.CreateStream("g", st, 1); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func event(at int64, text string) Event { return Event{Timestamp: at, Message: text} }

func texts(events []Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Message)
	}
	return out
}

func TestGroupsAndStreamsOutliveARestart(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a", "b")
	if err := s.Append("g", "a", 5, []Event{event(3, "x")}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteStream("g", "b"); err != nil {
		t.Fatal(err)
	}
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 7; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateGroup(Group{Name: "gone"}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteGroup("gone"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir)
	if g := s.Groups(); len(g) != 1 || g[0].RetentionDays != 7 {
		t.Errorf("groups are %+v", g)
	}
	streams, err := s.Streams("g")
	if err != nil || len(streams) != 1 || streams[0].First != 3 || streams[0].LastIngestion != 5 || streams[0].CreatedAt != 1 {
		t.Errorf("streams are %+v, %v", streams, err)
	}
}

// TestACatalogInDoubt: where nobody knows whether the catalog's change is on disk, what a restart finds is what was so before it, whichever
// catalog it has, and nothing that was acknowledged is lost.
func TestACatalogInDoubt(t *testing.T) {
	for _, goesBack := range []bool{false, true} {
		dir := t.TempDir()
		s := withGroup(t, dir, "a")
		path := filepath.Join(dir, catalogFile)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.syncDir = func(string) error {
			if goesBack { // as after a power failure
				os.WriteFile(path, before, 0o600) //nolint:errcheck // the test fails
			}
			return errors.New("a failed sync")
		}
		if err := s.DeleteGroup("g"); !disk.IsUnwritable(err) {
			t.Fatal(err)
		}
		acknowledged := s.Append("g", "a", 5, []Event{event(3, "x")}) == nil
		if err := s.CreateGroup(Group{Name: "h"}); !disk.IsUnwritable(err) {
			t.Fatal(err)
		}
		s.Close()
		s = open(t, dir)
		if acknowledged || goesBack {
			if _, _, err := s.Read(t.Context(), "g", Range{}); err != nil {
				t.Errorf("went back: %v: a group that was there: %v", goesBack, err)
			}
		}
		if err := s.CreateGroup(Group{Name: "h"}); err != nil && !errors.Is(err, ErrExists) {
			t.Errorf("went back: %v: %v", goesBack, err)
		}
	}
}

// TestADescriptionInDoubt: a group is at once what a restart makes of it.
func TestADescriptionInDoubt(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir)
	s.syncDir = func(string) error { return errors.New("a failed sync") }
	if err := s.UpdateGroup("g", func(g *Group) error { g.CreatedAt = 2; return nil }); !disk.IsUnwritable(err) {
		t.Fatal(err)
	}
	before := s.Groups()
	s.Close()
	if after := open(t, dir).Groups(); len(after) != 1 || before[0].CreatedAt != after[0].CreatedAt {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestRefusals(t *testing.T) {
	s := withGroup(t, t.TempDir(), "a")
	for what, err := range map[string]error{
		"a second group":       s.CreateGroup(Group{Name: "g"}),
		"a second stream":      s.CreateStream("g", "a", 1),
		"a stream of no group": s.CreateStream("none", "a", 1),
		"events for no stream": s.Append("g", "none", 1, []Event{event(1, "x")}),
		"no stream's end":      s.DeleteStream("g", "none"),
		"no group's end":       s.DeleteGroup("none"),
	} {
		if !errors.Is(err, ErrExists) && !errors.Is(err, ErrNoGroup) && !errors.Is(err, ErrNoStream) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := s.Read(t.Context(), "g", Range{Streams: []string{"none"}, Limit: 1}); !errors.Is(err, ErrNoStream) {
		t.Errorf("reading no stream: %v", err)
	}
}

// TestReadIsLikeSorting writes random batches and pages through random ranges of them in both
// directions. The pages together equal everything sorted, also after a restart.
func TestReadIsLikeSorting(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "streams-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := Open(dir)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { s.Close() }()
		must := func(err error) {
			if err != nil {
				r.Fatal(err)
			}
		}
		must(s.CreateGroup(Group{Name: "g"}))
		names := []string{"a", "b"}
		for _, n := range names {
			must(s.CreateStream("g", n, 1))
		}
		n := 0
		for range rapid.IntRange(0, 12).Draw(r, "batches") {
			var batch []Event
			for range rapid.IntRange(1, 5).Draw(r, "events") {
				batch = append(batch, event(rapid.Int64Range(1, 30).Draw(r, "time"), fmt.Sprint(n)))
				n++
			}
			must(s.Append("g", rapid.SampledFrom(names).Draw(r, "stream"), 1, batch))
		}
		if rapid.Bool().Draw(r, "restart") {
			s.Close()
			s, err = Open(dir)
			must(err)
		}
		all, _, err := s.Read(t.Context(), "g", Range{Limit: 1000})
		must(err)
		if len(all) != n || !slices.IsSortedFunc(all, func(a, b Event) int { return a.ID.Compare(b.ID) }) {
			r.Fatalf("%d of %d events, in the order %v", len(all), n, texts(all))
		}
		want := Range{
			Start:    rapid.Int64Range(0, 30).Draw(r, "start"),
			End:      rapid.Int64Range(1, 31).Draw(r, "end"),
			Backward: rapid.Bool().Draw(r, "backward"),
			Limit:    rapid.IntRange(1, 7).Draw(r, "limit"),
		}
		if rapid.Bool().Draw(r, "one stream") {
			want.Streams = names[:1]
		}
		var expected []Event
		for _, e := range all {
			if e.Timestamp >= want.Start && e.Timestamp <= want.End && (want.Streams == nil || e.Stream == "a") {
				expected = append(expected, e)
			}
		}
		if want.Backward {
			slices.Reverse(expected)
		}
		var got []Event
		for {
			page, more, err := s.Read(t.Context(), "g", want)
			must(err)
			got = append(got, page...)
			if !more {
				break
			}
			if want.Backward {
				want.Before = &page[len(page)-1].ID
			} else {
				want.After = &page[len(page)-1].ID
			}
		}
		if !slices.Equal(texts(got), texts(expected)) {
			r.Fatalf("paging gives %v, want %v", texts(got), texts(expected))
		}
	})
}

func TestATornTailIsCutOff(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	if err := s.Append("g", "a", 1, []Event{event(1, "whole")}); err != nil {
		t.Fatal(err)
	}
	killed := waltest.Copy(t, dir)
	if err := s.Append("g", "a", 2, []Event{event(2, "torn")}); err != nil {
		t.Fatal(err)
	}
	path := "1/000000001.log"
	before, err := os.ReadFile(filepath.Join(killed, path))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(before) + 1; cut < len(after); cut++ {
		dir := waltest.Copy(t, killed)
		if err := os.WriteFile(filepath.Join(dir, path), after[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append("g", "a", 3, []Event{event(3, "after")}); err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Read(t.Context(), "g", Range{Limit: 10})
		if err != nil || !slices.Equal(texts(got), []string{"whole", "after"}) {
			t.Fatalf("cut at %d: %v, %v", cut, texts(got), err)
		}
		s.Close()
	}
}

func TestSweepRemovesWhatHasExpired(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a", "quiet")
	g := s.groups["g"]
	for i := range int64(3) {
		if err := s.Append("g", "a", i, []Event{event(i*day+1, fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		g.log.Roll() // as if the segment were full
	}
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(2*day + 2); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, _, err := s.Read(t.Context(), "g", Range{Limit: 10})
		if err != nil || !slices.Equal(texts(got), []string{"2"}) {
			t.Errorf("left are %v, %v", texts(got), err)
		}
		if streams, _ := s.Streams("g"); len(streams) != 2 {
			t.Errorf("streams are %+v", streams)
		}
		s.Close()
		s = open(t, dir)
	}
}

// TestReadBlocksNobody: writers don't wait for readers, and a read ends with its caller's context.
func TestReadBlocksNobody(t *testing.T) {
	s := withGroup(t, t.TempDir(), "a")
	for i := range int64(3) {
		if err := s.Append("g", "a", 1, []Event{event(i+1, fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	_, _, err := s.Read(ctx, "g", Range{Limit: 10, Keep: func(Event) bool {
		looked++
		written := make(chan error, 1)
		go func() { written <- s.Append("g", "a", 1, []Event{event(9, "more")}) }()
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("an append waits for a read")
		}
		cancel()
		return false
	}})
	if !errors.Is(err, context.Canceled) || looked != 1 {
		t.Errorf("it looked at %d events, and said %v", looked, err)
	}
}

// TestReadEndsWithItsCaller: a caller that leaves ends the read at the next event, even within a batch.
func TestReadEndsWithItsCaller(t *testing.T) {
	s := withGroup(t, t.TempDir(), "a")
	if err := s.Append("g", "a", 1, []Event{event(1, "x"), event(1, "y"), event(1, "z")}); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	looked := 0
	_, _, err := s.Read(ctx, "g", Range{Limit: 10, Keep: func(Event) bool {
		looked++
		leave()
		return true
	}})
	if !errors.Is(err, context.Canceled) || looked != 1 {
		t.Errorf("%v after %d events", err, looked)
	}
}

// TestSweepKeepsDeletions: a deleted stream stays deleted, whatever is swept first.
func TestSweepKeepsDeletions(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "gone", "stays")
	for stream, at := range map[string]int64{"gone": 1, "stays": 10 * day} {
		if err := s.Append("g", stream, 1, []Event{event(at, stream)}); err != nil {
			t.Fatal(err)
		}
	}
	g := s.groups["g"]
	for range 2 { // the stream's deletion gets its own segment
		if g.log.Roll() == 2 {
			if err := s.DeleteStream("g", "gone"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(11 * day); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir)
	if streams, err := s.Streams("g"); err != nil || len(streams) != 1 || streams[0].Name != "stays" {
		t.Errorf("after a restart the streams are %+v, %v", streams, err)
	}
}

// TestSweepBesideAppend: a sweep writes the streams without events again, and one of them may get its first events at that moment.
func TestSweepBesideAppend(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	g := s.groups["g"]
	r := record{Kind: eventBatch, Stream: "a", At: 1, Events: []Event{event(1, "x")}}
	h := r.head()
	g.mu.Lock()
	_, written := g.log.Append(r.append, func(at wal.Position, err error) { g.written(at, &h, err) })
	g.keepStreams()
	g.mu.Unlock()
	if err := written.Wait(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, _, err := s.Read(t.Context(), "g", Range{Limit: 10})
		if err != nil || !slices.Equal(texts(got), []string{"x"}) {
			t.Errorf("there are %v, %v", texts(got), err)
		}
		s.Close()
		s = open(t, dir)
	}
}

// TestSweepBesideDeletedStream: a sweep doesn't write a stream again whose deletion is queued.
func TestSweepBesideDeletedStream(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	g := s.groups["g"]
	g.log.Roll()
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	r := record{Kind: streamDeleted, Stream: "a"}
	h := r.head()
	g.mu.Lock()
	if err := g.checkQueued(&r); err != nil {
		t.Fatal(err)
	}
	g.mu.Unlock()
	if n, _, err := g.forgetOldest(10 * day); n != 0 || err != nil {
		t.Errorf("it forgot segment %d, %v", n, err)
	}
	_, written := g.log.Append(r.append, func(at wal.Position, err error) { g.written(at, &h, err) })
	if err := written.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := g.forgetOldest(10 * day); n == 0 || err != nil {
		t.Errorf("later it forgot segment %d, %v", n, err)
	}
	s.Close()
	if streams, err := open(t, dir).Streams("g"); err != nil || len(streams) != 0 {
		t.Errorf("after a restart the streams are %+v, %v", streams, err)
	}
}

// TestBytes: a group's size falls with what expires and with streams that are deleted, and a restart doesn't change it.
func TestBytes(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a", "b")
	g := s.groups["g"]
	bytes := func() int64 {
		d, err := s.Group("g")
		if err != nil {
			t.Fatal(err)
		}
		return d.Bytes
	}
	for i, stream := range []string{"a", "a", "b"} {
		if err := s.Append("g", stream, 1, []Event{event(int64(i)*day+1, "x")}); err != nil {
			t.Fatal(err)
		}
		g.log.Roll()
	}
	each := bytes() / 3
	if each == 0 {
		t.Fatal("events have no size")
	}
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(day + 2); err != nil {
		t.Fatal(err)
	}
	if got := bytes(); got != 2*each {
		t.Errorf("after a sweep %d bytes of %d", got, 3*each)
	}
	if err := s.DeleteStream("g", "b"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := bytes(); got != each {
			t.Errorf("at the end %d bytes of %d", got, 3*each)
		}
		s.Close()
		s = open(t, dir)
	}
}

// TestSweepBesideDelete: a group that is deleted during a sweep causes no error, and accepts no more events.
func TestSweepBesideDelete(t *testing.T) {
	s := withGroup(t, t.TempDir(), "a")
	g := s.groups["g"]
	g.log.Roll()
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteGroup("g"); err != nil {
		t.Fatal(err)
	}
	if err := g.sweep(10 * day); err != nil {
		t.Errorf("it is swept: %v", err)
	}
	if err := g.append(record{Kind: eventBatch, Stream: "a", Events: []Event{event(1, "x")}}); !errors.Is(err, ErrNoGroup) {
		t.Errorf("it is written to: %v", err)
	}
}

// TestFullDisk: a record that couldn't be written isn't there, neither immediately nor after a restart, and can be retried.
func TestFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	g := s.groups["g"]
	refused := []record{
		{Kind: streamCreated, Stream: "n"},
		{Kind: eventBatch, Stream: "a", Events: []Event{event(2, "refused")}},
		{Kind: eventBatch, Stream: "a", Events: []Event{event(3, "torn")}},
	}
	free := filetest.Fill(t, uint64(g.log.End().Offset+5))
	for i, r := range refused {
		if err := g.append(r); err == nil {
			t.Errorf("record %d was taken", i)
		}
	}
	free()
	if err := s.CreateStream("g", "n", 1); err != nil {
		t.Errorf("the stream once more: %v", err)
	}
	s.Close()
	s = open(t, dir)
	if got, _, err := s.Read(t.Context(), "g", Range{Limit: 10}); err != nil || len(got) != 0 {
		t.Errorf("after a restart there are %v, %v", texts(got), err)
	}
	if streams, err := s.Streams("g"); err != nil || len(streams) != 2 {
		t.Errorf("and the streams %+v, %v", streams, err)
	}
}

// TestSweepOnAFullDisk: a segment stays as long as records that only it has can't be written elsewhere.
func TestSweepOnAFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	s.groups["g"].log.Roll()
	if err := s.UpdateGroup("g", func(g *Group) error { g.RetentionDays = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	free := filetest.Fill(t, 1)
	err := s.Sweep(10 * day)
	free()
	if err == nil {
		t.Error("a full disk is not told of")
	}
	s.Close()
	s = open(t, dir)
	if streams, err := s.Streams("g"); err != nil || len(streams) != 1 {
		t.Errorf("after a restart the streams are %+v, %v", streams, err)
	}
	if err := s.Sweep(10 * day); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

const crashDir = "PINTLE_STREAMS_CRASH_DIR"

// TestMain lets the test binary run as the process that TestNothingAcknowledgedIsLost kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func appendUntilKilled(dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	s.CreateGroup(Group{Name: "g"}) //nolint:errcheck // it may exist already
	var mu sync.Mutex
	run := time.Now().UnixNano()
	for w := range 8 {
		stream := fmt.Sprint("s", w)
		s.CreateStream("g", stream, 1) //nolint:errcheck // it may exist already
		go func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%d-%d-%d.", run, w, i)
				if s.Append("g", stream, 1, []Event{event(int64(i+1), text)}) == nil {
					mu.Lock()
					os.Stdout.WriteString(text + "\n")
					mu.Unlock()
				}
			}
		}()
	}
	select {}
}

// TestNothingAcknowledgedIsLost kills a writing process at random moments, and then looks for every
// event that it acknowledged.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	dir := t.TempDir()
	acknowledged := 0
	for range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var want []string
		var killer *time.Timer
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if killer == nil && len(want) == 9 { // however slow the disk is
				killer = time.AfterFunc(time.Duration(20+rand.IntN(100))*time.Millisecond, func() { cmd.Process.Kill() })
			}
			if strings.HasSuffix(lines.Text(), ".") { // the kill may truncate the last line
				want = append(want, lines.Text())
			}
		}
		cmd.Wait() //nolint:errcheck // we killed it
		acknowledged += len(want)
		s := open(t, dir)
		got, _, err := s.Read(t.Context(), "g", Range{Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]int{}
		for _, e := range got {
			there[e.Message]++
		}
		for _, w := range want {
			if there[w] != 1 {
				t.Fatalf("%s was acknowledged, and is there %d times", w, there[w])
			}
		}
		s.Close()
	}
	if acknowledged < 50 {
		t.Fatalf("only %d events were acknowledged: the test shows nothing", acknowledged)
	}
}

// FuzzParseRecord parses arbitrary records.
func FuzzParseRecord(f *testing.F) {
	r := record{Kind: eventBatch, Stream: "a", At: 2, Events: []Event{event(2, "x"), event(3, "y")}}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if again, err := parseRecord(r.append(nil)); err != nil || !slices.Equal(texts(again.Events), texts(r.Events)) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

// BenchmarkAppend appends batches of ten events of a hundred bytes. Each is on disk when Append returns.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := withGroup(b, b.TempDir(), "a")
			batch := make([]Event, 10)
			for i := range batch {
				batch[i] = event(int64(i+1), strings.Repeat("x", 100))
			}
			b.SetBytes(10 * 100)
			b.SetParallelism(writers)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := s.Append("g", "a", 1, batch); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

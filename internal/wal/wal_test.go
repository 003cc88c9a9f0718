package wal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/wal/waltest"
)

// TestMain keeps the many torn tails out of the tests' own reports.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// frame is a frame as it was read.
type frame struct {
	at   Position
	body string
}

func open(t testing.TB, dir string, opts Options) (*Log, []frame) {
	t.Helper()
	l, got, err := tryOpen(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // it may be closed already
	return l, got
}

func tryOpen(dir string, opts Options) (*Log, []frame, error) {
	opts.Kind = "test"
	var got []frame
	l, err := Open(dir, opts, func(at Position, body []byte) error {
		got = append(got, frame{at, string(body)})
		return nil
	})
	return l, got, err
}

func put(t testing.TB, l *Log, bodies ...string) (out []frame) {
	t.Helper()
	for _, b := range bodies {
		at, g := l.Append(text(b), nil)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		out = append(out, frame{at, b})
	}
	return out
}

func text(s string) func([]byte) []byte { return func(b []byte) []byte { return append(b, s...) } }

func closed(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatWasAppendedIsThere: through segments that come and go, and opening again.
func TestWhatWasAppendedIsThere(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	want := put(t, l, "one", "", "three")
	if n := l.Roll(); n != 2 || l.Roll() != 2 {
		t.Fatalf("the next segment is %d, and then %d", n, l.Roll())
	}
	for _, again := range []string{"a", "b"} {
		want = append(want, put(t, l, again, strings.Repeat("x", 1<<19))...)
		for _, f := range want {
			if b, err := l.Read(f.at, len(f.body)); err != nil || string(b) != f.body {
				t.Errorf("at %v there is %.20q, %v", f.at, b, err)
			}
		}
		closed(t, l)
		var got []frame
		if l, got = open(t, dir, Options{Exists: true}); !slices.Equal(got, want) {
			t.Fatalf("replayed are %d frames, not %d", len(got), len(want))
		}
	}
	if err := l.RemoveBefore(2); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	if _, got := open(t, dir, Options{}); !slices.Equal(got, want[3:]) {
		t.Errorf("without the first segment there are %d frames, not %d", len(got), len(want)-3)
	}
}

// TestRemoveAll: a log whose segments are all removed goes on with the next one, also after it was opened again.
func TestRemoveAll(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	put(t, l, "old")
	if err := l.RemoveBefore(l.Roll()); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	for range 2 {
		l, got := open(t, dir, Options{})
		if len(got) > 0 || l.End().Segment != 2 {
			t.Fatalf("there are %v, and it ends in %v", got, l.End())
		}
		closed(t, l)
	}
	l, _ = open(t, dir, Options{})
	want := put(t, l, "new")
	closed(t, l)
	if _, got := open(t, dir, Options{}); !slices.Equal(got, want) {
		t.Errorf("there are %v", got)
	}
}

// TestCallbacks come in the order of the log, whoever appends, and before anybody is told; nobody has to wait for them.
func TestCallbacks(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		l, _ := open(t, t.TempDir(), Options{NoSync: noSync})
		var order []Position
		note := func(at Position, _ error) { order = append(order, at) }
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					called := false
					_, g := l.Append(text("x"), func(at Position, err error) { note(at, err); called = true })
					if err := g.Wait(); err != nil || !called {
						t.Errorf("called: %v, %v", called, err)
					}
				}
			})
		}
		wg.Wait()
		if end := l.End(); !l.Applied(end.Segment) {
			t.Error("not all are applied")
		}
		if n := l.Roll(); !l.Applied(n) {
			t.Errorf("not all before %d are applied", n)
		}
		l.Append(text("drained"), note)
		l.Drain()
		drained := len(order)
		l.Append(text("closed"), note)
		closed(t, l)
		if drained != 801 || len(order) != 802 || !slices.IsSortedFunc(order, comparePositions) {
			t.Errorf("%d callbacks, then %d", drained, len(order))
		}
	}
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Offset, b.Offset))
}

// TestKilledAtEveryByte: what the marker tells of is there, wherever writing ended behind it; a cut before it is damage.
func TestKilledAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	put(t, l, "first", "second")
	acknowledged := l.End().Offset
	killed := waltest.Copy(t, dir)
	want := put(t, l, "third", "fourth")
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range int64(len(whole)) + 1 {
		dir := waltest.Copy(t, killed)
		if err := os.WriteFile(segmentPath(dir, 1), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l, got, err := tryOpen(dir, Options{})
		if cut < acknowledged {
			if damage := new(file.Damage); !errors.As(err, &damage) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		n := 2
		for _, f := range want {
			if f.at.Offset+FrameHead+int64(len(f.body)) <= cut {
				n++
			}
		}
		put(t, l, "after")
		closed(t, l)
		torn, _ := filepath.Glob(filepath.Join(dir, "*.torn"))
		isTorn := cut > endOf(want[:n-2], acknowledged)
		if len(got) != n || (len(torn) == 1) != isTorn {
			t.Fatalf("cut at %d: %d frames, not %d; torn are %v", cut, len(got), n, torn)
		}
		if _, got := open(t, dir, Options{}); len(got) != n+1 {
			t.Fatalf("cut at %d, then there are %d frames", cut, len(got))
		}
	}
}

// endOf is where frames end.
func endOf(frames []frame, end int64) int64 {
	for _, f := range frames {
		end = f.at.Offset + FrameHead + int64(len(f.body))
	}
	return end
}

// TestPowerFailure: the marker may be older than the log. Sectors that were never written are a torn end; a flipped bit is not, nor is
// anything that a later group follows.
func TestPowerFailure(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	put(t, l, "first")
	before := waltest.Copy(t, dir)
	group := l.End().Offset
	body := strings.Repeat("x", 700)
	l.mu.Lock() // so that all three are one group
	l.flushing = true
	l.mu.Unlock()
	var g *Group
	for range 3 {
		_, g = l.Append(text(body), nil)
	}
	l.running.Go(l.flush)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	one, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	put(t, l, "a later group")
	two, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	zeroed := func(b []byte) []byte {
		b = slices.Clone(b)
		clear(b[2*sector : 3*sector])
		return b
	}
	flipped := func(b []byte, at int64) []byte {
		b = slices.Clone(b)
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		name   string
		bytes  []byte
		frames int // -1 for damage
	}{
		{"all written", one, 4},
		{"a sector of the last group was not", zeroed(one), 2},
		{"its last sectors were not", append(slices.Clone(one[:3*sector]), make([]byte, 500)...), 3},
		{"nothing of it was", append(slices.Clone(one[:group]), make([]byte, 1000)...), 1},
		{"a bit of its first frame is flipped", flipped(one, group+20), -1},
		{"a bit of its first head is flipped", flipped(one, group), -1},
		{"a bit of its last frame is flipped", flipped(one, int64(len(one)-3)), -1},
		{"a sector is zero before a later group", zeroed(two), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := waltest.Copy(t, before)
			if err := os.WriteFile(segmentPath(dir, 1), c.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			_, got, err := tryOpen(dir, Options{})
			if damage := new(file.Damage); c.frames < 0 {
				if !errors.As(err, &damage) {
					t.Errorf("%d frames, %v", len(got), err)
				}
				return
			}
			if err != nil || len(got) != c.frames {
				t.Errorf("%d frames, not %d, %v", len(got), c.frames, err)
			}
		})
	}
}

// TestUnfinishedSegment: a segment whose plate was not written goes; one that the marker does not know yet counts.
func TestUnfinishedSegment(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	put(t, l, "first")
	before := waltest.Copy(t, dir)
	l.Roll()
	put(t, l, "second")
	whole, err := os.ReadFile(segmentPath(dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		dir := waltest.Copy(t, before)
		if err := os.WriteFile(segmentPath(dir, 2), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 1
		if cut == len(whole) {
			want = 2
		}
		l, got := open(t, dir, Options{})
		if len(got) != want {
			t.Fatalf("cut at %d: %d frames", cut, len(got))
		}
		l.Roll()
		put(t, l, "third")
		closed(t, l)
		if _, got := open(t, dir, Options{}); len(got) != want+1 {
			t.Fatalf("cut at %d: then %d frames", cut, len(got))
		}
	}
}

// TestLocked: a log has one user, and Check is none beside it.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{})
	if _, _, err := tryOpen(dir, Options{}); !errors.Is(err, file.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := Check(dir, "test", true); !errors.Is(err, file.ErrLocked) {
		t.Errorf("checked while it is open: %v", err)
	}
}

// known makes a log of several segments, one of which was removed, and says what lies in it.
func known(t *testing.T) (dir string, want map[string]bool, l *Log) {
	dir = t.TempDir()
	l, _ = open(t, dir, Options{})
	put(t, l, "removed")
	if err := l.RemoveBefore(l.Roll()); err != nil {
		t.Fatal(err)
	}
	want = map[string]bool{}
	for i := range 40 {
		if i%10 == 9 {
			l.Roll()
		}
		body := fmt.Sprint("frame ", i, strings.Repeat("\x00", i%7*50))
		put(t, l, body)
		want[body] = true
	}
	return dir, want, l
}

// TestRandomDamage: whatever happens to a log's files after a clean end or a kill, opening names it or everything is there; and
// after a repair so is all that was not damaged.
func TestRandomDamage(t *testing.T) {
	dir, _, l := known(t)
	killed := waltest.Copy(t, dir)
	closed(t, l)
	trials := waltest.Trials{
		Images: []string{dir, killed},
		Read: func(_ testing.TB, dir string) (map[string]bool, error) {
			l, got, err := tryOpen(dir, Options{})
			if err != nil {
				return nil, err
			}
			there := map[string]bool{}
			for _, f := range got {
				there[f.body] = true
			}
			return there, l.Close()
		},
		Check:     func(dir string, repair bool) ([]file.Damage, error) { return Check(dir, "test", repair) },
		FlipLoses: 1,
		FileLoses: 10,
	}
	trials.Run(t)
}

// TestEachFileRemoved: so is a file that is not there any more.
func TestEachFileRemoved(t *testing.T) {
	dir, _, l := known(t)
	closed(t, l)
	for _, path := range waltest.Files(t, dir) {
		dir := waltest.Copy(t, dir)
		if err := os.Remove(filepath.Join(dir, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
		_, _, err := tryOpen(dir, Options{})
		if damage := new(file.Damage); !errors.As(err, &damage) || filepath.Base(damage.Path) != filepath.Base(path) {
			t.Errorf("without %s: %v", filepath.Base(path), err)
		}
	}
}

// stall appends a frame that can't be written, and returns its group.
func stall(t *testing.T, l *Log, body string) *Group {
	t.Helper()
	_, g := l.Append(text(body), nil)
	if err := g.Wait(); !errors.Is(err, disk.ErrUnwritable) || l.Stalled() == nil {
		t.Errorf("it says %v, and stalls because of %v", err, l.Stalled())
	}
	return g
}

// replaceFile replaces the open file of segment 1.
func replaceFile(t *testing.T, l *Log, flag int) {
	t.Helper()
	f, err := os.OpenFile(segmentPath(l.dir, 1), flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.filesMu.Lock()
	defer l.filesMu.Unlock()
	l.files[1].Close() //nolint:errcheck // nothing is lost by it
	l.files[1] = f
}

// TestWriteFails: a log that can't be written says so, is read, and writes what it was given once it can be written again.
func TestWriteFails(t *testing.T) {
	for _, recovers := range []bool{false, true} {
		dir := t.TempDir()
		l, _ := open(t, dir, Options{})
		want := put(t, l, "kept")
		replaceFile(t, l, os.O_RDONLY)
		first := stall(t, l, "in doubt")
		second := stall(t, l, "behind it")
		if b, err := l.Read(want[0].at, 4); err != nil || string(b) != "kept" {
			t.Errorf("reading gives %q, %v", b, err)
		}
		if recovers {
			replaceFile(t, l, os.O_RDWR)
			for first.Wait() != nil || second.Wait() != nil || l.Stalled() != nil {
				time.Sleep(time.Millisecond)
			}
			at := want[0].at.Offset + FrameHead + 4
			want = append(want, frame{Position{1, at}, "in doubt"}, frame{Position{1, at + FrameHead + 8}, "behind it"})
			want = append(want, put(t, l, "afterwards")...)
		}
		closed(t, l)
		if _, got := open(t, dir, Options{}); !slices.Equal(got, want) {
			t.Errorf("after a restart there are %v, want %v", got, want)
		}
	}
}

// TestSyncFails: after a failed sync the kernel may have dropped the bytes, so they are written again.
func TestSyncFails(t *testing.T) {
	for _, resume := range []bool{false, true} {
		dir := t.TempDir()
		l, _ := open(t, dir, Options{Resume: resume})
		want := put(t, l, "kept")
		end := l.End().Offset
		var fails atomic.Int32
		fails.Store(2)
		l.syncFile = func(f *os.File) error {
			if fails.Add(-1) < 0 {
				return f.Sync()
			}
			return errors.Join(syscall.EIO, f.Truncate(end))
		}
		g := stall(t, l, "in doubt")
		for g.Wait() != nil || l.Stalled() != nil {
			time.Sleep(time.Millisecond)
		}
		want = append(want, frame{Position{1, end}, "in doubt"})
		want = append(want, put(t, l, "afterwards")...)
		closed(t, l)
		if _, got := open(t, dir, Options{}); !slices.Equal(got, want) {
			t.Errorf("after a restart there are %v, want %v", got, want)
		}
	}
}

// TestMarkerFails: a change that the marker couldn't take is made again.
func TestMarkerFails(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	put(t, l, "old")
	number := l.Roll()
	want := put(t, l, "new")
	f := l.marker.file
	var err error
	if l.marker.file, err = os.Open(f.Name()); err != nil {
		t.Fatal(err)
	}
	if l.RemoveBefore(number) == nil {
		t.Error("nobody is told")
	}
	l.marker.file.Close() //nolint:errcheck // it was only read
	l.marker.file = f
	if err := l.RemoveBefore(number); err != nil {
		t.Error(err)
	}
	closed(t, l)
	if _, got := open(t, dir, Options{}); !slices.Equal(got, want) {
		t.Errorf("after a restart there are %v, want %v", got, want)
	}
}

// TestFullDisk: where the store can do without what was refused, the log goes on once there is room.
func TestFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	l, _ := open(t, dir, Options{Resume: true})
	want := put(t, l, "before", strings.Repeat("x", 1000))
	for _, roll := range []bool{false, true} {
		if roll {
			l.Roll()
		}
		free := filetest.Fill(t, uint64(l.End().Offset+20))
		refused := make(chan error, 1)
		_, g := l.Append(text(strings.Repeat("too much", 100)), func(_ Position, err error) { refused <- err })
		if g.Wait() == nil || <-refused == nil {
			t.Error("a full disk is not told of")
		}
		free()
		want = append(want, put(t, l, "there is room again")...)
	}
	closed(t, l)
	if _, got := open(t, dir, Options{}); !slices.Equal(got, want) {
		t.Errorf("after a restart there are %d frames, not %d", len(got), len(want))
	}
}

// TestTornTailsAreFew: they are kept, but not without end.
func TestTornTailsAreFew(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{NoSync: true})
	for range maxTorn + 3 {
		put(t, l, "whole")
		killed := waltest.Copy(t, dir)
		end := l.End().Offset
		closed(t, l)
		b, err := os.ReadFile(segmentPath(killed, 1))
		if err != nil {
			t.Fatal(err)
		}
		b = appendFrame(b, l.last.seed, end, true, text("torn"))
		if err := os.WriteFile(segmentPath(killed, 1), b[:len(b)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		dir = killed
		l, _ = open(t, dir, Options{NoSync: true})
	}
	if torn, _ := filepath.Glob(filepath.Join(dir, "*.torn")); len(torn) != maxTorn {
		t.Errorf("%d torn tails are kept", len(torn))
	}
}

// FuzzSegment opens and repairs a segment that holds whatever a disk may hold.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	l, _ := open(f, dir, Options{})
	put(f, l, "one", "", "three")
	marker, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		f.Fatal(err)
	}
	bodies := []string{"one", "", "three"}
	f.Add(whole)
	f.Add(append(slices.Clone(whole), make([]byte, 100)...))
	f.Add(binary.LittleEndian.AppendUint32(slices.Clone(whole), 1<<30))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		err := errors.Join(os.WriteFile(filepath.Join(dir, markerFile), marker, 0o600), os.WriteFile(segmentPath(dir, 1), b, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		l, got, err := tryOpen(dir, Options{})
		if err == nil {
			closed(t, l)
			if len(got) < 3 {
				t.Fatalf("%d frames are left, and nothing is said", len(got))
			}
			return
		}
		if damage := new(file.Damage); !errors.As(err, &damage) {
			t.Fatal(err)
		}
		if _, err := Check(dir, "test", true); err != nil {
			t.Fatal(err)
		}
		_, got = open(t, dir, Options{})
		for _, f := range got {
			if !slices.Contains(bodies, f.body) && !bytes.Contains(b, []byte(f.body)) {
				t.Fatalf("the repair has made %q", f.body)
			}
		}
	})
}

// TestFlushed: the store hears how long each group took to get onto the disk.
func TestFlushed(t *testing.T) {
	var told []time.Duration
	l, err := Open(t.TempDir(), Options{Kind: "test", Flushed: func(took time.Duration) { told = append(told, took) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, g := l.Append(func(b []byte) []byte { return append(b, "x"...) }, nil)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 || slices.Min(told) <= 0 {
		t.Errorf("it heard of %v, want three groups", told)
	}
}

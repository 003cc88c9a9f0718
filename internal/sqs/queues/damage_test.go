package queues

import (
	"fmt"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/wal/waltest"
)

// TestRandomDamage: whatever happens to the store's files after a clean end or a kill, it is named or every message is there; and
// after a repair so is all that was not damaged.
func TestRandomDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{MaxSegment: 1500})
	for _, q := range []Queue{{Name: "q"}, {Name: "f.fifo", FIFO: true}} {
		create(t, s, q)
	}
	removed := map[string]bool{}
	for i := range 60 {
		for q, group := range map[string]string{"q": "", "f.fifo": "g"} {
			if _, err := s.Send(q, []Message{{Body: fmt.Append(nil, "message ", i), Group: group, Dedup: fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if i%5 != 0 {
			continue
		}
		got, err := s.Receive(t.Context(), "q", Want{Limit: 1, Visibility: time.Hour})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if _, err := s.Delete("q", []Receipt{got[0].Receipt}); err != nil {
			t.Fatal(err)
		}
		removed["q "+string(got[0].Body)] = true
	}
	if err := s.cleanOldest(); err != nil {
		t.Fatal(err)
	}
	killed := waltest.Copy(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	trials := waltest.Trials{
		Images:    []string{dir, killed},
		Read:      contents,
		Check:     Check,
		Removed:   removed,
		FlipLoses: 30, // messages are written again by the megabyte, in one frame
		FileLoses: 60,
	}
	trials.Run(t)
}

// contents is every message, under the queue that it is in, or that it was in before the queue's name was lost.
func contents(t testing.TB, dir string) (map[string]bool, error) {
	s, err := Open(dir, Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // it was read
	out := map[string]bool{}
	for _, q := range s.Queues() {
		name := "q"
		if q.FIFO {
			name = "f.fifo"
		}
		for {
			got, err := s.Receive(t.Context(), q.Name, Want{Limit: 10, Visibility: time.Hour})
			if err != nil {
				return nil, err
			}
			if len(got) == 0 {
				break
			}
			for _, m := range got {
				out[name+" "+string(m.Body)] = true
			}
			for _, m := range got {
				if _, err := s.Delete(q.Name, []Receipt{m.Receipt}); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

package queues

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/wal"
	"github.com/pintle/pintle/internal/wal/waltest"
)

// modelMessage is a message as the model has it.
type modelMessage struct {
	seq                 uint64
	body, group         string
	visibleAt           int64
	receives, before    int
	sent, entered       int64
	received            int64 // the last time
	receipt             Receipt
	everReceived, flies bool // flies while it was received and its time is not over
}

// model is the queues in the simplest form: lists, searched from the start.
type model struct {
	fifo      bool
	retention int64
	max       int
	queues    map[string][]*modelMessage
	dedup     map[string]int64
	last      uint64
	now       int64
}

// settle does what time has done.
func (m *model) settle() {
	for name, list := range m.queues {
		m.queues[name] = slices.DeleteFunc(list, func(x *modelMessage) bool {
			if x.flies && x.visibleAt <= m.now {
				x.flies = false
			}
			born := x.sent
			if m.fifo {
				born = x.entered
			}
			return born+m.retention <= m.now
		})
	}
}

// ready are the messages of a queue that can be received, in the order in which they would be.
func (m *model) ready(name string) []*modelMessage {
	var out []*modelMessage
	head := map[string]*modelMessage{}
	for _, x := range m.queues[name] {
		blocked := m.fifo && slices.ContainsFunc(m.queues[name], func(y *modelMessage) bool {
			return y.group == x.group && y.flies && y.seq < x.seq
		})
		if x.visibleAt <= m.now && !blocked {
			out = append(out, x)
			if h := head[x.group]; h == nil || x.seq < h.seq {
				head[x.group] = x
			}
		}
	}
	slices.SortFunc(out, func(a, b *modelMessage) int {
		if m.fifo {
			x, y := head[a.group], head[b.group]
			return cmp.Or(cmp.Compare(x.received, y.received), cmp.Compare(x.seq, y.seq), cmp.Compare(a.seq, b.seq))
		}
		return cmp.Compare(a.seq, b.seq)
	})
	return out
}

// receive takes messages, and moves those that were received too often.
func (m *model) receive(limit int, visibility int64) []*modelMessage {
	for {
		found := m.ready("q")
		found = found[:min(limit, len(found))]
		dead := slices.DeleteFunc(slices.Clone(found), func(x *modelMessage) bool { return m.max == 0 || x.receives-x.before < m.max })
		if len(dead) == 0 {
			for _, x := range found {
				x.receives++
				x.visibleAt, x.flies, x.everReceived = m.now+visibility, true, true
				x.received = m.now
				if visibility == 0 {
					x.flies = false
				}
			}
			return found
		}
		for _, x := range dead {
			m.queues["q"] = slices.DeleteFunc(m.queues["q"], func(y *modelMessage) bool { return x == y })
			m.last++
			x.seq, x.entered, x.before = m.last, m.now, x.receives
			m.queues["dead"] = append(m.queues["dead"], x)
		}
	}
}

func (m *model) counts(name string) Counts {
	var c Counts
	for _, x := range m.queues[name] {
		switch {
		case x.visibleAt <= m.now:
			c.Visible++
		case x.flies:
			c.InFlight++
		default:
			c.Delayed++
		}
	}
	return c
}

// TestModel: whatever is done to a queue, and wherever the process is killed in between, it answers as the model does.
func TestModel(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{
			fifo:      rapid.Bool().Draw(t, "fifo"),
			max:       rapid.IntRange(0, 3).Draw(t, "max receives"),
			retention: rapid.SampledFrom([]int64{60_000, 600_000, 1e9}).Draw(t, "retention"),
			queues:    map[string][]*modelMessage{},
			dedup:     map[string]int64{},
			now:       1_000_000,
		}
		opts := Options{Now: func() time.Time { return time.UnixMilli(m.now) }, MaxSegment: 700, Slack: math.MaxInt64 / 2, NoSync: true}
		s, err := Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		for _, q := range []Queue{{Name: "dead"}, {Name: "q", MaxReceives: m.max, DeadLetter: "dead"}} {
			q.FIFO, q.Retention = m.fifo, m.retention
			if _, err := s.CreateQueue(q); err != nil {
				t.Fatal(err)
			}
		}
		var received []*modelMessage // each as it was received
		var receipts []Receipt
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				group := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "group")
				key := rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "dedup")
				delay := int64(0)
				if !m.fifo {
					delay = rapid.SampledFrom([]int64{0, 0, 5_000}).Draw(t, "delay")
				}
				n++
				body := fmt.Sprint("message ", n)
				sent, err := s.Send(
					"q",
					[]Message{
						{
							ID:    [16]byte{byte(n)},
							Body:  []byte(body),
							Meta:  []byte("meta"),
							Group: group,
							Dedup: key,
							Delay: time.Duration(delay) * time.Millisecond,
						},
					},
				)
				if err != nil {
					t.Fatal(err)
				}
				if m.fifo && key != "" {
					if at, ok := m.dedup[key]; ok && at+window > m.now {
						return
					}
					m.dedup[key] = m.now
				}
				m.last++
				if sent[0].Seq != m.last {
					t.Fatalf("sent as %d, not as %d", sent[0].Seq, m.last)
				}
				m.queues["q"] = append(
					m.queues["q"],
					&modelMessage{seq: m.last, body: body, group: group, visibleAt: m.now + delay, sent: m.now, entered: m.now},
				)
			},
			"receive": func(t *rapid.T) {
				limit := rapid.IntRange(1, 4).Draw(t, "limit")
				visibility := rapid.SampledFrom([]int64{0, 3_000, 30_000}).Draw(t, "visibility")
				got, err := s.Receive(t.Context(), "q", Want{Limit: limit, Visibility: time.Duration(visibility) * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				want := m.receive(limit, visibility)
				if len(got) != len(want) {
					t.Fatalf("received %d messages, not %d", len(got), len(want))
				}
				for i, g := range got {
					w := want[i]
					if g.Seq != w.seq || string(g.Body) != w.body || string(g.Meta) != "meta" || g.Receives != w.receives ||
						g.Group != w.group ||
						g.Sent != w.sent {
						t.Fatalf("received %+v, not %+v", g, w)
					}
					w.receipt = g.Receipt
					received, receipts = append(received, w), append(receipts, g.Receipt)
				}
			},
			"delete": func(t *rapid.T) {
				if len(receipts) == 0 {
					t.Skip("nothing was received")
				}
				i := rapid.IntRange(0, len(receipts)-1).Draw(t, "which")
				errs, err := s.Delete("q", receipts[i:i+1])
				if err != nil {
					t.Fatal(err)
				}
				w := received[i]
				there := slices.Contains(m.queues["q"], w)
				last := there && w.receipt == receipts[i]
				switch err := errs[0]; {
				case !there:
					if !errors.Is(err, ErrNoMessage) {
						t.Fatal("a message that is gone:", err)
					}
				case !last || m.fifo && !w.flies:
					if !errors.Is(err, ErrExpired) {
						t.Fatal("an old receipt:", err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					m.queues["q"] = slices.DeleteFunc(m.queues["q"], func(x *modelMessage) bool { return x == w })
				}
			},
			"change visibility": func(t *rapid.T) {
				if len(receipts) == 0 {
					t.Skip("nothing was received")
				}
				i := rapid.IntRange(0, len(receipts)-1).Draw(t, "which")
				timeout := rapid.SampledFrom([]int64{0, 7_000}).Draw(t, "timeout")
				errs, err := s.ChangeVisibility("q", []Visibility{{receipts[i], time.Duration(timeout) * time.Millisecond}})
				if err != nil {
					t.Fatal(err)
				}
				w := received[i]
				there, last := slices.Contains(m.queues["q"], w), w.receipt == receipts[i]
				if !there || m.fifo && (!last || !w.flies) {
					if errs[0] == nil {
						t.Fatal("a message that is not in flight was kept invisible")
					}
					return
				}
				if errs[0] != nil {
					t.Fatal(errs[0])
				}
				w.visibleAt, w.flies = m.now+timeout, timeout > 0
			},
			"wait": func(t *rapid.T) {
				m.now += rapid.SampledFrom([]int64{1, 999, 3_000, 31_000, 301_000}).Draw(t, "ms")
				m.settle()
			},
			"purge": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					t.Skip()
				}
				if err := s.Purge("q"); errors.Is(err, ErrPurged) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				m.queues["q"], m.dedup = nil, map[string]int64{}
			},
			"clean": func(t *rapid.T) {
				if len(s.segments) < 2 {
					t.Skip("there is one segment")
				}
				if err := s.cleanOldest(); err != nil {
					t.Fatal(err)
				}
			},
			"kill": func(t *rapid.T) {
				s = reopen(t, s, base, opts)
			},
			"": func(t *rapid.T) {
				for _, name := range []string{"q", "dead"} {
					got, err := s.Counts(name)
					if err != nil {
						t.Fatal(err)
					}
					if want := m.counts(name); got != want {
						t.Fatalf("%s has %+v, not %+v", name, got, want)
					}
				}
			},
		})
	})
}

// reopen opens the store anew from what a kill would leave, with a torn frame behind it.
func reopen(t *rapid.T, s *Store, base string, opts Options) *Store {
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(waltest.CopyTo(dir, s.dir), s.Close()); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no log", err)
	}
	f, err := os.OpenFile(paths[len(paths)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	torn := make([]byte, rand.IntN(wal.FrameHead))
	for i := range torn {
		torn[i] = byte(rand.Uint32())
	}
	f.Write(torn)
	f.Close()
	s, err = Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

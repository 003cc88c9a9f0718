package budget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/wire/refusal"
)

var (
	here  = netip.MustParsePrefix("192.0.2.1/32")
	there = netip.MustParsePrefix("192.0.2.2/32")
)

// read reads a body of a size, and returns what is wrong.
func read(ctx context.Context, s *Share, size, limit int64) error {
	var into bytes.Buffer
	err := s.ReadAll(ctx, &into, io.LimitReader(zeros{}, size), limit)
	if err == nil && int64(into.Len()) != size {
		return errors.New("it's not all there")
	}
	return err
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		size, limit int64
		want        error
	}{
		{0, 0, nil},
		{10, 10, nil},
		{11, 10, ErrTooLarge},
		{free, free, nil},
		{free + 1, free, ErrTooLarge},
		{100 << 10, 100 << 10, nil},
		{100<<10 + 1, 100 << 10, ErrTooLarge},
	} {
		s := New(1 << 20).Share(here)
		if err := read(t.Context(), s, c.size, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%d of %d: %v", c.size, c.limit, err)
		}
		s.Release()
		if s.memory.left != 1<<20 || len(s.memory.held) != 0 {
			t.Errorf("%d of %d: %d bytes are left", c.size, c.limit, s.memory.left)
		}
	}
}

// TestNobodyTakesAll: an address holds as much as it leaves free. Small bodies of it never wait, and others get their part.
func TestNobodyTakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(1 << 20)
		greedy := m.Share(here)
		if err := read(t.Context(), greedy, 400<<10, 400<<10); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var r *refusal.Refusal
		if err := read(t.Context(), m.Share(here), 400<<10, 400<<10); !errors.As(err, &r) || r.Status != 503 {
			t.Errorf("the second got %v", err)
		}
		if waited := time.Since(began); waited != Patience {
			t.Errorf("it waited for %s", waited)
		}
		if err := errors.Join(read(t.Context(), m.Share(here), free, free), read(t.Context(), m.Share(there), 200<<10, 200<<10)); err != nil {
			t.Error(err)
		}
		if time.Since(began) != Patience {
			t.Error("a small body, or another's, waited")
		}
	})
}

// TestWaits: a body waits for memory that another gives back.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(1 << 20)
		first := m.Share(here)
		if err := read(t.Context(), first, 400<<10, 400<<10); err != nil {
			t.Fatal(err)
		}
		second := make(chan error)
		go func() { second <- read(t.Context(), m.Share(here), 400<<10, 400<<10) }()
		time.Sleep(Patience / 2)
		first.Release()
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// TestSharesAddUp: whatever is read, what is held and what is left are the whole, and a failed body holds nothing once it's released.
func TestSharesAddUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits
	rapid.Check(t, func(t *rapid.T) {
		m := New(1 << 20)
		var open []*Share
		for range rapid.IntRange(1, 20).Draw(t, "bodies") {
			s := m.Share(rapid.SampledFrom([]netip.Prefix{here, there}).Draw(t, "from"))
			read(ctx, s, rapid.Int64Range(0, 600<<10).Draw(t, "size"), 512<<10) //nolint:errcheck // many are refused
			if open = append(open, s); rapid.Bool().Draw(t, "end") {
				s.Release()
			}
			held := int64(0)
			for _, s := range open {
				held += s.held
			}
			if m.left+held != 1<<20 || m.held[here] > m.left+m.held[there] || m.left < 0 {
				t.Fatalf("%d are held, %d are left", held, m.left)
			}
		}
		for _, s := range open {
			s.Release()
		}
		if m.left != 1<<20 || len(m.held) > 0 {
			t.Fatalf("%d are left at the end", m.left)
		}
	})
}

func TestUnreadableBodies(t *testing.T) {
	s := New(1 << 20).Share(here)
	var into bytes.Buffer
	broken := io.MultiReader(strings.NewReader("a"), errorReader{})
	if err := s.ReadAll(t.Context(), &into, broken, 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

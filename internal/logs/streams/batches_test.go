package streams

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestBatches: batches come with the newest event first, have only events of the range, and are written and read at once.
func TestBatches(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	if err := s.CreateGroup(Group{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	write := func(stream string, times ...int64) {
		t.Helper()
		var events []Event
		for _, at := range times {
			events = append(events, Event{Timestamp: at, Message: fmt.Sprint(at)})
		}
		if err := s.Append("g", stream, 1, events); err != nil {
			t.Fatal(err)
		}
	}
	for _, stream := range []string{"a", "b"} {
		if err := s.CreateStream("g", stream, 1); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 10, 20, 30)
	write("b", 5, 40)
	write("a", 50)
	write("b", 1, 2)
	var got []string
	for batch, err := range s.Batches(t.Context(), "g", 5, 40) {
		if err != nil {
			t.Fatal(err)
		}
		var messages []string
		for _, e := range batch.Events {
			messages = append(messages, e.Message)
		}
		got = append(got, fmt.Sprint(batch.Newest, messages))
		write("a", 60) // nothing is locked
	}
	if want := []string{"40 [5 40]", "30 [10 20 30]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, err := range s.Batches(t.Context(), "none", 0, 1) {
		if !errors.Is(err, ErrNoGroup) {
			t.Error(err)
		}
	}
}

package bill

import (
	"reflect"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	prices := map[string]float64{"p3.2xlarge": 3, "g4dn.xlarge": 0.5}
	b := Of([]Use{
		{"g4dn.xlarge", 10, 2},
		{"p3.2xlarge", 4, 1},
		{"own", 24, 1},
		{"t3.micro", 0, 0}, // there was none
	}, prices, 24*time.Hour)
	want := []Item{
		{Use{"p3.2xlarge", 4, 1}, 3, 12, 72},
		{Use{"g4dn.xlarge", 10, 2}, 0.5, 5, 24},
		{Use{"own", 24, 1}, 0, 0, 0},
	}
	if !reflect.DeepEqual(b.Items, want) {
		t.Errorf("got %v, want %v", b.Items, want)
	}
	if b.Cost != 17 || b.AtPeak != 96 || b.Saved() != 79 || !reflect.DeepEqual(b.Unpriced, []string{"own"}) {
		t.Errorf("got %v, %v saved", b, b.Saved())
	}
	// The most is counted now and then, and hours all the time: neither makes the other a loss.
	if b := Of([]Use{{"p3.2xlarge", 24.1, 1}}, prices, 24*time.Hour); b.Saved() != 0 {
		t.Errorf("what was there all the time saved %v", b.Saved())
	}
	if got := Rate(map[string]float64{"p3.2xlarge": 2, "own": 9}, prices); got != 6 {
		t.Errorf("an hour costs %v", got)
	}
}

func TestStarts(t *testing.T) {
	at := time.Date(2026, 3, 31, 23, 30, 0, 0, time.FixedZone("", -3600)) // already April in UTC
	if day, month := StartOfDay(at), StartOfMonth(at); !day.Equal(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)) || !month.Equal(day) {
		t.Errorf("got %v and %v", day, month)
	}
}

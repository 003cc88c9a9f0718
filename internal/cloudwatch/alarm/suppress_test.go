package alarm

import (
	"testing"
	"time"
)

// The page "Suppressing composite alarm actions": what WaitPeriod and ExtensionPeriod do while the suppressor changes.
func TestSuppressedBy(t *testing.T) {
	moved := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		state     State
		leftAlarm int // seconds after the composite alarm moved; 0 means never
		after     int
		by        string
		until     int
	}{
		{"while it waits for the suppressor", OK, 0, 0, ByWaitPeriod, 60},
		{"up to the end of the wait", InsufficientData, 0, 59, ByWaitPeriod, 60},
		{"the suppressor did not come", OK, 0, 60, "", 0},
		{"the suppressor came in time", Alarming, 0, 30, ByAlarm, 0},
		{"and stays", Alarming, 0, 3600, ByAlarm, 0},
		{"the suppressor went, and the composite alarm may follow", OK, 100, 100, ByExtensionPeriod, 280},
		{"up to the end of the extension", OK, 100, 279, ByExtensionPeriod, 280},
		{"the composite alarm has stayed", OK, 100, 280, "", 0},
		{"it moved within the extension, which is the longer", OK, -10, 5, ByExtensionPeriod, 170},
		{"it moved at the extension's end, and waits", OK, -170, 20, ByWaitPeriod, 60},
	} {
		s := Suppressor{State: c.state, Wait: time.Minute, Extension: 3 * time.Minute}
		if c.leftAlarm != 0 {
			s.LeftAlarm = moved.Add(time.Duration(c.leftAlarm) * time.Second)
		}
		by, until := s.SuppressedBy(moved, moved.Add(time.Duration(c.after)*time.Second))
		if by != c.by || !until.IsZero() && until.Sub(moved) != time.Duration(c.until)*time.Second || until.IsZero() != (c.until == 0) {
			t.Errorf("%s: %q until %v", c.name, by, until)
		}
	}
}

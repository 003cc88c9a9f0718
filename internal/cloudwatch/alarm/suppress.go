package alarm

import "time"

// Suppressor is an alarm that keeps a composite alarm from acting. See the page "Suppressing composite alarm actions".
type Suppressor struct {
	State State
	// LeftAlarm is when it was last in ALARM, or zero if it never was.
	LeftAlarm time.Time
	Wait      time.Duration // WaitPeriod
	Extension time.Duration // ExtensionPeriod
}

// The values of DescribeAlarms' ActionsSuppressedBy.
const (
	ByAlarm           = "Alarm"
	ByWaitPeriod      = "WaitPeriod"
	ByExtensionPeriod = "ExtensionPeriod"
)

// SuppressedBy returns what keeps a composite alarm from acting, or "". moved is when the composite alarm's state changed.
// until is when the suppression ends by itself, or zero if it doesn't.
func (s Suppressor) SuppressedBy(moved, now time.Time) (by string, until time.Time) {
	if s.State == Alarming {
		return ByAlarm, time.Time{}
	}
	if end := s.LeftAlarm.Add(s.Extension); !s.LeftAlarm.IsZero() && now.Before(end) {
		return ByExtensionPeriod, end
	}
	if end := moved.Add(s.Wait); now.Before(end) {
		return ByWaitPeriod, end
	}
	return "", time.Time{}
}

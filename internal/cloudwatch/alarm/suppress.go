package alarm

import "time"

// Suppressor is an alarm that keeps a composite alarm from acting. See the page "Suppressing composite alarm actions".
type Suppressor struct {
	State State
	// LeftAlarm is when it was in ALARM last; zero where it never was.
	LeftAlarm       time.Time
	Wait, Extension time.Duration
}

// What suppresses actions, as DescribeAlarms' ActionsSuppressedBy says it.
const (
	ByAlarm           = "Alarm"
	ByWaitPeriod      = "WaitPeriod"
	ByExtensionPeriod = "ExtensionPeriod"
)

// Suppresses says what keeps a composite alarm, which came to its state at a time, from acting; "" where nothing
// does. until is when that ends by itself; zero where it does not.
func (s Suppressor) Suppresses(moved, now time.Time) (by string, until time.Time) {
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

package scaling

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Schedule is when a scheduled action is due.
type Schedule struct {
	at    time.Time     // for at(); zero otherwise
	every time.Duration // for rate()
	cron  *cron
	zone  *time.Location

	// Created is when the action was put. Rates count from it unless there is a Start.
	Created time.Time
	Start   time.Time // zero if there is none
	End     time.Time // zero if there is none
}

var (
	expression = regexp.MustCompile(`^(at|rate|cron)\((.*)\)$`)
	rate       = regexp.MustCompile(`^\s*(\d+)\s+(minute|minutes|hour|hours|day|days)\s*$`)
)

// maxSchedule is PutScheduledAction's limit.
const maxSchedule = 1600

// ParseSchedule reads PutScheduledAction's Schedule, at(yyyy-mm-ddThh:mm:ss), rate(value unit) or cron(fields), and its
// Timezone, an IANA name.
func ParseSchedule(text, timezone string) (Schedule, error) {
	s := Schedule{}
	if len(text) > maxSchedule {
		return s, fmt.Errorf("Schedule has %d characters, at most %d are allowed", len(text), maxSchedule)
	}
	var err error
	if s.zone, err = parseZone(timezone); err != nil {
		return s, err
	}
	parts := expression.FindStringSubmatch(text)
	if parts == nil {
		return s, fmt.Errorf("Schedule %q must be at(yyyy-mm-ddThh:mm:ss), rate(value unit) or cron(fields)", text)
	}
	switch parts[1] {
	case "at":
		if s.at, err = time.ParseInLocation("2006-01-02T15:04:05", parts[2], s.zone); err != nil || strings.Contains(parts[2], ".") {
			return s, fmt.Errorf("Schedule %q must be at(yyyy-mm-ddThh:mm:ss)", text)
		}
	case "rate":
		if s.every, err = parseRate(parts[2]); err != nil {
			return s, fmt.Errorf("Schedule %q %w", text, err)
		}
	case "cron":
		if s.cron, err = parseCron(parts[2]); err != nil {
			return s, fmt.Errorf("Schedule %q: %w", text, err)
		}
	}
	return s, nil
}

// parseZone reads an IANA name; "" is UTC.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("the Timezone %q is not an IANA time zone", name)
	}
	return zone, nil
}

func parseRate(text string) (time.Duration, error) {
	parts := rate.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("must be rate(value unit), with minutes, hours or days")
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 1 || n > 1e6 {
		return 0, fmt.Errorf("must have a value from 1 to 1000000")
	}
	if plural := strings.HasSuffix(parts[2], "s"); plural == (n == 1) {
		return 0, fmt.Errorf("must have its unit in the singular for 1, and in the plural otherwise")
	}
	unit := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[strings.TrimSuffix(parts[2], "s")]
	return time.Duration(n) * unit, nil
}

// Next returns when the action is next due after a time; ok reports whether it's due at all. An action with a
// start is first due at its start ("Schedule recurring scaling actions"). No action is due after its end.
func (s Schedule) Next(after time.Time) (at time.Time, ok bool) {
	switch {
	case !s.at.IsZero():
		return s.at, s.at.After(after)
	case !s.Start.IsZero() && after.Before(s.Start):
		at, ok = s.Start, true
	case s.cron != nil:
		at, ok = s.cron.next(after.In(s.zone))
	default:
		at, ok = s.nextRate(after), true
	}
	return at, ok && (s.End.IsZero() || !at.After(s.End))
}

func (s Schedule) nextRate(after time.Time) time.Time {
	from := s.Start
	if from.IsZero() {
		from = s.Created
	}
	if after.Before(from) {
		return from.Add(s.every)
	}
	return from.Add((after.Sub(from)/s.every + 1) * s.every)
}

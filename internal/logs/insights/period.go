package insights

import (
	"math"
	"time"
)

// period is a length of time that times are rounded to: milliseconds, or months of the calendar.
type period struct {
	ms, months int64
	from       int64 // the milliseconds are counted from this time
}

// maxPeriod limits how many of a unit a period has.
const maxPeriod = 100000

func newPeriod(n float64, unit string) (period, bool) {
	if n < 1 || n > maxPeriod || n != math.Trunc(n) {
		return period{}, false
	}
	count := int64(n)
	switch unit {
	case "ms":
		return period{ms: count}, true
	case "s":
		return period{ms: count * time.Second.Milliseconds()}, true
	case "m":
		return period{ms: count * time.Minute.Milliseconds()}, true
	case "h":
		return period{ms: count * time.Hour.Milliseconds()}, true
	case "d":
		return period{ms: count * 24 * time.Hour.Milliseconds()}, true
	case "w":
		return period{ms: count * 7 * 24 * time.Hour.Milliseconds(), from: firstMonday}, true
	case "mo":
		return period{months: count}, true
	case "q":
		return period{months: 3 * count}, true
	case "y":
		return period{months: 12 * count}, true
	}
	return period{}, false
}

// firstMonday is the first one of 1970. Weeks begin on Mondays.
const firstMonday = 4 * 24 * 60 * 60 * 1000

// floor returns the last time up to v that is a whole number of periods.
func (p period) floor(v value) value {
	t := inTime(v, timeOf)
	if t.kind == missing {
		return t
	}
	ms := int64(t.n)
	if p.months > 0 {
		at := time.UnixMilli(ms).UTC()
		months := int64(at.Year())*12 + int64(at.Month()) - 1
		return month(months - mod(months, p.months))
	}
	return timeOf(float64(ms - mod(ms-p.from, p.ms)))
}

// ceil returns the first time from v on that is a whole number of periods.
func (p period) ceil(v value) value {
	down := p.floor(v)
	n, _ := v.number()
	if down.kind == missing || down.n == math.Trunc(n) {
		return down
	}
	if p.months == 0 {
		return timeOf(down.n + float64(p.ms))
	}
	at := time.UnixMilli(int64(down.n)).UTC()
	return month(int64(at.Year())*12 + int64(at.Month()) - 1 + p.months)
}

// month returns the beginning of a month, which is counted from the year 0.
func month(n int64) value {
	return timeOf(float64(time.Date(int(n/12), time.Month(n%12+1), 1, 0, 0, 0, 0, time.UTC).UnixMilli()))
}

// mod is the remainder, which is never negative.
func mod(a, b int64) int64 { return (a%b + b) % b }

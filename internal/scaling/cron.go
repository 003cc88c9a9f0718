package scaling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cron is a cron expression of AWS's six fields: minutes, hours, day of month, month, day of week and year. Days of the week
// count from Sunday, which is 1. See "Cron expressions reference" in the Amazon EventBridge User Guide, which the
// Application Auto Scaling User Guide refers to.
type cron struct {
	minutes set
	hours   set
	months  set
	years   set
	// days reports whether the expression includes a date.
	days func(time.Time) bool
}

// set is the sorted values of a field.
type set []int

func (s set) has(v int) bool {
	_, ok := slices.BinarySearch(s, v)
	return ok
}

// field is the range of a field's values.
type field struct {
	name     string
	min, max int
	names    []string // names of the values, from min on
}

var (
	minuteField = field{name: "minutes", min: 0, max: 59}
	hourField   = field{name: "hours", min: 0, max: 23}
	dateField   = field{name: "day-of-month", min: 1, max: 31}
	monthField  = field{name: "month", min: 1, max: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")}
	dayField    = field{name: "day-of-week", min: 1, max: 7, names: strings.Fields("SUN MON TUE WED THU FRI SAT")}
	yearField   = field{name: "year", min: 1970, max: 2199}
)

func parseCron(text string) (*cron, error) {
	f := strings.Fields(strings.ToUpper(text))
	if len(f) != 6 {
		return nil, fmt.Errorf("a cron expression has 6 fields, not %d", len(f))
	}
	c := &cron{}
	var err error
	for _, into := range []struct {
		set  *set
		text string
		field
	}{
		{&c.minutes, f[0], minuteField},
		{&c.hours, f[1], hourField},
		{&c.months, f[3], monthField},
		{&c.years, f[5], yearField},
	} {
		if *into.set, err = into.parse(into.text); err != nil {
			return nil, err
		}
	}
	switch date, day := f[2], f[4]; {
	case (date == "?") == (day == "?"):
		return nil, fmt.Errorf("exactly one of the fields day-of-month and day-of-week must be ?")
	case day == "?":
		c.days, err = parseDates(date)
	default:
		c.days, err = parseDays(day)
	}
	return c, err
}

// parse reads a list of values, ranges and steps: "1,5-7,*/10,MON-FRI,0/15".
func (f field) parse(text string) (set, error) {
	var out set
	for item := range strings.SplitSeq(text, ",") {
		values, err := f.parseItem(item)
		if err != nil {
			return nil, err
		}
		out = append(out, values...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (f field) parseItem(item string) (set, error) {
	text, stepText, stepped := strings.Cut(item, "/")
	first, last, ranged := strings.Cut(text, "-")
	step, from, to := 1, f.min, f.max
	var err error
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return nil, fmt.Errorf("the field %s has a step of %q", f.name, stepText)
		}
		step = min(step, f.max+1) // enough to skip all other values, and can't overflow
	}
	if text != "*" {
		if from, err = f.value(first); err != nil {
			return nil, err
		}
		if !stepped {
			to = from
		}
	}
	if ranged {
		if to, err = f.value(last); err != nil {
			return nil, err
		}
	}
	var out set
	if to < from { // the range wraps around: FRI-MON
		for v := from; v <= f.max; v += step {
			out = append(out, v)
		}
		from = f.min
	}
	for v := from; v <= to; v += step {
		out = append(out, v)
	}
	return out, nil
}

// value reads one value, a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.min || v > f.max {
		return 0, fmt.Errorf("the field %s must have values from %d to %d, not %q", f.name, f.min, f.max, text)
	}
	return v, nil
}

// parseDates reads the day of month. L is the last one, and 15W the weekday nearest to the 15th.
func parseDates(text string) (func(time.Time) bool, error) {
	if text == "L" {
		return func(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 }, nil
	}
	if near, ok := strings.CutSuffix(text, "W"); ok {
		date, err := dateField.value(near)
		return func(t time.Time) bool { return t.Day() == nearestWeekday(t, date) }, err
	}
	dates, err := dateField.parse(text)
	return func(t time.Time) bool { return dates.has(t.Day()) }, err
}

// nearestWeekday returns the weekday in t's month that is nearest to a date, or 0 if the month has no such date.
func nearestWeekday(t time.Time, date int) int {
	last := time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if date > last {
		return 0
	}
	switch day := time.Date(t.Year(), t.Month(), date, 0, 0, 0, 0, time.UTC).Weekday(); {
	case day == time.Saturday && date == 1:
		return 3
	case day == time.Saturday:
		return date - 1
	case day == time.Sunday && date == last:
		return date - 2
	case day == time.Sunday:
		return date + 1
	}
	return date
}

// parseDays reads the day of week. L is Saturday, 6L the month's last Friday, and 6#3 its third Friday.
func parseDays(text string) (func(time.Time) bool, error) {
	if day, nth, ok := strings.Cut(text, "#"); ok {
		d, err := dayField.value(day)
		n, bad := strconv.Atoi(nth)
		if err == nil && (bad != nil || n < 1 || n > 5) {
			err = fmt.Errorf("the field day-of-week must have a number from 1 to 5 behind #, not %q", nth)
		}
		return func(t time.Time) bool { return weekday(t) == d && (t.Day()-1)/7+1 == n }, err
	}
	if day, ok := strings.CutSuffix(text, "L"); ok && day != "" {
		d, err := dayField.value(day)
		return func(t time.Time) bool { return weekday(t) == d && t.AddDate(0, 0, 7).Month() != t.Month() }, err
	}
	if text == "L" {
		text = "SAT"
	}
	days, err := dayField.parse(text)
	return func(t time.Time) bool { return days.has(weekday(t)) }, err
}

func weekday(t time.Time) int { return int(t.Weekday()) + 1 }

// next returns the expression's first time after another, in that one's zone. If a clock change skips a time, so does next.
// If it repeats a time, the time counts once.
func (c *cron) next(after time.Time) (time.Time, bool) {
	year, month, date := after.Date()
	day := time.Date(year, month, date, 0, 0, 0, 0, time.UTC) // UTC has no clock changes
	for day.Year() <= yearField.max {
		switch {
		case !c.years.has(day.Year()):
			day = time.Date(day.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
			continue
		case !c.months.has(int(day.Month())):
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		case c.days(day):
			if at, ok := c.within(day, after); ok {
				return at, true
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

// within returns the expression's first time on a day that is after another time.
func (c *cron) within(day, after time.Time) (time.Time, bool) {
	for _, hour := range c.hours {
		for _, minute := range c.minutes {
			at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, after.Location())
			if at.Hour() == hour && at.Minute() == minute && at.After(after) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

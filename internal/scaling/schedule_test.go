package scaling

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func float(text string) *float64 {
	if text == "" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return &f
}

const layout = "2006-01-02 15:04:05"

func at(text string) time.Time {
	t, err := time.Parse(layout, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestSchedule follows the pages "Schedule recurring scaling actions using Application Auto Scaling", with its table of examples,
// "Schedule recurring scaling actions using rate expressions", and the EventBridge User Guide's "Cron expressions reference".
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		schedule, zone string
		want           string // in UTC, after 2026-11-21 12:00:00, a Saturday
	}{
		{"at(2026-11-21T12:00:01)", "", "2026-11-21 12:00:01"},
		{"at(2026-11-21T12:00:00)", "", "never"},
		{"at(2026-11-22T01:00:00)", "Asia/Tokyo", "2026-11-21 16:00:00"},
		{"rate(1 minute)", "", "2026-11-21 12:00:30; 2026-11-21 12:01:30"},
		{"rate(5 hours)", "", "2026-11-21 15:59:30; 2026-11-21 20:59:30"},
		{"rate(2 days)", "", "2026-11-23 10:59:30"},
		{"cron(0 10 * * ? *)", "", "2026-11-22 10:00:00; 2026-11-23 10:00:00"},
		{"cron(15 12 * * ? *)", "", "2026-11-21 12:15:00; 2026-11-22 12:15:00"},
		{"cron(0 18 ? * MON-FRI *)", "", "2026-11-23 18:00:00; 2026-11-24 18:00:00"},
		{"cron(0 8 1 * ? *)", "", "2026-12-01 08:00:00; 2027-01-01 08:00:00"},
		{"cron(0/15 * * * ? *)", "", "2026-11-21 12:15:00; 2026-11-21 12:30:00"},
		{"cron(0/10 * ? * MON-FRI *)", "", "2026-11-23 00:00:00; 2026-11-23 00:10:00"},
		{"cron(0/5 8-17 ? * MON-FRI *)", "", "2026-11-23 08:00:00"},
		{"cron(30 6 ? * MON *)", "", "2026-11-23 06:30:00; 2026-11-30 06:30:00"},
		{"cron(30 6 ? * 2 *)", "", "2026-11-23 06:30:00"},
		{"cron(0 0 ? * SAT-SUN *)", "", "2026-11-22 00:00:00; 2026-11-28 00:00:00"},
		{"cron(0 0 L * ? *)", "", "2026-11-30 00:00:00; 2026-12-31 00:00:00; 2027-01-31 00:00:00; 2027-02-28 00:00:00"},
		{"cron(0 0 3W * ? *)", "", "2026-12-03 00:00:00; 2027-01-04 00:00:00; 2027-02-03 00:00:00"},
		{"cron(0 0 1W * ? *)", "", "2026-12-01 00:00:00; 2027-01-01 00:00:00; 2027-02-01 00:00:00; 2027-03-01 00:00:00; 2027-04-01 " +
			"00:00:00; 2027-05-03 00:00:00"},
		{"cron(0 0 31W * ? *)", "", "2026-12-31 00:00:00; 2027-01-29 00:00:00; 2027-03-31 00:00:00"},
		{"cron(0 0 ? * 3#2 *)", "", "2026-12-08 00:00:00; 2027-01-12 00:00:00"},
		{"cron(0 0 ? * 6L *)", "", "2026-11-27 00:00:00; 2026-12-25 00:00:00"},
		{"cron(0 0 ? * L *)", "", "2026-11-28 00:00:00"},
		{"cron(0 0 29 2 ? *)", "", "2028-02-29 00:00:00; 2032-02-29 00:00:00"},
		{"cron(0 0 30 FEB ? *)", "", "never"},
		{"cron(0 0 1 1 ? 2020)", "", "never"},
		{"cron(0 0 1 1 ? 2020-2027)", "", "2027-01-01 00:00:00; never"},
		{"cron(0,30 9 ? NOV,DEC * *)", "", "2026-11-22 09:00:00; 2026-11-22 09:30:00"},
		{"cron(0 9 * * ? *)", "America/New_York", "2026-11-21 14:00:00"},
		{"cron(0 9 * 7 ? *)", "America/New_York", "2027-07-01 13:00:00"},
		{"cron(30 2 13-15 3 ? *)", "America/New_York", "2027-03-13 07:30:00; 2027-03-15 06:30:00"}, // clocks skip it on the 14th
		{"cron(30 1 7 11 ? 2027)", "America/New_York", "2027-11-07 05:30:00; never"},               // it occurs twice, and counts once
		{"cron( 0  10 * * ? * )", "", "2026-11-22 10:00:00"},
	} {
		s, err := ParseSchedule(c.schedule, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.schedule, err)
			continue
		}
		s.Created = at("2026-11-21 10:59:30")
		after := at("2026-11-21 12:00:00")
		for want := range strings.SplitSeq(c.want, "; ") {
			next, ok := s.Next(after)
			got := next.UTC().Format(layout)
			if !ok {
				got = "never"
			}
			if got != want {
				t.Errorf("%s, %s after %s: got %s, want %s", c.schedule, c.zone, after, got, want)
			}
			after = next
		}
	}
}

// TestStartAndEnd checks PutScheduledAction's StartTime and EndTime.
func TestStartAndEnd(t *testing.T) {
	for _, c := range []struct{ schedule, start, end, want string }{
		{"rate(1 hour)", "2026-11-21 12:10:00", "", "2026-11-21 12:10:00; 2026-11-21 13:10:00"},
		{"rate(1 hour)", "2026-11-21 12:10:00", "2026-11-21 13:10:00", "2026-11-21 12:10:00; 2026-11-21 13:10:00; never"},
		{"cron(0 10 * * ? *)", "2026-11-25 09:00:00", "2026-11-26 10:00:00", "2026-11-25 09:00:00; 2026-11-25 10:00:00; 2026-11-26 " +
			"10:00:00; never"},
		{"cron(0 10 * * ? *)", "", "2026-11-22 09:59:59", "never"},
		{"at(2026-11-25T09:00:00)", "2026-11-30 00:00:00", "2026-11-21 00:00:00", "2026-11-25 09:00:00; never"},
	} {
		s, err := ParseSchedule(c.schedule, "")
		if err != nil {
			t.Fatal(err)
		}
		if c.start != "" {
			s.Start = at(c.start)
		}
		if c.end != "" {
			s.End = at(c.end)
		}
		after := at("2026-11-21 12:00:00")
		for want := range strings.SplitSeq(c.want, "; ") {
			next, ok := s.Next(after)
			if got := next.UTC().Format(layout); ok && got != want || !ok && want != "never" {
				t.Errorf("%+v: after %s got %s, %v, want %s", c, after, got, ok, want)
			}
			after = next
		}
	}
}

func TestScheduleErrors(t *testing.T) {
	for _, c := range []struct{ schedule, zone, says string }{
		{"", "", "Schedule"},
		{"every day", "", "Schedule"},
		{"cron(0 10 * * ? *) ", "", "Schedule"},
		{strings.Repeat("x", 1601), "", "at most 1600"},
		{"at(2026-11-21)", "", "at(yyyy"},
		{"at(2026-11-21T12:00:00Z)", "", "at(yyyy"},
		{"at(2026-11-21T12:00:00.5)", "", "at(yyyy"},
		{"at(2026-13-21T12:00:00)", "", "at(yyyy"},
		{"rate(0 minutes)", "", "value"},
		{"rate(1 minutes)", "", "singular"},
		{"rate(2 minute)", "", "singular"},
		{"rate(99999999999999999999 days)", "", "value"},
		{"rate(1 week)", "", "minutes, hours or days"},
		{"cron(0 10 * * ?)", "", "6 fields, not 5"},
		{"cron(0 10 * * * *)", "", "exactly one"},
		{"cron(0 10 ? * ? *)", "", "exactly one"},
		{"cron(60 10 * * ? *)", "", "minutes must have values from 0 to 59"},
		{"cron(0 24 * * ? *)", "", "hours"},
		{"cron(0 0 0 * ? *)", "", "day-of-month"},
		{"cron(0 0 40W * ? *)", "", "day-of-month"},
		{"cron(0 0 1 13 ? *)", "", "month"},
		{"cron(0 0 1 JANUARY ? *)", "", "month"},
		{"cron(0 0 ? * 0 *)", "", "day-of-week"},
		{"cron(0 0 ? * 8L *)", "", "day-of-week"},
		{"cron(0 0 ? * 2#6 *)", "", "from 1 to 5"},
		{"cron(0 0 1 * ? 1969)", "", "year"},
		{"cron(0/0 0 1 * ? *)", "", "step"},
		{"cron(, 0 1 * ? *)", "", "minutes"},
		{"cron(1- 0 1 * ? *)", "", "minutes"},
		{"cron(0 10 * * ? *)", "Mars/Olympus", "Timezone"},
		{"cron(0 10 * * ? *)", "Local", "Timezone"},
	} {
		if _, err := ParseSchedule(c.schedule, c.zone); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40s: %v, want %s", c.schedule, err, c.says)
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, s := range []string{
		"cron(0/15 8-17 ? JAN-MAR,12 MON-FRI 2026-2030)", "cron(0 0 LW * ? *)", "cron(1 2 3W 4 ? *)", "cron(0 0 ? * 6#3 *)",
		"cron(5/9223372036854775807 0 L 2/5 ? *)", "rate(5 minutes)", "at(2026-11-21T12:00:00)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text, "Europe/Zurich")
		if err != nil {
			return
		}
		s.Created = at("2026-11-21 10:59:30")
		after := at("2026-11-21 12:00:00")
		for range 3 {
			next, ok := s.Next(after)
			if !ok {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q is due at %s after %s", text, next, after)
			}
			after = next
		}
	})
}

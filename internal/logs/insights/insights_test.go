package insights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// start is the time of the first event of each test: a Saturday.
var start = time.Date(2026, 2, 28, 23, 58, 30, 0, time.UTC)

// run runs a query over messages that came a minute after each other. Each result is a line; @ptr is the number of its message.
func run(t *testing.T, query string, messages ...string) string {
	t.Helper()
	q, err := Parse(query, 0)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	r := q.Run(start, 1<<20)
	for i, m := range messages {
		if err := r.Add(event(i, m)); err != nil {
			t.Fatal(err)
		}
	}
	return results(t, r)
}

func event(i int, message string) Event {
	at := start.Add(time.Duration(i) * time.Minute).UnixMilli()
	return Event{Timestamp: at, Ingested: at + 5, Group: "1:g", Stream: "s", Message: message, Pointer: fmt.Sprint(i)}
}

func results(t *testing.T, r *Run) string {
	t.Helper()
	rows, err := r.Results()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range rows {
		var line []string
		for _, f := range row {
			line = append(line, f.Name+"="+f.Value)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return strings.Join(lines, "\n")
}

func TestQueries(t *testing.T) {
	shop := []string{
		`{"level":"INFO","ms":120,"user":{"name":"ann","roles":["a","b"]},"ok":true}`,
		`{"level":"ERROR","ms":80.5,"user":{"name":"bob"},"foo-bar":"x","ok":false,"none":null}`,
		`plain text of 42 ms`,
		`{"level":"INFO","ms":"40","user":{"name":"ann"},"a.b":7}`,
	}
	for _, c := range []struct{ name, query, want string }{
		{"defaults", `filter level = "ERROR"`,
			"@timestamp=2026-02-28 23:59:30.000 @message=" + shop[1] + " @ptr=1"},
		{"newest first", `fields level | limit 3`, "level=INFO @ptr=3\n@ptr=2\nlevel=ERROR @ptr=1"},
		{"comments and capitals", "# a comment | x\nFIELDS level # more\n| LIMIT 1", "level=INFO @ptr=3"},
		{"system fields", `fields @log, @logStream, @ingestionTime, @ptr | limit 1`,
			"@log=1:g @logStream=s @ingestionTime=2026-03-01 00:01:30.005 @ptr=3"},
		{"nested fields and lists", "fields user.roles.1 as role, `foo-bar` as f, a.b, ok, none | filter ispresent(user.name)",
			"a.b=7 @ptr=3\nf=x ok=0 @ptr=1\nrole=b ok=1 @ptr=0"},
		{"numbers compare as numbers", `filter ms > 100 or ms = 40.0 | display user.name`, "user.name=ann @ptr=3\nuser.name=ann @ptr=0"},
		{"and binds closer than or", `filter level="INFO" and ms<100 or level="ERROR" | display ms`, "ms=40 @ptr=3\nms=80.5 @ptr=1"},
		{"not", `filter not (level = "INFO") and not ispresent(none) | display level`, "@ptr=2\nlevel=ERROR @ptr=1"},
		{"missing is unequal", `filter level != "INFO" | display level`, "@ptr=2\nlevel=ERROR @ptr=1"},
		{"like", `filter @message like "text" | display @ptr`, "@ptr=2"},
		{"like a pattern", `filter @message like /(?i)ERR\/?or/ | display level`, "level=ERROR @ptr=1"},
		{"not like", `filter @message not like /{/ | display level`, "@ptr=2"},
		{"=~", `filter user.name =~ /^b/ | display level`, "level=ERROR @ptr=1"},
		{"in", `filter ms in [120, "80.5"] | display ms`, "ms=80.5 @ptr=1\nms=120 @ptr=0"},
		{"not in", `filter ispresent(ms) and ms not in [120, 40] | display ms`, "ms=80.5 @ptr=1"},
		{"glob", `parse @message "* text of * ms" as a, b | filter ispresent(a) | display a, b`, "a=plain b=42 @ptr=2"},
		{"glob to the end", `parse "of *" as rest | display rest | filter rest like "ms"`, "rest=42 ms @ptr=2"},
		{"regular expression", `parse @message /of (?<n>\d+) (?P<unit>\w+)/ | filter n > 41 | display n, unit`, "n=42 unit=ms @ptr=2"},
		{"parse shows its fields", `parse @message "of * ms" as n | filter n = 42`,
			"@timestamp=2026-03-01 00:00:30.000 @message=" + shop[2] + " n=42 @ptr=2"},
		{"sort", `fields level | sort level desc, @timestamp asc`, "level=INFO @ptr=0\nlevel=INFO @ptr=3\nlevel=ERROR @ptr=1\n@ptr=2"},
		{"dedup keeps the first, and what has none", `fields level, ms | sort ms | dedup level`,
			"@ptr=2\nlevel=INFO ms=40 @ptr=3\nlevel=ERROR ms=80.5 @ptr=1"},
		{"dedup and limit", `fields user.name | dedup user.name | limit 2`, "user.name=ann @ptr=3\n@ptr=2"},
		{"limit before filter", `fields level | limit 2 | filter level = "ERROR"`, ""},
		{"count", `stats count(*), count(), count(ms) as n`, "count(*)=4 count()=4 n=3"},
		{"stats by", `stats avg(ms) as mean, max(ms) by level | sort mean desc`, "level=ERROR mean=80.5 max(ms)=80.5\nlevel=INFO mean=80 max(ms)=120\n"},
		{"numbers of a group", `filter level="INFO" | stats sum(ms) as a, min(ms) as b, stddev(ms) as c, pct(ms, 50) as d, count_distinct(user.name) as e`,
			"a=160 b=40 c=40 d=40 e=1"},
		{"first and last", `stats earliest(level) as a, latest(ms) as b, sortsFirst(level) as c, sortsLast(user.name) as d`,
			"a=INFO b=40 c=ERROR d=bob"},
		{"arithmetic of aggregates", `stats (max(ms) - min(ms)) / 2 as half`, "half=40"},
		{"bin", `stats count(*) as n by bin(2m)`, "bin(2m)=2026-03-01 00:00:00.000 n=2\nbin(2m)=2026-02-28 23:58:00.000 n=2"},
		{"columns by their text", `stats count(*) by bin(1d) | sort bin(1d) | filter count(*) = 2 | limit 1`,
			"bin(1d)=2026-02-28 00:00:00.000 count(*)=2"},
		{"stats of stats", `stats sum(ms) as total by user.name | filter ispresent(user.name) | stats max(total) as most`, "most=160"},
		{"fields after stats", `stats count(*) as n by level | fields n * 2 as twice | sort n desc, level | limit 1`, "level=INFO n=2 twice=4"},
		{"no events, no groups", `filter level = "x" | stats count(*)`, ""},
		{"sort before fields", `sort ms desc | fields ms | limit 1`, "ms=120 @ptr=0"},
	} {
		if got := run(t, c.query, shop...); got != strings.TrimSuffix(c.want, "\n") && got != c.want {
			t.Errorf("%s: %s\n got  %s\n want %s", c.name, c.query, got, c.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	for expression, want := range map[string]string{
		`1 + 2 * 3`: "7", `(1 + 2) * 3`: "9", `2 ^ 3 ^ 2`: "512", `-2 + 5`: "3", `10 % 3`: "1", `7 / 2`: "3.5", `1 / 0`: "", `1-1-1`: "-1",
		`n + 1`: "43", `s + 1`: "", `big`: "12345678901234567890",
		`abs(-3)`: "3", `ceil(1.2)`: "2", `floor(-1.2)`: "-2", `sqrt(16)`: "4", `log(1)`: "0", `log(0)`: "",
		`greatest(1, n, 3)`: "42", `least(1, none, -3)`: "-3",
		`isEmpty(none)`: "1", `isempty(s)`: "0", `isblank("  ")`: "1", `coalesce(none, s)`: "Héllo", `if(n > 1, "a", "b")`: "a",
		`concat(s, "-", n)`: "Héllo-42", `strlen(s)`: "5", `toupper(s)`: "HÉLLO", `tolower(s)`: "héllo",
		`substr(s, 1)`: "éllo", `substr(s, 1, 2)`: "él", `substr(s, 9)`: "", `replace(s, "l", "LL")`: "HéLLLLo", `strcontains(s, "él")`: "1",
		`trim("  a ")`: "a", `ltrim("xxa", "x")`: "a", `rtrim("axx", "x")`: "a",
		`toMillis(@timestamp)`: "1772323110000", `fromMillis(0)`: "1970-01-01 00:00:00.000", `now()`: "1772323110", `fromMillis("x")`: "",
		`datefloor(@timestamp, 1h)`: "2026-02-28 23:00:00.000", `dateceil(@timestamp, 1h)`: "2026-03-01 00:00:00.000",
		`dateceil(fromMillis(0), 1h)`: "1970-01-01 00:00:00.000", `bin(1w)`: "2026-02-23 00:00:00.000", `bin(30s)`: "2026-02-28 23:58:30.000",
		`bin(1mo)`: "2026-02-01 00:00:00.000", `bin(1q)`: "2026-01-01 00:00:00.000", `dateceil(@timestamp, 1y)`: "2027-01-01 00:00:00.000",
		`isValidIp("::1")`: "1", `isValidIpv4("::1")`: "0", `isIpv4InSubnet("10.1.2.3", "10.0.0.0/8")`: "1", `isIpInSubnet("x", "10.0.0.0/8")`: "0",
		`"it's \"so\""`: `it's "so"`, `'a' < 'b'`: "1", `10 < 9`: "0", `"10" < "9"`: "0", `none = none`: "0", `n >= 42 and n <= 42`: "1",
		`big = 12345678901234567891`: "0", `@timestamp > 1772323109999`: "1", `none < 1`: "0",
	} {
		got := run(t, `fields `+expression+` as x | display x`, `{"n":42,"s":"Héllo","big":12345678901234567890,"none":null}`)
		if got = strings.TrimSuffix(strings.TrimPrefix(got, "x="), "@ptr=0"); strings.TrimSuffix(got, " ") != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for query, want := range map[string]string{
		``:                                     "unexpected symbol found <EOF> at line 1 and position 0",
		`fields @message | count()`:            "unexpected symbol found count at line 1 and position 18",
		"fields a\n| filter b = )":             "unexpected symbol found ) at line 2 and position 13",
		`fields a |`:                           "unexpected symbol found <EOF>",
		`fields a b`:                           "unexpected symbol found b",
		`pattern @message`:                     "the command pattern is not supported",
		`SOURCE logGroups()`:                   "the command source is not supported",
		`fields nosuch(a)`:                     "the function nosuch is not known",
		`fields strlen(a, b)`:                  "another number of arguments",
		`fields sum(a)`:                        "is for stats",
		`stats a by b`:                         "stats needs a function",
		`stats sum(sum(a))`:                    "is for stats",
		`stats count(*) by a | filter b = 1`:   "Unknown symbols found in or after stats: b",
		`stats count(*) | stats latest(x)`:     "gone after stats",
		`stats count(*) as n | fields bin(5m)`: "Unknown symbols found in or after stats: @timestamp",
		`stats count(*) as n | stats max(n) as n | stats max(n)`: "at most 2 stats",
		`stats pct(a, 101)`:         "between 0 and 100",
		`limit 0`:                   "limit must be between 1 and 100000",
		`limit 1.5`:                 "limit must be between",
		`dedup a | fields b`:        "only limit may follow dedup",
		`stats count(*) by bin(5x)`: "5x is no period",
		`stats count(*) by bin(0m)`: "0m is no period",
		`parse @message "* *" as a`: "finds 2 fields, and 1 names are given",
		`parse @message /(a)/`:      "need names",
		`filter a like /[/`:         "no regular expression",
		`filter a like /x`:          "not closed by a slash",
		`filter a = "x`:             "the quotation mark is not closed",
		"fields `a":                 "the backtick is not closed",
		`filter a like b`:           "unexpected symbol found b",
		`filter a not = b`:          "unexpected symbol found =",
		`filter a like /` + strings.Repeat(".{20}", 60) + `/`: "too complex",
		`filter ` + strings.Repeat("(", 200) + `a`:            "nests deeper than 100",
		`fields ` + strings.Repeat("-", 200) + `a`:            "nests deeper than 100",
		`fields ` + strings.Repeat("a, ", 5000) + `a`:         "at most 10000 characters",
	} {
		_, err := Parse(query, 0)
		var refusal *Error
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, want) {
			t.Errorf("%.100s: %v, want %s", query, err, want)
		}
	}
	_, err := Parse("fields `é` | nosuch a", 0)
	if refusal, ok := errors.AsType[*Error](err); !ok || refusal.Start != 13 || refusal.End != 19 {
		t.Errorf("the place is %+v", err)
	}
}

// TestSortOrder: the order of AWS's page on sort.
func TestSortOrder(t *testing.T) {
	want := []string{"!:", "#", "*%04", "0#", "5A", "111A", "2345_", "@", "@_", "A", "A9876fghj", "a12345hfh", "0", "01", "1", "2", "3"}
	messages := slices.Clone(want)
	slices.Sort(messages)
	got := run(t, `display @message | sort @message asc`, messages...)
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.TrimPrefix(strings.Fields(line)[0], "@message="))
	}
	if i := slices.Index(lines, "01"); i < 0 || lines[i+1] != "1" && lines[i-1] != "1" {
		t.Errorf("01 and 1 are not side by side: %v", lines)
	}
	drop := func(s string) bool { return s == "01" || s == "1" } // equal numbers, in the order of their events
	if lines, want = slices.DeleteFunc(lines, drop), slices.DeleteFunc(want, drop); !slices.Equal(lines, want) {
		t.Errorf("%q\n%q", lines, want)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, query := range []string{
		`fields @message`, `stats count(*) by concat(@message, @timestamp)`, `stats count_distinct(concat(@message, @timestamp))`,
		`fields @message | dedup @timestamp`, `fields replace(@message, "x", @message) as a, concat(a, a, a, a) as b, concat(b, a, a, a) as c`,
	} {
		q, err := Parse(query, 100000)
		if err != nil {
			t.Fatal(err)
		}
		r := q.Run(start, 1<<20)
		for i := range 10000 {
			if err = r.Add(event(i, long)); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if got := run(t, `fields strlen(@message) as n | limit 1`, slices.Repeat([]string{long}, 20000)...); got != "n=1000 @ptr=19999" {
		t.Error(got)
	}
}

// TestSettled: a limit without sort ends a run early, and sort doesn't.
func TestSettled(t *testing.T) {
	for query, want := range map[string]bool{
		`limit 5`: true, `fields a | limit 5`: true, `sort a | limit 5`: false, `stats count(*)`: false, `fields a`: false,
	} {
		q, err := Parse(query, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := q.Run(start, 10<<20)
		const events = 3000
		for i := range events {
			if err := r.Add(event(events-i, "x")); err != nil {
				t.Fatal(err)
			}
		}
		if r.Settled(start.UnixMilli()) != want || r.Settled(event(events, "").Timestamp) {
			t.Errorf("%s: settled is %v", query, !want)
		}
	}
}

// TestOrderOfEventsDoesNotMatter: results depend on the events, not on the order in which a run gets them.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	queries := []string{
		`fields a | limit 3`, `fields a | sort a, b desc | limit 4`, `fields a | dedup a, b | limit 2`, `sort a | dedup b`,
		`stats count(*), latest(b), earliest(b), pct(b, 90), stddev(b) > 0 by a`, `filter a != 1 | stats sum(b) as n by a | sort n | limit 2`,
		`sort b | limit 5 | stats count(*) by a`,
	}
	number := rapid.IntRange(0, 3)
	rapid.Check(t, func(rt *rapid.T) {
		q, err := Parse(rapid.SampledFrom(queries).Draw(rt, "query"), 0)
		if err != nil {
			rt.Fatal(err)
		}
		var events []Event
		for i := range rapid.IntRange(0, 30).Draw(rt, "events") {
			e := event(number.Draw(rt, "minute"), fmt.Sprintf(`{"a":%d,"b":%d}`, number.Draw(rt, "a"), number.Draw(rt, "b")))
			e.Place = [4]int64{int64(i)}
			e.Pointer = fmt.Sprint(i)
			events = append(events, e)
		}
		evaluate := func(events []Event) string {
			r := q.Run(start, 1<<20)
			for _, e := range events {
				if err := r.Add(e); err != nil {
					rt.Fatal(err)
				}
			}
			return results(t, r)
		}
		if a, b := evaluate(events), evaluate(rapid.Permutation(events).Draw(rt, "order")); a != b {
			rt.Fatalf("\n%s\nor\n%s", a, b)
		}
	})
}

func TestFields(t *testing.T) {
	got := Fields(event(0, `{"a":{"b":[1,"x",{"c":true}]},"n":null}`))
	for name, want := range map[string]string{"a.b.0": "1", "a.b.1": "x", "a.b.2.c": "1", "@timestamp": "1772323110000", "@log": "1:g"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 3+6 {
		t.Errorf("%v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`fields @timestamp, a.b as c | filter c like /x(?<y>\d)/ and not d in [1, "2"] | sort c desc, a | dedup c | limit 3`, `{"a":{"b":1}}`)
	f.Add("parse @message \"* [*]\" as a, `b` # c\n| stats count(*), pct(a, 9) as p by bin(5m), substr(b, 1, 2) | stats max(p)", "x [y]")
	f.Add(`display if(isblank(a), 1 ^ -2, datefloor(@timestamp, 1mo)), replace(a, "b", 'c')`, `{"a":"b"}`)
	f.Fuzz(func(t *testing.T, query, message string) {
		q, err := Parse(query, 0)
		if err != nil {
			return
		}
		r := q.Run(start, 1<<20)
		for i := range 3 {
			if r.Add(event(i, message)) != nil {
				return
			}
		}
		r.Results() //nolint:errcheck // it must not panic
	})
}

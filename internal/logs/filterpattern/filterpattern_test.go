package filterpattern

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, message string
		want             bool
	}{
		{"", "anything", true},
		{"ERROR", "[ERROR] 400", true},
		{"ERROR", "error", false}, // case counts
		{"ERROR ARGUMENTS", "ERROR BAD ARGUMENTS", true},
		{"ERROR ARGUMENTS", "ERROR", false},
		{"?ERROR ?WARN", "WARN", true},
		{"?ERROR ?WARN", "INFO", false},
		{"ERROR -EXITING", "ERROR", true},
		{"ERROR -EXITING", "ERROR EXITING", false},
		{`"INTERNAL SERVER ERROR"`, "an INTERNAL SERVER ERROR", true},
		{`"INTERNAL SERVER ERROR"`, "INTERNAL ERROR", false},
		{`"a \"b\""`, `x a "b"`, true},
		{"%4[0-9]{2}%", "code 404", true},
		{"%4[0-9]{2}%", "code 504", false},
		{`{ $.eventType = "UpdateTrail" }`, `{"eventType":"UpdateTrail"}`, true},
		{`{ $.eventType = "UpdateTrail" }`, `eventType UpdateTrail`, false},
		{`{ $.ip != 123.123.* }`, `{"ip":"10.0.0.1"}`, true},
		{`{ $.ip = 123.123.* }`, `{"ip":"123.123.1.2"}`, true},
		{`{ $.n > 5 && $.n <= 7 }`, `{"n":6}`, true},
		{`{ $.n > 5 && $.n <= 7 }`, `{"n":8}`, false},
		{`{ ($.a = 1 || $.b = 2) && $.c EXISTS }`, `{"b":2,"c":null}`, true},
		{`{ $.c NOT EXISTS }`, `{"b":2}`, true},
		{`{ $.c IS NULL }`, `{"c":null}`, true},
		{`{ $.c IS TRUE }`, `{"c":false}`, false},
		{`{ $.list[1].x = "y" }`, `{"list":[0,{"x":"y"}]}`, true},
		{`{ $.['a b'] = 3 }`, `{"a b":3}`, true},
		{`{ $.m = %^ab+$% }`, `{"m":"abbb"}`, true},
		{`{ $.latency = * }`, `{"latency":17.5}`, true},
		{`{ $.latency = * }`, `{"other":17.5}`, false},
		{`{ $.code = 4* }`, `{"code":404}`, true},
		{`[ip, user, ts, request, status = 4*, bytes]`, `127.0.0.1 frank [10/Oct/2000] "GET /x" 404 1534`, true},
		{`[ip, user, ts, request, status = 4*, bytes]`, `127.0.0.1 frank [10/Oct/2000] "GET /x" 200 1534`, false},
		{`[ip, ..., bytes > 1000]`, `127.0.0.1 frank [10/Oct/2000] "GET /x" 404 1534`, true},
		{`[..., status = 404 || status = 410, bytes]`, `a b 410 1`, true},
		{`[a, b]`, `one`, false},
	}
	for _, c := range cases {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := p.Match(c.message); got != c.want {
			t.Errorf("%s on %s is %v, want %v", c.pattern, c.message, got, c.want)
		}
	}
	for _, bad := range []string{
		`"open`, `{ $.a }`, `{ $.a = 1`, `{ a = 1 }`, `[a, b`, `[..., ...]`, `{ $.a > "x" }`, `%[%`, "(x", "{$=\xea 0}",
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// TestCostIsBounded: a pattern can't cost much for each byte of a message.
func TestCostIsBounded(t *testing.T) {
	for pattern, want := range map[string]string{
		strings.Repeat("%.*a.*%", 146):                            "more than 5 regular expressions",
		"{ $.a = %a% || $.a = %b% || $.a = %c% }":                 "more than 2 regular expressions",
		"[a = %a%, b = %b% || b = %c%]":                           "more than 2 regular expressions",
		"%.{1000}.{1000}%":                                        "too complex",
		"%" + strings.Repeat(".{30}", 10) + "% %.{200}% %.{100}%": "too complex",
	} {
		if _, err := Parse(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestErrorsNameTheOperator: what is wrong with a condition of two sides is said with the operator that joins them.
func TestErrorsNameTheOperator(t *testing.T) {
	for pattern, operator := range map[string]string{"[a, b && b = 2]": "&&", "[a, b || b = 2]": "||"} {
		if _, err := Parse(pattern); err == nil || !strings.Contains(err.Error(), operator) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestWildcard: a text with wildcards matches what the regular expression for it would.
func TestWildcard(t *testing.T) {
	letters := rapid.StringMatching(`[ab*\n]{0,8}`)
	texts := rapid.StringMatching(`[ab\n]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := letters.Draw(t, "pattern"), texts.Draw(t, "text")
		same := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		if got := newWildcard(pattern).MatchString(text); got != same.MatchString(text) {
			t.Fatalf("%q on %q is %v", pattern, text, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`{ ($.a = 1 || $.b[0] = "2*") && $.c NOT EXISTS }`, `{"a":1}`)
	f.Add(`[ip, ..., status = 4* && status != 404, bytes > 10]`, `1 "2 3" 4`)
	f.Add(`?a -b "c d" %e%`, `x`)
	f.Fuzz(func(t *testing.T, pattern, message string) {
		if p, err := Parse(pattern); err == nil {
			if found, ok := p.Find(message); ok { // must not panic
				p.Values(found)
			}
		}
	})
}

func TestValues(t *testing.T) {
	web := `[ip, ..., status = 2*, bytes]`
	line := `127.0.0.1 frank [10/Oct/2000] "GET /x" 200 1534`
	cases := []struct {
		pattern, selector, message, want string
	}{
		{`{ $.latency = * }`, "$.latency", `{"latency":1500000000000000000000}`, "1500000000000000000000"},
		{`{ $.latency = * }`, "$.a.b[1]", `{"latency":1,"a":{"b":["x","y z"]}}`, "y z"},
		{`{ $.ok IS TRUE }`, "$.ok", `{"ok":true}`, "true"},
		{`{ $.a EXISTS }`, "$.a", `{"a":{}}`, ""},
		{`{ $.a EXISTS }`, "$.b", `{"a":1}`, ""},
		{web, "$ip", line, "127.0.0.1"},
		{web, "$status", line, "200"},
		{web, "$bytes", line, "1534"},
		{`[a, b]`, "$b", `x "y z"`, "y z"},
	}
	for _, c := range cases {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		read, err := p.Selector(c.selector)
		if err != nil {
			t.Errorf("%s %s: %v", c.pattern, c.selector, err)
			continue
		}
		f, ok := p.Find(c.message)
		if got, has := read(f); !ok || got != c.want || has != (c.want != "") {
			t.Errorf("%s %s on %s is %q, %v, matched %v", c.pattern, c.selector, c.message, got, has, ok)
		}
	}
	for pattern, selector := range map[string]string{
		"ERROR": "$.a", "": "$a", "{ $.a = 1 }": "$a", "[a, b]": "$c", "{ $.b = 1 }": "$", "{ $.c = 1 }": "$.c d",
	} {
		p, err := Parse(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Selector(selector); err == nil {
			t.Errorf("%s takes %s", pattern, selector)
		}
	}
}

// TestOwnValues: what TestMetricFilter shows.
func TestOwnValues(t *testing.T) {
	for _, c := range []struct{ pattern, message, want string }{
		{`{ $.a = 1 || $.b.c = "x" }`, `{"a":1}`, "map[$.a:1]"},
		{`[ip, ..., bytes > 10]`, "1.2.3.4 x y 11", "map[$bytes:11 $ip:1.2.3.4]"},
		{`x`, "x", "map[]"},
	} {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := p.Find(c.message)
		if got := fmt.Sprint(p.Values(f)); !ok || got != c.want {
			t.Errorf("%s on %s has %s", c.pattern, c.message, got)
		}
	}
}

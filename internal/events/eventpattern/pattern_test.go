package eventpattern_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/events/eventpattern"
)

// matches reports whether a pattern matches an event. Both are JSON.
func matches(t testing.TB, pattern, event string) bool {
	t.Helper()
	p, err := eventpattern.New(pattern)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	value, err := eventpattern.Decode(event)
	if err != nil {
		t.Fatalf("%s: %v", event, err)
	}
	return p.Match(value.(map[string]any))
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{`{"source": ["aws.ecs", "mine"]}`, []string{`{"source": "mine"}`}, []string{`{"source": "Mine"}`, `{}`}},
		{`{"n": [300]}`, []string{`{"n": 300.0}`, `{"n": 3e2}`}, []string{`{"n": "300"}`, `{"n": 301}`}},
		{`{"v": [null]}`, []string{`{"v": null}`}, []string{`{"v": ""}`, `{"v": []}`, `{}`}},
		{`{"v": [true]}`, []string{`{"v": true}`, `{"v": [false, true]}`}, []string{`{"v": "true"}`}},
		{`{"v": [""]}`, []string{`{"v": ""}`}, []string{`{"v": null}`}},
		{`{"detail": {"state": ["a"]}}`, []string{`{"detail": {"state": ["b", "a"]}}`}, []string{`{"state": "a"}`, `{"detail": "a"}`}},
		{`{"detail": {"state": {"code": [1]}}}`, []string{`{"detail": {"state.code": 1}}`, `{"detail.state": {"code": 1}}`}, []string{`{"detail": {"code": 1}}`}},
		{`{"a": {"b": [1], "c": [2]}}`, []string{`{"a": [{"b": 1, "c": 2}]}`}, []string{`{"a": [{"b": 1}, {"c": 2}]}`}},
		{`{"v": [{"prefix": "ab"}]}`, []string{`{"v": "abc"}`}, []string{`{"v": "Abc"}`, `{"v": 1}`}},
		{`{"v": [{"prefix": {"equals-ignore-case": "ÄB"}}]}`, []string{`{"v": "äbc"}`}, []string{`{"v": "ä"}`, `{"v": 1}`}},
		{`{"v": [{"suffix": {"equals-ignore-case": ".PNG"}}]}`, []string{`{"v": "x.png"}`, `{"v": "日.Png"}`}, []string{`{"v": "png"}`}},
		{`{"v": [{"suffix": ".png"}]}`, []string{`{"v": ".png"}`}, []string{`{"v": ".PNG"}`}},
		{`{"v": [{"equals-ignore-case": "up"}]}`, []string{`{"v": "UP"}`}, []string{`{"v": "u"}`}},
		{`{"v": [{"wildcard": "a*\\*b"}]}`, []string{`{"v": "axx*b"}`, `{"v": "a*b"}`}, []string{`{"v": "axb"}`}},
		{`{"v": [{"anything-but": "a"}]}`, []string{`{"v": "b"}`, `{"v": 1}`, `{"v": null}`, `{"v": ["a", "b"]}`}, []string{`{"v": "a"}`, `{}`}},
		{`{"v": [{"anything-but": [1, "a"]}]}`, []string{`{"v": 2}`}, []string{`{"v": 1.0}`, `{"v": "a"}`}},
		{`{"v": [{"anything-but": {"prefix": ["a", "b"]}}]}`, []string{`{"v": "c"}`}, []string{`{"v": "bc"}`}},
		{`{"v": [{"anything-but": {"suffix": "z"}}]}`, []string{`{"v": "c"}`}, []string{`{"v": "bz"}`}},
		{`{"v": [{"anything-but": {"equals-ignore-case": ["a"]}}]}`, []string{`{"v": "c"}`}, []string{`{"v": "A"}`}},
		{`{"v": [{"anything-but": {"wildcard": "*/tmp/*"}}]}`, []string{`{"v": "/tmp"}`}, []string{`{"v": "/tmp/x"}`}},
		{`{"v": [{"numeric": [">", 0, "<=", 5]}]}`, []string{`{"v": 5}`, `{"v": 0.1}`}, []string{`{"v": 0}`, `{"v": "3"}`, `{"v": null}`}},
		{`{"v": [{"numeric": ["=", 3.018e2]}]}`, []string{`{"v": 301.8}`}, []string{`{"v": 301}`}},
		{`{"v": [{"exists": true}]}`, []string{`{"v": null}`}, []string{`{"v": {"w": 1}}`, `{"v": []}`, `{}`}},
		{`{"v": [{"exists": false}]}`, []string{`{}`, `{"v": {"w": 1}}`}, []string{`{"v": 1}`}},
		{`{"v": {"w": [{"exists": false}]}}`, []string{`{}`, `{"v": {}}`}, []string{`{"v": {"w": 1}}`}},
		{`{"v": [{"cidr": "10.0.0.0/24"}]}`, []string{`{"v": "10.0.0.9"}`}, []string{`{"v": "10.0.1.9"}`, `{"v": 10}`}},
		{`{"v": [{"cidr": "2001:db8::/32"}]}`, []string{`{"v": "2001:db8::1"}`}, []string{`{"v": "2001:db9::1"}`}},
		{`{"$or": [{"a": [1]}, {"b": [2]}], "c": [3]}`, []string{`{"b": 2, "c": 3}`}, []string{`{"b": 2}`, `{"c": 3}`}},
	} {
		for _, event := range c.yes {
			if !matches(t, c.pattern, event) {
				t.Errorf("%s doesn't match %s", c.pattern, event)
			}
		}
		for _, event := range c.no {
			if matches(t, c.pattern, event) {
				t.Errorf("%s matches %s", c.pattern, event)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for pattern, want := range map[string]string{
		`["a"]`:                                                  "Filter is not an object",
		`{}`:                                                     "Empty objects are not allowed",
		`{"a": {}}`:                                              "Empty objects are not allowed",
		`{"a": []}`:                                              "Empty arrays are not allowed",
		`{"a": 42}`:                                              `"a" must be an object or an array`,
		`{"a": "b"}`:                                             `"a" must be an object or an array`,
		`{"a": [["b"]]}`:                                         "Match value must be String, number, true, false, or null",
		`{"a": [{"EXISTS": true}]}`:                              "Unrecognized match type EXISTS",
		`{"a": [{"exists": "x"}]}`:                               "exists match pattern must be either true or false.",
		`{"a": [{"prefix": 1}]}`:                                 "prefix match pattern must be a string",
		`{"a": [{"prefix": ["x"]}]}`:                             "prefix match pattern must be a string",
		`{"a": [{"wildcard": "a**"}]}`:                           "Consecutive wildcard characters at pos 2",
		`{"a": [{"wildcard": 1}]}`:                               "wildcard match pattern must be a string",
		`{"a": [{"numeric": 1}]}`:                                "Value of numeric must be an array.",
		`{"a": [{"numeric": [">", 0, "<"]}]}`:                    "Value of < must be numeric",
		`{"a": [{"numeric": [">", 0, ">", 1]}]}`:                 "Bad numeric range operator: >",
		`{"a": [{"numeric": [">", 2, "<", 1]}]}`:                 "Bottom must be less than top",
		`{"a": [{"cidr": "x"}]}`:                                 "Malformed CIDR, one '/' required",
		`{"a": [{"cidr": "1.2.3.4/x"}]}`:                         "Malformed CIDR, mask bits must be an integer",
		`{"a": [{"cidr": "xx/8"}]}`:                              "Nonstandard IP address: xx",
		`{"a": [{"anything-but": null}]}`:                        "Value of anything-but must be an array or single string/number value.",
		`{"a": [{"anything-but": [null]}]}`:                      "Inside anything but list, start|null|boolean is not supported.",
		`{"a": [{"anything-but": {"prefix": ""}}]}`:              "Null prefix/suffix not allowed",
		`{"a": [{"anything-but": {"suffix": 1}}]}`:               "prefix/suffix match pattern must be a string",
		`{"a": [{"anything-but": {"prefix": {"x": "y"}}}]}`:      "Value of anything-but must be an array or single string/number value.",
		`{"a": [{"anything-but": {"equals-ignore-case": [1]}}]}`: "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported.",
		`{"a": [{"anything-but": {"numeric": 1}}]}`:              "Unsupported anything-but pattern: numeric",
		strings.Repeat(`{"a":`, 101) + `["b"]` + strings.Repeat(`}`, 101): "Rule is too complex",
	} {
		if _, err := eventpattern.New(pattern); err == nil || err.Error() != "Event pattern is not valid. Reason: "+want {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
	if _, err := eventpattern.New(`{"a": ["b"]} {}`); err == nil {
		t.Error("what stands behind a pattern is taken")
	}
}

func TestSources(t *testing.T) {
	for pattern, want := range map[string]string{
		`{"source": ["a", "b"]}`:                          `[a b] []`,
		`{"source": ["a", {"prefix": "b"}]}`:              `[] []`,
		`{"detail-type": ["x"], "time": ["y"]}`:           `[] [x]`,
		`{"$or": [{"source": ["a"]}, {"source": ["b"]}]}`: `[] []`,
	} {
		p, err := eventpattern.New(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Sources(), p.DetailTypes()); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

// TestComplement: of a property that is a text, a condition and anything-but of it disagree, always.
func TestComplement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aAb*.]{0,6}`)
		operator := rapid.SampledFrom([]string{"prefix", "suffix", "equals-ignore-case"}).Draw(t, "operator")
		operand := text.Filter(func(s string) bool { return s != "" }).Draw(t, "operand")
		event := map[string]any{"v": text.Draw(t, "value")}
		is, err := eventpattern.New(pattern(t, map[string]any{operator: operand}))
		if err != nil {
			t.Fatal(err)
		}
		isNot, err := eventpattern.New(pattern(t, map[string]any{"anything-but": map[string]any{operator: operand}}))
		if err != nil {
			t.Fatal(err)
		}
		if is.Match(event) == isNot.Match(event) {
			t.Fatalf("%s %q of %v: both say %t", operator, operand, event, is.Match(event))
		}
	})
}

// TestWildcard: a wildcard made from a text by hiding parts of it matches the text.
func TestWildcard(t *testing.T) {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`)
	rapid.Check(t, func(t *rapid.T) {
		var wildcard, text strings.Builder
		for i, part := range rapid.SliceOfN(rapid.StringMatching(`[ab*\\]{1,3}`), 1, 5).Draw(t, "parts") {
			if i > 0 {
				wildcard.WriteByte('*')
				text.WriteString(rapid.StringMatching(`[ab*]{0,3}`).Draw(t, "hidden"))
			}
			wildcard.WriteString(escape.Replace(part))
			text.WriteString(part)
		}
		p, err := eventpattern.New(pattern(t, map[string]any{"wildcard": wildcard.String()}))
		if err != nil {
			t.Fatal(err)
		}
		if !p.Match(map[string]any{"v": text.String()}) {
			t.Fatalf("%q doesn't match %q", wildcard.String(), text.String())
		}
	})
}

func pattern(t *rapid.T, condition any) string {
	b, err := json.Marshal(map[string]any{"v": []any{condition}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzPattern(f *testing.F) {
	f.Add(`{"source": ["aws.ecs"], "detail": {"a": [{"anything-but": {"prefix": ["x"]}}]}}`, `{"source": "aws.ecs", "detail": {"a": [1, null, {}]}}`)
	f.Add(`{"$or": [{"a.b": [{"numeric": [">", 0, "<", 5]}]}, {"b": [{"cidr": "10.0.0.0/8"}]}]}`, `{"a": {"b": 3}}`)
	f.Add(`{"a": [{"wildcard": "x*y\\*"}, {"exists": false}]}`, `{"a.b": 1e999}`)
	f.Fuzz(func(t *testing.T, pattern, event string) {
		p, err := eventpattern.New(pattern)
		if err != nil {
			return
		}
		value, err := eventpattern.Decode(event)
		if properties, isObject := value.(map[string]any); err == nil && isObject {
			p.Match(properties)
		}
		p.Sources()
	})
}

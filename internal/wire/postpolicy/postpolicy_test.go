package postpolicy

import (
	"encoding/base64"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestCheck(t *testing.T) {
	only := func(conditions string) string {
		return `{"expiration": "2026-11-23T13:00:00.000Z", "conditions": [` + conditions + `]}`
	}
	with := func(conditions string) string { return only(strings.TrimPrefix(conditions+`, {"bucket": "b"}`, ", ")) }
	type fields = map[string]string
	for _, c := range []struct {
		name   string
		policy string
		fields fields
		want   string
	}{
		{"no condition and no field", with(``), fields{}, ""},
		{"a field without a condition", with(``), fields{"acl": "private"}, "Extra input fields: acl"},
		{"a field that needs none", with(``), fields{"x-ignore-me": "1", "policy": "p", "x-amz-signature": "s", "file": "f"}, ""},
		{"the same", with(`{"acl": "private"}`), fields{"acl": "private"}, ""},
		{"a field in capitals", with(`["eq", "$Content-Type", "a/b"]`), fields{"content-type": "a/b"}, ""},
		{"another value", with(`{"acl": "private"}`), fields{"acl": "public-read"}, `Policy Condition failed: ["eq", "$acl", "private"]`},
		{"no such field", with(`["eq", "$acl", "private"]`), fields{}, `Policy Condition failed: ["eq", "$acl", "private"]`},
		{"the beginning", with(`["starts-with", "$key", "user/"]`), fields{"key": "user/x"}, ""},
		{"another beginning", with(`["starts-with", "$key", "user/"]`), fields{"key": "x"}, `Policy Condition failed: ["starts-with", "$key", "user/"]`},
		{"any value", with(`["starts-with", "$success_action_redirect", ""]`), fields{"success_action_redirect": "x"}, ""},
		{"any value, but there is none", with(`["starts-with", "$acl", ""]`), fields{}, `Policy Condition failed: ["starts-with", "$acl", ""]`},
		{"a list of types", with(`["starts-with", "$Content-Type", "image/"]`), fields{"content-type": "image/png, image/gif"}, ""},
		{
			"a list with another type", with(`["starts-with", "$Content-Type", "image/"]`), fields{"content-type": "image/png,text/html"},
			`Policy Condition failed: ["starts-with", "$content-type", "image/"]`,
		},
		{"no bucket", only(`{"acl": "private"}`), fields{"acl": "private"}, "Extra input fields: bucket"},
		{"any bucket", only(`["starts-with", "$bucket", ""]`), fields{}, ""},
		{"another bucket", with(`{"bucket": "c"}`), fields{"bucket": "c"}, `Policy Condition failed: ["eq", "$bucket", "c"]`},
		{"two conditions on one field", with(`{"key": "a"}, ["starts-with", "$key", "b"]`), fields{"key": "a"}, `Policy Condition failed: ["starts-with", "$key", "b"]`},
		{"expired", `{"expiration": "2026-11-23T12:00:00Z", "conditions": []}`, fields{}, "Policy expired."},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(encoded(c.policy))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := p.Check(noon, "b", c.fields); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for conditions, want := range map[string]Range{
		``:                                    {0, math.MaxInt64},
		`["content-length-range", 1, 10]`:     {1, 10},
		`["content-length-range", "1", "10"]`: {1, 10},
		`["content-length-range", 1, 10], ["content-length-range", 5, 100]`: {5, 10},
	} {
		p, err := Parse(encoded(`{"expiration": "2026-11-23T13:00:00Z", "conditions": [` + conditions + `]}`))
		if err != nil || p.Size != want {
			t.Errorf("%s: %v, %v, want %v", conditions, p, err, want)
		}
	}
}

var malformed = []string{
	``, `[]`, `{}`, `{"conditions": []}`, `{"expiration": "2026-11-23T13:00:00Z"}`, `{"expiration": "tomorrow", "conditions": []}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [], "more": 1}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [{}]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [{"a": "1", "b": "2"}]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [{"a": "1", "a": "2"}]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [{"a": 1}]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [["eq", "a", "1"]]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [["eq", "$a"]]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [["ends-with", "$a", "1"]]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [["content-length-range", -1, 2]]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": [["content-length-range", 1.5, 2]]}`,
	`{"expiration": "2026-11-23T13:00:00Z", "conditions": ["eq"]}`,
}

func TestMalformed(t *testing.T) {
	for _, text := range malformed {
		if p, err := Parse(encoded(text)); err == nil {
			t.Errorf("%s is %v", text, p)
		}
	}
	if _, err := Parse("%%%"); err == nil {
		t.Error("what isn't base64 is a policy")
	}
}

// TestWhatAPolicyNames: a form with exactly the fields that a policy names passes; one that lacks a field, has another value in one, or has one
// more, doesn't.
func TestWhatAPolicyNames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fields := rapid.MapOfN(rapid.StringMatching(`x-[a-h]{1,8}`), rapid.String(), 1, 8).Draw(r, "fields")
		conditions := []any{map[string]string{"bucket": "b"}}
		for name, value := range fields {
			if rapid.Bool().Draw(r, "prefix") {
				conditions = append(conditions, []any{"starts-with", "$" + name, value})
				continue
			}
			conditions = append(conditions, map[string]string{name: value})
		}
		text, err := json.Marshal(map[string]any{"expiration": "2026-11-23T13:00:00Z", "conditions": conditions})
		if err != nil {
			r.Fatal(err)
		}
		p, err := Parse(base64.StdEncoding.EncodeToString(text))
		if err != nil {
			r.Fatal(err)
		}
		if err := p.Check(noon, "b", fields); err != nil {
			r.Fatal(err)
		}
		for name := range fields {
			for _, change := range []func(map[string]string){
				func(f map[string]string) { delete(f, name) },
				func(f map[string]string) { f[name] = f[name][:max(0, len(f[name])-1)] },
				func(f map[string]string) { f["y"+name] = "" },
			} {
				changed := maps.Clone(fields)
				change(changed)
				if p.Check(noon, "b", changed) == nil && fields[name] != "" {
					r.Fatalf("%v passes %s", changed, text)
				}
			}
		}
	})
}

// FuzzParse: no policy brings the parser down, and one that it takes allows nothing that its conditions don't name.
func FuzzParse(f *testing.F) {
	for _, text := range malformed {
		f.Add(text)
	}
	f.Add(`{"expiration": "2026-11-23T13:00:00Z", "conditions": [{"acl": "a"}, ["starts-with", "$key", "k"], ["content-length-range", 0, 9]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(encoded(text))
		if err != nil {
			return
		}
		const unlikely = "x-amz-unlikely-0123456789"
		for _, c := range p.conditions {
			if c.field == unlikely {
				return
			}
		}
		if p.Check(p.Expires.Add(-1), "b", map[string]string{unlikely: "1"}) == nil {
			t.Errorf("%s allows a field that it doesn't name", text)
		}
	})
}

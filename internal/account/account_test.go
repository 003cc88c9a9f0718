package account

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"pgregory.net/rapid"
)

var mine = New("000000000000", "us-east-1", time.Now)

func TestARNs(t *testing.T) {
	for want, got := range map[string]string{
		"arn:aws:ecs:us-east-1:000000000000:task/default/x":   mine.ARN("ecs", "task/default/x"),
		"arn:aws:cloudwatch::000000000000:dashboard/a":        mine.GlobalARN("cloudwatch", "dashboard/a"),
		"arn:aws:iam::000000000000:root":                      mine.Root(),
		"arn:aws:logs:us-east-1:000000000000:log-group:a:b:*": mine.ARN("logs", "log-group:a:b:*"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestResourceOf(t *testing.T) {
	for _, c := range []struct {
		arn, name string
		ok        bool
	}{
		{mine.ARN("cloudwatch", "alarm:a:b"), "a:b", true},
		{mine.ARN("cloudwatch", "alarm:"), "", false},
		{mine.ARN("sqs", "alarm:a"), "", false},
		{mine.GlobalARN("cloudwatch", "alarm:a"), "", false},
		{New("1", "us-east-1", nil).ARN("cloudwatch", "alarm:a"), "", false},
		{"alarm:a", "", false},
		{"", "", false},
	} {
		if name, ok := mine.ResourceOf("cloudwatch", "alarm:", c.arn); name != c.name || ok != c.ok {
			t.Errorf("%s: got %q %v, want %q %v", c.arn, name, ok, c.name, c.ok)
		}
	}
	if name, ok := mine.GlobalResourceOf("cloudwatch", "dashboard/", mine.GlobalARN("cloudwatch", "dashboard/a")); name != "a" || !ok {
		t.Errorf("got %q %v", name, ok)
	}
}

func TestUUIDIsTheSameForTheSameParts(t *testing.T) {
	a, b := UUID("a", "b"), UUID("ab")
	if a != UUID("a", "b") || a == b || len(a) != 36 || strings.Count(a, "-") != 4 {
		t.Errorf("got %s and %s", a, b)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		refusal *Refusal
		status  int
		fault   smithy.ErrorFault
	}{
		{Refuse("A", "is %d", 1), 400, smithy.FaultClient},
		{RefuseWith(501, "A", "is %d", 1), 501, smithy.FaultClient},
		{RefuseWith(500, "A", "is %d", 1), 500, smithy.FaultServer},
	} {
		var err smithy.APIError
		if !errors.As(error(c.refusal), &err) || err.ErrorCode() != "A" || err.ErrorMessage() != "is 1" || err.ErrorFault() != c.fault ||
			c.refusal.HTTPStatusCode() != c.status {
			t.Errorf("got %v", err)
		}
	}
	if m := *Message("100%"); m != "100%" {
		t.Errorf("got %q", m)
	}
	type status string
	if m := *Message("one of %v, not %q or %d", []status{"on", "off"}, []string{"a"}, []int{1}); m != `one of on, off, not ["a"] or [1]` {
		t.Errorf("got %q", m)
	}
}

var (
	errLimit = errors.New("limit")
	errToken = errors.New("token")
)

func list(kind string) List {
	return List{
		Kind:     kind,
		Default:  2,
		Least:    1,
		Most:     5,
		BadLimit: func(int) error { return errLimit },
		BadToken: func() error { return errToken },
	}
}

func self(s string) string { return s }

// walk collects all pages of a list, until there is no token.
func walk(t *rapid.T, page func(token *string) ([]string, *string, error)) (all []string) {
	var token *string
	for range 100 {
		rows, next, err := page(token)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		if next == nil {
			return all
		}
		token = next
	}
	t.Fatal("the pages have no end")
	return nil
}

func TestPagesTogetherAreTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfDistinct(rapid.StringN(1, 5, -1), self).Draw(t, "rows")
		limit := rapid.OneOf(rapid.Just[*int32](nil), rapid.Ptr(rapid.Int32Range(1, 5), false)).Draw(t, "limit")
		sorted := slices.Sorted(slices.Values(rows))
		falling := slices.Clone(sorted)
		slices.Reverse(falling)
		behind := func(after string) iter.Seq[string] {
			i, _ := slices.BinarySearch(sorted, after)
			return slices.Values(sorted[i:])
		}
		short := func(s string) bool { return len(s) < 4 }
		shorts := slices.DeleteFunc(slices.Clone(sorted), func(s string) bool { return !short(s) })
		for name, c := range map[string]struct {
			want []string
			page func(token *string) ([]string, *string, error)
		}{
			"sorted": {sorted, func(token *string) ([]string, *string, error) { return Sorted(list("a"), sorted, limit, token, self) }},
			"descending": {falling, func(token *string) ([]string, *string, error) {
				l := list("a")
				l.Descending = true
				return Sorted(l, falling, limit, token, self)
			}},
			"ordered": {rows, func(token *string) ([]string, *string, error) { return Ordered(list("a"), rows, limit, token, self) }},
			"behind": {shorts, func(token *string) ([]string, *string, error) {
				return Behind(list("a"), limit, token, behind, self, short)
			}},
		} {
			if got := walk(t, c.page); !slices.Equal(got, c.want) {
				t.Fatalf("%s: got %q, want %q", name, got, c.want)
			}
		}
	})
}

func TestRowsThatGoBetweenPages(t *testing.T) {
	page, token, err := Sorted(list("a"), []string{"a", "b", "c"}, nil, nil, self)
	if err != nil || !slices.Equal(page, []string{"a", "b"}) {
		t.Fatal(page, err)
	}
	page, next, err := Sorted(list("a"), []string{"a", "c"}, nil, token, self)
	if err != nil || next != nil || !slices.Equal(page, []string{"c"}) {
		t.Errorf("got %q %v %v", page, next, err)
	}
	if _, _, err := Ordered(list("a"), []string{"a", "c"}, nil, token, self); !errors.Is(err, errToken) {
		t.Errorf("got %v", err)
	}
}

func TestLimitsAndTokensAreChecked(t *testing.T) {
	good := *list("a").Token("key")
	for token, want := range map[string]error{
		good:                    nil,
		"":                      nil,
		*list("b").Token("key"): errToken,
		good + "A":              errToken,
		"x" + good[1:]:          errToken,
		good[:8]:                errToken,
		"!":                     errToken,
		"djE6a2V5":              errToken,
	} {
		if _, after, err := list("a").Start(nil, &token); !errors.Is(err, want) || want == nil && token != "" && after != "key" {
			t.Errorf("%q: got %q %v, want %v", token, after, err, want)
		}
	}
	for limit, want := range map[int32]error{0: errLimit, 1: nil, 5: nil, 6: errLimit, -1: errLimit} {
		if size, _, err := list("a").Start(&limit, nil); !errors.Is(err, want) || want == nil && size != int(limit) {
			t.Errorf("%d: got %d %v, want %v", limit, size, err, want)
		}
	}
	if size, _, err := (List{Most: 7}).Start(nil, nil); size != 7 || err != nil {
		t.Errorf("got %d %v", size, err)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add(*list("a").Token("key"))
	f.Add("djE6a2V5")
	f.Fuzz(func(t *testing.T, token string) {
		key, ok := list("a").parse(&token)
		if again, sealed := list("a").parse(list("a").Token(key)); ok && key != "" && (again != key || !sealed) {
			t.Errorf("%q stands for %q, whose token stands for %q", token, key, again)
		}
	})
}

type tag struct{ key, value string }

func parts(t tag) (key, value *string) { return &t.key, &t.value }

func TestTagRules(t *testing.T) {
	many := make([]tag, MaxTags+1)
	for i := range many {
		many[i].key = fmt.Sprint(i)
	}
	for _, c := range []struct {
		name string
		tags []tag
		want *TagFault
	}{
		{"none", nil, nil},
		{"fifty", many[:MaxTags], nil},
		{"longest", []tag{{strings.Repeat("ü", MaxTagKey), strings.Repeat("ü", MaxTagValue)}}, nil},
		{"one too many", many, &TagFault{TooManyTags, MaxTags, "50"}},
		{"no key", []tag{{"a", ""}, {"", "b"}}, &TagFault{TagKeyLength, 1, ""}},
		{"long key", []tag{{strings.Repeat("k", MaxTagKey+1), ""}}, &TagFault{TagKeyLength, 0, strings.Repeat("k", MaxTagKey+1)}},
		{"long value", []tag{{"k", strings.Repeat("v", MaxTagValue+1)}}, &TagFault{TagValueLength, 0, "k"}},
		{"AWS's", []tag{{"AWS:x", ""}}, &TagFault{TagReserved, 0, "AWS:x"}},
		{"twice", []tag{{"a", "1"}, {"b", ""}, {"a", "2"}}, &TagFault{TagTwice, 2, "a"}},
	} {
		got := CheckTags(TagPairs(c.tags, parts), MaxTags)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	got := CheckTags(TagMap(map[string]string{"b": "", "aws:b": "", "aws:a": ""}), MaxTags)
	if got == nil || *got != (TagFault{TagReserved, 0, "aws:a"}) {
		t.Errorf("got %v", got)
	}
}

func TestTagsAreMergedAndRemoved(t *testing.T) {
	old := []tag{{"a", "1"}, {"b", "1"}}
	if got := MergeTags(old, []tag{{"a", "2"}, {"c", "2"}}, parts); !slices.Equal(got, []tag{{"b", "1"}, {"a", "2"}, {"c", "2"}}) {
		t.Errorf("got %v", got)
	}
	if got := RemoveTags(old, []string{"b", "x"}, parts); !slices.Equal(got, []tag{{"a", "1"}}) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(old, []tag{{"a", "1"}, {"b", "1"}}) {
		t.Errorf("the old tags have changed: %v", old)
	}
}

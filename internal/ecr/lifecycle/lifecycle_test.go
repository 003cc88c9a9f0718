package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rule returns a rule's text. keep has the selection's members beside tagStatus.
func rule(priority int, status, keep string) string {
	return fmt.Sprintf(`{"rulePriority": %d, "selection": {"tagStatus": %q, %s}, "action": {"type": "expire"}}`, priority, status, keep)
}

const (
	keepOne = `"countType": "imageCountMoreThan", "countNumber": 1`
	tenDays = `"countType": "sinceImagePushed", "countUnit": "days", "countNumber": 10`
)

func policyOf(rules ...string) string { return `{"rules": [` + strings.Join(rules, ", ") + `]}` }

// TestExpired: what is expired of images that were pushed one a day, the first of them 20 days ago.
func TestExpired(t *testing.T) {
	now := time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)
	image := func(age int, tags string) Image {
		return Image{Digest: fmt.Sprint(age), Tags: strings.Fields(tags), Pushed: now.Add(-time.Duration(age) * 24 * time.Hour)}
	}
	listed := image(19, "")
	listed.Listed = true
	images := []Image{
		image(20, ""), listed, image(18, "prod-1"), image(12, "prod-2 green"), image(11, "dev-1"), image(10, ""), image(3, "dev-2"), image(1, ""),
	}
	for _, c := range []struct {
		name, policy string
		want         string // digests, and the rules that expire them
	}{
		{"untagged by count", policyOf(rule(1, "untagged", keepOne)), "20:1 10:1"},
		{"untagged by age, not on the day", policyOf(rule(1, "untagged", tenDays)), "20:1"},
		{"any by count counts what a list has", policyOf(rule(1, "any", `"countType": "imageCountMoreThan", "countNumber": 6`)), "20:1"},
		{"a prefix", policyOf(rule(1, "tagged", `"tagPrefixList": ["prod"], `+keepOne)), "18:1"},
		{"all prefixes must fit", policyOf(rule(1, "tagged", `"tagPrefixList": ["prod", "gr"], `+tenDays)), "12:1"},
		{"a pattern", policyOf(rule(1, "tagged", `"tagPatternList": ["*v-*"], `+keepOne)), "11:1"},
		{
			"a rule of higher priority keeps what it selects",
			policyOf(rule(1, "tagged", `"tagPrefixList": ["prod"], "countType": "imageCountMoreThan", "countNumber": 9`), rule(2, "any", tenDays)),
			"20:2 11:2",
		},
		{
			"a rule of lower priority counts what another expires",
			policyOf(rule(2, "any", `"countType": "imageCountMoreThan", "countNumber": 3`), rule(1, "tagged", `"tagPrefixList": ["prod"], `+keepOne)),
			"18:1 20:2 11:2",
		},
	} {
		p, err := Parse(c.policy)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, e := range p.Expired(images, now) {
			got = append(got, fmt.Sprintf("%s:%d", e.Digest, e.Priority))
		}
		if is := strings.Join(got, " "); is != c.want {
			t.Errorf("%s: expired %s, want %s", c.name, is, c.want)
		}
	}
}

// TestParseRefuses: what is wrong with a policy is said as ECR says it.
func TestParseRefuses(t *testing.T) {
	const sinceUnit = `"countType": "sinceImagePushed", "countNumber": 1`
	good := rule(1, "untagged", keepOne)
	for text, want := range map[string]string{
		"nonsense":                           "Could not map policyString into LifecyclePolicy.",
		good + good:                          "Could not map policyString into LifecyclePolicy.",
		"{}":                                 `object has missing required properties (["rules"])`,
		`{"rules": {}}`:                      `instance type (object) does not match any allowed primitive type (allowed: ["array"])`,
		`{"rules": []}`:                      "too short",
		`{"rules": [], "more": 1}`:           `object instance has properties which are not allowed by the schema: (["more"])`,
		policyOf("1"):                        `instance type (number) does not match any allowed primitive type (allowed: ["object"])`,
		policyOf(`{"selection": {}}`):        `object has missing required properties (["action","rulePriority"])`,
		policyOf(rule(0, "any", keepOne)):    "numeric instance is lower than the required minimum (minimum: 1, found: 0)",
		policyOf(rule(1, "some", keepOne)):   `instance value ("some") not found in enum (possible values: ["tagged","untagged","any"])`,
		policyOf(rule(1, "tagged", keepOne)): "instance failed to match exactly one schema (matched 0 out of 2)",
		policyOf(rule(1, "any", `"tagPrefixList": ["a"], `+keepOne)):         "instance failed to match exactly one schema (matched 0 out of 2)",
		policyOf(rule(1, "any", sinceUnit)):                                  "instance failed to match exactly one schema (matched 0 out of 2)",
		policyOf(rule(1, "any", `"countUnit": "days", `+keepOne)):            "instance failed to match exactly one schema (matched 0 out of 2)",
		policyOf(rule(1, "any", `"countUnit": "weeks", `+sinceUnit)):         "instance value (\"weeks\") not found in enum",
		policyOf(rule(1, "tagged", `"tagPatternList": ["*****"], `+keepOne)): "at most 4 wildcards",
		policyOf(rule(1, "any", keepOne), rule(2, "untagged", keepOne)):      "a rule with tagStatus any must have the highest rulePriority",
		policyOf(good, good):                         "rulePriority must be unique",
		policyOf(good, rule(2, "untagged", tenDays)): "only one rule may select untagged images",
		policyOf(rule(1, "tagged", `"tagPrefixList": ["a"], `+keepOne), rule(2, "tagged", `"tagPrefixList": ["a"], `+tenDays)): "unique sets of tags",
		strings.Replace(policyOf(good), "expire", "transition", 1):                                                             "Pintle has no storage class",
		strings.Replace(policyOf(good), "imageCountMoreThan", "sinceImagePulled", 1):                                           "Pintle doesn't have the countType sinceImagePulled",
		policyOf(slices.Repeat([]string{good}, 51)...):                                                                         "array is too long",
		policyOf(rule(1, "any", `"countType": "imageCountMoreThan", "countNumber": 1.5`)):                                      "allowed: [\"integer\"]",
		policyOf(rule(1, "any", `"countType": "imageCountMoreThan", "countNumber": 99999999999999`)):                           "greater than the required maximum",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestMatches compares patterns with a search from the start.
func TestMatches(t *testing.T) {
	var simply func(pattern, tag string) bool
	simply = func(pattern, tag string) bool {
		switch {
		case pattern == "":
			return tag == ""
		case pattern[0] == '*':
			return simply(pattern[1:], tag) || tag != "" && simply(pattern, tag[1:])
		}
		return tag != "" && pattern[0] == tag[0] && simply(pattern[1:], tag[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern, tag := rapid.StringMatching("[ab*]{0,6}").Draw(t, "pattern"), rapid.StringMatching("[ab]{0,8}").Draw(t, "tag")
		if got := Matches(pattern, tag); got != simply(pattern, tag) {
			t.Errorf("%q on %q: %v", pattern, tag, got)
		}
	})
}

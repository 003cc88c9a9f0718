package lifecycle

import (
	"testing"
	"time"
)

// FuzzPolicy: a policy that is taken expires each image at most once, and none that a list has.
func FuzzPolicy(f *testing.F) {
	f.Add(policyOf(rule(1, "tagged", `"tagPatternList": ["a*", "*b"], `+keepOne), rule(2, "any", tenDays)), "ab")
	f.Add(policyOf(rule(1, "tagged", `"tagPrefixList": [""], `+tenDays), rule(2, "untagged", keepOne)), "v1")
	f.Fuzz(func(t *testing.T, text, tag string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		now := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
		images := []Image{{"a", nil, now, false}, {"b", []string{tag}, now.AddDate(0, 0, -20), false}, {"c", nil, now.AddDate(-1, 0, 0), true}, {"d", nil, now, false}}
		seen := map[string]bool{}
		for _, e := range p.Expired(images, now) {
			if seen[e.Digest] || e.Listed {
				t.Errorf("%s expires %s", text, e.Digest)
			}
			seen[e.Digest] = true
		}
	})
}

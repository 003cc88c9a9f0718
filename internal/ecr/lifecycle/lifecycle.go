// Package lifecycle reads the lifecycle policies of Amazon ECR's repositories and says which images they expire. It is pure: it gets the images
// and the time. The API of ECR checks policies by it, and its loop asks it what to delete.
package lifecycle

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"
)

// Policy is a parsed policy: its rules, by their priority.
type Policy struct{ Rules []Rule }

// Rule is one rule of a policy.
type Rule struct {
	Priority    int64
	Description string
	Status      string   // of the images that it selects: tagged, untagged or any
	Patterns    []string // of tags, each of which must match one of the image's: * stands for anything
	Prefixes    []string // of tags, likewise
	Age         bool     // whether Count is the days since an image was pushed, and else the images that stay
	Count       int64
}

// Image is what a policy looks at.
type Image struct {
	Digest string
	Tags   []string
	Pushed time.Time
	// Listed is whether a manifest list of the repository has the image. It stays as long as that does.
	Listed bool
}

// Expired is an image that a policy expires, and the priority of the rule that says so.
type Expired struct {
	Image

	Priority int64
}

// Expired returns the images that are to go, the oldest first for each rule. An image that a rule selects is that rule's to decide on: none of
// lower priority expires it, but all of them count it.
func (p Policy) Expired(images []Image, now time.Time) (all []Expired) {
	decided := map[string]bool{}
	for _, r := range p.Rules {
		selected := slices.DeleteFunc(slices.Clone(images), func(i Image) bool { return !r.selects(i) })
		sort.Slice(selected, func(i, j int) bool {
			a, b := &selected[i], &selected[j]
			return cmp.Or(a.Pushed.Compare(b.Pushed), cmp.Compare(a.Digest, b.Digest)) < 0
		})
		for n, i := range selected {
			if r.ends(i, int64(len(selected)-n), now) && !decided[i.Digest] && !i.Listed {
				all = append(all, Expired{i, r.Priority})
			}
		}
		for _, i := range selected {
			decided[i.Digest] = true
		}
	}
	return all
}

// ends reports whether the rule expires an image of those that it selects. left is how many there are from this one to the newest.
func (r Rule) ends(i Image, left int64, now time.Time) bool {
	if r.Age {
		return now.Sub(i.Pushed) > time.Duration(r.Count)*24*time.Hour
	}
	return left > r.Count
}

func (r Rule) selects(i Image) bool {
	switch r.Status {
	case "untagged":
		return len(i.Tags) == 0
	case "tagged":
		return r.fits(i.Tags)
	}
	return true
}

// fits reports whether each of the rule's patterns and prefixes is that of a tag.
func (r Rule) fits(tags []string) bool {
	for _, pattern := range r.Patterns {
		if !slices.ContainsFunc(tags, func(tag string) bool { return Matches(pattern, tag) }) {
			return false
		}
	}
	for _, prefix := range r.Prefixes {
		if !slices.ContainsFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, prefix) }) {
			return false
		}
	}
	return len(tags) > 0
}

// Matches reports whether a tag is as a pattern says, in which * stands for any characters or none.
func Matches(pattern, tag string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == tag
	}
	tag, ok := strings.CutPrefix(tag, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		at := strings.Index(tag, part)
		if at < 0 {
			return false
		}
		tag = tag[at+len(part):]
	}
	return strings.HasSuffix(tag, parts[last])
}

package account

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits on tags that all services share:
// https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
const (
	MaxTags     = 50
	MaxTagKey   = 128 // characters
	MaxTagValue = 256
)

// TagRule is a rule that tags can break.
type TagRule int

// The rules of tags.
const (
	TooManyTags TagRule = iota
	TagKeyLength
	TagValueLength
	TagReserved // the key begins with aws:
	TagTwice
)

// TagFault is what is wrong with tags: the rule, and the first tag that breaks it.
type TagFault struct {
	Rule  TagRule
	Index int
	Key   string
}

// CheckTags checks tags, of which there may be at most the given number. It returns nil if they are valid.
func CheckTags(tags iter.Seq2[string, string], most int) *TagFault {
	seen := map[string]bool{}
	index := 0
	for key, value := range tags {
		if rule, ok := checkTag(key, value, seen); !ok {
			return &TagFault{rule, index, key}
		}
		seen[key] = true
		if index++; index > most {
			return &TagFault{TooManyTags, most, key}
		}
	}
	return nil
}

func checkTag(key, value string, seen map[string]bool) (broken TagRule, ok bool) {
	switch {
	case key == "" || utf8.RuneCountInString(key) > MaxTagKey:
		return TagKeyLength, false
	case utf8.RuneCountInString(value) > MaxTagValue:
		return TagValueLength, false
	case len(key) >= 4 && strings.EqualFold(key[:4], "aws:"):
		return TagReserved, false
	case seen[key]:
		return TagTwice, false
	}
	return 0, true
}

// IsSystemTag reports whether a key is that of a tag that AWS's services set. Such tags don't count against the limit, and only the services
// themselves change them.
func IsSystemTag(key *string) bool { return strings.HasPrefix(text(key), "aws:") }

// TagPairs returns the keys and values of a service's own tags.
func TagPairs[T any](tags []T, of func(T) (key, value *string)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, t := range tags {
			key, value := of(t)
			if !yield(text(key), text(value)) {
				return
			}
		}
	}
}

// TagMap returns the keys and values of a map of tags, in the order of the keys.
func TagMap(tags map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			if !yield(key, tags[key]) {
				return
			}
		}
	}
}

// MergeTags returns the old tags without those whose keys are in add, followed by add. The old slice is not changed.
func MergeTags[T any](old, add []T, of func(T) (key, value *string)) []T {
	keys := make([]string, len(add))
	for i, t := range add {
		key, _ := of(t)
		keys[i] = text(key)
	}
	return append(RemoveTags(old, keys, of), add...)
}

// RemoveTags returns a copy of tags without those with the given keys.
func RemoveTags[T any](old []T, keys []string, of func(T) (key, value *string)) []T {
	return slices.DeleteFunc(slices.Clone(old), func(t T) bool {
		key, _ := of(t)
		return slices.Contains(keys, text(key))
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

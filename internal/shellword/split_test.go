package shellword

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	for command, want := range map[string][]string{
		``:                         nil,
		"  \t ":                    nil,
		`/bin/bash`:                {"/bin/bash"},
		`sh -c 'echo "a b"'`:       {"sh", "-c", `echo "a b"`},
		`echo a\ b "c\"d\e" ''`:    {"echo", "a b", `c"d\e`, ""},
		`a'b'"c"d`:                 {"abcd"},
		"one\ntwo":                 {"one", "two"},
		`python3 -c "print('é')"`:  {"python3", "-c", "print('é')"},
		`echo $HOME "$HOME" * '\'`: {"echo", "$HOME", "$HOME", "*", `\`},
	} {
		if got, err := Split(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", command, got, err)
		}
	}
	for _, command := range []string{`'`, `"a`, `a\`, `"\"`} {
		if got, err := Split(command); err == nil {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// TestQuoted: words that are quoted are split as they were.
func TestQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.String()).Draw(t, "words")
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, Quote(w))
		}
		if got, err := Split(strings.Join(quoted, " ")); err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

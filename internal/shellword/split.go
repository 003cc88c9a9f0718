package shellword

import (
	"errors"
	"strings"
)

// Split splits a command into words at blanks, as shells do: what is in single or double quotes stays together, and a backslash takes away
// the meaning of what follows it. Nothing is expanded.
func Split(command string) (words []string, err error) {
	var word strings.Builder
	inWord := false
	quote := rune(0)
	escaped := false
	for _, r := range command {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' && r != '$' && r != '`' {
				word.WriteByte('\\') // it means itself there
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case r == quote && quote != 0:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quotation mark or backslash at the end is open")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

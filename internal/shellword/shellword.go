// Package shellword quotes words for POSIX shells, for commands that another shell will read. It is pure, and runs no shell.
package shellword

import "strings"

// Quote quotes a word, so that a shell takes it as it is.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

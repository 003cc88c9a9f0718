package program

import (
	"time"
	"unicode/utf8"
)

// A shim writes JSON with the functions here, because encoding/json would double the size of the process.

// appendTime appends a time as JSON.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendString appends a string as JSON. Each byte of invalid UTF-8 becomes U+FFFD, as in encoding/json.
func appendString[T string | []byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	text := []byte(s)
	if !utf8.Valid(text) {
		text = []byte(string([]rune(string(text))))
	}
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

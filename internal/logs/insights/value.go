package insights

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// value is what a field holds or an expression yields. The zero value is a field that an event doesn't have.
type value struct {
	kind kind
	text string  // of a text, and of a number as it was written
	n    float64 // of a number; of a time, in milliseconds since 1970
}

type kind uint8

const (
	missing kind = iota
	text
	number
	timestamp
	// excessive is a text that would be too long. It ends the query.
	excessive
)

func textOf(s string) value { return value{kind: text, text: s} }

// numberOf returns a number, or nothing for what is none, such as a division by zero.
func numberOf(n float64) value {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return value{}
	}
	return value{kind: number, n: n}
}

func timeOf(ms float64) value { return value{kind: timestamp, n: ms} }

// truth returns a condition as a value: 1 or 0, as in the results of AWS.
func truth(b bool) value {
	if b {
		return numberOf(1)
	}
	return numberOf(0)
}

// owned returns the value without the text that it may be a part of, which would stay in memory with it.
func (v value) owned() value {
	v.text = strings.Clone(v.text)
	return v
}

func (v value) isTrue() bool {
	n, ok := v.number()
	return ok && n != 0
}

// number returns the value as a number. Text counts if all of it is one.
func (v value) number() (float64, bool) {
	switch v.kind {
	case number, timestamp:
		return v.n, true
	case text:
		return parseNumber(v.text)
	}
	return 0, false
}

// parseNumber takes decimal numbers only, not what else Go takes for one: hexadecimal, infinity, underscores.
func parseNumber(s string) (float64, bool) {
	if s == "" || len(s) > 400 || strings.Trim(s, "+-.eE0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

const timeFormat = "2006-01-02 15:04:05.000"

// String returns the value as results show it.
func (v value) String() string {
	switch {
	case v.kind == timestamp:
		return time.UnixMilli(int64(v.n)).UTC().Format(timeFormat)
	case v.kind == number && v.text == "":
		return strconv.FormatFloat(v.n, 'f', -1, 64)
	}
	return v.text
}

// equal reports whether two values are the same: as numbers if both are numbers, otherwise as text. A missing value equals nothing.
func equal(a, b value) bool {
	if a.kind == missing || b.kind == missing {
		return false
	}
	if x, ok := a.number(); ok {
		if y, ok := b.number(); ok {
			return x == y && (a.text == "" || b.text == "" || math.Abs(x) < 1<<53 || a.text == b.text)
		}
	}
	return a.String() == b.String()
}

// less reports whether a is below b: as numbers if both are, otherwise as text.
func less(a, b value) bool {
	if a.kind == missing || b.kind == missing {
		return false
	}
	if x, ok := a.number(); ok {
		if y, ok := b.number(); ok {
			return x < y
		}
	}
	return a.String() < b.String()
}

// compare orders values as sort does: what is missing, then text, then numbers. See the page on sort.
func compare(a, b value) int {
	x, xIsNumber := a.number()
	y, yIsNumber := b.number()
	if c := cmp.Compare(rank(a, xIsNumber), rank(b, yIsNumber)); c != 0 {
		return c
	}
	if xIsNumber {
		return cmp.Compare(x, y)
	}
	return compareText(a.text, b.text)
}

func rank(v value, isNumber bool) int {
	switch {
	case v.kind == missing:
		return 0
	case isNumber:
		return 2
	}
	return 1
}

// compareText compares chunk by chunk. A chunk is all digits or has none; digits compare by their length and then by value.
func compareText(a, b string) int {
	for a != "" && b != "" {
		x, restA, xDigits := chunk(a)
		y, restB, yDigits := chunk(b)
		if xDigits && yDigits {
			if c := cmp.Compare(len(x), len(y)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		a = restA
		b = restB
	}
	return cmp.Compare(len(a), len(b))
}

func chunk(s string) (first, rest string, digits bool) {
	digits = isDigit(s[0])
	i := 1
	for i < len(s) && isDigit(s[i]) == digits {
		i++
	}
	return s[:i], s[i:], digits
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func length(s string) float64 { return float64(utf8.RuneCountInString(s)) }

package insights

import (
	"math"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// function is a function of values. It has at least least arguments, and at most most; most is -1 if there may be any number.
type function struct {
	least, most int
	of          func([]value) value
}

// functions are those whose arguments are only values. bin, datefloor, dateceil and now are in call.
var functions = map[string]function{
	"abs":      numeric(math.Abs),
	"ceil":     numeric(math.Ceil),
	"floor":    numeric(math.Floor),
	"log":      numeric(math.Log),
	"sqrt":     numeric(math.Sqrt),
	"greatest": {1, -1, func(v []value) value { return extreme(v, math.Max) }},
	"least":    {1, -1, func(v []value) value { return extreme(v, math.Min) }},

	"ispresent": {1, 1, func(v []value) value { return truth(v[0].kind != missing) }},
	"coalesce":  {1, -1, coalesce},
	"if":        {3, 3, choose},

	"isempty":     {1, 1, func(v []value) value { return truth(v[0].String() == "") }},
	"isblank":     {1, 1, func(v []value) value { return truth(strings.TrimSpace(v[0].String()) == "") }},
	"concat":      {1, -1, concat},
	"ltrim":       trimmed(strings.TrimLeft),
	"rtrim":       trimmed(strings.TrimRight),
	"trim":        trimmed(strings.Trim),
	"strlen":      {1, 1, textual(func(s string, _ []value) value { return numberOf(length(s)) })},
	"toupper":     {1, 1, textual(func(s string, _ []value) value { return textOf(strings.ToUpper(s)) })},
	"tolower":     {1, 1, textual(func(s string, _ []value) value { return textOf(strings.ToLower(s)) })},
	"substr":      {2, 3, textual(substr)},
	"replace":     {3, 3, textual(replace)},
	"strcontains": {2, 2, textual(func(s string, v []value) value { return truth(strings.Contains(s, v[0].String())) })},

	"frommillis": {1, 1, func(v []value) value { return inTime(v[0], timeOf) }},
	"tomillis":   {1, 1, func(v []value) value { return inTime(v[0], numberOf) }},

	"isvalidip":      {1, 1, address(func(a netip.Addr) bool { return true })},
	"isvalidipv4":    {1, 1, address(netip.Addr.Is4)},
	"isvalidipv6":    {1, 1, address(netip.Addr.Is6)},
	"isipinsubnet":   {2, 2, func(v []value) value { return inSubnet(v, func(netip.Addr) bool { return true }) }},
	"isipv4insubnet": {2, 2, func(v []value) value { return inSubnet(v, netip.Addr.Is4) }},
	"isipv6insubnet": {2, 2, func(v []value) value { return inSubnet(v, netip.Addr.Is6) }},
}

func numeric(of func(float64) float64) function {
	return function{1, 1, func(v []value) value {
		n, ok := v[0].number()
		if !ok {
			return value{}
		}
		return numberOf(of(n))
	}}
}

func extreme(values []value, better func(a, b float64) float64) value {
	out := math.NaN()
	for _, v := range values {
		if n, ok := v.number(); ok && math.IsNaN(out) {
			out = n
		} else if ok {
			out = better(out, n)
		}
	}
	return numberOf(out)
}

func coalesce(values []value) value {
	for _, v := range values {
		if v.kind != missing {
			return v
		}
	}
	return value{}
}

func choose(v []value) value {
	if v[0].isTrue() {
		return v[1]
	}
	return v[2]
}

// maxText limits the texts that functions make.
const maxText = 4 << 20

func concat(values []value) value {
	var b strings.Builder
	for _, v := range values {
		s := v.String()
		if b.Len()+len(s) > maxText {
			return value{kind: excessive}
		}
		b.WriteString(s)
	}
	return textOf(b.String())
}

// textual makes a function of a text and other values. Without the text it returns nothing.
func textual(of func(s string, rest []value) value) func([]value) value {
	return func(v []value) value {
		if v[0].kind == missing {
			return value{}
		}
		return of(v[0].String(), v[1:])
	}
}

// maxCutset limits the characters to trim, since each character of the text is compared with all of them.
const maxCutset = 1000

// trimmed makes a function that takes characters away: white space, or those in its second argument.
func trimmed(of func(s, cutset string) string) function {
	return function{1, 2, textual(func(s string, rest []value) value {
		cutset := " \t\r\n\v\f"
		if len(rest) > 0 {
			cutset = rest[0].String()
		}
		if len(cutset) > maxCutset {
			return value{kind: excessive}
		}
		return textOf(of(s, cutset))
	})}
}

// substr returns the characters from an index on, which begins at 0, and at most as many as the third argument says.
func substr(s string, rest []value) value {
	start, ok := rest[0].number()
	if !ok || start < 0 {
		return value{}
	}
	s = s[skip(s, start):]
	if len(rest) == 1 {
		return textOf(s)
	}
	n, ok := rest[1].number()
	if !ok || n < 0 {
		return value{}
	}
	return textOf(s[:skip(s, n)])
}

// skip returns where a text's first characters end.
func skip(s string, characters float64) int {
	at := 0
	for ; characters >= 1 && at < len(s); characters-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

func replace(s string, rest []value) value {
	old, by := rest[0].String(), rest[1].String()
	if old == "" {
		return textOf(s)
	}
	if len(s)+strings.Count(s, old)*max(len(by)-len(old), 0) > maxText {
		return value{kind: excessive}
	}
	return textOf(strings.ReplaceAll(s, old, by))
}

// maxTime is the last millisecond of the year 9999.
const maxTime = 253402300799999

func inTime(v value, as func(float64) value) value {
	n, ok := v.number()
	if !ok || math.Abs(n) > maxTime {
		return value{}
	}
	return as(math.Trunc(n))
}

func address(is func(netip.Addr) bool) func([]value) value {
	return func(v []value) value {
		a, err := netip.ParseAddr(v[0].String())
		return truth(err == nil && is(a))
	}
}

func inSubnet(v []value, is func(netip.Addr) bool) value {
	a, err := netip.ParseAddr(v[0].String())
	if err != nil || !is(a) {
		return truth(false)
	}
	subnet, err := netip.ParsePrefix(v[1].String())
	return truth(err == nil && subnet.Contains(a))
}

package routing

import (
	"net/netip"
	"net/textproto"
	"strings"
)

// Match returns the first rule of a listener that a request meets. A listener that Validate has let pass always has one, its default.
func Match(l *Listener, r *Request) *Rule {
	for i := range l.Rules {
		if l.Rules[i].meets(r) {
			return &l.Rules[i]
		}
	}
	return nil
}

func (rule *Rule) meets(r *Request) bool {
	for i := range rule.Conditions {
		if !rule.Conditions[i].meets(r) {
			return false
		}
	}
	return true
}

func (c *Condition) meets(r *Request) bool {
	if c.Field == QueryString {
		return c.meetsQuery(r.Query)
	}
	for _, v := range c.Values {
		if c.meetsValue(v, r) {
			return true
		}
	}
	return false
}

func (c *Condition) meetsValue(value string, r *Request) bool {
	switch c.Field {
	case PathPattern:
		return wildcard{}.match(value, r.Path)
	case HostHeader:
		return wildcard{foldCase: true}.match(value, hostName(r.Host))
	case HTTPHeader:
		for _, text := range r.Header[textproto.CanonicalMIMEHeaderKey(c.HeaderName)] {
			if (wildcard{foldCase: true}).match(value, text) {
				return true
			}
		}
	case RequestMethod:
		return value == r.Method
	case SourceIP:
		block, err := netip.ParsePrefix(value)
		return err == nil && block.Contains(r.Source.Unmap())
	}
	return false
}

// meetsQuery compares parameters as they stand in the URL, undecoded.
func (c *Condition) meetsQuery(query string) bool {
	w := wildcard{foldCase: true, escapes: true}
	for parameter := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(parameter, "=")
		for _, want := range c.Query {
			if (want.Key == "" || w.match(want.Key, key)) && parameter != "" && w.match(want.Value, value) {
				return true
			}
		}
	}
	return false
}

// hostName cuts a port off.
func hostName(host string) string {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.IndexByte(host[colon:], ']') >= 0 {
		return host
	}
	return host[:colon]
}

// wildcard compares a text with a pattern in which * stands for any characters and ? for one.
type wildcard struct {
	foldCase bool // letters of ASCII are alike in both cases
	escapes  bool // a backslash takes its meaning from the character behind it
}

// match takes at most as many steps as the pattern's length times the text's: after a mismatch it only ever goes back to the last *.
func (w wildcard) match(pattern, text string) bool {
	p, t := 0, 0
	star, resume := -1, 0 // where the pattern goes on behind the last *, and which byte of the text that * takes next
	for t < len(text) {
		size, any := w.token(pattern, p)
		switch {
		case size == 1 && any && pattern[p] == '*':
			p++
			star, resume = p, t
		case size > 0 && (any || w.same(pattern[p+size-1], text[t])):
			p += size
			t++
		case star >= 0:
			resume++
			p, t = star, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// token returns how many bytes the pattern's next token has, 0 at its end, and whether it stands for others than itself.
func (w wildcard) token(pattern string, at int) (size int, any bool) {
	switch {
	case at >= len(pattern):
		return 0, false
	case w.escapes && pattern[at] == '\\' && at+1 < len(pattern):
		return 2, false
	}
	return 1, pattern[at] == '*' || pattern[at] == '?'
}

func (w wildcard) same(a, b byte) bool {
	return a == b || w.foldCase && lower(a) == lower(b)
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

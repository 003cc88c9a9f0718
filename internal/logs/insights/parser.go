package insights

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/logs/expression"
)

// parser reads a query from the left to the right, and builds its stages.
type parser struct {
	text    string
	at      int
	depth   int
	skipped [2]int // the last blank's start and end

	query       *Query
	expressions expression.Budget
	reads       []string // the fields that the command reads
	aggregates  *[]aggregate
	shown       []string // the columns of fields and parse
	hasFields   bool
	display     []string // the columns of the last display
	known       []string // after stats, the fields that there are
	statsCount  int
	afterDedup  bool
}

func (p *parser) rest() string { return p.text[p.at:] }

// blank skips white space, and comments up to the end of their lines.
func (p *parser) blank() {
	start := p.at
	defer func() {
		if p.at > start {
			p.skipped = [2]int{start, p.at}
		}
	}()
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		case '#':
			end := strings.IndexByte(p.rest(), '\n')
			if end < 0 {
				end = len(p.rest())
			}
			p.at += end
		default:
			return
		}
	}
}

// behind returns where the last thing that was read ends.
func (p *parser) behind() int {
	if p.at == p.skipped[1] {
		return p.skipped[0]
	}
	return p.at
}

// peek returns the next character, or 0 at the end.
func (p *parser) peek() byte {
	p.blank()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) take(symbol string) bool {
	p.blank()
	if !strings.HasPrefix(p.rest(), symbol) {
		return false
	}
	p.at += len(symbol)
	return true
}

// word takes a keyword, in small letters or capitals.
func (p *parser) word(word string) bool {
	p.blank()
	rest := p.rest()
	if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) || len(rest) > len(word) && inName(rest[len(word)]) {
		return false
	}
	p.at += len(word)
	return true
}

func inName(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '@' || c == '.' || c == '`'
}

// name takes a field's name. What stands in backticks may have any characters.
func (p *parser) name() (name string, quoted bool, err error) {
	p.blank()
	var b strings.Builder
	for p.at < len(p.text) && inName(p.text[p.at]) {
		if p.text[p.at] != '`' {
			b.WriteByte(p.text[p.at])
			p.at++
			continue
		}
		end := strings.IndexByte(p.rest()[1:], '`')
		if end < 0 {
			return "", false, p.wrong(p.at, "the backtick is not closed")
		}
		b.WriteString(p.rest()[1 : 1+end])
		p.at += end + 2
		quoted = true
	}
	if b.Len() == 0 {
		return "", false, p.unexpected()
	}
	return b.String(), quoted, nil
}

// unexpected refuses what stands here, as AWS does.
func (p *parser) unexpected() error {
	p.blank()
	start := p.at
	symbol := "<EOF>"
	if p.at < len(p.text) {
		for p.at < len(p.text) && inName(p.text[p.at]) {
			p.at++
		}
		if p.at == start {
			_, size := utf8.DecodeRuneInString(p.rest())
			p.at += size
		}
		symbol = p.text[start:p.at]
	}
	before := p.text[:start]
	line := strings.Count(before, "\n") + 1
	position := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return p.wrong(start, "unexpected symbol found %s at line %d and position %d", symbol, line, position)
}

// literal takes a text or a number.
func (p *parser) literal() (value, error) {
	if c := p.peek(); c == '"' || c == '\'' {
		s, err := p.quotation()
		return textOf(s), err
	}
	start := p.at
	p.take("-")
	n, err := p.number()
	if err != nil {
		return value{}, err
	}
	return value{kind: number, n: n, text: p.text[start:p.at]}, nil
}

// number takes a number without a sign.
func (p *parser) number() (float64, error) {
	p.blank()
	start := p.at
	for p.at < len(p.text) && (isDigit(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	n, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil {
		p.at = start
		return 0, p.unexpected()
	}
	return n, nil
}

// quotation takes a text in quotation marks of either kind. A backslash before a mark or another backslash takes it as it is.
func (p *parser) quotation() (string, error) {
	mark := p.peek()
	if mark != '"' && mark != '\'' {
		return "", p.unexpected()
	}
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == mark:
			p.at++
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.text) && strings.IndexByte(`"'\`, p.text[p.at+1]) >= 0:
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.wrong(start, "the quotation mark is not closed")
}

// regexp takes a regular expression between slashes. A slash in it has a backslash before it.
func (p *parser) regexp() (*regexp.Regexp, error) {
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '/':
			p.at++
			return p.compile(start, b.String())
		case c == '\\' && strings.HasPrefix(p.rest(), `\/`):
			p.at++
			b.WriteByte('/')
		case c == '\\' && p.at+1 < len(p.text):
			b.WriteString(p.text[p.at : p.at+2])
			p.at++
		default:
			b.WriteByte(c)
		}
	}
	return nil, p.wrong(start, "the regular expression is not closed by a slash")
}

// wrong refuses what stands between start and the place that is read next.
func (p *parser) wrong(start int, format string, args ...any) error {
	return &Error{
		Message: fmt.Sprintf(format, args...),
		Start:   utf8.RuneCountInString(p.text[:start]),
		End:     utf8.RuneCountInString(p.text[:max(p.at, start)]),
	}
}

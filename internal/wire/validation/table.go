package validation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// kind is a kind of shape.
type kind byte

// The kinds. Each is the sign after a shape's name in a table. Behind the sign, the line has these fields.
const (
	structure kind = '{' // its members: the name, ! if required, and : with the shape if that is constrained
	text      kind = '"' // shortest, longest, pattern
	enum      kind = '=' // the values
	number    kind = '#' // least, greatest
	list      kind = '[' // shortest, longest, shape of the elements
	mapping   kind = '%' // shortest, longest, shapes of the keys and of the values
	bytes     kind = '*' // shortest, longest
	secret    byte = '~' // before the sign of a shape whose values must not be shown
)

const signs = "{\"=#[%*~"

// shape has the constraints on a type of the model.
type shape struct {
	kind     kind
	secret   bool
	min, max *float64
	expr     string // the model's pattern, as shown in messages
	values   []string
	members  []member
	key      string // the name of the keys' shape
	element  string // the name of the elements' shape
	compiled func() *regexp.Regexp
	tooLong  string // message of its own for a text that is longer than max
}

type member struct {
	name     string
	required bool
	shape    string
}

// parse reads a table. Each line is a shape, with tabs between its fields. Lines that begin with # are comments.
func parse(table string) (map[string]*shape, error) {
	shapes := map[string]*shape{}
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		head, rest, _ := strings.Cut(line, "\t")
		at := strings.IndexAny(head, signs)
		if at <= 0 {
			return nil, fmt.Errorf("%q names no shape", head)
		}
		s := &shape{secret: head[at] == secret, kind: kind(head[len(head)-1])}
		if err := s.read(strings.Split(rest, "\t")); err != nil {
			return nil, fmt.Errorf("%s: %w", head, err)
		}
		shapes[head[:at]] = s
	}
	return shapes, nil
}

// read parses the fields behind the shape's name.
func (s *shape) read(fields []string) (err error) {
	switch s.kind {
	case structure:
		for _, f := range fields {
			name, target, _ := strings.Cut(f, ":")
			bare, required := strings.CutSuffix(name, "!")
			s.members = append(s.members, member{bare, required, target})
		}
		return nil
	case enum:
		s.values = fields
		return nil
	}
	fields = append(fields, "", "", "", "")
	if s.min, err = bound(fields[0]); err != nil {
		return err
	}
	if s.max, err = bound(fields[1]); err != nil {
		return err
	}
	switch s.kind {
	case text:
		if s.expr = fields[2]; s.expr != "" {
			s.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(Translate(s.expr)) })
		}
	case list:
		s.element = fields[2]
	case mapping:
		s.key = fields[2]
		s.element = fields[3]
	case number, bytes:
	default:
		return fmt.Errorf("there is no kind %q", s.kind)
	}
	return nil
}

func bound(s string) (*float64, error) {
	if s == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	return &n, err
}

var (
	surrogates = strings.NewReplacer(
		`\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`, `\ud800\udc00-\udbff\udfff`, `\x{10000}-\x{10FFFF}`,
	)
	codePoint = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)
)

// Translate turns a model's pattern, which is Java's, into a Go pattern that matches a whole text. Not all of them compile.
func Translate(expr string) string {
	return `^(?:` + codePoint.ReplaceAllString(surrogates.Replace(expr), `\x{$1}`) + `)$`
}

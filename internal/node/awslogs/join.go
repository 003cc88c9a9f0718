package awslogs

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pintle/pintle/internal/node/runtime"
)

// joiner turns lines into events. Each line becomes an event; with a pattern, an event is a line that matches and all lines up to the next
// match.
type joiner struct {
	starts *regexp.Regexp // matches an event's first line; nil matches every line
	done   []event
	open   []runtime.Line // an event that may get more lines
	bytes  int            // of open
	aged   bool           // open has had no new line since the last flush
}

// newJoiner reads the options awslogs-multiline-pattern and awslogs-datetime-format.
func newJoiner(options map[string]string) (joiner, error) {
	pattern, format := options["awslogs-multiline-pattern"], options["awslogs-datetime-format"]
	switch {
	case pattern != "" && format != "":
		return joiner{}, fmt.Errorf("awslogs-multiline-pattern and awslogs-datetime-format exclude each other")
	case format != "":
		pattern = strftime(format)
	case pattern == "":
		return joiner{}, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return joiner{}, fmt.Errorf("awslogs-multiline-pattern: %w", err)
	}
	return joiner{starts: re}, nil
}

// add adds a line.
func (j *joiner) add(l runtime.Line) {
	if j.starts == nil {
		j.done = append(j.done, event{l.At, l.Text, l.Cursor})
		return
	}
	if len(j.open) > 0 && (j.starts.MatchString(l.Text) || j.bytes+len(l.Text) > maxEvent) {
		j.end()
	}
	j.open = append(j.open, l)
	j.bytes += len(l.Text) + 1
	j.aged = false
}

// end finishes the open event.
func (j *joiner) end() {
	if len(j.open) == 0 {
		return
	}
	var text []string
	for _, l := range j.open {
		text = append(text, l.Text)
	}
	j.done = append(j.done, event{j.open[0].At, strings.Join(text, "\n"), j.open[len(j.open)-1].Cursor})
	j.open = nil
	j.bytes = 0
}

// age ends the open event if it has had no new line since the last call.
func (j *joiner) age() {
	if j.aged {
		j.end()
	}
	j.aged = len(j.open) > 0
}

func (j *joiner) hasOpen() bool { return len(j.open) > 0 }

// take removes and returns the finished events.
func (j *joiner) take() []event {
	out := j.done
	j.done = nil
	return out
}

// conversions are patterns for strftime's conversion specifiers.
var conversions = map[byte]string{
	'a': `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)`,
	'A': `(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)`,
	'b': `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`,
	'B': `(?:January|February|March|April|May|June|July|August|September|October|November|December)`,
	'd': `[0-3]?\d`,
	'm': `[01]?\d`,
	'Y': `\d{4}`,
	'y': `\d{2}`,
	'H': `[0-2]?\d`,
	'I': `[01]?\d`,
	'M': `[0-5]?\d`,
	'S': `[0-5]?\d`,
	'f': `\d{1,6}`,
	'L': `\d{3}`,
	'p': `[AaPp][Mm]`,
	'j': `\d{1,3}`,
	'w': `\d`,
	'Z': `[A-Z]{1,4}T?`,
	'z': `[+-]\d{4}`,
	'%': `%`,
}

// strftime returns a pattern that matches times in a format of strftime's.
func strftime(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] == '%' && i+1 < len(format) {
			if p, ok := conversions[format[i+1]]; ok {
				b.WriteString(p)
				i++
				continue
			}
		}
		b.WriteString(regexp.QuoteMeta(format[i : i+1]))
	}
	return b.String()
}

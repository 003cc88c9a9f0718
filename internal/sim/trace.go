package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is one request of a load.
type Request struct {
	// At is when it arrives, from the beginning of the load.
	At time.Duration
	// Work is how long a slot works on it.
	Work time.Duration
}

// The bounds of a trace. A wrong file must not take all memory, and a time.Duration holds at most 292 years.
const (
	maxRequests = 50_000_000
	longest     = 100 * 365 * 24 * time.Hour
)

// ReadTrace reads requests from CSV with a header line. The first column is when each request arrived: a date and time, or a
// number of seconds. work says how long a slot works for each unit of a column. The columns that it names are added up, along
// with fixed for every request.
func ReadTrace(r io.Reader, work map[string]time.Duration, fixed time.Duration) ([]Request, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("the trace has no line of names: %w", err)
	}
	if fixed < 0 || fixed > longest {
		return nil, fmt.Errorf("no request is worked on for %s", fixed)
	}
	columns, err := columnsOf(header, work)
	if err != nil {
		return nil, err
	}
	var out []Request
	var first float64
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		at, err := seconds(record[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if len(out) == 0 {
			first = at
		}
		if math.Abs(at-first) > longest.Seconds() {
			return nil, fmt.Errorf("line %d: it is more than %s from the first", line, longest)
		}
		request := Request{At: duration(at - first), Work: fixed}
		for _, c := range columns {
			if err := c.add(&request, record); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
		}
		if len(out) == maxRequests {
			return nil, fmt.Errorf("the trace has more than %d requests", maxRequests)
		}
		out = append(out, request)
	}
	slices.SortStableFunc(out, func(a, b Request) int { return int(a.At - b.At) })
	if len(out) > 0 && out[0].At < 0 { // they were not in order
		for i, base := 0, out[0].At; i < len(out); i++ {
			out[i].At -= base
		}
	}
	return out, nil
}

// column is a column of a trace that determines work: each is the work for one unit.
type column struct {
	name string
	at   int
	each time.Duration
}

func columnsOf(header []string, work map[string]time.Duration) (out []column, err error) {
	for _, name := range slices.Sorted(maps.Keys(work)) {
		if work[name] < 0 {
			return nil, fmt.Errorf("the work of a unit of %s cannot be negative", name)
		}
		i := slices.Index(header, name)
		if i < 1 {
			return nil, fmt.Errorf("the trace has no column %q that tells work: its columns are %s", name, strings.Join(header[1:], ", "))
		}
		out = append(out, column{name, i, work[name]})
	}
	return out, nil
}

// add adds a line's work to its request.
func (c column) add(to *Request, line []string) error {
	n, err := strconv.ParseFloat(line[c.at], 64)
	if err != nil || !(n >= 0 && n <= 1e9) {
		return fmt.Errorf("%s must be a number from 0 on, not %q", c.name, line[c.at])
	}
	more := n * float64(c.each)
	if more > float64(longest-to.Work) {
		return fmt.Errorf("a request that is worked on for more than %s", longest)
	}
	to.Work += time.Duration(more)
	return nil
}

// layouts are the date formats of traces.
var layouts = []string{time.DateTime, time.RFC3339} // both accept fractions of seconds

// seconds parses a time.
func seconds(s string) (float64, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= -1e12 && f <= 1e12 {
		return f, nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, nil
		}
	}
	return 0, fmt.Errorf("%q is neither a number of seconds nor a date and time such as 2023-11-16 18:17:03.98", s)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Repeat repeats a load until it has a length. It starts over a second after its last request.
func Repeat(requests []Request, length time.Duration) []Request {
	if len(requests) == 0 {
		return nil
	}
	lap := requests[len(requests)-1].At.Truncate(time.Second) + time.Second
	var out []Request
	for base := time.Duration(0); base < length; base += lap {
		for _, r := range requests {
			if r.At+base >= length {
				break
			}
			out = append(out, Request{r.At + base, r.Work})
		}
	}
	return out
}

package exposition

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// maxLine is the most bytes of a line. One has some twenty labels.
const maxLine = 64 << 10

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelPair  = regexp.MustCompile(`^[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*`)
)

// Parse reads the samples of a page. Names in quotes, which Prometheus has since its third version, are refused.
func Parse(r io.Reader) ([]Sample, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var out []Sample
	for n := 1; lines.Scan(); n++ {
		line := strings.Trim(lines.Text(), " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, s)
	}
	return out, lines.Err()
}

// parseSample reads a sample, whose time is left out.
func parseSample(line string) (s Sample, err error) {
	if s.Metric = metricName.FindString(line); s.Metric == "" {
		return s, fmt.Errorf("%.40q does not begin with a metric's name", line)
	}
	rest := strings.TrimLeft(line[len(s.Metric):], " \t")
	if strings.HasPrefix(rest, "{") {
		if s.Labels, rest, err = parseLabels(rest[1:]); err != nil {
			return s, fmt.Errorf("%s: %w", s.Metric, err)
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 || len(fields) > 2 {
		return s, fmt.Errorf("%s has no value, or more than a value and a time", s.Metric)
	}
	if s.Value, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return s, fmt.Errorf("%s: its value %.40q is no number", s.Metric, fields[0])
	}
	if len(fields) == 2 {
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			return s, fmt.Errorf("%s: its time %.40q is no number of milliseconds", s.Metric, fields[1])
		}
	}
	return s, nil
}

// parseLabels reads labels up to the brace that ends them, and returns what is behind it.
func parseLabels(text string) (labels []Label, rest string, err error) {
	for {
		m := labelPair.FindStringSubmatch(text)
		if m == nil {
			break
		}
		labels = append(labels, Label{m[1], unescapeValue.Replace(m[2])})
		text = text[len(m[0]):]
		if !strings.HasPrefix(text, ",") {
			break
		}
		text = text[1:]
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t"), "}")
	if !ok {
		return nil, "", fmt.Errorf("%.40q is neither a label nor the end of the labels", text)
	}
	return labels, rest, nil
}

// Package emf parses CloudWatch's embedded metric format: Parse finds the metrics in a line of a log. It is pure. CloudWatch Logs calls it
// for the events of PutLogEvents. It follows
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
package emf

import (
	"encoding/json"
	"strings"
	"time"
)

// Metric is one metric of a line, with one set of dimensions.
type Metric struct {
	Namespace  string
	Name       string
	Dimensions []Dimension
	Unit       string // "" if not given
	Resolution int    // in seconds; 0 if not given
	At         time.Time
	Values     []float64
}

// Dimension is a name and a value.
type Dimension struct{ Name, Value string }

// Limits of the format.
const (
	maxValues     = 100
	maxMetrics    = 100 // in a directive
	maxDimensions = 30
)

// directive tells which members of a line are metrics.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []struct {
		Name, Unit        string
		StorageResolution int
	}
}

// metadata holds the directives: in the member _aws, or in the line itself in the format's older version, which the CloudWatch agent
// still writes for Prometheus.
type metadata struct {
	Timestamp         json.RawMessage
	CloudWatchMetrics []directive
}

// Parse returns the metrics in a line, or none if the line isn't in the format. It leaves out metrics and sets of dimensions for which
// the line has no valid members.
func Parse(line string) []Metric {
	if !strings.Contains(line, `"CloudWatchMetrics"`) { // most lines
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &members) != nil {
		return nil
	}
	var meta metadata
	if in, ok := members["_aws"]; ok {
		if json.Unmarshal(in, &meta) != nil {
			return nil
		}
	} else if json.Unmarshal(members["CloudWatchMetrics"], &meta.CloudWatchMetrics) != nil {
		return nil
	} else {
		meta.Timestamp = members["Timestamp"]
	}
	at, ok := timeOf(meta.Timestamp)
	if !ok {
		return nil
	}
	var out []Metric
	for i := range meta.CloudWatchMetrics {
		out = append(out, meta.CloudWatchMetrics[i].read(members, at)...)
	}
	return out
}

// timeOf parses milliseconds since 1970: a number or, in the older version, a string.
func timeOf(raw json.RawMessage) (time.Time, bool) {
	var ms int64
	if err := json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &ms); err != nil || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}

func (d *directive) read(members map[string]json.RawMessage, at time.Time) []Metric {
	if d.Namespace == "" || len(d.Metrics) > maxMetrics {
		return nil
	}
	sets := d.Dimensions
	if len(sets) == 0 {
		sets = [][]string{nil}
	}
	var out []Metric
	for _, names := range sets {
		dimensions, ok := dimensionsOf(members, names)
		if !ok {
			continue
		}
		for _, m := range d.Metrics {
			if values := valuesOf(members[m.Name]); values != nil {
				out = append(out, Metric{
					Namespace:  d.Namespace,
					Name:       m.Name,
					Dimensions: dimensions,
					Unit:       m.Unit,
					Resolution: m.StorageResolution,
					At:         at,
					Values:     values,
				})
			}
		}
	}
	return out
}

func dimensionsOf(members map[string]json.RawMessage, names []string) ([]Dimension, bool) {
	if len(names) > maxDimensions {
		return nil, false
	}
	out := make([]Dimension, len(names))
	for i, name := range names {
		out[i].Name = name
		if json.Unmarshal(members[name], &out[i].Value) != nil || out[i].Value == "" {
			return nil, false
		}
	}
	return out, true
}

// valuesOf parses a number or a list of numbers. It returns nil for anything else.
func valuesOf(raw json.RawMessage) []float64 {
	var one *float64
	if json.Unmarshal(raw, &one) == nil && one != nil {
		return []float64{*one}
	}
	var many []*float64
	if json.Unmarshal(raw, &many) != nil || len(many) == 0 || len(many) > maxValues {
		return nil
	}
	out := make([]float64, len(many))
	for i, v := range many {
		if v == nil {
			return nil
		}
		out[i] = *v
	}
	return out
}

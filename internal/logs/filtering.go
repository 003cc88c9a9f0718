package logs

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	metrictypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/filterpattern"
	"github.com/pintle/pintle/internal/logs/streams"
)

// metricFilter makes metrics of the events that match its pattern. It is safe for concurrent use.
type metricFilter struct {
	id         string // names its debts
	pattern    *filterpattern.Pattern
	to         types.MetricTransformation
	value      func(filterpattern.Found) (float64, bool)
	dimensions []dimensionReader // by name
	// said is the last minute for which the outbox has been told what the default value needs, and whether something matched in it.
	said atomic.Int64
}

// dimensionReader reads a dimension's value from an event.
type dimensionReader struct {
	name string
	read filterpattern.Selector
}

// maxDatumValues is how many different values CloudWatch takes in one datum: API_MetricDatum.
const maxDatumValues = 150

// apply returns the metrics of events, and reports whether any event matched. Events of one minute with the same dimensions become one
// datum: these metrics have no higher resolution.
func (f *metricFilter) apply(events []streams.Event) (data []metrictypes.MetricDatum, matched bool) {
	at := map[string]int{} // where data has the datum of a minute and its dimensions
	for _, e := range events {
		found, ok := f.pattern.Find(e.Message)
		if !ok {
			continue
		}
		matched = true
		value, ok := f.value(found)
		if !ok {
			continue
		}
		dimensions, ok := f.dimensionsOf(found)
		if !ok {
			continue
		}
		key := datumKey(e.Timestamp/time.Minute.Milliseconds(), dimensions)
		i, ok := at[key]
		if !ok || !addValue(&data[i], value) {
			at[key] = len(data)
			data = append(data, metrictypes.MetricDatum{
				MetricName: f.to.MetricName,
				Timestamp:  aws.Time(time.UnixMilli(e.Timestamp).UTC()),
				Dimensions: dimensions,
				Unit:       metrictypes.StandardUnit(f.to.Unit),
				Values:     []float64{value},
				Counts:     []float64{1},
			})
		}
	}
	return data, matched
}

// dimensionsOf reads an event's dimensions. An event that lacks one of them makes no metric.
func (f *metricFilter) dimensionsOf(found filterpattern.Found) ([]metrictypes.Dimension, bool) {
	var out []metrictypes.Dimension
	for _, d := range f.dimensions {
		value, ok := d.read(found)
		if !ok || value == "" {
			return nil, false
		}
		out = append(out, metrictypes.Dimension{Name: aws.String(d.name), Value: aws.String(value)})
	}
	return out, true
}

// datumKey names a minute and the values of dimensions, which always come in the same order.
func datumKey(minute int64, dimensions []metrictypes.Dimension) string {
	if len(dimensions) == 0 {
		return strconv.FormatInt(minute, 10)
	}
	var b strings.Builder
	b.WriteString(strconv.FormatInt(minute, 10))
	for _, d := range dimensions {
		b.WriteString(strconv.Quote(*d.Value))
	}
	return b.String()
}

// addValue adds a value to a datum unless that is full.
func addValue(d *metrictypes.MetricDatum, value float64) bool {
	for i, v := range d.Values {
		if v == value {
			d.Counts[i]++
			return true
		}
	}
	if len(d.Values) == maxDatumValues {
		return false
	}
	d.Values = append(d.Values, value)
	d.Counts = append(d.Counts, 1)
	return true
}

// A default value is reported once for each minute in which events came and none of them matched, which is known only when the minute is
// over. So the first events that don't match owe the value at the minute's end, and the first that match make that void. Both
// are in the outbox, so that a crash forgets neither.

// needsSaying reports whether the outbox must hear that events came at a time.
func (f *metricFilter) needsSaying(now time.Time, matched bool) bool {
	return f.to.DefaultValue != nil && f.said.Load() < minuteCode(now, matched)
}

// minuteCode orders minutes and, in each, a match behind none.
func minuteCode(now time.Time, matched bool) int64 {
	code := now.Unix() / 60 * 2
	if matched {
		code++
	}
	return code
}

// say records that the outbox has heard.
func (f *metricFilter) say(code int64) {
	for {
		old := f.said.Load()
		if old >= code || f.said.CompareAndSwap(old, code) {
			return
		}
	}
}

// quiet returns the debt for the minute of a time: of the default value, or of nothing if something matched.
func (f *metricFilter) quiet(now time.Time, matched bool) delivery.Debt {
	start := now.Truncate(time.Minute).UTC()
	d := delivery.Debt{
		ID:          f.id + ":" + strconv.FormatInt(start.Unix(), 10),
		Destination: metricsArn,
		NotBefore:   start.Add(time.Minute),
		Until:       now.Add(patience),
		Void:        matched,
	}
	if matched {
		return d
	}
	body, err := json.Marshal(cloudwatch.PutMetricDataInput{Namespace: f.to.MetricNamespace, MetricData: []metrictypes.MetricDatum{{
		MetricName: f.to.MetricName,
		Timestamp:  &start,
		Unit:       metrictypes.StandardUnit(f.to.Unit),
		Value:      f.to.DefaultValue,
	}}})
	if err != nil {
		panic(err) // the value is finite: checkTransformation
	}
	d.Body = string(body)
	return d
}

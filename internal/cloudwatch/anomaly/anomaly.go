// Package anomaly learns a metric's usual range from its past: Train builds a model from data points, and the model's
// Band is the range in which a value is no anomaly. AWS doesn't publish its model, so this one is Pintle's own, and small:
// the mean and the standard deviation for the hour of the week, or of the day, or of all data points, whichever comes first
// with enough data. It is pure; metricquery trains models for ANOMALY_DETECTION_BAND.
package anomaly

import (
	"math"
	"time"
)

// Memory is how far back data points count: the CloudWatch User Guide's page "Using CloudWatch anomaly detection".
const Memory = 14 * 24 * time.Hour

// Point is a data point.
type Point struct {
	At    time.Time
	Value float64
}

// Model holds a metric's expected values. It is safe for concurrent use.
type Model struct {
	zone *time.Location
	week [7 * 24]cell
	day  [24]cell
	all  cell
	// negative says that there were values below 0. Otherwise the band ends at 0.
	negative bool
}

// cell summarizes the data points of one hour of the week, of one hour of the day, or all data points.
type cell struct {
	count   float64
	mean    float64
	squares float64 // the sum of the squared distances from the mean
	days    int     // on how many days there were data points
	last    int     // the last of these days, as days since 1970
}

const (
	enoughDays   = 2 // on which an hour of the week or day needs data points
	enoughPoints = 3 // in all
)

// leastShare is the least deviation of an hour, as a share of the deviation of all data points. An hour that was constant
// twice may still vary the third time.
const leastShare = 0.1

// Train builds a model from data points, oldest first. Its hours are those of the time zone.
func Train(points []Point, zone *time.Location) *Model {
	m := &Model{zone: zone}
	for _, p := range points {
		at := p.At.In(zone)
		_, offset := at.Zone()
		day := int((at.Unix() + int64(offset)) / (24 * 60 * 60))
		for _, c := range []*cell{&m.week[hourOfWeek(at)], &m.day[at.Hour()], &m.all} {
			c.add(p.Value, day)
		}
		m.negative = m.negative || p.Value < 0
	}
	return m
}

func hourOfWeek(at time.Time) int { return int(at.Weekday())*24 + at.Hour() }

// add counts a value by Welford's method, which avoids sums of squares too large for a float's precision.
func (c *cell) add(value float64, day int) {
	if c.days == 0 || day != c.last {
		c.days++
		c.last = day
	}
	c.count++
	distance := value - c.mean
	c.mean += distance / c.count
	c.squares += distance * (value - c.mean)
}

func (c *cell) deviation() float64 { return math.Sqrt(c.squares / c.count) }

// Ready reports whether there was enough data to expect anything.
func (m *Model) Ready() bool { return m.all.count >= enoughPoints }

// Band returns the range expected at a time, so many standard deviations around the mean. ok is false if there wasn't
// enough data to expect anything.
func (m *Model) Band(at time.Time, deviations float64) (lower, upper float64, ok bool) {
	if !m.Ready() {
		return 0, 0, false
	}
	at = at.In(m.zone)
	c := &m.week[hourOfWeek(at)]
	if c.days < enoughDays {
		c = &m.day[at.Hour()]
	}
	if c.days < enoughDays {
		c = &m.all
	}
	width := deviations * max(c.deviation(), leastShare*m.all.deviation())
	lower, upper = c.mean-width, c.mean+width
	if !m.negative {
		lower = max(lower, 0)
	}
	return lower, upper, true
}

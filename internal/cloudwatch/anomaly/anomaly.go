// Package anomaly expects of a metric what it has been: Train makes a model of its data points, and the model's Band is
// the range in which a value is no anomaly. AWS does not publish its model; this one is Pintle's own, and small: the mean
// and the standard deviation by the hour of the week, or of the day, or of all, whichever has been seen often enough.
// It is pure; metricquery trains models for ANOMALY_DETECTION_BAND.
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

// Model is what is expected of a metric. It may be used by many goroutines.
type Model struct {
	zone *time.Location
	week [7 * 24]cell
	day  [24]cell
	all  cell
	// negative says that values below 0 have been seen; else the band does not go below it.
	negative bool
}

// cell is the data points of one hour of the week, of the day, or all.
type cell struct {
	count, mean, squares float64 // squares is the sum of the squared distances from the mean
	days                 int     // on how many days they came
	last                 int     // the day of the last one, as days since 1970
}

// Data points are enough for a band: an hour of the week or day that came on some days, and all together if there are
// some.
const (
	enoughDays   = 2
	enoughPoints = 3
)

// least is the part of the deviation of all data points that an hour's is taken to be at least: one that was all quiet
// twice is no promise for the third time.
const least = 0.1

// Train makes a model of data points, oldest first, whose hours are those of a time zone.
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

// add counts a value, after Welford: no sum of squares that is too large for its digits.
func (c *cell) add(value float64, day int) {
	if c.days == 0 || day != c.last {
		c.days, c.last = c.days+1, day
	}
	c.count++
	distance := value - c.mean
	c.mean += distance / c.count
	c.squares += distance * (value - c.mean)
}

func (c *cell) deviation() float64 { return math.Sqrt(c.squares / c.count) }

// Ready reports whether there is enough to expect anything by.
func (m *Model) Ready() bool { return m.all.count >= enoughPoints }

// Band is the range of what is expected at a time, so many standard deviations about the mean; ok is false where there
// is not enough to expect anything by.
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
	width := deviations * max(c.deviation(), least*m.all.deviation())
	lower, upper = c.mean-width, c.mean+width
	if !m.negative {
		lower = max(lower, 0)
	}
	return lower, upper, true
}

package metrics

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// Data on disk consists of varints, so that small numbers, and values with few digits, take few bytes.

var errCorrupt = errors.New("metrics: corrupt data")

// appendFloat reverses the bytes of a float, since the low ones are mostly 0: 75 takes three bytes.
func appendFloat(b []byte, f float64) []byte {
	return binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(f)))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The forms of a set.
const (
	formOne    = iota // one value
	formEqual         // several equal values
	formSet           // a statistic set
	formValues        // a statistic set with its values
)

func appendSet(b []byte, s *Set) []byte {
	switch {
	case s.Count == 1 && s.Min == s.Max && s.Sum == s.Min:
		return appendFloat(append(b, formOne), s.Min)
	case s.Min == s.Max:
		return appendFloat(appendFloat(appendFloat(append(b, formEqual), s.Count), s.Sum), s.Min)
	}
	form := byte(formSet)
	if s.Values != nil {
		form = formValues
	}
	b = append(b, form)
	for _, f := range []float64{s.Count, s.Sum, s.Min, s.Max} {
		b = appendFloat(b, f)
	}
	if form == formSet {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(s.Values)))
	for _, v := range s.Values {
		b = appendFloat(appendFloat(b, v.Value), v.Count)
	}
	return b
}

// decoder decodes what the append functions wrote. After the first error it returns zeros and sets err.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	d.b = nil
	d.err = errCorrupt
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) float() float64 { return math.Float64frombits(bits.ReverseBytes64(d.uvarint())) }

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) set() Set {
	switch form := d.byte(); form {
	case formOne:
		return One(d.float())
	case formEqual:
		s := Set{Count: d.float(), Sum: d.float(), Min: d.float()}
		s.Max = s.Min
		return s
	case formSet, formValues:
		s := Set{Count: d.float(), Sum: d.float(), Min: d.float(), Max: d.float()}
		if form == formValues {
			s.Values = d.values()
		}
		return s
	}
	d.fail()
	return Set{}
}

func (d *decoder) values() []Value {
	n := d.uvarint()
	if n == 0 || n > maxValues {
		d.fail()
		return nil
	}
	values := make([]Value, n)
	for i := range values {
		values[i] = Value{d.float(), d.float()}
	}
	return values
}

// A record in the log holds new series, and samples.

func appendRecord(b []byte, made []*series, samples []sample) []byte {
	b = binary.AppendUvarint(b, uint64(len(made)))
	for _, s := range made {
		b = appendSeries(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(samples)))
	for i := range samples {
		s := &samples[i]
		b = binary.AppendUvarint(b, uint64(s.series))
		b = binary.AppendVarint(b, s.at)
		b = append(b, fineness(s.fine))
		b = appendSet(b, &s.Set)
	}
	return b
}

func fineness(fine bool) byte {
	if fine {
		return 1
	}
	return 0
}

func appendSeries(b []byte, s *series) []byte {
	b = binary.AppendUvarint(b, uint64(s.id))
	for _, text := range []string{s.metric.Namespace, s.metric.Name, s.unit} {
		b = appendString(b, text)
	}
	b = binary.AppendUvarint(b, uint64(len(s.metric.Dimensions)))
	for _, d := range s.metric.Dimensions {
		b = appendString(appendString(b, d.Name), d.Value)
	}
	return b
}

// storedSeries is a series as stored on disk.
type storedSeries struct {
	id     uint32
	metric Metric
	unit   string
}

func (d *decoder) series() storedSeries {
	n := storedSeries{id: uint32(d.uvarint()), metric: Metric{Namespace: d.string(), Name: d.string()}, unit: d.string()}
	for range d.length() {
		n.metric.Dimensions = append(n.metric.Dimensions, Dimension{d.string(), d.string()})
	}
	return n
}

// length decodes the number of items that follow. Each takes at least a byte, so more than the bytes left is an error.
func (d *decoder) length() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func parseRecord(b []byte) (made []storedSeries, samples []sample, err error) {
	d := &decoder{b: b}
	for range d.length() {
		made = append(made, d.series())
	}
	for range d.length() {
		samples = append(samples, sample{series: uint32(d.uvarint()), bin: bin{at: d.varint(), fine: d.byte() == 1, Set: d.set()}})
	}
	if d.err == nil && len(d.b) > 0 {
		d.err = errCorrupt
	}
	return made, samples, d.err
}

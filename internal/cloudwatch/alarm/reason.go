package alarm

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ReasonData is a metric alarm's StateReasonData, which clients parse.
type ReasonData struct {
	Version             string               `json:"version"`
	QueryDate           timestamp            `json:"queryDate"`
	StartDate           *timestamp           `json:"startDate,omitempty"`
	Unit                string               `json:"unit,omitempty"`
	Statistic           string               `json:"statistic,omitempty"`
	Period              int                  `json:"period"`
	RecentDatapoints    []float64            `json:"recentDatapoints"`
	Threshold           *float64             `json:"threshold,omitempty"` // nil for a band
	EvaluatedDatapoints []EvaluatedDatapoint `json:"evaluatedDatapoints,omitempty"`
}

// EvaluatedDatapoint is a data point of ReasonData.
type EvaluatedDatapoint struct {
	Timestamp   timestamp `json:"timestamp"`
	SampleCount float64   `json:"sampleCount,omitempty"`
	Value       float64   `json:"value"`
}

// JSON returns the data as DescribeAlarms shows it.
func (d ReasonData) JSON() string {
	b, err := json.Marshal(d)
	if err != nil {
		return "{}" // can't happen: only NaN and infinities fail, and data points have none
	}
	return string(b)
}

// CompositeData is a composite alarm's StateReasonData.
type CompositeData struct {
	TriggeringAlarms []TriggeringAlarm `json:"triggeringAlarms"`
}

// TriggeringAlarm is an alarm whose change changed a composite one.
type TriggeringAlarm struct {
	ARN   string     `json:"arn"`
	State ChildState `json:"state"`
}

// ChildState is the state that an alarm changed to.
type ChildState struct {
	Value     State  `json:"value"`
	Timestamp string `json:"timestamp"`
}

// NewCompositeData returns the StateReasonData of a composite alarm whose state changed because of the underlying alarm arn.
func NewCompositeData(arn string, child State, at time.Time) CompositeData {
	text, _ := timestamp(at).MarshalText()
	return CompositeData{[]TriggeringAlarm{{arn, ChildState{child, string(text)}}}}
}

// JSON returns the data as DescribeAlarms shows it.
func (d CompositeData) JSON() string {
	b, _ := json.Marshal(d) // can't fail: it's all text
	return string(b)
}

// timestamp is a time in CloudWatch's JSON format.
type timestamp time.Time

func (t timestamp) MarshalText() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format("2006-01-02T15:04:05.000-0700")), nil
}

func (m Metric) data(v verdict, now time.Time) ReasonData {
	d := ReasonData{
		Version:          "1.0",
		QueryDate:        timestamp(now),
		Unit:             m.Unit,
		Statistic:        m.Statistic,
		Period:           int(m.Period / time.Second),
		RecentDatapoints: []float64{},
	}
	if !m.Banded() {
		d.Threshold = &m.Threshold
	}
	for i, p := range v.real {
		if i == 0 {
			d.StartDate = (*timestamp)(&p.Timestamp)
		}
		d.RecentDatapoints = append(d.RecentDatapoints, p.Value)
	}
	for i := len(v.real) - 1; i >= 0; i-- { // newest first, as in the reason
		p := v.real[i]
		d.EvaluatedDatapoints = append(d.EvaluatedDatapoints, EvaluatedDatapoint{timestamp(p.Timestamp), p.SampleCount, p.Value})
	}
	return d
}

// Initial is the reason of an alarm that hasn't been evaluated yet.
const Initial = "Unchecked: Initial alarm creation"

// reason explains the new state in CloudWatch's words.
func (m Metric) reason(state State, v verdict) string {
	if state == InsufficientData {
		return "Insufficient Data: " + plural(v.missing, "datapoint was unknown.", "datapoints were unknown.")
	}
	treated := ""
	if v.missing > 0 && (m.TreatMissingData == Breaching || m.TreatMissingData == NotBreaching) {
		as := map[string]string{Breaching: "[Breaching]", NotBreaching: "[NonBreaching]"}[m.TreatMissingData]
		treated = plural(v.missing, "missing datapoint was treated as ", "missing datapoints were treated as ") + as
	}
	crossed := m.crossed(state, v)
	switch {
	case len(v.real) == 0:
		return fmt.Sprintf("Threshold Crossed: no datapoints were received for %s and %s.", plural(v.missing, "period", "periods"), treated)
	case crossed == "":
		return fmt.Sprintf("Threshold Crossed: %s.", treated)
	case treated != "":
		return fmt.Sprintf("Threshold Crossed: %s and %s.", crossed, treated)
	}
	atLeast, transition := m.toAlarm(), "OK -> ALARM"
	if state == OK {
		atLeast, transition = m.EvaluationPeriods-m.toAlarm()+1, "ALARM -> OK"
	}
	return fmt.Sprintf(
		"Threshold Crossed: %s (minimum %s for %s transition).",
		crossed, plural(atLeast, "datapoint", "datapoints"), transition,
	)
}

// crossed lists the data points on the state's side of the threshold, newest first, or returns "" if there are none.
func (m Metric) crossed(state State, v verdict) string {
	var values []string
	for i := len(v.real) - 1; i >= 0; i-- {
		if p := v.real[i]; m.breaches(p) == (state == Alarming) {
			values = append(values, fmt.Sprintf("%s (%s)", number(p.Value), p.Timestamp.UTC().Format("02/01/06 15:04:05")))
		}
	}
	if len(values) == 0 {
		return ""
	}
	was := "was"
	if len(values) != 1 {
		was = "were"
	}
	if state == OK {
		was += " not"
	}
	return fmt.Sprintf("%d out of the last %d datapoints [%s] %s %s (%s)",
		len(values), len(v.real), strings.Join(values, ", "), was, m.comparison().words, m.against(v))
}

// against returns what the data points are compared with: the threshold, or the newest band.
func (m Metric) against(v verdict) string {
	if !m.Banded() {
		return number(m.Threshold)
	}
	p := v.real[len(v.real)-1]
	return number(p.Lower) + " to " + number(p.Upper)
}

// plural writes the number and the form that goes with it.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// number formats a number as CloudWatch's reasons do: 4.0, 99.5, 1.0E7.
func number(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if a := max(f, -f); a != 0 && (a >= 1e7 || a < 1e-3) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		n, _ := strconv.Atoi(exponent)
		return withPoint(mantissa) + "E" + strconv.Itoa(n)
	}
	return withPoint(s)
}

func withPoint(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

package scaling

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// StepOfGroup reads a policy of an Auto Scaling group, as the API keeps it. A simple one is a step without bounds.
func StepOfGroup(p *types.ScalingPolicy) Step {
	s := Step{AdjustmentType: aws.ToString(p.AdjustmentType), MinAdjustmentMagnitude: int(aws.ToInt32(p.MinAdjustmentMagnitude))}
	if p.ScalingAdjustment != nil {
		s.Adjustments = []StepAdjustment{{Adjustment: int(*p.ScalingAdjustment)}}
	}
	for _, a := range p.StepAdjustments {
		s.Adjustments = append(s.Adjustments, StepAdjustment{a.MetricIntervalLowerBound, a.MetricIntervalUpperBound, int(aws.ToInt32(a.ScalingAdjustment))})
	}
	return s
}

// NextOfGroup is when a scheduled action of an Auto Scaling group is due after a time; nil where it is not any more. Its
// Recurrence is cron's own five fields: what is missing of AWS's six is the year, and one of its two days is a ?.
func NextOfGroup(a *types.ScheduledUpdateGroupAction, now time.Time) (*time.Time, error) {
	if a.Recurrence == nil {
		if start := aws.ToTime(a.StartTime); start.After(now) {
			return &start, nil
		}
		return nil, nil
	}
	s, err := ParseSchedule("cron("+awsCron(*a.Recurrence)+")", aws.ToString(a.TimeZone))
	if err != nil {
		return nil, err
	}
	s.End = aws.ToTime(a.EndTime)
	from := now
	if start := aws.ToTime(a.StartTime); start.After(now) {
		from = start.Add(-time.Second) // the first time that the recurrence comes to at its start, or after it
	}
	if at, ok := s.Next(from); ok {
		return &at, nil
	}
	return nil, nil
}

// awsCron is a cron expression of five fields as AWS's of six. Days of the week count from 0 there, and from 1 here.
func awsCron(text string) string {
	f := strings.Fields(text)
	if len(f) != 5 {
		return text // it is refused
	}
	f[4] = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '6' {
			return r + 1
		}
		if r == '7' {
			return '1'
		}
		return r
	}, f[4])
	switch {
	case f[4] == "*":
		f[4] = "?"
	case f[2] == "*":
		f[2] = "?"
	}
	return strings.Join(append(f, "*"), " ")
}

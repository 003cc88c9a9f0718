package scaling

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// StepOfGroup reads a policy of an Auto Scaling group as the API keeps it. A simple scaling policy becomes one step without bounds.
func StepOfGroup(p *types.ScalingPolicy) Step {
	s := Step{AdjustmentType: aws.ToString(p.AdjustmentType), MinAdjustmentMagnitude: int(aws.ToInt32(p.MinAdjustmentMagnitude))}
	if p.ScalingAdjustment != nil {
		s.Adjustments = []StepAdjustment{{Adjustment: int(*p.ScalingAdjustment)}}
	}
	for _, a := range p.StepAdjustments {
		s.Adjustments = append(s.Adjustments, StepAdjustment{
			Lower:      a.MetricIntervalLowerBound,
			Upper:      a.MetricIntervalUpperBound,
			Adjustment: int(aws.ToInt32(a.ScalingAdjustment)),
		})
	}
	return s
}

// NextOfGroup returns when a scheduled action of an Auto Scaling group is next due after now, or nil if never again. A
// Recurrence has cron's own five fields. AWS's six add the year, and have a ? for one of the two days.
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
		from = start.Add(-time.Second) // so that the start itself counts
	}
	if at, ok := s.Next(from); ok {
		return &at, nil
	}
	return nil, nil
}

// awsCron converts a cron expression of five fields to AWS's six. Days of the week count from 0 in cron and from 1 at AWS.
func awsCron(text string) string {
	f := strings.Fields(text)
	if len(f) != 5 {
		return text // the parser refuses it
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

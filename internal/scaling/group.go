package scaling

import (
	"fmt"
	"regexp"
	"strconv"
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
// Recurrence has a crontab's five fields.
func NextOfGroup(a *types.ScheduledUpdateGroupAction, now time.Time) (*time.Time, error) {
	if a.Recurrence == nil {
		if start := aws.ToTime(a.StartTime); start.After(now) {
			return &start, nil
		}
		return nil, nil
	}
	zone, err := parseZone(aws.ToString(a.TimeZone))
	if err != nil {
		return nil, err
	}
	c, err := parseCrontab(*a.Recurrence)
	if err != nil {
		return nil, fmt.Errorf("the Recurrence %q%w", *a.Recurrence, err)
	}
	s := Schedule{zone: zone, cron: c, End: aws.ToTime(a.EndTime)}
	from := now
	if start := aws.ToTime(a.StartTime); start.After(now) {
		from = start.Add(-time.Second) // so that the start itself counts
	}
	if at, ok := s.Next(from); ok {
		return &at, nil
	}
	return nil, nil
}

// crontabDayField is the day of week in a crontab, where both 0 and 7 are Sunday.
var crontabDayField = field{name: dayField.name, min: 0, max: 7, names: dayField.names}

// parseCrontab reads a crontab's five fields. Its errors speak of these, and come behind the text that they're about.
func parseCrontab(text string) (*cron, error) {
	f := strings.Fields(strings.ToUpper(text))
	if len(f) != 5 {
		return nil, fmt.Errorf(" has %d fields, a crontab line has 5: minute, hour, day of month, month and day of week", len(f))
	}
	every := func(text string) bool { return text == "*" || text == "?" }
	if !every(f[2]) && !every(f[4]) {
		return nil, fmt.Errorf(": one of the fields day-of-month and day-of-week must be *")
	}
	if !strings.ContainsAny(f[4], "L#?") { // AWS's own, which crontabs lack
		if _, err := crontabDayField.parse(f[4]); err != nil {
			return nil, fmt.Errorf(": %w", err)
		}
	}
	c, err := parseCron(awsCron(f))
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return c, nil
}

// awsCron converts a crontab's five fields to AWS's six. Days of the week count from 0 in a crontab and from 1 at AWS.
func awsCron(f []string) string {
	items := strings.Split(f[4], ",")
	for i, item := range items {
		items[i] = awsDays(item)
	}
	f[4] = strings.Join(items, ",")
	switch {
	case f[4] == "*" || f[4] == "?":
		f[4] = "?"
		f[2] = strings.ReplaceAll(f[2], "?", "*")
	default:
		f[2] = "?"
	}
	return strings.Join(append(f, "*"), " ")
}

// awsDays converts an item of a crontab's days of the week. A range becomes its days, since one that ends with 7 has no such end at AWS.
func awsDays(item string) string {
	if strings.Contains(item, "-") {
		if days, err := crontabDayField.parseItem(item); err == nil {
			names := make([]string, len(days))
			for i, day := range days {
				names[i] = strconv.Itoa(day%7 + 1)
			}
			return strings.Join(names, ",")
		}
	}
	return crontabDay.ReplaceAllStringFunc(item, func(day string) string {
		switch digit := day[len(day)-1]; {
		case len(day) > 1 || digit > '7': // a step, or one week of the month
			return day
		case digit == '7':
			return "1"
		default:
			return string(digit + 1)
		}
	})
}

// crontabDay finds the numbers in a field, with what makes them other than days in front.
var crontabDay = regexp.MustCompile(`[/#]?\d+`)

package scaling

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
)

// TargetTrackingOf reads a policy's configuration as the API keeps it.
func TargetTrackingOf(c *types.TargetTrackingScalingPolicyConfiguration) TargetTracking {
	return TargetTracking{
		TargetValue:      aws.ToFloat64(c.TargetValue),
		DisableScaleIn:   aws.ToBool(c.DisableScaleIn),
		ScaleOutCooldown: cooldown(c.ScaleOutCooldown),
		ScaleInCooldown:  cooldown(c.ScaleInCooldown),
	}
}

// StepOf reads a policy's configuration and its cool-down as the API keeps them.
func StepOf(c *types.StepScalingPolicyConfiguration) (Step, time.Duration) {
	s := Step{AdjustmentType: string(c.AdjustmentType), MinAdjustmentMagnitude: int(aws.ToInt32(c.MinAdjustmentMagnitude))}
	for _, a := range c.StepAdjustments {
		s.Adjustments = append(s.Adjustments, StepAdjustment{
			Lower:      a.MetricIntervalLowerBound,
			Upper:      a.MetricIntervalUpperBound,
			Adjustment: int(aws.ToInt32(a.ScalingAdjustment)),
		})
	}
	return s, cooldown(c.Cooldown)
}

func cooldown(seconds *int32) time.Duration {
	if seconds == nil {
		return DefaultCooldown
	}
	return time.Duration(*seconds) * time.Second
}

// ScheduleOf reads a scheduled action as the API keeps it.
func ScheduleOf(a *types.ScheduledAction) (Schedule, error) {
	s, err := ParseSchedule(aws.ToString(a.Schedule), aws.ToString(a.Timezone))
	s.Created = aws.ToTime(a.CreationTime)
	s.Start = aws.ToTime(a.StartTime)
	s.End = aws.ToTime(a.EndTime)
	return s, err
}

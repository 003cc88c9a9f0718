package stacks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	watch "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// triggered returns why the alarms that watch over a creation or an update roll it back, or "" if they don't. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-rollback-triggers.html
func (l *Loop) triggered(ctx context.Context, s *state.Stack) (reason string, err error) {
	if isBack(s) || s.RollbackConfiguration == nil {
		return "", nil
	}
	for _, t := range s.RollbackConfiguration.RollbackTriggers {
		value, err := l.alarm(ctx, *t.Arn)
		switch {
		case err != nil:
			return "", err
		case value == "":
			return fmt.Sprintf("Rollback trigger %s does not exist. ", *t.Arn), nil
		case value == watch.StateValueAlarm:
			return fmt.Sprintf("Rollback trigger %s is in ALARM state. ", *t.Arn), nil
		}
	}
	return "", nil
}

// alarm returns the state of an alarm, or "" if there is none.
func (l *Loop) alarm(ctx context.Context, arn string) (watch.StateValue, error) {
	_, name, _ := strings.Cut(arn, ":alarm:")
	if arn != l.opts.Account.ARN("cloudwatch", "alarm:"+name) {
		return "", nil
	}
	out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, l.opts.Services, &cloudwatch.DescribeAlarmsInput{
		AlarmNames: []string{name},
		AlarmTypes: []watch.AlarmType{watch.AlarmTypeMetricAlarm, watch.AlarmTypeCompositeAlarm},
	})
	if err != nil {
		return "", err
	}
	for _, a := range out.MetricAlarms {
		return a.StateValue, nil
	}
	for _, a := range out.CompositeAlarms {
		return a.StateValue, nil
	}
	return "", nil
}

// lingers reports whether an operation that has built everything still waits. An update does so without alarms too, for somebody to look at
// what it has made and to cancel it.
func (l *Loop) lingers(ctx context.Context, s *state.Stack) (waits, moved bool, err error) {
	r := s.RollbackConfiguration
	if isBack(s) || r == nil || aws.ToInt32(r.MonitoringTimeInMinutes) == 0 {
		return false, false, nil
	}
	if s.StackStatus == types.StackStatusCreateInProgress && len(r.RollbackTriggers) == 0 {
		return false, false, nil
	}
	now := l.opts.Account.Now()
	if s.Built.IsZero() {
		return true, true, l.update(ctx, *s.StackId, func(_ *state.Tx, s *state.Stack) { s.Built = now })
	}
	return now.Sub(s.Built) < time.Duration(*r.MonitoringTimeInMinutes)*time.Minute, false, nil
}

// CheckTriggers refuses rollback triggers that nobody could watch.
func CheckTriggers(r *types.RollbackConfiguration) error {
	if r == nil {
		return nil
	}
	for _, t := range r.RollbackTriggers {
		switch aws.ToString(t.Type) {
		case "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm":
		default:
			return account.Refuse("ValidationError", "Rollback Trigger Type not supported")
		}
		if arn := strings.SplitN(aws.ToString(t.Arn), ":", 6); len(arn) < 6 || !strings.HasPrefix(arn[5], "alarm:") {
			return account.Refuse("ValidationError", "RelativeId of a Rollback Trigger's ARN is incorrect")
		}
	}
	return nil
}

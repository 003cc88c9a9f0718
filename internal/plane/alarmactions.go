package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/state"
)

// alarmActions does what alarms name as their actions. A URL gets a post of the form that Amazon SNS
// sends to its subscribers, so that what listens to alarms on AWS can listen here.
type alarmActions struct {
	region, account string
	client          *http.Client
}

func (p *Plane) alarmActions() alarmActions {
	return alarmActions{p.options.Region, p.options.Account, &http.Client{Timeout: 10 * time.Second}}
}

func (a alarmActions) act(ctx context.Context, action alarms.Action) error {
	if strings.HasPrefix(action.Arn, "http://") || strings.HasPrefix(action.Arn, "https://") {
		return a.post(ctx, action)
	}
	if strings.HasPrefix(action.Arn, "arn:aws:autoscaling:") {
		return nil // the scaling loop looks at the alarms of its policies itself
	}
	return fmt.Errorf("nothing here performs %s", action.Arn)
}

// notification is an SNS message. Its names are SNS's.
type notification struct {
	Type      string
	MessageID string `json:"MessageId"`
	TopicArn  string
	Subject   string
	Message   string
	Timestamp string
}

func (a alarmActions) post(ctx context.Context, action alarms.Action) error {
	now := time.Now().UTC()
	message, err := json.Marshal(a.message(action, now))
	if err != nil {
		return err
	}
	name, value := action.Alarm.Name(), action.Alarm.State().Value
	body, err := json.Marshal(notification{
		Type: "Notification", MessageID: uuid.NewString(), TopicArn: action.Alarm.Arn(), Subject: fmt.Sprintf("%s: %q in %s", value, name, a.region),
		Message: string(message), Timestamp: now.Format("2006-01-02T15:04:05.000Z"),
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, action.Arn, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/plain; charset=UTF-8") // as SNS does
	r.Header.Set("x-amz-sns-message-type", "Notification")
	answer, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()                                //nolint:errcheck // it was only read
	io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) //nolint:errcheck // so that the connection lasts
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s answered %s", action.Arn, answer.Status)
	}
	return nil
}

// message is what CloudWatch tells a topic of an alarm.
func (a alarmActions) message(action alarms.Action, now time.Time) map[string]any {
	s := action.Alarm.State()
	m := map[string]any{
		"AlarmName": action.Alarm.Name(), "AlarmArn": action.Alarm.Arn(), "AWSAccountId": a.account, "Region": a.region,
		"NewStateValue": s.Value, "NewStateReason": s.Reason, "OldStateValue": action.From, "StateChangeTime": now.Format("2006-01-02T15:04:05.000-0700"),
	}
	if metric := action.Alarm.Metric; metric != nil {
		m["AlarmDescription"], m["Trigger"] = metric.AlarmDescription, trigger(action.Alarm)
	} else {
		m["AlarmDescription"], m["AlarmRule"] = action.Alarm.Composite.AlarmDescription, action.Alarm.Composite.AlarmRule
	}
	return m
}

// trigger is what a metric alarm looks at.
func trigger(a *state.Alarm) map[string]any {
	m := a.Metric
	dimensions := []map[string]any{}
	for _, d := range m.Dimensions {
		dimensions = append(dimensions, map[string]any{"name": d.Name, "value": d.Value})
	}
	return map[string]any{
		"Namespace": m.Namespace, "MetricName": m.MetricName, "Dimensions": dimensions, "Statistic": strings.ToUpper(string(m.Statistic)),
		"ExtendedStatistic": m.ExtendedStatistic, "Unit": m.Unit, "Period": m.Period, "EvaluationPeriods": m.EvaluationPeriods, "Metrics": m.Metrics,
		"ComparisonOperator": m.ComparisonOperator, "Threshold": m.Threshold, "TreatMissingData": m.TreatMissingData,
	}
}

package state

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	cloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// What services besides ECS tell the default bus. Their details are JSON already, since their names follow no one rule.

// raw returns a detail as JSON.
func raw(detail any) json.RawMessage {
	b, err := json.Marshal(detail)
	if err != nil {
		panic(err) // it has texts only
	}
	return b
}

// groupEventTypes are the detail types of Auto Scaling's events, by the types of its notifications:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html
var groupEventTypes = map[string]string{
	NotifyLaunch:         "EC2 Instance Launch Successful",
	NotifyLaunchError:    "EC2 Instance Launch Unsuccessful",
	NotifyTerminate:      "EC2 Instance Terminate Successful",
	NotifyTerminateError: "EC2 Instance Terminate Unsuccessful",
}

// emitGroup tells the bus of an activity that has ended, in which an instance was launched or terminated.
func (tx *Tx) emitGroup(a *GroupActivity, event, instance string, now time.Time) {
	tx.Emit("aws.autoscaling", groupEventTypes[event], func() *Event {
		const at = "2006-01-02T15:04:05.000Z"
		details := json.RawMessage(aws.ToString(a.Details))
		if !json.Valid(details) {
			details = json.RawMessage("{}")
		}
		detail := map[string]any{
			"StatusCode":           "InProgress", // as AWS tells of those that succeed
			"StatusMessage":        aws.ToString(a.StatusMessage),
			"Description":          aws.ToString(a.Description),
			"AutoScalingGroupName": aws.ToString(a.AutoScalingGroupName),
			"ActivityId":           aws.ToString(a.ActivityId),
			"RequestId":            aws.ToString(a.ActivityId),
			"Details":              details,
			"StartTime":            a.StartTime.UTC().Format(at),
			"EndTime":              a.EndTime.UTC().Format(at),
			"EC2InstanceId":        instance,
			"Cause":                aws.ToString(a.Cause),
		}
		resources := []string{aws.ToString(a.AutoScalingGroupARN)}
		switch event {
		case NotifyLaunch:
			detail["Origin"], detail["Destination"] = "EC2", "AutoScalingGroup"
		case NotifyTerminate:
			detail["Origin"], detail["Destination"] = "AutoScalingGroup", "EC2"
		default:
			detail["StatusCode"] = "Failed"
		}
		if owner, err := arn.Parse(resources[0]); err == nil && strings.HasPrefix(instance, "i-") {
			resources = append(resources, "arn:aws:ec2:"+owner.Region+":"+owner.AccountID+":instance/"+instance)
		}
		return &Event{Resources: resources, Detail: raw(detail), Order: resources[0], Time: now}
	})
}

// LifecycleEvent is the detail of an instance's event that waits for a lifecycle hook:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pools-eventbridge-events.html
type LifecycleEvent struct {
	LifecycleActionToken string
	AutoScalingGroupName string
	LifecycleHookName    string
	EC2InstanceID        string `json:"EC2InstanceId"`
	LifecycleTransition  string
	NotificationMetadata *string `json:",omitempty"`
	Origin               string
	Destination          string
}

// EmitLifecycle tells the bus that an instance of a group waits for a lifecycle hook.
func (tx *Tx) EmitLifecycle(group string, a *LifecycleEvent, now time.Time) {
	detailType := "EC2 Instance-launch Lifecycle Action"
	if strings.HasSuffix(a.LifecycleTransition, "TERMINATING") {
		detailType = "EC2 Instance-terminate Lifecycle Action"
	}
	tx.Emit("aws.autoscaling", detailType, func() *Event {
		return &Event{Resources: []string{group}, Detail: raw(a), Order: group, Time: now}
	})
}

// EmitImage tells the bus that an image was pushed to a repository of ECR, or deleted; tag is "" for none:
// https://docs.aws.amazon.com/AmazonECR/latest/userguide/ecr-eventbridge.html
func (tx *Tx) EmitImage(action string, i *Image, tag string, now time.Time) {
	tx.Emit("aws.ecr", "ECR Image Action", func() *Event {
		detail := map[string]any{
			"result":              "SUCCESS",
			"repository-name":     i.Repository,
			"image-digest":        i.Digest,
			"action-type":         action,
			"manifest-media-type": i.MediaType,
		}
		if tag != "" {
			detail["image-tag"] = tag
		}
		if i.Artifact != "" {
			detail["artifact-media-type"] = i.Artifact
		}
		return &Event{Detail: raw(detail), Order: "ecr " + i.Repository, Time: now}
	})
}

// emitAlarm tells the bus that an alarm has changed its state:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
func (tx *Tx) emitAlarm(a *Alarm, before AlarmState, since, now time.Time) {
	tx.Emit("aws.cloudwatch", "CloudWatch Alarm State Change", func() *Event {
		return &Event{Resources: []string{a.Arn()}, Detail: raw(a.change(before, since, now)), Order: a.Arn(), Time: now}
	})
}

// change returns what events tell of an alarm's change of state.
func (a *Alarm) change(before AlarmState, since, now time.Time) map[string]any {
	state := func(s AlarmState, at time.Time) map[string]any {
		m := map[string]any{"value": s.Value, "reason": s.Reason, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000+0000")}
		if s.Data != "" {
			m["reasonData"] = s.Data
		}
		return m
	}
	return map[string]any{
		"alarmName":     a.Name(),
		"state":         state(a.State(), now),
		"previousState": state(before, since),
		"configuration": a.configuration(),
	}
}

// configuration returns what an alarm watches, as its events tell it.
func (a *Alarm) configuration() map[string]any {
	c := map[string]any{}
	if a.Composite != nil {
		c["alarmRule"] = aws.ToString(a.Composite.AlarmRule)
		return c
	}
	m := a.Metric
	if d := aws.ToString(m.AlarmDescription); d != "" {
		c["description"] = d
	}
	if m.MetricName == nil {
		return c
	}
	dimensions := map[string]string{}
	for _, d := range m.Dimensions {
		dimensions[aws.ToString(d.Name)] = aws.ToString(d.Value)
	}
	c["metrics"] = []any{map[string]any{
		"id":         "m1",
		"returnData": true,
		"metricStat": map[string]any{
			"metric": map[string]any{"namespace": aws.ToString(m.Namespace), "name": aws.ToString(m.MetricName), "dimensions": dimensions},
			"period": aws.ToInt32(m.Period),
			"stat":   statisticOf(string(m.Statistic), m.ExtendedStatistic),
		},
	}}
	return c
}

func statisticOf(statistic string, extended *string) string {
	if statistic != "" {
		return statistic
	}
	return aws.ToString(extended)
}

// EmitStackEvent tells the bus of an event of a stack, or of one of its resources:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-events.html
func (tx *Tx) EmitStackEvent(e *cloudformation.StackEvent) {
	isStack := aws.ToString(e.PhysicalResourceId) == *e.StackId
	detailType := "CloudFormation Resource Status Change"
	if isStack {
		detailType = "CloudFormation Stack Status Change"
	}
	tx.Emit("aws.cloudformation", detailType, func() *Event {
		detail := map[string]any{
			"stack-id":             *e.StackId,
			"status-details":       map[string]any{"status": e.ResourceStatus, "status-reason": aws.ToString(e.ResourceStatusReason)},
			"client-request-token": aws.ToString(e.ClientRequestToken),
		}
		if !isStack {
			detail["logical-resource-id"] = aws.ToString(e.LogicalResourceId)
			detail["physical-resource-id"] = aws.ToString(e.PhysicalResourceId)
			detail["resource-type"] = aws.ToString(e.ResourceType)
		}
		return &Event{Resources: []string{*e.StackId}, Detail: raw(detail), Order: *e.StackId, Time: aws.ToTime(e.Timestamp)}
	})
}

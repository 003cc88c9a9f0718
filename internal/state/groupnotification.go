package state

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/delivery"
)

// GroupNotification is a topic that a group tells of some of its activities.
type GroupNotification struct {
	TopicARN string
	Types    []string // such as autoscaling:EC2_INSTANCE_LAUNCH
}

// The types of notifications.
const (
	NotifyLaunch         = "autoscaling:EC2_INSTANCE_LAUNCH"
	NotifyLaunchError    = "autoscaling:EC2_INSTANCE_LAUNCH_ERROR"
	NotifyTerminate      = "autoscaling:EC2_INSTANCE_TERMINATE"
	NotifyTerminateError = "autoscaling:EC2_INSTANCE_TERMINATE_ERROR"
	NotifyTest           = "autoscaling:TEST_NOTIFICATION"
)

// subjects are how the subjects of notifications begin.
var subjects = map[string]string{
	NotifyLaunch:         "launch",
	NotifyLaunchError:    "failed launch",
	NotifyTerminate:      "termination",
	NotifyTerminateError: "failed termination",
	NotifyTest:           "test notification",
}

// GroupSubject returns the subject of a notification of a type about a group.
func GroupSubject(event, group string) string {
	return "Auto Scaling: " + subjects[event] + " for group \"" + group + "\""
}

// groupNotice is a notification: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-sns-notifications.html
type groupNotice struct {
	Progress             int32
	AccountID            string `json:"AccountId"`
	Description          string
	RequestID            string `json:"RequestId"`
	EndTime              time.Time
	AutoScalingGroupARN  string
	ActivityID           string `json:"ActivityId"`
	StartTime            time.Time
	Service              string
	Time                 time.Time
	EC2InstanceID        string `json:"EC2InstanceId"`
	StatusCode           string
	StatusMessage        string
	Details              json.RawMessage
	AutoScalingGroupName string
	Cause                string
	Event                string
}

// eventOf returns the type of the notification about an activity that has ended, and the instance that it was about, or "".
func eventOf(a *GroupActivity) (event, instance string) {
	kinds, failed := NotifyLaunch, NotifyLaunchError
	description, _, _ := strings.Cut(*a.Description, ".  Status Reason")
	verb, instance, _ := strings.Cut(description, ": ")
	switch {
	case strings.HasPrefix(verb, "Launching a new EC2 instance"):
	case verb == "Terminating EC2 instance":
		kinds, failed = NotifyTerminate, NotifyTerminateError
	default:
		return "", ""
	}
	switch a.StatusCode {
	case types.ScalingActivityStatusCodeSuccessful:
		return kinds, instance
	case types.ScalingActivityStatusCodeFailed:
		return failed, instance
	}
	return "", ""
}

// notifyFor is how long a notification is tried to be told, where the topic can't take it.
const notifyFor = 24 * time.Hour

// notifyGroup owes the end of an activity to the topics that its group tells of it, and to the bus.
func (tx *Tx) notifyGroup(a *GroupActivity, now time.Time) {
	g := tx.AutoScalingGroups.Get(aws.ToString(a.AutoScalingGroupName))
	event, instance := eventOf(a)
	if g == nil || event == "" {
		return
	}
	tx.emitGroup(a, event, instance, now)
	if len(g.Notifications) == 0 {
		return
	}
	notice := groupNotice{
		Progress:             50, // as AWS tells of launches and terminations that succeed
		AccountID:            strings.Split(*a.AutoScalingGroupARN, ":")[4],
		Description:          *a.Description,
		RequestID:            *a.ActivityId,
		EndTime:              *a.EndTime,
		AutoScalingGroupARN:  *a.AutoScalingGroupARN,
		ActivityID:           *a.ActivityId,
		StartTime:            *a.StartTime,
		Service:              "AWS Auto Scaling",
		Time:                 now.UTC(),
		EC2InstanceID:        instance,
		StatusCode:           string(types.ScalingActivityStatusCodeInProgress),
		StatusMessage:        aws.ToString(a.StatusMessage),
		Details:              json.RawMessage(*a.Details),
		AutoScalingGroupName: g.Name(),
		Cause:                aws.ToString(a.Cause),
		Event:                event,
	}
	if a.StatusCode == types.ScalingActivityStatusCodeFailed {
		notice.Progress = 100
		notice.StatusCode = string(a.StatusCode)
	}
	body, err := json.Marshal(notice)
	if err != nil {
		panic(err) // we made it
	}
	for _, n := range g.Notifications {
		if slices.Contains(n.Types, event) {
			tx.Owe(Delivery{Debt: delivery.Debt{
				Destination: n.TopicARN,
				Source:      *a.AutoScalingGroupARN,
				Subject:     GroupSubject(event, g.Name()),
				Body:        string(body),
				Until:       now.Add(notifyFor),
			}}, now)
		}
	}
}

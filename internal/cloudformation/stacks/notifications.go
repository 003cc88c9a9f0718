package stacks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// subject is the subject of all messages about stacks.
const subject = "AWS CloudFormation Notification"

// patience is how long an event is tried to be told, where the topic can't take it.
const patience = 24 * time.Hour

// notify owes an event to the topics that are told of the stack, in the order of the events.
func notify(tx *state.Tx, s *state.Stack, e *types.StackEvent) {
	src := cmp.Or(s.Target, s.Source)
	if src == nil {
		return
	}
	for _, topic := range src.NotificationARNs {
		tx.Owe(state.Delivery{
			Debt: delivery.Debt{
				Destination: topic,
				Source:      *s.StackId,
				Subject:     subject,
				Body:        notification(e),
				Until:       e.Timestamp.Add(patience),
			},
			Line: *s.StackId + " " + topic,
		}, *e.Timestamp)
	}
}

// maxProperties is the most bytes of properties that a message tells: the whole must fit into one of SNS's.
const maxProperties = 128 << 10

// notification returns an event as CloudFormation tells it: a line for each member, its value in quotation marks that aren't escaped.
// Programs read it so, by the names.
func notification(e *types.StackEvent) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s='%s'\n", name, value) }
	line("StackId", *e.StackId)
	line("Timestamp", e.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"))
	line("EventId", aws.ToString(e.EventId))
	line("LogicalResourceId", aws.ToString(e.LogicalResourceId))
	line("Namespace", strings.Split(*e.StackId, ":")[4])
	if id := aws.ToString(e.PhysicalResourceId); id != "" {
		line("PhysicalResourceId", id)
	}
	properties := aws.ToString(e.ResourceProperties)
	if properties == "" || len(properties) > maxProperties {
		properties = "null"
	}
	line("ResourceProperties", properties)
	line("ResourceStatus", string(e.ResourceStatus))
	line("ResourceStatusReason", aws.ToString(e.ResourceStatusReason))
	line("ResourceType", aws.ToString(e.ResourceType))
	line("StackName", *e.StackName)
	line("ClientRequestToken", cmp.Or(aws.ToString(e.ClientRequestToken), "null"))
	return b.String()
}

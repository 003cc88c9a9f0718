package pages

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
	"github.com/pintle/pintle/internal/state"
)

// queuesView lists queues with how much waits in them.
func (p *Pages) queuesView() view {
	return view{
		path:  "/console/queues",
		nav:   "Queues",
		title: func(*visit) string { return "Queues" },
		body:  queuesBody,
		every: often,
	}
}

func queuesBody(v *visit) ([]live.Fragment, error) {
	var rows []markup.Node
	in := &sqs.ListQueuesInput{MaxResults: aws.Int32(500)}
	out, err := ask[sqs.ListQueuesOutput](v, in)
	if err != nil {
		return nil, err
	}
	for _, url := range out.QueueUrls {
		a, err := queueAttributes(v, url)
		if err != nil {
			continue // it has just been deleted, or isn't for this visitor
		}
		name := state.NameOf(url)
		rows = append(rows, row(link(to("queues", name), name), waitingIn(a), a["ApproximateNumberOfMessagesNotVisible"], a["ApproximateNumberOfMessagesDelayed"]))
	}
	return []live.Fragment{section("queues", "Queues", table("Queues", columns("Queue", "#Waiting", "#In flight", "#Delayed"), rows...))}, nil
}

func waitingIn(attributes map[string]string) int {
	n, _ := strconv.Atoi(attributes["ApproximateNumberOfMessages"])
	return n
}

func queueAttributes(v *visit, url string) (map[string]string, error) {
	out, err := ask[sqs.GetQueueAttributesOutput](v, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// queueView shows one queue. One with dead letters has its messages sent back.
func (p *Pages) queueView() view {
	return view{
		path:  "/console/queues/{queue}",
		title: func(v *visit) string { return "Queue " + v.path("queue") },
		head:  chooseStretch,
		body:  queueBody,
		every: often,
		does:  map[string]action{"redrive": redrive},
	}
}

func queueBody(v *visit) ([]live.Fragment, error) {
	named, err := ask[sqs.GetQueueUrlOutput](v, &sqs.GetQueueUrlInput{QueueName: aws.String(v.path("queue"))})
	if err != nil {
		return nil, err
	}
	a, err := queueAttributes(v, *named.QueueUrl)
	if err != nil {
		return nil, err
	}
	var all []fact
	for _, name := range slices.Sorted(maps.Keys(a)) {
		all = append(all, fact{name, attributeValue(name, a[name])})
	}
	parts := []live.Fragment{section("facts", "Queue", facts(all...)), queuePlots(v)}
	sources, err := ask[sqs.ListDeadLetterSourceQueuesOutput](v, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: named.QueueUrl})
	if err != nil || len(sources.QueueUrls) == 0 {
		return parts, nil
	}
	var rows []markup.Node
	for _, url := range sources.QueueUrls {
		rows = append(rows, row(link(to("queues", state.NameOf(url)), state.NameOf(url))))
	}
	return append(parts,
		section("sources", "Dead letters of", table("Queues whose messages end here", columns("Queue"), rows...),
			v.confirm("redrive", "Redrive", "All messages go back to the queues that they came from.", hidden{"queue": v.path("queue"), "arn": a["QueueArn"]})),
		section("moves", "Redrives", moveTable(v, a["QueueArn"])),
	), nil
}

// attributeValue is the value of a queue's attribute. Times are told as such.
func attributeValue(name, value string) any {
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || !strings.HasSuffix(name, "Timestamp") {
		return value
	}
	return moment(aws.Time(time.Unix(seconds, 0)))
}

// queuePlots are the plots of how much waits in a queue, and for how long.
func queuePlots(v *visit) live.Fragment {
	s := v.stretch()
	of := func(label, name, stat string) metric {
		return metric{label: label, namespace: "AWS/SQS", name: name, by: []string{"QueueName", v.path("queue")}, stat: stat}
	}
	lines, err := v.lines(s, of("waiting", "ApproximateNumberOfMessagesVisible", "Maximum"), of("in flight", "ApproximateNumberOfMessagesNotVisible", "Maximum"),
		of("oldest", "ApproximateAgeOfOldestMessage", "Maximum"), of("sent", "NumberOfMessagesSent", "Sum"), of("deleted", "NumberOfMessagesDeleted", "Sum"))
	if err != nil || len(lines) < 5 {
		return plots("over", "Over time", nil, err)
	}
	over := func(all ...plot.Line) plot.Plot { return plot.Plot{From: s.from, To: s.to, Lines: all} }
	return plots("over", "Over time", []drawing{
		{id: "depth", title: "Messages", Plot: over(lines[0], lines[1])},
		{id: "age", title: "Age of the oldest message", unit: "s", Plot: over(lines[2])},
		{id: "flow", title: "Messages per " + s.period.String(), Plot: over(lines[3], lines[4])},
	}, nil)
}

func redrive(v *visit) (string, error) {
	_, err := ask[sqs.StartMessageMoveTaskOutput](v, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(v.form("arn"))})
	return to("queues", v.form("queue")), err
}

func moveTable(v *visit, arn string) markup.Node {
	out, err := ask[sqs.ListMessageMoveTasksOutput](v, &sqs.ListMessageMoveTasksInput{SourceArn: &arn, MaxResults: aws.Int32(10)})
	if err != nil {
		return nil
	}
	var rows []markup.Node
	for _, m := range out.Results {
		rows = append(rows, row(moment(aws.Time(time.UnixMilli(m.StartedTimestamp))), status(aws.ToString(m.Status)), int(m.ApproximateNumberOfMessagesMoved), aws.ToString(m.FailureReason)))
	}
	return table("Redrives", columns("Begun", "Status", "#Moved", "Failure"), rows...)
}

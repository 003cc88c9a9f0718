package pages

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
)

// stacksView lists CloudFormation's stacks.
func (p *Pages) stacksView() view {
	return view{
		path:  "/console/stacks",
		nav:   "Stacks",
		title: func(*visit) string { return "Stacks" },
		body:  stacksBody,
		reads: readsStacks,
	}
}

func readsStacks(v *state.View) { watchAll(v.Stacks, v.StackEvents) }

func stacksBody(v *visit) ([]live.Fragment, error) {
	out, err := ask[cloudformation.DescribeStacksOutput](v, &cloudformation.DescribeStacksInput{})
	if err != nil {
		return nil, err
	}
	var rows []markup.Node
	for _, s := range out.Stacks {
		rows = append(rows, row(link(to("stacks", *s.StackName), *s.StackName), status(string(s.StackStatus)), aws.ToString(s.StackStatusReason), moment(s.CreationTime), moment(s.LastUpdatedTime)))
	}
	return []live.Fragment{section("stacks", "Stacks", table("Stacks", columns("Stack", "Status", "Reason", "Created", "Updated"), rows...))}, nil
}

// stackView shows a stack's events as they come, and its resources.
func (p *Pages) stackView() view {
	return view{
		path:  "/console/stacks/{stack}",
		title: func(v *visit) string { return "Stack " + v.path("stack") },
		body:  stackBody,
		reads: readsStacks,
	}
}

func stackBody(v *visit) ([]live.Fragment, error) {
	name := v.path("stack")
	out, err := ask[cloudformation.DescribeStacksOutput](v, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return nil, err
	}
	if len(out.Stacks) == 0 {
		return nil, errNotFound("There is no stack " + name + ".")
	}
	events, err := ask[cloudformation.DescribeStackEventsOutput](v, &cloudformation.DescribeStackEventsInput{StackName: &name})
	if err != nil {
		return nil, err
	}
	var happened []markup.Node
	for _, e := range events.StackEvents[:min(len(events.StackEvents), 200)] {
		happened = append(happened, row(moment(e.Timestamp), aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceType), status(string(e.ResourceStatus)), aws.ToString(e.ResourceStatusReason)))
	}
	s := out.Stacks[0]
	var results []markup.Node
	for _, o := range s.Outputs {
		results = append(results, row(aws.ToString(o.OutputKey), aws.ToString(o.OutputValue)))
	}
	return []live.Fragment{
		section("facts", "Stack", facts(fact{"Status", status(string(s.StackStatus))}, fact{"Reason", aws.ToString(s.StackStatusReason)}, fact{"Created", moment(s.CreationTime)})),
		section("outputs", "Outputs", table("Outputs", columns("Output", "Value"), results...)),
		section("events", "Events, the newest first", table("Events", columns("When", "Resource", "Type", "Status", "Reason"), happened...)),
	}, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// follower shows a stack's events as they happen.
type follower struct {
	client  *cloudformation.Client
	stack   string // its ID
	last    string // the ID of the last event that is known
	reasons []string
}

// newFollower returns a follower of what comes from now on.
func newFollower(ctx context.Context, client *cloudformation.Client, stack string) (*follower, error) {
	out, err := client.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &stack})
	if err != nil {
		return nil, err
	}
	f := &follower{client: client, stack: stack}
	if len(out.StackEvents) > 0 {
		f.last = *out.StackEvents[0].EventId
	}
	return f, nil
}

// follow shows events until the stack's operation is over. The error says why it has failed.
func (f *follower) follow(ctx context.Context) (*types.Stack, error) {
	for {
		s, err := stackNamed(ctx, f.client, f.stack)
		if err == nil {
			err = f.show(ctx)
		}
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(os.Stderr, "pintle: the stack's operation goes on: pintle stack show tells how far it is")
			return nil, exitCode(130)
		case err != nil:
			return nil, err
		case !strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS"):
			return s, f.outcome(s)
		}
		pause(ctx) //nolint:errcheck // the next round sees it
	}
}

// outcome returns the error of an operation that has failed.
func (f *follower) outcome(s *types.Stack) error {
	switch s.StackStatus {
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete, types.StackStatusDeleteComplete, types.StackStatusImportComplete:
		return nil
	}
	text := fmt.Sprintf("the stack %s is %s", *s.StackName, s.StackStatus)
	for _, reason := range f.reasons {
		text += "\n  " + plain(reason, "")
	}
	return errors.New(text)
}

// show shows the events that are new.
func (f *follower) show(ctx context.Context) error {
	var events []types.StackEvent
	pages := cloudformation.NewDescribeStackEventsPaginator(f.client, &cloudformation.DescribeStackEventsInput{StackName: &f.stack})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(p.StackEvents, func(e types.StackEvent) bool { return *e.EventId == f.last })
		if i >= 0 {
			events = append(events, p.StackEvents[:i]...)
			break
		}
		events = append(events, p.StackEvents...)
	}
	slices.Reverse(events)
	for _, e := range events {
		f.last = *e.EventId
		f.print(e)
	}
	return nil
}

func (f *follower) print(e types.StackEvent) {
	line := fmt.Sprintf("%s  %-24s  %s  %s", e.Timestamp.Local().Format(time.TimeOnly), e.ResourceStatus, aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceType))
	reason := aws.ToString(e.ResourceStatusReason)
	if reason != "" {
		line += "  " + reason
	}
	fmt.Println(plain(line, ""))
	if isOwnFailure(e.ResourceStatus, reason) && aws.ToString(e.PhysicalResourceId) != f.stack {
		f.reasons = append(f.reasons, aws.ToString(e.LogicalResourceId)+": "+reason)
	}
}

// isOwnFailure reports whether a resource failed for a reason of its own, not because another one did.
func isOwnFailure(status types.ResourceStatus, reason string) bool {
	return strings.HasSuffix(string(status), "_FAILED") && reason != "" && !strings.HasSuffix(reason, "cancelled")
}

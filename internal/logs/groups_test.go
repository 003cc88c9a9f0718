package logs

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/state/statetest"
)

// TestGroupsByIdentifier: groups are listed by their names or ARNs, and by nothing else at the same time.
func TestGroupsByIdentifier(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"/a", "/b", "/c"} {
		if _, err := w.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(in *cloudwatchlogs.DescribeLogGroupsInput) (names, arns []string) {
		t.Helper()
		out, err := w.DescribeLogGroups(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range out.LogGroups {
			names, arns = append(names, *g.LogGroupName), append(arns, *g.LogGroupArn)
		}
		return names, arns
	}
	_, all := list(&cloudwatchlogs.DescribeLogGroupsInput{})
	for want, identifiers := range map[string][]string{"/b": {"/b"}, "/a /c": {all[2], "/a"}, "": {"/d"}} {
		names, _ := list(&cloudwatchlogs.DescribeLogGroupsInput{LogGroupIdentifiers: identifiers})
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q lists %q", identifiers, got)
		}
	}
	for what, in := range map[string]cloudwatchlogs.DescribeLogGroupsInput{
		"a prefix":  {LogGroupNamePrefix: aws.String("/a")},
		"a pattern": {LogGroupNamePattern: aws.String("a")},
		"a class":   {LogGroupClass: types.LogGroupClassStandard},
	} {
		in.LogGroupIdentifiers = []string{"/a"}
		if _, err := w.DescribeLogGroups(t.Context(), &in); err == nil {
			t.Errorf("%s is taken with identifiers", what)
		}
	}
}

// TestGroupsOfAccounts: this account is linked to no other, so there are no groups of another one.
func TestGroupsOfAccounts(t *testing.T) {
	w := newWorld(t)
	for account, want := range map[string]int{w.opts.ID: 1, "111111111111": 0} {
		in := &cloudwatchlogs.DescribeLogGroupsInput{AccountIdentifiers: []string{account}}
		if _, err := w.DescribeLogGroups(t.Context(), in); err == nil {
			t.Error("accounts are taken without includeLinkedAccounts")
		}
		in.IncludeLinkedAccounts = aws.Bool(true)
		if out, err := w.DescribeLogGroups(t.Context(), in); err != nil || len(out.LogGroups) != want {
			t.Errorf("%s: got %v, %v", account, out, err)
		}
	}
}

// TestFilterFromTail: events are filtered from the latest on where a call says so, page by page.
func TestFilterFromTail(t *testing.T) {
	w := newWorld(t)
	var events []types.InputLogEvent
	for i := range 5 {
		at := w.now.UnixMilli() - 5 + int64(i)
		events = append(events, types.InputLogEvent{Timestamp: &at, Message: aws.String(strings.Repeat("x", i+1))})
	}
	in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s"), LogEvents: events}
	if _, err := w.PutLogEvents(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	filter := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g"), StartFromHead: aws.Bool(false), Limit: aws.Int32(2)}
	var got []int
	for {
		out, err := w.FilterLogEvents(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out.Events {
			got = append(got, len(*e.Message))
		}
		if filter.NextToken = out.NextToken; out.NextToken == nil {
			break
		}
		filter.StartFromHead = nil // the token knows
	}
	if !slices.Equal(got, []int{5, 4, 3, 2, 1}) {
		t.Errorf("got %v", got)
	}
	filter.StartFromHead, filter.StartTime = aws.Bool(false), aws.Int64(1)
	if _, err := w.FilterLogEvents(t.Context(), filter); err == nil {
		t.Error("a time before 2024 is taken")
	}
}

// TestEmptyFilters: empty lists and patterns, which the model lets through, are none.
func TestEmptyFilters(t *testing.T) {
	w := newWorld(t)
	groups, err := w.DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{
		LogGroupNamePrefix: aws.String("/"), LogGroupNamePattern: aws.String(""),
	})
	if err != nil {
		t.Errorf("got %v, %v", groups, err)
	}
	_, err = w.DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{
		LogGroupNamePrefix: aws.String("/"), LogGroupNamePattern: aws.String("x"),
	})
	refusedAs(t, err, "InvalidParameterException", "mutually exclusive")
	w.opts.State = statetest.Open(t)
	_, err = w.DeleteResourcePolicy(t.Context(), &cloudwatchlogs.DeleteResourcePolicyInput{
		PolicyName: aws.String("none"), ResourceArn: aws.String(""),
	})
	refusedAs(t, err, "ResourceNotFoundException", "none")
	q := newQueried(t, 0)
	if _, err := q.StartQuery(t.Context(), &cloudwatchlogs.StartQueryInput{
		LogGroupName: aws.String("a"), LogGroupNames: []string{}, LogGroupIdentifiers: []string{},
		StartTime: aws.Int64(2), EndTime: aws.Int64(2), QueryString: aws.String("limit 1"),
	}); err != nil {
		t.Error(err)
	}
}

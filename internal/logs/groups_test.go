package logs

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
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

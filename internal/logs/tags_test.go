package logs

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

// TestReservedTags: nobody but AWS has tags that begin with aws:.
func TestReservedTags(t *testing.T) {
	w := newWorld(t)
	refused := func(what string, err error) {
		t.Helper()
		if wrong := (*types.InvalidParameterException)(nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", what, err)
		}
	}
	reserved := map[string]string{"aws:own": "v"}
	name := aws.String("tagged")
	_, err := w.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: name, Tags: reserved})
	refused("create", err)
	if _, err := w.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: name, Tags: map[string]string{"own": "v"}}); err != nil {
		t.Fatal(err)
	}
	_, err = w.TagLogGroup(t.Context(), &cloudwatchlogs.TagLogGroupInput{LogGroupName: name, Tags: reserved})
	refused("tag", err)
}

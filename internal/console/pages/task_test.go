package pages

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/markup"
)

// TestLogLink: the stream is the one that nodes write to, with a prefix and without.
func TestLogLink(t *testing.T) {
	task := types.Task{TaskArn: aws.String("arn:aws:ecs:us-east-1:000000000000:task/default/t1")}
	for prefix, want := range map[string]string{"": "stream=t1-main", "p": "stream=p%2Fmain%2Ft1"} {
		options := map[string]string{"awslogs-group": "g"}
		if prefix != "" {
			options["awslogs-stream-prefix"] = prefix
		}
		d := &types.TaskDefinition{ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: options}},
		}}
		if got := markup.String(logLink(task, d, "main")); !strings.Contains(got, want) {
			t.Errorf("prefix %q: %s", prefix, got)
		}
	}
}

// TestTimeline: steps are told in the order in which they were, so none takes less than no time.
func TestTimeline(t *testing.T) {
	at := func(seconds int) *time.Time { return aws.Time(noon.Add(time.Duration(seconds) * time.Second)) }
	page := markup.String(timeline(types.Task{CreatedAt: at(0), ConnectivityAt: at(5), PullStartedAt: at(2), PullStoppedAt: at(2), StartedAt: at(5)}))
	if strings.Contains(page, "+-") || strings.Index(page, "image is there") > strings.Index(page, "connected") {
		t.Error(page)
	}
	for _, want := range []string{`<td class="number">+2s</td>`, `<td class="number">+3s</td>`, `<td class="number">+0s</td>`} {
		if !strings.Contains(page, want) {
			t.Errorf("%s isn't in %s", want, page)
		}
	}
}

package pages

import (
	"strings"
	"testing"

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

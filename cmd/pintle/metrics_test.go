package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/sidecar"
)

// TestTaskGPUs: by default a task publishes its own GPUs. A task without GPUs doesn't publish everybody else's.
func TestTaskGPUs(t *testing.T) {
	task := sidecar.Task{Cluster: "c", Service: "s", ID: "t", Arn: "arn:aws:ecs:r:1:task/c/t"}
	for name, c := range map[string]struct {
		answer string
		task   sidecar.Task
		flags  []string
		want   []string
		fails  bool
	}{
		"its own": {
			answer: `{"tasks": [{"containers": [{"gpuIds": ["GPU-a"]}, {}, {"gpuIds": ["GPU-b"]}]}]}`,
			task:   task,
			want:   []string{"GPU-a", "GPU-b"},
		},
		"it has none": {answer: `{"tasks": [{"containers": [{}]}]}`, task: task, fails: true},
		"not found":   {answer: `{"tasks": [], "failures": [{"reason": "MISSING"}]}`, task: task, fails: true},
		"all":         {task: task, flags: []string{"all"}},
		"named":       {task: task, flags: []string{"GPU-c"}, want: []string{"GPU-c"}},
		"outside ECS": {task: sidecar.Task{Cluster: "c", Service: "s"}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			io.WriteString(w, c.answer) //nolint:errcheck // a test
		}))
		ecs := awsecs.New(awsecs.Options{
			BaseEndpoint: aws.String(server.URL),
			Region:       "r",
			Credentials:  credentials.NewStaticCredentialsProvider("a", "b", ""),
		})
		got, err := (&metricsCmd{GPU: c.flags}).gpus(t.Context(), ecs, c.task)
		if !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
		server.Close()
	}
}

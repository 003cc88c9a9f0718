package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Task says whose metrics to publish, by names.
type Task struct {
	Cluster string
	Service string
	ID      string
	Region  string
	Arn     string
}

// maxMetadata is how many bytes of a task's metadata are read.
const maxMetadata = 1 << 20

// ReadTask asks the task metadata endpoint which task this is; uri is the value of ECS_CONTAINER_METADATA_URI_V4.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4.html
func ReadTask(ctx context.Context, uri string) (Task, error) {
	body, err := get(ctx, uri+"/task")
	if err != nil {
		return Task{}, fmt.Errorf("task metadata: %w", err)
	}
	defer body.Close() //nolint:errcheck // only read
	var m struct{ Cluster, TaskARN, ServiceName string }
	if err := json.NewDecoder(io.LimitReader(body, maxMetadata)).Decode(&m); err != nil {
		return Task{}, fmt.Errorf("task metadata: %w", err)
	}
	t := Task{Cluster: lastPart(m.Cluster), Service: m.ServiceName, ID: lastPart(m.TaskARN), Arn: m.TaskARN}
	if parts := strings.SplitN(m.TaskARN, ":", 5); len(parts) == 5 {
		t.Region = parts[3]
	}
	return t, nil
}

// lastPart returns the name at the end of an ARN, or the name itself.
func lastPart(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// Scrape reads an exporter's samples.
func Scrape(ctx context.Context, url string) ([]Sample, error) {
	body, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	return Parse(body)
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close() //nolint:errcheck // we don't need it
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return resp.Body, nil
}

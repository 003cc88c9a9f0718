package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var diskTimes = flag.Int("disk.times", 3, "how often the disk is filled and freed")

// smallDisk mounts a disk of its own, which needs root.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatalf("cannot mount a small disk for the test, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp writes a file until the disk has no more room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // what it holds doesn't matter
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
}

// acknowledged collects what each client was told yes for.
type acknowledged struct {
	mu      sync.Mutex
	names   map[string][]string
	refused map[string]int
}

// note notes the outcome of a write; an error must be a refusal for the lack of room.
func (a *acknowledged) note(t *testing.T, kind, name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var answer *smithyhttp.ResponseError
	switch {
	case err == nil:
		a.names[kind] = append(a.names[kind], name)
	case errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusServiceUnavailable:
		a.refused[kind]++
	default:
		t.Errorf("%s %s: %v", kind, name, err)
	}
}

// load writes to all stores until ctx ends.
func (c stores) load(ctx context.Context, t *testing.T, a *acknowledged) (wait func()) {
	var running sync.WaitGroup
	writes := map[string]func(context.Context, string) error{
		"object": func(ctx context.Context, name string) error {
			body := bytes.NewReader(bytes.Repeat([]byte(name), 1+len(name)*500))
			_, err := c.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: &name, Body: body})
			return err
		},
		"message": func(ctx context.Context, name string) error {
			_, err := c.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("q"), MessageBody: &name})
			return err
		},
		"event": func(ctx context.Context, name string) error {
			_, err := c.logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
				LogGroupName:  aws.String("g"),
				LogStreamName: aws.String("s"),
				LogEvents:     []logstypes.InputLogEvent{{Message: &name, Timestamp: aws.Int64(time.Now().UnixMilli())}},
			})
			return err
		},
		"metric": func(ctx context.Context, name string) error {
			_, err := c.metrics.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{
				Namespace:  aws.String("n"),
				MetricData: []cwtypes.MetricDatum{{MetricName: &name, Value: aws.Float64(1)}},
			})
			return err
		},
		"family": func(ctx context.Context, name string) error {
			_, err := c.ecs.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
				Family: &name,
				ContainerDefinitions: []ecstypes.ContainerDefinition{{
					Name:   aws.String("main"),
					Image:  aws.String("i"),
					Memory: aws.Int32(8),
				}},
			})
			return err
		},
	}
	for kind, write := range writes {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", kind, len(a.names[kind])+i)
				if err := write(ctx, name); ctx.Err() == nil {
					a.note(t, kind, name, err)
				}
				time.Sleep(2 * time.Millisecond) // the machine does other things, too
			}
		})
	}
	return running.Wait
}

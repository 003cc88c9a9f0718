package wire_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// task returns a running GPU task as DescribeTasks shows it. It has 2.3 kB of JSON.
func task(i int) types.Task {
	now := time.UnixMilli(1700000000123 + int64(i))
	id := fmt.Sprintf("%032x", i)
	arn := func(kind string) *string {
		return aws.String("arn:aws:ecs:us-east-1:000000000000:" + kind + "/default/" + id)
	}
	return types.Task{
		TaskArn:              arn("task"),
		ClusterArn:           aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/default"),
		TaskDefinitionArn:    aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/train:3"),
		ContainerInstanceArn: arn("container-instance"),
		AvailabilityZone:     aws.String("us-east-1a"),
		Connectivity:         types.ConnectivityConnected,
		ConnectivityAt:       &now,
		Cpu:                  aws.String("4096"),
		Memory:               aws.String("16384"),
		CreatedAt:            &now,
		StartedAt:            &now,
		PullStartedAt:        &now,
		PullStoppedAt:        &now,
		DesiredStatus:        aws.String("RUNNING"),
		LastStatus:           aws.String("RUNNING"),
		HealthStatus:         types.HealthStatusUnknown,
		Group:                aws.String("family:train"),
		LaunchType:           types.LaunchTypeExternal,
		StartedBy:            aws.String("bench"),
		Version:              3,
		Attributes:           []types.Attribute{{Name: aws.String("ecs.cpu-architecture"), Value: aws.String("x86_64")}},
		Attachments:          []types.Attachment{},
		Tags:                 []types.Tag{},
		Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{
			Name:    aws.String("main"),
			Command: []string{"python", "train.py"},
		}}},
		Containers: []types.Container{{
			ContainerArn: arn("container"),
			TaskArn:      arn("task"),
			Name:         aws.String("main"),
			Image:        aws.String("pytorch/pytorch:2.4"),
			ImageDigest:  aws.String("sha256:" + id + id),
			RuntimeId:    aws.String(id + id),
			LastStatus:   aws.String("RUNNING"),
			HealthStatus: types.HealthStatusUnknown,
			Cpu:          aws.String("4096"),
			Memory:       aws.String("16384"),
			GpuIds:       []string{"GPU-" + id, "GPU-1" + id},
			NetworkBindings: []types.NetworkBinding{{
				BindIP:        aws.String("0.0.0.0"),
				ContainerPort: aws.Int32(80),
				HostPort:      aws.Int32(32768),
				Protocol:      types.TransportProtocolTcp,
			}},
		}},
	}
}

// benchECS answers with the same tasks each time.
type benchECS struct{ tasks []types.Task }

func (b *benchECS) DescribeTasks(context.Context, *ecs.DescribeTasksInput) (*ecs.DescribeTasksOutput, error) {
	return &ecs.DescribeTasksOutput{Tasks: b.tasks}, nil
}

func (b *benchECS) RunTask(context.Context, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
	return &ecs.RunTaskOutput{Tasks: b.tasks[:1]}, nil
}

func (b *benchECS) RegisterTaskDefinition(context.Context, *ecs.RegisterTaskDefinitionInput) (*ecs.RegisterTaskDefinitionOutput, error) {
	return &ecs.RegisterTaskDefinitionOutput{}, nil
}

func (b *benchECS) Operations() []call.Operation {
	return []call.Operation{
		call.Op("DescribeTasks", b.DescribeTasks),
		call.Op("RunTask", b.RunTask),
		call.Op("RegisterTaskDefinition", b.RegisterTaskDefinition),
	}
}

const (
	describeTasks = `{"cluster":"default","tasks":["00000000000000000000000000000001"],"include":["TAGS"]}`
	runTask       = `{"cluster":"default","taskDefinition":"train:3","count":1,"launchType":"EXTERNAL","startedBy":"bench",` +
		`"clientToken":"00000000-0000-0000-0000-000000000001","overrides":{"containerOverrides":[{"name":"main",` +
		`"command":["python","train.py"],"environment":[{"name":"EPOCHS","value":"10"}]}]}}`
	registerTask = `{"family":"train","networkMode":"host","requiresCompatibilities":["EXTERNAL"],"cpu":"4096",` +
		`"memory":"16384","taskRoleArn":"arn:aws:iam::000000000000:role/train","containerDefinitions":[` +
		`{"name":"main","image":"pytorch/pytorch:2.4","essential":true,"cpu":4096,"memory":16384,"command":["python",` +
		`"train.py"],"environment":[{"name":"A","value":"1"},` +
		`{"name":"B","value":"two"}],"resourceRequirements":[{"type":"GPU","value":"2"}],"portMappings":[{"containerPort":80,` +
		`"hostPort":0,"protocol":"tcp"}],"mountPoints":[{"sourceVolume":"data","containerPath":"/data","readOnly":true}],` +
		`"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"/train","awslogs-region":"us-east-1",` +
		`"awslogs-stream-prefix":"t"}},"healthCheck":{"command":["CMD-SHELL","curl -f http://localhost/ || exit 1"],` +
		`"interval":30,"timeout":5,"retries":3},"ulimits":[{"name":"nofile","softLimit":65536,"hardLimit":65536}],` +
		`"dockerLabels":{"team":"ml"}},` +
		`{"name":"side","image":"busybox","essential":false,"cpu":10,"memory":64,"dependsOn":[{"containerName":"main",` +
		`"condition":"START"}]}],"volumes":[{"name":"data","host":{"sourcePath":"/srv/data"}}],"tags":[{"key":"team","value":"ml"}]}`
)

// discard is a ResponseWriter that drops the answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkHandler(b *testing.B) {
	service := &benchECS{}
	for i := range 100 {
		service.tasks = append(service.tasks, task(i))
	}
	h := newHandler(b, wire.Options{Log: slog.New(slog.DiscardHandler)}, wire.ECS(service))
	for _, c := range []struct{ operation, body string }{
		{"DescribeTasks", describeTasks},
		{"RunTask", runTask},
		{"RegisterTaskDefinition", registerTask},
	} {
		b.Run(c.operation, func(b *testing.B) {
			w := post(h, c.operation, c.body)
			if w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
			b.SetBytes(int64(len(c.body) + w.Body.Len()))
			b.ReportAllocs()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+c.operation)
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			out := &discard{http.Header{}}
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(c.body))
				h.ServeHTTP(out, r)
			}
		})
	}
}

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// fillUp writes a file until the disk has no more room. It takes no more than was free when it began: what Pintle gives up of its reserve
// meanwhile is for stopping tasks, and a program that took that too would leave nothing to stop one with.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // what it holds doesn't matter
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	room := int(fs.Bavail) * int(fs.Bsize)
	for size := 1 << 20; size > 0 && room > 0; {
		n, err := f.Write(make([]byte, min(size, room)))
		if room -= n; err != nil {
			size /= 16
		}
	}
}

// acknowledged collects what each client was told yes for.
type acknowledged struct {
	mu      sync.Mutex
	names   map[string][]string
	refused map[string]int
	next    atomic.Int64
}

// kinds are what is written, one in each store.
var kinds = []string{"object", "message", "event", "metric", "family"}

// counts returns how many writes of each kind were acknowledged, and how many refused.
func (a *acknowledged) counts() (yes, no map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	yes = map[string]int{}
	for kind, names := range a.names {
		yes[kind] = len(names)
	}
	return yes, maps.Clone(a.refused)
}

// allGrow waits until each kind's count has grown.
func allGrow(t *testing.T, what string, count func() map[string]int) {
	t.Helper()
	before := count()
	Eventually(t, what, func() bool {
		now := count()
		return !slices.ContainsFunc(kinds, func(kind string) bool { return now[kind] == before[kind] })
	})
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
			copies := 1
			if strings.HasSuffix(name, "7") { // few are large, or they fill the disk before it was filled and freed twenty times
				copies = 5000
			}
			body := bytes.NewReader(bytes.Repeat([]byte(name), copies))
			_, err := c.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: &name, Body: body})
			return err
		},
		"message": func(ctx context.Context, name string) error {
			_, err := c.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("http://x/000000000000/q"), MessageBody: &name})
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
			for ctx.Err() == nil {
				name := fmt.Sprintf("%s-%d", kind, a.next.Add(1))
				if err := write(ctx, name); ctx.Err() == nil {
					a.note(t, kind, name, err)
				}
				time.Sleep(2 * time.Millisecond) // the machine does other things, too
			}
		})
	}
	return running.Wait
}

// stored lists what is in the stores, by kind.
func (c stores) stored(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, kind := range kinds {
		all[kind] = map[string]bool{}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for pages := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		must(err)
		for _, o := range page.Contents {
			all["object"][*o.Key] = true
		}
	}
	for {
		in := &sqs.ReceiveMessageInput{QueueUrl: aws.String("http://x/000000000000/q"), MaxNumberOfMessages: 10, VisibilityTimeout: 3600}
		got, err := c.sqs.ReceiveMessage(t.Context(), in)
		must(err)
		if len(got.Messages) == 0 {
			break
		}
		for _, m := range got.Messages {
			all["message"][*m.Body] = true
		}
	}
	events := cloudwatchlogs.NewFilterLogEventsPaginator(c.logs, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g")})
	for events.HasMorePages() {
		page, err := events.NextPage(t.Context())
		must(err)
		for _, e := range page.Events {
			all["event"][*e.Message] = true
		}
	}
	for pages := cloudwatch.NewListMetricsPaginator(c.metrics, &cloudwatch.ListMetricsInput{Namespace: aws.String("n")}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		must(err)
		for _, m := range page.Metrics {
			all["metric"][*m.MetricName] = true
		}
	}
	for pages := ecs.NewListTaskDefinitionFamiliesPaginator(c.ecs, &ecs.ListTaskDefinitionFamiliesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		must(err)
		for _, family := range page.Families {
			all["family"][family] = true
		}
	}
	return all
}

// reads reads from each store.
func (c stores) reads(ctx context.Context) error {
	_, object := c.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("first")})
	_, queue := c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String("http://x/000000000000/q")})
	_, events := c.logs.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s")})
	_, list := c.metrics.ListMetrics(ctx, &cloudwatch.ListMetricsInput{Namespace: aws.String("n")})
	_, clusters := c.ecs.DescribeClusters(ctx, &ecs.DescribeClustersInput{})
	return errors.Join(object, queue, events, list, clusters)
}

// readAllTheTime reads from each store until ctx ends. No read may fail.
func (c stores) readAllTheTime(ctx context.Context, t *testing.T) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := c.reads(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("a read: %v", err)
			}
			time.Sleep(20 * time.Millisecond) // the machine does other things, too
		}
	})
	return running.Wait
}

// prepare makes what the load writes into, and a task for each time that the disk is filled.
func (c stores) prepare(t *testing.T) (tasks []string) {
	t.Helper()
	ctx := t.Context()
	name := aws.String("sleep")
	_, bucket := c.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("bucket")})
	_, object := c.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("first"), Body: strings.NewReader("x")})
	_, queue := c.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("q")})
	_, group := c.logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("g")})
	in := &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s")}
	_, stream := c.logs.CreateLogStream(ctx, in)
	_, definition := c.ecs.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: name,
		ContainerDefinitions: []ecstypes.ContainerDefinition{{
			Name:        name,
			Image:       aws.String("i"),
			Memory:      aws.Int32(8),
			Command:     []string{"sleep", "3600"},
			StopTimeout: aws.Int32(2),
		}},
	})
	if err := errors.Join(bucket, object, queue, group, stream, definition); err != nil {
		t.Fatal(err)
	}
	for range *diskTimes {
		out, err := c.ecs.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: name})
		if err != nil || len(out.Tasks) != 1 {
			t.Fatalf("%v, %+v", err, out)
		}
		tasks = append(tasks, *out.Tasks[0].TaskArn)
	}
	return tasks
}

// health returns what the control plane says of itself.
func health(t *testing.T, endpoint string) (h struct{ Status, Reason string }) {
	t.Helper()
	answer, err := http.Get(endpoint + "/pintle/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if err := json.NewDecoder(answer.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDiskIsFilledAndFreed fills the disk under load and frees it again. Nothing acknowledged is lost, reads answer throughout, tasks can be
// stopped, and no restart is needed; but there is one while the disk is full.
func TestDiskIsFilledAndFreed(t *testing.T) {
	disk := smallDisk(t)
	filler := filepath.Join(disk, "filler")
	p := Up(t, "c5.2xlarge", "--data", filepath.Join(disk, "data"))
	c := storesAt(p.Endpoint)
	tasks := c.prepare(t)
	a := &acknowledged{names: map[string][]string{}, refused: map[string]int{}}
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		load, reads := c.load(ctx, t, a), c.readAllTheTime(ctx, t)
		return func() {
			cancel()
			load()
			reads()
		}
	}
	stop := start()
	for i := range *diskTimes {
		allGrow(t, "a write of each kind", func() map[string]int { yes, _ := a.counts(); return yes })
		fillUp(t, filler)
		allGrow(t, "a refusal of each kind", func() map[string]int { _, no := a.counts(); return no })
		if h := health(t, p.Endpoint); h.Status != "read-only" || !strings.Contains(h.Reason, "no space left on "+disk) {
			t.Errorf("health: %+v", h)
		}
		if _, err := c.ecs.StopTask(t.Context(), &ecs.StopTaskInput{Task: &tasks[i]}); err != nil {
			t.Fatalf("stop a task on a full disk: %v", err)
		}
		p.Await(tasks[i], "STOPPED")
		if i == 0 {
			stop()
			p.Kill()
			fillUp(t, filler)
			p.Start()
			stop = start()
			allGrow(t, "a refusal of each kind after a restart", func() map[string]int { _, no := a.counts(); return no })
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "room in reserve", func() bool {
			_, err := os.Stat(filepath.Join(disk, "data", "reserve-for-ends"))
			return err == nil
		})
	}
	allGrow(t, "a write of each kind", func() map[string]int { yes, _ := a.counts(); return yes })
	stop()
	if h := health(t, p.Endpoint); h.Status != "ok" {
		t.Errorf("health: %+v", h)
	}
	p.Kill()
	p.Start()
	stored := c.stored(t)
	for kind, names := range a.names {
		for _, name := range names {
			if !stored[kind][name] {
				t.Errorf("%s was acknowledged, and is lost", name)
			}
		}
	}
	yes, no := a.counts()
	t.Logf("acknowledged %v, refused %v", yes, no)
}

// TestReadOnlyStart: on a file system that can't be written, the control plane doesn't start, and says what to do.
func TestReadOnlyStart(t *testing.T) {
	disk := smallDisk(t)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends one that did start
	defer cancel()
	serve := exec.CommandContext(ctx, bin(t, "pintle"), "serve", "--listen", freeAddress(t), "--data", filepath.Join(disk, "data"))
	out, err := serve.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "read-only file system; Pintle starts only where it can write") {
		t.Errorf("%v: %s", err, out)
	}
}

package test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/damagetest"
	"github.com/pintle/pintle/internal/plane"
	"github.com/pintle/pintle/internal/sdkhttp"
)

var damageTrials = flag.Int("damage.trials", 24, "how many files of a data directory are damaged at random")

// damageable lists the stores whose files are damaged, by name in the data directory.
var damageable = []string{"objects", "task.key", "state.db", "queues", "logs", "metrics"}

// stores holds clients of all services that store data.
type stores struct {
	s3      *s3.Client
	sqs     *sqs.Client
	logs    *cloudwatchlogs.Client
	metrics *cloudwatch.Client
	ecs     *ecs.Client
}

func storesAt(endpoint string) stores {
	c := aws.Config{
		Region:           "us-east-1",
		BaseEndpoint:     &endpoint,
		RetryMaxAttempts: 1,
		Credentials:      credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient:       sdkhttp.New(),
	}
	return stores{
		s3:      s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }),
		sqs:     sqs.NewFromConfig(c),
		logs:    cloudwatchlogs.NewFromConfig(c),
		metrics: cloudwatch.NewFromConfig(c),
		ecs:     ecs.NewFromConfig(c),
	}
}

// kept is the stored data of a control plane, by names that start with the store's.
type kept map[string]string

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// fill stores something of each kind.
func (c stores) fill(t *testing.T, began time.Time) kept {
	t.Helper()
	k := kept{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.fillObjects(t.Context(), k))
	must(c.fillQueues(t.Context(), k))
	must(c.fillLogs(t.Context(), k, began))
	must(c.fillMetrics(t.Context(), k, began))
	for i := range 30 {
		family := fmt.Sprint("family", i)
		_, err := c.ecs.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
			Family: &family,
			ContainerDefinitions: []ecstypes.ContainerDefinition{{
				Name:   aws.String("main"),
				Image:  aws.String(strings.Repeat("i", 100)),
				Memory: aws.Int32(8),
			}},
		})
		must(err)
		k["ecs/"+family] = "1"
	}
	return k
}

func (c stores) fillObjects(ctx context.Context, k kept) error {
	bucket := aws.String("bucket")
	if _, err := c.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}); err != nil {
		return err
	}
	rnd := rand.NewChaCha8([32]byte{3})
	body := func(size int) []byte {
		b := make([]byte, size)
		rnd.Read(b) //nolint:errcheck // it never fails
		return b
	}
	for i := range 20 {
		key, b := fmt.Sprint("key", i), body(i*150+i/15*200_000)
		if _, err := c.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(b)}); err != nil {
			return err
		}
		k["s3/"+key] = digest(b)
	}
	key := aws.String("parts")
	u, err := c.s3.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	var whole []byte
	var parts []s3types.CompletedPart
	for i, size := range []int{5 << 20, 1000} {
		b := body(size)
		number := aws.Int32(int32(i + 1))
		p, err := c.s3.UploadPart(ctx, &s3.UploadPartInput{
			Bucket:     bucket,
			Key:        key,
			UploadId:   u.UploadId,
			PartNumber: number,
			Body:       bytes.NewReader(b),
		})
		if err != nil {
			return err
		}
		whole = append(whole, b...)
		parts = append(parts, s3types.CompletedPart{ETag: p.ETag, PartNumber: number, ChecksumCRC32: p.ChecksumCRC32})
	}
	k["s3/parts"] = digest(whole)
	_, err = c.s3.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:          bucket,
		Key:             key,
		UploadId:        u.UploadId,
		MultipartUpload: &s3types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

func (c stores) fillQueues(ctx context.Context, k kept) error {
	for _, name := range []string{"queue", "queue.fifo"} {
		in := &sqs.CreateQueueInput{QueueName: &name}
		if strings.HasSuffix(name, ".fifo") {
			in.Attributes = map[string]string{"FifoQueue": "true"}
		}
		q, err := c.sqs.CreateQueue(ctx, in)
		if err != nil {
			return err
		}
		for i := range 40 {
			text := fmt.Sprintf("message %d %s", i, strings.Repeat("m", i*20))
			m := &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: &text}
			if in.Attributes != nil {
				m.MessageGroupId = aws.String(fmt.Sprint("g", i%3))
				m.MessageDeduplicationId = aws.String(fmt.Sprint(i))
			}
			if _, err := c.sqs.SendMessage(ctx, m); err != nil {
				return err
			}
			k["sqs/"+name+"/"+text] = "1"
		}
	}
	return nil
}

func (c stores) fillLogs(ctx context.Context, k kept, began time.Time) error {
	group := aws.String("group")
	if _, err := c.logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group}); err != nil {
		return err
	}
	for _, stream := range []string{"one", "two"} {
		in := &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: &stream}
		if _, err := c.logs.CreateLogStream(ctx, in); err != nil {
			return err
		}
		for i := range 30 {
			text := fmt.Sprintf("event %d of %s", i, stream)
			at := aws.Int64(began.UnixMilli() + int64(i))
			if _, err := c.logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
				LogGroupName:  group,
				LogStreamName: &stream,
				LogEvents:     []logstypes.InputLogEvent{{Message: &text, Timestamp: at}},
			}); err != nil {
				return err
			}
			k["logs/"+stream+"/"+text] = "1"
		}
	}
	return nil
}

func (c stores) fillMetrics(ctx context.Context, k kept, began time.Time) error {
	for i := range 10 {
		name := fmt.Sprint("metric", i)
		for minute := range 3 {
			at := began.Add(-time.Duration(minute) * time.Minute)
			if _, err := c.metrics.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{
				Namespace: aws.String("Test"),
				MetricData: []cwtypes.MetricDatum{
					{MetricName: &name, Value: aws.Float64(float64(1 + i)), Timestamp: &at},
				},
			}); err != nil {
				return err
			}
		}
		k["metrics/"+name] = fmt.Sprint(3 * (1 + i))
	}
	return nil
}

// read returns what is stored, and the errors of what can't be read. An error's key is the name of an entry, or of a whole
// store.
func (c stores) read(ctx context.Context, began time.Time) (kept, map[string]error) {
	k, failed := kept{}, map[string]error{}
	for name, read := range map[string]func(context.Context, kept, map[string]error) error{
		"s3": c.readObjects, "sqs": c.readQueues, "logs": c.readLogs, "ecs": c.readTaskDefinitions,
		"metrics": func(ctx context.Context, k kept, _ map[string]error) error { return c.readMetrics(ctx, k, began) },
	} {
		if err := read(ctx, k, failed); err != nil {
			failed[name] = err
		}
	}
	return k, failed
}

func (c stores) readObjects(ctx context.Context, k kept, failed map[string]error) error {
	bucket := aws.String("bucket")
	page, err := c.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket})
	var none *s3types.NoSuchBucket
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, o := range page.Contents {
		var b []byte
		out, err := c.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: o.Key})
		if err == nil {
			b, err = io.ReadAll(out.Body)
			out.Body.Close() //nolint:errcheck // it was read
		}
		if err != nil {
			failed["s3/"+*o.Key] = err
			continue
		}
		k["s3/"+*o.Key] = digest(b)
	}
	return nil
}

func (c stores) readQueues(ctx context.Context, k kept, _ map[string]error) error {
	queues, err := c.sqs.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return err
	}
	for _, url := range queues.QueueUrls {
		for {
			got, err := c.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
			if err != nil {
				return err
			}
			if len(got.Messages) == 0 {
				break
			}
			var gone []sqstypes.DeleteMessageBatchRequestEntry
			for i, m := range got.Messages {
				k["sqs/"+url[strings.LastIndexByte(url, '/')+1:]+"/"+*m.Body] += "1"
				gone = append(gone, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
			}
			deleted, err := c.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: gone})
			if err != nil {
				return err
			}
			if len(deleted.Failed) > 0 { // they would be received again, for ever
				return fmt.Errorf("%s: %s", url, *deleted.Failed[0].Message)
			}
		}
	}
	return nil
}

func (c stores) readLogs(ctx context.Context, k kept, _ map[string]error) error {
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(c.logs, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("group")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		var none *logstypes.ResourceNotFoundException
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			k["logs/"+*e.LogStreamName+"/"+*e.Message] += "1"
		}
	}
	return nil
}

func (c stores) readMetrics(ctx context.Context, k kept, began time.Time) error {
	listed, err := c.metrics.ListMetrics(ctx, &cloudwatch.ListMetricsInput{Namespace: aws.String("Test")})
	if err != nil {
		return err
	}
	for _, m := range listed.Metrics {
		from, to := began.Add(-10*time.Minute), began.Add(5*time.Minute)
		got, err := c.metrics.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
			Namespace:  m.Namespace,
			MetricName: m.MetricName,
			StartTime:  &from,
			EndTime:    &to,
			Period:     aws.Int32(60),
			Statistics: []cwtypes.Statistic{cwtypes.StatisticSum},
		})
		if err != nil {
			return err
		}
		sum := 0.0
		for _, p := range got.Datapoints {
			sum += *p.Sum
		}
		k["metrics/"+*m.MetricName] = fmt.Sprint(sum)
	}
	return nil
}

func (c stores) readTaskDefinitions(ctx context.Context, k kept, _ map[string]error) error {
	got, err := c.ecs.ListTaskDefinitionFamilies(ctx, &ecs.ListTaskDefinitionFamiliesInput{})
	if err != nil {
		return err
	}
	for _, family := range got.Families {
		k["ecs/"+family] = "1"
	}
	return nil
}

// TestDamage fills the stores of a control plane, kills or stops it, and repeatedly damages a random file in a copy of its
// data. Nothing may be lost silently: damage is reported by the start or by the call that needs the data, unless it's harmless.
// After a repair, everything that wasn't in the damaged file is still there.
func TestDamage(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Minute)
	data := t.TempDir()
	address := freeAddress(t)
	d := &daemon{t: t, args: []string{"serve", "--listen", address, "--data", data}}
	d.start()
	Eventually(t, "the start", func() bool { return isUp(address) })
	want := storesAt("http://"+address).fill(t, began)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.cmd.Wait() //nolint:errcheck // it was killed
	killed, stopped := t.TempDir(), data
	for _, reserve := range []string{"reserve-for-ends", "reserve-for-start"} { // a copy for each trial would only take time
		os.Remove(filepath.Join(data, reserve)) //nolint:errcheck // it may not be there
	}
	if err := os.CopyFS(killed, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	d.start()
	Eventually(t, "the second start", func() bool { return isUp(address) })
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for i := range *damageTrials {
		dir := t.TempDir()
		from := []string{killed, stopped}[i%2]
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		path := pickFile(t, dir, rnd)
		how := fmt.Sprintf("seed %d, trial %d (%s): %s", seed, i, []string{"killed", "stopped"}[i%2], damagetest.Hurt(t, path, rnd))
		if tryDamaged(t, dir, path, how, want, began) {
			found++
		}
		os.RemoveAll(dir) //nolint:errcheck // the test's end removes it, too
	}
	t.Logf("%d of %d were found; what the others did was harmless", found, *damageTrials)
	if found < *damageTrials/4 {
		t.Errorf("only %d of %d were found: the test shows little", found, *damageTrials)
	}
}

func isUp(address string) bool {
	resp, err := http.Get("http://" + address + "/pintle/health")
	if err != nil {
		return false
	}
	resp.Body.Close() //nolint:errcheck // only the status counts
	return resp.StatusCode == http.StatusOK
}

// pickFile picks a random file, with the same chance for each store.
func pickFile(t *testing.T, dir string, rnd *rand.Rand) string {
	t.Helper()
	store := damageable[rnd.IntN(len(damageable))]
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(path, filepath.Join(dir, store)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of %s: %v", len(files), store, err)
	}
	return files[rnd.IntN(len(files))]
}

// serveCopy runs a control plane on a data directory while use runs.
func serveCopy(t *testing.T, dir string, use func(stores)) error {
	t.Helper()
	p, err := plane.Open(t.Context(), plane.Options{
		Data:       dir,
		Listen:     "127.0.0.1:0",
		Region:     "us-east-1",
		Account:    "000000000000",
		Lost:       time.Minute,
		Settle:     time.Minute,
		MaxMetrics: 1000,
		Log:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	use(storesAt(p.Endpoint()))
	stop()
	return <-ended
}

// tryDamaged starts, checks and repairs a data directory with a damaged file. It reports whether the damage was found.
func tryDamaged(t *testing.T, dir, path, how string, want kept, began time.Time) bool {
	t.Helper()
	before := t.TempDir()
	if err := os.CopyFS(before, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(before) //nolint:errcheck // the test's end removes it, too
	var named *file.Damage
	err := serveCopy(t, before, func(c stores) {
		got, failed := c.read(t.Context(), began)
		for name, value := range want {
			store, _, _ := strings.Cut(name, "/")
			if got[name] != value && failed[name] == nil && failed[store] == nil {
				t.Errorf("%s: a silent loss of %.60s", how, name)
			}
		}
	})
	if err != nil && !errors.As(err, &named) {
		t.Errorf("%s: %v", how, err)
	}
	listed, err := plane.Check(t.Context(), dir, false)
	if err != nil || named != nil && len(listed) == 0 {
		t.Fatalf("%s: the check finds %v, %v", how, listed, err)
	}
	if _, err := plane.Check(t.Context(), dir, true); err != nil {
		t.Fatalf("%s: the repair: %v", how, err)
	}
	err = serveCopy(t, dir, func(c stores) {
		got, failed := c.read(t.Context(), began)
		if len(failed) > 0 {
			t.Errorf("%s: after the repair: %v", how, failed)
		}
		hurt := map[string]string{"objects": "s3", "queues": "sqs", "logs": "logs", "metrics": "metrics",
			"state.db": "ecs"}[storeOf(dir, path)]
		lost := slices.DeleteFunc(slices.Collect(maps.Keys(want)), func(name string) bool { return got[name] == want[name] })
		for _, name := range lost {
			if store, _, _ := strings.Cut(name, "/"); store != hurt || len(listed) == 0 {
				t.Errorf("%s: %.60s is lost by the repair", how, name)
			}
		}
		if strings.Contains(path, "objects/") && !strings.Contains(path, "index.db") && len(lost) > 1 {
			t.Errorf("%s: %d objects are lost, by one file", how, len(lost))
		}
	})
	if err != nil {
		t.Errorf("%s: after the repair: %v", how, err)
	}
	return len(listed) > 0
}

// storeOf returns the entry of damageable that a file belongs to.
func storeOf(dir, path string) string {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return ""
	}
	name, _, _ = strings.Cut(name, "/")
	if strings.HasPrefix(name, "state.db") {
		return "state.db"
	}
	return name
}

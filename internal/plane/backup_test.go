package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/sqlite"
)

// must fails the test with an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// furnish makes something in each store, and returns the layer's digest.
func furnish(t *testing.T, p *Plane) (digest string) {
	t.Helper()
	ctx := t.Context()
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(p.ECS.CreateCluster(ctx, &ecs.CreateClusterInput{}))
	check(p.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"VisibilityTimeout": "0"}}))
	check(p.S3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("results")}))
	check(p.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("group")}))
	check(p.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("group"), LogStreamName: aws.String("stream")}))
	check(p.SecretsManager.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("secret"), SecretString: aws.String("hush"),
		ClientRequestToken: aws.String("00000000-0000-0000-0000-000000000001")}))
	check(p.CloudWatch.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: aws.String("Test"),
		MetricData: []cwtypes.MetricDatum{{MetricName: aws.String("Metric"), Value: aws.Float64(7)}}}))
	check(p.zips.Put([]byte("zip")))
	check(p.ECR.CreateRepository(ctx, &ecr.CreateRepositoryInput{RepositoryName: aws.String("repository")}))
	upload := must[*ecr.InitiateLayerUploadOutput](t)(p.ECR.InitiateLayerUpload(ctx, &ecr.InitiateLayerUploadInput{RepositoryName: aws.String("repository")}))
	layer := bytes.Repeat([]byte("layer"), 1000)
	check(p.ECR.UploadLayerPart(ctx, &ecr.UploadLayerPartInput{RepositoryName: aws.String("repository"), UploadId: upload.UploadId,
		PartFirstByte: aws.Int64(0), PartLastByte: aws.Int64(int64(len(layer) - 1)), LayerPartBlob: layer}))
	done := must[*ecr.CompleteLayerUploadOutput](t)(p.ECR.CompleteLayerUpload(ctx, &ecr.CompleteLayerUploadInput{
		RepositoryName: aws.String("repository"), UploadId: upload.UploadId, LayerDigests: []string{blobs.DigestOf(layer)}}))
	return *done.LayerDigest
}

// load is what clients do while backups are made, and what of it was acknowledged.
type load struct {
	p     *Plane
	big   []byte
	queue *string

	mu     sync.Mutex
	sent   map[string]bool // bodies of messages
	lines  int
	failed error
	puts   atomic.Int64
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = errors.Join(l.failed, err)
}

func (l *load) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// send sends messages.
func (l *load) send(ctx context.Context, from int) error {
	body := fmt.Sprintf("%d-%d", from, time.Now().UnixNano())
	if _, err := l.p.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: l.queue, MessageBody: &body}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[body] = true
	return nil
}

// work takes a message, stores its result, and only then deletes it. Results are small and large.
func (l *load) work(ctx context.Context) error {
	in := &sqs.ReceiveMessageInput{QueueUrl: l.queue, MaxNumberOfMessages: 1}
	out, err := l.p.SQS.ReceiveMessage(ctx, in)
	if err != nil || len(out.Messages) == 0 {
		return err
	}
	m := out.Messages[0]
	result := []byte("small")
	if n := l.puts.Add(1); n%4 == 0 {
		result = l.big
	}
	if _, err := l.p.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("results"), Key: m.Body, Body: bytes.NewReader(result)}); err != nil {
		return err
	}
	_, err = l.p.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: l.queue, ReceiptHandle: m.ReceiptHandle})
	return err
}

// churn writes an object, over and over, whose files go with each write; and a log line, a group that comes and goes, and a row.
func (l *load) churn(ctx context.Context) error {
	if _, err := l.p.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("results"), Key: aws.String("churn"), Body: bytes.NewReader(l.big)}); err != nil {
		return err
	}
	_, err := l.p.Logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("group"), LogStreamName: aws.String("stream"),
		LogEvents: []logtypes.InputLogEvent{{Message: aws.String("line"), Timestamp: aws.Int64(time.Now().UnixMilli())}}})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.lines++
	l.mu.Unlock()
	if _, err := l.p.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("passing")}); err != nil {
		return err
	}
	if _, err := l.p.Logs.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("passing")}); err != nil {
		return err
	}
	_, err = l.p.ECS.CreateCluster(ctx, &ecs.CreateClusterInput{ClusterName: aws.String(fmt.Sprint("c", time.Now().UnixNano()))})
	return err
}

// run runs the load until stop.
func (l *load) run(ctx context.Context) (stop func()) {
	ending := make(chan struct{})
	var running sync.WaitGroup
	for i, do := range []func(context.Context) error{
		func(ctx context.Context) error { return l.send(ctx, 0) },
		func(ctx context.Context) error { return l.send(ctx, 1) },
		l.work, l.churn,
	} {
		running.Go(func() {
			for {
				select {
				case <-ending:
					return
				default:
				}
				if err := do(ctx); err != nil {
					l.fail(fmt.Errorf("load %d: %w", i, err))
					return
				}
			}
		})
	}
	return func() {
		close(ending)
		running.Wait()
	}
}

// acknowledged returns what was acknowledged by now.
func (l *load) acknowledged() (sent map[string]bool, lines int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sent), l.lines
}

// TestBackupUnderLoad: a backup has all that was acknowledged before it began, whatever happens meanwhile, and nothing that follows from
// something without that: a message that was deleted once its result was stored is there, or its result is.
func TestBackupUnderLoad(t *testing.T) {
	p := must[*Plane](t)(openIn(t, t.TempDir()))
	digest := furnish(t, p)
	queue := must[*sqs.GetQueueUrlOutput](t)(p.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("work")}))
	l := &load{p: p, big: bytes.Repeat([]byte("0123456789abcdef"), 1<<13), queue: queue.QueueUrl, sent: map[string]bool{}}
	stop := l.run(t.Context())
	for range 3 {
		for n := l.puts.Load() + 20; l.puts.Load() < n && l.err() == nil; {
			time.Sleep(time.Millisecond)
		}
		sent, lines := l.acknowledged()
		var archive bytes.Buffer
		if err := p.Backup(&archive); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "restored")
		if _, damage, err := Restore(t.Context(), &archive, dir, false); err != nil || len(damage) > 0 {
			t.Fatal(err, damage)
		}
		checkRestored(t, must[*Plane](t)(openIn(t, dir)), digest, sent, lines)
	}
	stop()
	if err := l.err(); err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{"logs/*", "objects/*/*"} { // what was kept for the backups has gone
		left := must[[]string](t)(filepath.Glob(filepath.Join(p.options.Data, pattern)))
		if most := 30 + int(l.puts.Load()); len(left) > most {
			t.Errorf("%d files of %s are left of %d puts", len(left), pattern, l.puts.Load())
		}
	}
	if left := must[[]string](t)(filepath.Glob(filepath.Join(p.options.Data, "logs", ".new-*"))); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// checkRestored looks in a control plane of a directory that was restored for what was acknowledged, and closes it.
func checkRestored(t *testing.T, r *Plane, digest string, sent map[string]bool, lines int) {
	t.Helper()
	ctx := t.Context()
	defer r.Close() //nolint:errcheck // it was read only
	queue := must[*sqs.GetQueueUrlOutput](t)(r.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("work")}))
	there := map[string]bool{}
	for {
		out := must[*sqs.ReceiveMessageOutput](t)(r.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 3600}))
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			there[*m.Body] = true
		}
	}
	for body := range sent {
		object, err := r.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("results"), Key: aws.String(body)})
		if err != nil && !there[body] {
			t.Fatalf("message %s is neither in the queue nor done: %v", body, err)
		}
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(object.Body); err != nil || len(b) != 5 && len(b) != 1<<17 {
			t.Errorf("the result of %s has %d bytes: %v", body, len(b), err)
		}
		object.Body.Close() //nolint:errcheck // it was read
	}
	events := 0
	for token := (*string)(nil); ; {
		out := must[*cloudwatchlogs.FilterLogEventsOutput](t)(r.Logs.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("group"), NextToken: token}))
		events += len(out.Events)
		if token = out.NextToken; token == nil {
			break
		}
	}
	if events < lines {
		t.Errorf("%d of %d lines are there", events, lines)
	}
	secret := must[*secretsmanager.GetSecretValueOutput](t)(r.SecretsManager.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("secret")}))
	if *secret.SecretString != "hush" {
		t.Errorf("the secret is %q", *secret.SecretString)
	}
	metrics := must[*cloudwatch.ListMetricsOutput](t)(r.CloudWatch.ListMetrics(ctx, &cloudwatch.ListMetricsInput{Namespace: aws.String("Test")}))
	if len(metrics.Metrics) != 1 {
		t.Errorf("metrics are %v", metrics.Metrics)
	}
	if b, err := r.images.Read(digest, 1<<20); err != nil || len(b) != 5000 {
		t.Errorf("the layer has %d bytes: %v", len(b), err)
	}
}

// rows are all rows of a directory's state, and contents all files of its other stores that a backup has.
func rows(t *testing.T, dir string) map[string]string {
	t.Helper()
	journal := must[*sqlite.Journal](t)(sqlite.Open(t.Context(), dir))
	defer journal.Close() //nolint:errcheck // it was read only
	out := map[string]string{}
	if _, err := journal.Since(t.Context(), 0, func(c store.Change) error {
		if c.Data != nil {
			out[c.Table+"/"+c.Key] = string(c.Data)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := backup.Tree(dir, isPassing, func(f backup.File) error {
		top, _, _ := strings.Cut(f.Name, "/")
		if slices.Contains(kept, top) && !strings.HasPrefix(top, "state.db") && !strings.HasPrefix(f.Name, "objects/index.db") {
			b, err := os.ReadFile(f.Path)
			out[f.Name] = string(b)
			return err
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBackupOfStopped: of a directory that nobody uses, the archive has every row and every file, and what it leaves out is known.
func TestBackupOfStopped(t *testing.T) {
	dir := t.TempDir()
	p := must[*Plane](t)(openIn(t, dir))
	furnish(t, p)
	var archive bytes.Buffer
	if err := BackupDirectory(dir, &archive, backup.About{}); err == nil || !strings.Contains(err.Error(), "another pintle is using") {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	archive.Reset()
	if err := BackupDirectory(dir, &archive, backup.About{Version: "1", Made: time.Now()}); err != nil {
		t.Fatal(err)
	}
	restored := t.TempDir()
	about, _, err := Restore(t.Context(), bytes.NewReader(archive.Bytes()), restored, false)
	if err != nil || about.Version != "1" {
		t.Fatal(about, err)
	}
	if !maps.Equal(rows(t, dir), rows(t, restored)) {
		t.Error("the rows differ")
	}
	if is, was := contents(t, restored), contents(t, dir); !maps.Equal(is, was) {
		t.Errorf("the files differ: %v and %v", slices.Sorted(maps.Keys(was)), slices.Sorted(maps.Keys(is)))
	}
	if _, _, err := Restore(t.Context(), bytes.NewReader(archive.Bytes()), restored, false); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("over another: %v", err)
	}
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		left := []string{"pintle.lock", "state.db.lock", "reserve-for-ends", "reserve-for-start"}
		if !slices.Contains(kept, e.Name()) && !slices.Contains(left, e.Name()) {
			t.Errorf("%s is neither in a backup nor left out on purpose", e.Name())
		}
	}
}

// TestRestoreOfDamaged: whatever byte of an archive is changed, and wherever it's cut off, nothing is restored, or nothing is different.
func TestRestoreOfDamaged(t *testing.T) {
	dir := t.TempDir()
	p := must[*Plane](t)(openIn(t, dir))
	furnish(t, p)
	var archive bytes.Buffer
	if err := p.Backup(&archive); err != nil {
		t.Fatal(err)
	}
	whole := archive.Bytes()
	read := func(b []byte) (out map[string]string, err error) {
		out = map[string]string{}
		_, err = backup.Read(bytes.NewReader(b), func(name string, _ int64, content io.Reader) error {
			b, err := io.ReadAll(content)
			out[name] = string(b)
			return err
		})
		return out, err
	}
	want, err := read(whole)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 97 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		if got, err := read(b); err == nil && !maps.Equal(got, want) {
			t.Fatalf("byte %d was changed, and nobody noticed", at)
		}
		if _, err := read(whole[:at]); err == nil && at < len(whole)-4096 {
			t.Fatalf("it ends at byte %d of %d, and nobody noticed", at, len(whole))
		}
	}
	b := bytes.Clone(whole)
	b[bytes.Index(b, []byte("SQLite format"))] ^= 1
	empty := filepath.Join(t.TempDir(), "new")
	_, _, err = Restore(t.Context(), bytes.NewReader(b), empty, false)
	if !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("restored with %v", err)
	}
	if _, err := os.Stat(filepath.Join(empty, "state.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is in place: %v", err)
	}
	if _, _, err := Restore(t.Context(), bytes.NewReader(whole), empty, false); err != nil {
		t.Errorf("then the whole one: %v", err)
	}
}

// TestRestoreOfLaterFormat: an archive of a later format is refused by name, and so is what is no archive.
func TestRestoreOfLaterFormat(t *testing.T) {
	var archive bytes.Buffer
	w := must[*backup.Writer](t)(backup.NewWriter(&archive, backup.About{Version: "9.9"}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(archive.Bytes(), []byte(`{"format":1,`), []byte(`{"format":2,`), 1)
	_, _, err := Restore(t.Context(), bytes.NewReader(later), t.TempDir(), false)
	if err == nil || !strings.Contains(err.Error(), "format 2, of pintle 9.9") {
		t.Errorf("of a later format: %v", err)
	}
	_, _, err = Restore(t.Context(), strings.NewReader("no archive"), t.TempDir(), false)
	if err == nil || !strings.Contains(err.Error(), "no archive of pintle backup") {
		t.Errorf("of no archive: %v", err)
	}
}

// TestRestoreCutOff: a directory into which a restore was cut off isn't taken for a data directory.
func TestRestoreCutOff(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, partial), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir); err == nil || !strings.Contains(err.Error(), "was cut off") {
		t.Errorf("it starts with %v", err)
	}
}

// watched is a store that notes when it's held and when it goes on.
type watched struct {
	name string
	fail error
	log  *[]string
}

func (w watched) Hold() (backup.Held, error) {
	note := func(what string) { *w.log = append(*w.log, what+" "+w.name) }
	if w.fail != nil {
		return backup.Held{}, w.fail
	}
	note("hold")
	return backup.Held{Resume: func() { note("resume") }, Release: func() { note("release") }}, nil
}

// TestHoldIsOneMoment: no store goes on before all are held, and if one can't be held, none stays so.
func TestHoldIsOneMoment(t *testing.T) {
	var log []string
	if _, err := hold([]heldStore{{store: watched{"a", nil, &log}}, {store: watched{"b", nil, &log}}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"hold a", "hold b", "resume a", "resume b"}; !slices.Equal(log, want) {
		t.Errorf("the order is %v", log)
	}
	log = nil
	if _, err := hold([]heldStore{{store: watched{"a", nil, &log}}, {store: watched{"b", io.ErrClosedPipe, &log}}}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if want := []string{"hold a", "resume a", "release a"}; !slices.Equal(log, want) {
		t.Errorf("the order is %v", log)
	}
}

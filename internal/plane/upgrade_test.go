package plane

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/store/sqlite"
)

var newArchive = flag.String("new-archive", "", "make an archive of today's format, testdata/backups/NAME.tar.gz")

// madeResource is a resource of each of CloudFormation's types, as an archive tells of it.
type madeResource struct {
	Type, Name, ID string
	Properties     map[string]any
}

// TestNewArchive makes an archive of a data directory for TestUpgrade, if -new-archive names one, and otherwise one that nobody keeps. It has a
// resource of each of CloudFormation's types, and something in each store; the object made.json says which resources those are.
func TestNewArchive(t *testing.T) {
	p := opened(t, Options{Version: "0.1.0", Fleet: FleetOptions{Kind: "local"}, FileSystems: t.TempDir()})
	digest := furnish(t, p)
	s := newStack(t, p)
	s.prepare()
	var all []madeResource
	for _, r := range s.examples() {
		all = append(all, madeResource{r.typ, r.name, r.id, r.properties})
	}
	list := must[[]byte](t)(json.Marshal(all))
	ctx := t.Context()
	for key, b := range map[string][]byte{"made.json": list, "layer": []byte(digest), "large": bytes.Repeat([]byte("large"), 1<<16)} {
		must[*s3.PutObjectOutput](t)(p.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("results"), Key: &key, Body: bytes.NewReader(b)}))
	}
	queue := must[*sqs.GetQueueUrlOutput](t)(p.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("work")}))
	must[*sqs.SendMessageOutput](t)(p.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("a message")}))
	must[*cloudwatchlogs.PutLogEventsOutput](t)(p.Logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
		LogGroupName: aws.String("group"), LogStreamName: aws.String("stream"),
		LogEvents: []logtypes.InputLogEvent{{Message: aws.String("an event"), Timestamp: aws.Int64(time.Now().UnixMilli())}},
	}))
	var archive bytes.Buffer
	packed := must[*gzip.Writer](t)(gzip.NewWriterLevel(&archive, gzip.BestCompression))
	if err := p.Close(); err != nil { // which leaves the databases' logs empty, and the archive small
		t.Fatal(err)
	}
	about := backup.About{Version: p.options.Version, Made: time.Now().UTC(), Region: p.options.Region, Account: p.options.Account}
	if err := errors.Join(BackupDirectory(p.options.Data, packed, about), packed.Close()); err != nil {
		t.Fatal(err)
	}
	upgrade(t, bytes.NewReader(archive.Bytes()))
	if *newArchive == "" || t.Failed() {
		return
	}
	f := must[*os.File](t)(os.OpenFile(filepath.Join("testdata", "backups", *newArchive+".tar.gz"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644))
	_, err := f.Write(archive.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade: what earlier versions have kept is there with this one. Each archive in testdata/backups was made by TestNewArchive at its time.
func TestUpgrade(t *testing.T) {
	paths := must[[]string](t)(filepath.Glob("testdata/backups/*.tar.gz"))
	if len(paths) == 0 {
		t.Error("there is no archive")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := must[*os.File](t)(os.Open(path))
			defer f.Close() //nolint:errcheck // it was read only
			upgrade(t, f)
		})
	}
}

// upgrade restores an archive and looks for what is in it, at the time at which it was made, after which messages expire; then it opens it as any
// start does.
func upgrade(t *testing.T, from io.Reader) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	about, damage, err := Restore(t.Context(), must[*gzip.Reader](t)(gzip.NewReader(from)), dir, false)
	if err != nil || len(damage) > 0 {
		t.Fatal(err, damage)
	}
	p := openAt(t, dir, about)
	get := func(key string) []byte {
		t.Helper()
		out := must[*s3.GetObjectOutput](t)(p.S3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("results"), Key: &key}))
		defer out.Body.Close() //nolint:errcheck // it's in memory
		return must[[]byte](t)(io.ReadAll(out.Body))
	}
	if !bytes.Equal(get("large"), bytes.Repeat([]byte("large"), 1<<16)) {
		t.Error("the large object is another")
	}
	var all []madeResource
	if err := json.Unmarshal(get("made.json"), &all); err != nil || len(all) == 0 {
		t.Fatalf("%d resources: %v", len(all), err)
	}
	s := newStack(t, p)
	for _, r := range all {
		s.find(r)
	}
	digest := string(get("layer"))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	checkRestored(t, openAt(t, dir, about), digest, map[string]bool{"a message": true}, 1)
	if err := must[*Plane](t)(openIn(t, dir)).Close(); err != nil {
		t.Fatal(err)
	}
}

// openAt opens a directory as if it were the time at which the archive was made.
func openAt(t *testing.T, dir string, about backup.About) *Plane {
	t.Helper()
	journal := must[*sqlite.Journal](t)(sqlite.Open(t.Context(), dir))
	p := must[*Plane](t)(Open(t.Context(), Options{
		Data:        dir,
		Listen:      "127.0.0.1:0",
		Region:      about.Region,
		Account:     about.Account,
		Lost:        time.Minute,
		Settle:      time.Minute,
		Fleet:       FleetOptions{Kind: "local"},
		FileSystems: t.TempDir(),
		Log:         slog.New(slog.DiscardHandler),
		Simulated:   &Simulated{Now: func() time.Time { return about.Made }, Journal: journal},
	}))
	t.Cleanup(func() { p.Close() })
	return p
}

// find reads a resource as a stack does.
func (s *stack) find(r madeResource) {
	s.t.Helper()
	kind := resources.Lookup(r.Type)
	if _, err := kind.Read(s.ctx, s.step(), r.ID, r.Properties); err != nil {
		s.t.Errorf("%s %s: %v", r.Type, r.ID, err)
	}
	if !kind.IsReadable() {
		return
	}
	if live, err := kind.Live(s.ctx, s.step(), r.ID, r.Properties); err != nil || len(live) == 0 {
		s.t.Errorf("%s %s is %v: %v", r.Type, r.ID, live, err)
	}
}

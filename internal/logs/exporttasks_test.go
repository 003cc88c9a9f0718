package logs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state/statetest"
)

// written are the keys of a bucket's objects.
type written map[string]bool

func (w written) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if *in.Bucket != "there" {
		return nil, &s3types.NoSuchBucket{}
	}
	w[*in.Key] = true
	return &s3.PutObjectOutput{}, nil
}

// TestCreateExportTask: where the test object goes, that a task may ask for a time before its group, and what is said of a bucket that
// isn't there.
func TestCreateExportTask(t *testing.T) {
	for name, c := range map[string]struct {
		bucket  string
		prefix  *string
		want    string // the test object
		refusal string
	}{
		"the default prefix": {bucket: "there", want: "aws-logs-write-test"},
		"a prefix":           {bucket: "there", prefix: aws.String("a/b"), want: "a/b/aws-logs-write-test"},
		"no bucket": {
			bucket:  "nowhere",
			refusal: "InvalidParameterException: The given bucket does not exist. Please make sure the bucket is valid.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := streams.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
			bucket := written{}
			s := New(store, Options{
				Account: accounttest.New(time.Now),
				State:   statetest.Open(t),
				Buckets: bucket,
				Log:     slog.New(slog.DiscardHandler),
			})
			if err := store.CreateGroup(streams.Group{Name: "g", CreatedAt: time.Now().UnixMilli()}); err != nil {
				t.Fatal(err)
			}
			_, err = s.CreateExportTask(t.Context(), &cloudwatchlogs.CreateExportTaskInput{
				LogGroupName:      aws.String("g"),
				From:              aws.Int64(1),
				To:                aws.Int64(2),
				Destination:       &c.bucket,
				DestinationPrefix: c.prefix,
			})
			if c.refusal != "" {
				if err == nil || err.Error() != c.refusal {
					t.Errorf("%v, want %s", err, c.refusal)
				}
				return
			}
			if err != nil || !bucket[c.want] {
				t.Errorf("wrote %v, %v", bucket, err)
			}
		})
	}
}

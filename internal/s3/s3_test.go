package s3

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

// queues is an SQS that records the messages it gets.
type queues struct {
	mu   sync.Mutex
	sent []string
	err  error
}

func (q *queues) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent = append(q.sent, *in.QueueUrl+" "+*in.MessageBody)
	return &sqs.SendMessageOutput{}, q.err
}

func (q *queues) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent = append(q.sent, *in.TopicArn+" "+*in.Subject+" "+*in.Message)
	return &sns.PublishOutput{}, q.err
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newService(t testing.TB) (*Service, *queues) {
	t.Helper()
	return newServiceAt(t, func() time.Time { return noon })
}

func newServiceAt(t testing.TB, now func() time.Time) (*Service, *queues) {
	t.Helper()
	store, err := objects.Open(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	q := &queues{}
	s := New(store, Options{
		Account:  accounttest.New(now),
		Queues:   q,
		Topics:   q,
		QueueURL: func(arn string) string { return "url:" + arn },
	})
	if _, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("bucket")}); err != nil {
		t.Fatal(err)
	}
	return s, q
}

func put(t testing.TB, s *Service, key, content string) {
	t.Helper()
	in := &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: &key, Body: strings.NewReader(content)}
	if _, err := s.PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func TestBucketNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"abc": true, "a.b-c1": true, strings.Repeat("a", 63): true, "ab": false, strings.Repeat("a", 64): false, "Abc": false,
		"a_b": false, "a..b": false, "-ab": false, "ab-": false, "192.168.5.4": false, "xn--a": false, "a-s3alias": false,
		"../x": false, "": false, "a/b": false,
	} {
		if err := checkBucketName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		text         string
		size         int64
		from, length int64
		refused      bool
	}{
		{"bytes=0-0", 10, 0, 1, false}, {"bytes=2-", 10, 2, 8, false}, {"bytes=-3", 10, 7, 3, false}, {"bytes=-30", 10, 0, 10, false},
		{"bytes=5-99", 10, 5, 5, false}, {"bytes=10-", 10, 0, 0, true}, {"bytes=-0", 10, 0, 0, true}, {"bytes=0-", 0, 0, 0, true},
		{"bytes=3-2", 10, 0, 10, false}, {"bytes=0-1,3-4", 10, 0, 10, false}, {"lines=1-2", 10, 0, 10, false},
		{"bytes=-", 10, 0, 10, false},
	} {
		got, err := parseRange(c.text, c.size)
		if (err != nil) != c.refused || err == nil && (got.From != c.from || got.Length != c.length) {
			t.Errorf("%s of %d: %+v, %v", c.text, c.size, got, err)
		}
	}
}

// TestRefusals checks the error codes that clients rely on, and that a refused put changes nothing.
func TestRefusals(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "there", "x")
	bucket, key := aws.String("bucket"), aws.String("k")
	for want, in := range map[string]*s3.PutObjectInput{
		"BadDigest":                     {ChecksumCRC32: aws.String("AAAAAA==")},
		"InvalidDigest":                 {ContentMD5: aws.String("x")},
		"InvalidRequest":                {ChecksumCRC32: aws.String("x")},
		"NotImplemented":                {SSEKMSKeyId: aws.String("k")},
		"AccessControlListNotSupported": {ACL: types.ObjectCannedACLPublicRead},
		"InvalidStorageClass":           {StorageClass: types.StorageClassGlacier},
		"MetadataTooLarge":              {Metadata: map[string]string{"k": strings.Repeat("v", 2048)}},
		"InvalidTag":                    {Tagging: aws.String("aws:a=b")},
		"BadRequest":                    {Tagging: aws.String("a=&b=&c=&d=&e=&f=&g=&h=&i=&j=&k=")},
		"KeyTooLongError":               {Key: aws.String(strings.Repeat("k", 1025))},
		"NoSuchBucket":                  {Bucket: aws.String("nowhere")},
		"AccessDenied":                  {ExpectedBucketOwner: aws.String("111111111111")},
		"PreconditionFailed":            {Key: aws.String("there"), IfNoneMatch: aws.String("*")},
		"NoSuchKey":                     {IfMatch: aws.String("x")},
		"EntityTooLarge":                {ContentLength: aws.Int64(5<<30 + 1)},
	} {
		in.Body = strings.NewReader("hello")
		if in.Bucket == nil {
			in.Bucket = bucket
		}
		if in.Key == nil {
			in.Key = key
		}
		if _, err := s.PutObject(t.Context(), in); code(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	out, err := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket})
	if err != nil || len(out.Contents) != 1 {
		t.Errorf("the bucket has %+v, %v", out.Contents, err)
	}
}

// TestMultipart completes an upload wrongly in several ways, and then correctly, twice.
func TestMultipart(t *testing.T) {
	s, _ := newService(t)
	bucket, key := aws.String("bucket"), aws.String("k")
	u, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket:            bucket,
		Key:               key,
		ChecksumAlgorithm: "CRC32",
		ChecksumType:      "FULL_OBJECT",
	})
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Repeat("0123456789abcdef", (5<<20+32)/16)
	part := func(n int32, content string) types.CompletedPart {
		out, err := s.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket:     bucket,
			Key:        key,
			UploadId:   u.UploadId,
			PartNumber: &n,
			Body:       strings.NewReader(content),
		})
		if err != nil {
			t.Fatal(err)
		}
		return types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
	}
	tiny, first, last := part(1, "tiny"), part(2, whole[:5<<20]), part(7, whole[5<<20:])
	wrong := last
	wrong.ETag = aws.String(`"x"`)
	complete := func(parts ...types.CompletedPart) (*s3.CompleteMultipartUploadOutput, error) {
		return s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket:          bucket,
			Key:             key,
			UploadId:        u.UploadId,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
	}
	for want, parts := range map[string][]types.CompletedPart{
		"MalformedXML": {}, "InvalidPartOrder": {last, first}, "InvalidPart": {first, wrong}, "EntityTooSmall": {tiny, last},
	} {
		if _, err := complete(parts...); code(err) != want {
			t.Errorf("completed with %v: %v, want %s", parts, err, want)
		}
	}
	for range 2 { // a client repeats the call if the answer was lost
		out, err := complete(first, last)
		if err != nil || !strings.HasSuffix(*out.ETag, `-2"`) {
			t.Fatalf("completed: %+v, %v", out, err)
		}
		single, err := s.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket:            bucket,
			Key:               aws.String("single"),
			ChecksumAlgorithm: "CRC32",
			Body:              strings.NewReader(whole),
		})
		if err != nil || *single.ChecksumCRC32 != *out.ChecksumCRC32 {
			t.Errorf("the parts' checksum is %s, the whole's %s", *out.ChecksumCRC32, *single.ChecksumCRC32)
		}
	}
	got, err := s.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, PartNumber: aws.Int32(2)})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if b, err := io.ReadAll(got.Body); err != nil || string(b) != whole[5<<20:] || *got.PartsCount != 2 {
		t.Errorf("the second part is %d bytes, %v", len(b), err)
	}
}

// TestLocation has the URLs of objects that were uploaded in parts: uploaders such as @aws-sdk/lib-storage hand them to programs, which keep them.
func TestLocation(t *testing.T) {
	s, _ := newService(t)
	bucket, key := aws.String("bucket"), aws.String("a/b c")
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:4566":                          "http://127.0.0.1:4566/bucket/a/b%20c",
		"http://bucket.s3.localhost:4566":                "http://bucket.s3.localhost:4566/a/b%20c",
		"https://bucket.s3.us-east-1.amazonaws.com":      "https://bucket.s3.us-east-1.amazonaws.com/a/b%20c",
		"https://s3.us-east-1.amazonaws.com":             "https://s3.us-east-1.amazonaws.com/bucket/a/b%20c",
		"http://bucket.example.com":                      "http://bucket.example.com/bucket/a/b%20c",
		"http://bucket.s3.localhost.localstack.cloud:80": "http://bucket.s3.localhost.localstack.cloud:80/a/b%20c",
	} {
		ctx := call.With(t.Context(), call.Call{Endpoint: endpoint})
		u, err := s.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		one := aws.Int32(1)
		part, err := s.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: u.UploadId, PartNumber: one, Body: strings.NewReader("x")})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket:          bucket,
			Key:             key,
			UploadId:        u.UploadId,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: one, ETag: part.ETag}}},
		})
		if err != nil || *out.Location != want {
			t.Errorf("by %s it's at %s, want %s: %v", endpoint, aws.ToString(out.Location), want, err)
		}
	}
}

func configure(s *Service, ctx context.Context, queues ...types.QueueConfiguration) error {
	_, err := s.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{
		Bucket:                    aws.String("bucket"),
		NotificationConfiguration: &types.NotificationConfiguration{QueueConfigurations: queues},
	})
	return err
}

const queue = "arn:aws:sqs:us-east-1:000000000000:q"

func rule(prefix, suffix string, events ...types.Event) types.QueueConfiguration {
	return types.QueueConfiguration{
		Id:       aws.String(prefix + "/" + suffix),
		QueueArn: aws.String(queue),
		Events:   events,
		Filter: &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{
			FilterRules: []types.FilterRule{{Name: "Prefix", Value: &prefix}, {Name: "suffix", Value: &suffix}},
		}},
	}
}

func TestNotificationRefusals(t *testing.T) {
	s, q := newService(t)
	fifo := rule("", "", "s3:ObjectCreated:*")
	fifo.QueueArn = aws.String(queue + ".fifo")
	elsewhere := rule("", "", "s3:ObjectCreated:*")
	elsewhere.QueueArn = aws.String("arn:aws:sns:us-east-1:000000000000:q")
	none := rule("", "")
	for name, queues := range map[string][]types.QueueConfiguration{
		"fifo": {fifo}, "no queue": {elsewhere}, "no event": {none}, "unknown event": {rule("", "", "s3:Made")},
		"overlap": {rule("a", "x", "s3:ObjectCreated:Put"), rule("ab", "", "s3:ObjectCreated:*")},
		"ids":     {rule("a", "x", "s3:ObjectCreated:Put"), rule("a", "x", "s3:ObjectRemoved:*")},
	} {
		if err := configure(s, t.Context(), queues...); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	q.err = errors.New("no such queue")
	if err := configure(s, t.Context(), rule("", "", "s3:ObjectCreated:*")); code(err) != "InvalidArgument" {
		t.Errorf("a queue that does not answer: %v", err)
	}
	got, err := s.GetBucketNotificationConfiguration(t.Context(), &s3.GetBucketNotificationConfigurationInput{Bucket: aws.String("bucket")})
	if err != nil || len(got.QueueConfigurations) != 0 {
		t.Errorf("kept %+v, %v", got.QueueConfigurations, err)
	}
}

// TestTopics: topics are notified as queues are, and told apart from them.
func TestTopics(t *testing.T) {
	s, q := newService(t)
	const topic = "arn:aws:sns:us-east-1:000000000000:t"
	configure := func(topics ...types.TopicConfiguration) error {
		_, err := s.PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
			Bucket: aws.String("bucket"),
			NotificationConfiguration: &types.NotificationConfiguration{
				QueueConfigurations: []types.QueueConfiguration{rule("q/", "", "s3:ObjectCreated:*")},
				TopicConfigurations: topics,
			},
		})
		return err
	}
	one := types.TopicConfiguration{TopicArn: aws.String(topic), Events: []types.Event{"s3:ObjectCreated:*"}, Filter: rule("t/", "").Filter}
	for name, arn := range map[string]string{"a queue": queue, "a FIFO topic": topic + ".fifo", "a subscription": topic + ":x"} {
		bad := one
		bad.TopicArn = &arn
		if err := configure(bad); code(err) != "InvalidArgument" || len(q.sent) > 0 {
			t.Errorf("%s: %v, sent %q", name, err, q.sent)
		}
	}
	overlapping := one
	overlapping.Filter = rule("q/a", "").Filter
	if err := configure(overlapping); err == nil || !strings.Contains(err.Error(), "ambiguously") {
		t.Errorf("overlapping with a queue's: %v", err)
	}
	if err := configure(one); err != nil || len(q.sent) != 2 || !strings.HasPrefix(q.sent[1], topic+` Amazon S3 Notification {"Service":"Amazon S3","Event":"s3:TestEvent"`) {
		t.Fatalf("%v, sent %q", err, q.sent)
	}
	got, err := s.GetBucketNotificationConfiguration(t.Context(), &s3.GetBucketNotificationConfigurationInput{Bucket: aws.String("bucket")})
	if err != nil || len(got.QueueConfigurations) != 1 || len(got.TopicConfigurations) != 1 || *got.TopicConfigurations[0].TopicArn != topic || *got.TopicConfigurations[0].Id == "" {
		t.Errorf("kept %+v, %v", got, err)
	}
	put(t, s, "t/1", "x")
	owed, _, _, err := s.store.Owed(t.Context(), 10, delivery.All)
	if err != nil || len(owed) != 1 || owed[0].Destination != topic || owed[0].Subject != "Amazon S3 Notification" || !strings.Contains(owed[0].Body, `"key":"t/1"`) {
		t.Errorf("owed are %+v, %v", owed, err)
	}
}

// TestNotifications checks the test message, and the messages that changes owe.
func TestNotifications(t *testing.T) {
	s, q := newService(t)
	if err := configure(s, t.Context(), rule("in/", ".jpg", "s3:ObjectCreated:*"), rule("", "", "s3:ObjectRemoved:Delete")); err != nil {
		t.Fatal(err)
	}
	const test = `url:` + queue + ` {"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-21T12:00:00.000Z","Bucket":"bucket"`
	if len(q.sent) != 1 || !strings.HasPrefix(q.sent[0], test) {
		t.Fatalf("sent %q", q.sent)
	}
	ctx := call.With(t.Context(), call.Call{RequestID: "r", AccessKeyID: "AKID", Peer: "10.0.0.1:99"})
	for _, key := range []string{"in/a b+ü.jpg", "in/a.png", "out/a.jpg"} {
		in := &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: &key, Body: strings.NewReader("hello")}
		if _, err := s.PutObject(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket:     aws.String("bucket"),
		Key:        aws.String("in/c.jpg"),
		CopySource: aws.String("bucket/out/a.jpg"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second delete finds nothing, and owes the same
		if _, err := s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("bucket"), Key: aws.String("in/a.png")}); err != nil {
			t.Fatal(err)
		}
	}
	owed, _, _, err := s.store.Owed(t.Context(), 10, delivery.All)
	if err != nil || len(owed) != 4 {
		t.Fatalf("%d are owed, %v", len(owed), err)
	}
	want := `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1",` +
		`"eventTime":"2026-11-21T12:00:00.000Z","eventName":"ObjectCreated:Put",` +
		`"userIdentity":{"principalId":"AWS:AKID"},"requestParameters":{"sourceIPAddress":"10.0.0.1"},` +
		`"responseElements":{"x-amz-id-2":"r","x-amz-request-id":"r"},` +
		`"s3":{"s3SchemaVersion":"1.0","configurationId":"in//.jpg","bucket":{"name":"bucket",` +
		`"ownerIdentity":{"principalId":"000000000000"},"arn":"arn:aws:s3:::bucket"},` +
		`"object":{"key":"in/a+b%2B%C3%BC.jpg","size":5,"eTag":"5d41402abc4b2a76b9719d911017c592","sequencer":"000000000000000001"}}}]}`
	if got := owed[0].Body; got != want || owed[0].Destination != queue {
		t.Errorf("owed\n%s, want\n%s", got, want)
	}
	for i, name := range []string{"ObjectCreated:Put", "ObjectCreated:Copy", "ObjectRemoved:Delete", "ObjectRemoved:Delete"} {
		var e event
		if err := json.Unmarshal([]byte(owed[i].Body), &e); err != nil || e.Records[0].EventName != name {
			t.Errorf("owed %s, want %s", owed[i].Body, name)
		}
	}
}

// TestBusEvents: a bucket that says so tells the default bus of everything, beside whom else it tells, with the members that AWS documents.
func TestBusEvents(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	_, err := s.PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
		Bucket: theBucket,
		NotificationConfiguration: &types.NotificationConfiguration{
			EventBridgeConfiguration: &types.EventBridgeConfiguration{},
			QueueConfigurations:      []types.QueueConfiguration{rule("only/", "", "s3:ObjectCreated:*")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.GetBucketNotificationConfiguration(t.Context(), &s3.GetBucketNotificationConfigurationInput{Bucket: theBucket})
	if err != nil || kept.EventBridgeConfiguration == nil || len(kept.QueueConfigurations) != 1 {
		t.Fatalf("kept is %+v, %v", kept, err)
	}
	ctx := call.With(t.Context(), call.Call{RequestID: "r", AccessKeyID: "AKID", Peer: "10.0.0.1:99"})
	made, err := s.PutObject(ctx, &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("in/a b+ü"), Body: strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.PutObjectTagging(ctx, &s3.PutObjectTaggingInput{Bucket: theBucket, Key: aws.String("in/a b+ü"), Tagging: &types.Tagging{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteObjectTagging(ctx, &s3.DeleteObjectTaggingInput{Bucket: theBucket, Key: aws.String("in/a b+ü")}); err != nil {
		t.Fatal(err)
	}
	expired := call.With(t.Context(), call.Call{Identity: call.Identity{Principal: call.S3}, RequestID: "r"})
	marker, err := s.DeleteObject(expired, &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("in/a b+ü")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("in/a b+ü"), VersionId: made.VersionId})
	if err != nil {
		t.Fatal(err)
	}
	owed, _, _, err := s.store.Owed(t.Context(), 10, delivery.All)
	if err != nil || len(owed) != 5 {
		t.Fatalf("%d are owed, %v", len(owed), err)
	}
	const by = `},"request-id":"r","requester":"000000000000","source-ip-address":"10.0.0.1"`
	for i, want := range []struct{ detailType, object string }{
		{"Object Created", `"size":5,"etag":"5d41402abc4b2a76b9719d911017c592","version-id":"` + *made.VersionId +
			`","sequencer":"000000000000000001"` + by + `,"reason":"PutObject"`},
		{"Object Tags Added", `"etag":"5d41402abc4b2a76b9719d911017c592","version-id":"` + *made.VersionId + `"` + by},
		{"Object Tags Deleted", `"etag":"5d41402abc4b2a76b9719d911017c592","version-id":"` + *made.VersionId + `"` + by},
		{"Object Deleted", `"etag":"` + emptyETag + `","version-id":"` + *marker.VersionId + `","sequencer":"000000000000000004"},"request-id":"r",` +
			`"requester":"s3.amazonaws.com","reason":"Lifecycle Expiration","deletion-type":"Delete Marker Created"`},
		{"Object Deleted", `"version-id":"` + *made.VersionId + `","sequencer":"000000000000000005"` + by +
			`,"reason":"DeleteObject","deletion-type":"Permanently Deleted"`},
	} {
		var e busEvent
		if err := json.Unmarshal([]byte(owed[i].Body), &e); err != nil {
			t.Fatal(err)
		}
		text := `{"version":"0","id":"` + e.ID + `","detail-type":"` + want.detailType + `","source":"aws.s3","account":"000000000000",` +
			`"time":"2026-11-21T12:00:00Z","region":"us-east-1","resources":["arn:aws:s3:::bucket"],"detail":{"version":"0",` +
			`"bucket":{"name":"bucket"},"object":{"key":"in/a b+ü",` + want.object + `}}`
		if owed[i].Body != text || owed[i].Destination != "arn:aws:events:us-east-1:000000000000:event-bus/default" || len(e.ID) != 36 {
			t.Errorf("owed to %s\n%s, want\n%s", owed[i].Destination, owed[i].Body, text)
		}
	}
}

// TestEventOfAForm: an upload by a form has an event of its own.
func TestEventOfAForm(t *testing.T) {
	for isForm, want := range map[bool]string{false: "ObjectCreated:Put", true: "ObjectCreated:Post"} {
		if got := putEvent(call.With(t.Context(), call.Call{Form: isForm})); got != want {
			t.Errorf("%v: %s, want %s", isForm, got, want)
		}
	}
}

// FuzzCopySource parses any text as a copy's source. A source that parses has a bucket and a valid key.
// TestCopySource: a plus is a space, as in S3.
func TestCopySource(t *testing.T) {
	bucket, key, version, err := parseSource("/b%2Fa+b%2Bc%20d?versionId=null")
	if bucket != "b" || key != "a b+c d" || *version != "null" || err != nil {
		t.Errorf("%q, %q, %v, %v", bucket, key, version, err)
	}
}

func FuzzCopySource(f *testing.F) {
	for _, s := range []string{"b/k", "/b/a%20b?versionId=null", "b", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bucket, key, _, err := parseSource(text)
		if err == nil && (bucket == "" || key == "" || len(key) > maxKey) {
			t.Errorf("%q is %q, %q", text, bucket, key)
		}
	})
}

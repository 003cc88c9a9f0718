package elb

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
)

// checkAccessLogs refuses attributes by which no access log can be written.
func checkAccessLogs(b *state.LoadBalancer) error {
	bucket, prefix, enabled := b.AccessLogs()
	switch {
	case enabled && bucket == "":
		return badConfiguration("The value of 'access_logs.s3.bucket' cannot be empty")
	case strings.Contains(prefix, "AWSLogs") || strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/"):
		return badConfiguration("The value '%s' of 'access_logs.s3.prefix' must not contain AWSLogs, and not begin or end with /", prefix)
	}
	return nil
}

// testAccessLog writes the file by which AWS tests a bucket when access logs are switched on, or go elsewhere. It's written before anything
// changes: a bucket that can't be written to is refused.
func (s *Service) testAccessLog(ctx context.Context, arn string, given []pair) error {
	row := s.store.View().LoadBalancers.Get(arn)
	if row == nil || s.opts.Buckets == nil {
		return nil // the call is refused for it
	}
	attributes, err := setAttributes(loadBalancerAttributes, string(row.Type), row.Attributes, given)
	if err != nil {
		return err
	}
	after := state.LoadBalancer{LoadBalancer: row.LoadBalancer, Attributes: attributes}
	if err := checkAccessLogs(&after); err != nil {
		return err
	}
	bucket, prefix, enabled := after.AccessLogs()
	hasBucket, hasPrefix, has := row.AccessLogs()
	if !enabled || has && bucket == hasBucket && prefix == hasPrefix {
		return nil
	}
	key := path.Join(prefix, "AWSLogs", s.opts.ID, "ELBAccessLogTestFile")
	note := "Access logs of " + text(row.LoadBalancerName) + " are switched on.\n"
	_, err = s.opts.Buckets.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(note)})
	if _, refused := errors.AsType[smithy.APIError](err); refused {
		return badConfiguration("Access Denied for bucket: %s. Please check S3bucket permission", bucket)
	}
	return err
}
